/* libraries.c - the environment of OpenMP and OpenBLAS. See libraries.h. */
#include "kernels/lib/libraries.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/lib/gemm.h"

#define MAX_ARGS 4096

/* Replaces the process by the same program with the same arguments. Returns only if that is impossible. */
static void start_again(void) {
    static char program[4096], line[1 << 18];
    static char *args[MAX_ARGS + 1];
    FILE *file = fopen("/proc/self/cmdline", "rb");
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (!file || length < 0) {
        if (file) fclose(file);
        return;
    }
    size_t size = fread(line, 1, sizeof line - 1, file);
    bool whole = size < sizeof line - 1;
    fclose(file);
    int n = 0;
    for (size_t at = 0; at < size && n < MAX_ARGS; at += strlen(line + at) + 1) args[n++] = line + at;
    if (whole && n > 0 && n < MAX_ARGS) execv(program, args);
}

/* Sets a variable that the user has not set; true when that changed the environment. */
static bool set_unset(const char *name, const char *value) {
    return !getenv(name) && setenv(name, value, 0) == 0;
}

void libraries_init(void) {
    const char *core = gemm_core();
    bool changed = !getenv("OMP_WAIT_POLICY") && set_unset("GOMP_SPINCOUNT", "1000");
    if (core && set_unset("OPENBLAS_CORETYPE", core)) changed = true;
    if (changed) start_again();
    gemm_init();
}
