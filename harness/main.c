/* main.c - entry: dispatch, one sentence on stderr when something is wrong, the status as exit code. */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "harness/cli/cli.h"
#include "kernels/lib/gemm.h"

int main(int argc, char **argv) {
    struct error e = {ST_OK, ""};
    setlocale(LC_NUMERIC, "C");
    gemm_init();
    enum status status = cli_main(argc, argv, &e);
    errno = 0;
    if (fflush(stdout) != 0 && status_exit_code(status) == ST_OK)
        status = fail(&e, ST_FAIL, "cannot write to standard output: %s", strerror(errno));
    if (status != ST_OK && status != ST_HELP && e.text[0]) fprintf(stderr, "lrnn: %s\n", e.text);
    return status_exit_code(status);
}
