/* fuzz.h - what a fuzz target is: one function of bytes that aborts where a reader does what it must not. `make fuzz`
 * links each with libFuzzer; the suite fuzz links all of them and runs their corpora and changes of those. */
#ifndef LRNN_TESTS_FUZZ_FUZZ_H
#define LRNN_TESTS_FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/status.h"

/* `make fuzz` defines LRNN_FUZZER. */
#ifdef LRNN_FUZZER
#define FUZZ_NAME(name) LLVMFuzzerTestOneInput
#else
#define FUZZ_NAME(name) fuzz_##name
#endif

/* Begins the target's function; the name is the file's. */
#define FUZZ(name)                                                                                                     \
    int FUZZ_NAME(name)(const uint8_t *data, size_t size);                                                             \
    int FUZZ_NAME(name)(const uint8_t *data, size_t size)

/* Returns the bytes as a text with a terminator; the caller frees it. */
static inline char *fuzz_text(const void *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text) abort();
    if (size) memcpy(text, data, size);
    text[size] = 0;
    return text;
}

/* A file in memory that holds the bytes; its path is good until fuzz_file_end. */
static inline int fuzz_file(const void *data, size_t size, char path[32]) {
    int fd = (int)syscall(SYS_memfd_create, "fuzz", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}

static inline void fuzz_file_end(int fd) {
    close(fd);
}

/* An error is one sentence. */
static inline void fuzz_sentence(const struct error *e) {
    if (!e->text[0] || strchr(e->text, '\n')) abort();
}

#endif
