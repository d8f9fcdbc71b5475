/* main.c - entry: dispatch, one sentence on stderr when something is wrong, the status as exit code. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/cli/cli.h"
#include "harness/store/shell.h"
#include "kernels/lib/libraries.h"

/* jansson 2.14 does not look whether the buffer of a long string could grow, and reads beyond it: where it gets no
 * memory, the process ends. */
static void *json_memory(size_t size) {
    void *memory = malloc(size);
    if (memory) return memory;
    fputs("lrnn: no memory to read or write JSON\n", stderr);
    _exit(status_exit_code(ST_MEMORY));
}

/* Opens the null device where standard input, output or errors are closed: else the next file that is opened would take
 * their number and get what is said there. In place of the output it cannot be written, which is said as ever. */
static void fill_standard_files(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(status_exit_code(ST_FAIL));
}

int main(int argc, char **argv) {
    struct error e = {ST_OK, ""};
    fill_standard_files();
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of a file's size fails, and is said as any other is */
    setlocale(LC_NUMERIC, "C");
    json_set_alloc_funcs(json_memory, free);
    libraries_init();
    enum status status = cli_main(argc, argv, &e);
    errno = 0; /* a write that failed before leaves nothing to flush, and its error in the stream */
    if ((fflush(stdout) != 0 || ferror(stdout)) && status_exit_code(status) == ST_OK)
        status = fail(&e, ST_FAIL, "cannot write to standard output: %s", errno ? strerror(errno) : "a write failed");
    if (status != ST_OK && status != ST_HELP && e.text[0]) {
        fputs("lrnn: ", stderr);
        shell_hint(stderr, e.text);
        fputc('\n', stderr);
    }
    return status_exit_code(status);
}
