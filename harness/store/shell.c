/* shell.c - see shell.h. */
#define _GNU_SOURCE /* memfd_create, program_invocation_name */
#include "harness/store/shell.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM_MISSING 127 /* exit status of a child that did not find the program, as in a shell */

/* Characters without a meaning to a shell inside a word. Some have one at the beginning of a word. */
static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=+@%";

void shell_quote(FILE *f, const char *text) {
    if (*text && !strchr("=+@%", *text) && text[strspn(text, plain)] == 0) {
        fputs(text, f);
        return;
    }
    fputc('\'', f);
    for (; *text; text++) fputs(*text == '\'' ? "'\\''" : (char[]){*text, 0}, f);
    fputc('\'', f);
}

const char *shell_word(const char *text, char *word, size_t size) {
    FILE *f = fmemopen(word, size, "w");
    if (f) shell_quote(f, text);
    if (!f || fclose(f) != 0) word[0] = 0;
    word[size - 1] = 0;
    return word;
}

/* Returns the name to print for this program: "lrnn" if it was started under another name (in tests) or by a path that
 * needs quoting. */
const char *shell_program(void) {
    const char *name = program_invocation_name, *slash = strrchr(name, '/');
    bool ours = !strncmp(slash ? slash + 1 : name, "lrnn", 4) && name[strspn(name, plain)] == 0;
    return ours && slash ? name : "lrnn";
}

void shell_hint(FILE *f, const char *text) {
    for (const char *at = text; *at; at++) {
        bool begins = at == text || !strchr("abcdefghijklmnopqrstuvwxyz0123456789-_./", at[-1]);
        if (begins && !strncmp(at, "lrnn ", 5) && at[5] >= 'a' && at[5] <= 'z')
            fputs(shell_program(), f), at += 3;
        else
            fputc(*at, f);
    }
}

/* Becomes the program in a child process. Never returns. */
static void be_program(const char *const *arguments, const char *folder, int input, int output, int errors) {
    if (folder && chdir(folder) != 0) _exit(126);
    if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(errors, 2) < 0) _exit(126);
    close(input);
    close(output);
    execvp(arguments[0], (char *const *)arguments);
    _exit(errno == ENOENT ? PROGRAM_MISSING : 126);
}

/* Reads until the end of input and keeps the first size - 1 bytes. */
static void read_all(int fd, char *said, size_t size) {
    char bytes[4096];
    size_t used = 0;
    ssize_t n;
    while ((n = read(fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)) {
        for (ssize_t i = 0; i < n && used + 1 < size; i++) said[used++] = bytes[i];
    }
    while (used && (said[used - 1] == '\n' || said[used - 1] == '\r')) used--;
    said[used] = 0;
}

/* Writes the text to a child. Errors are ignored: if the child has ended, its exit status says so. */
static void write_all(int fd, const char *text) {
    size_t left = strlen(text);
    while (left) {
        ssize_t n = write(fd, text, left);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        text += n;
        left -= (size_t)n;
    }
}

static enum status talk(const char *const *arguments, const char *folder, const char *input, const int to[2],
                        const int from[2], int errors, struct program_words *words, int *code, struct error *e) {
    pid_t child = fork();
    if (child == 0) {
        close(to[1]);
        close(from[0]);
        be_program(arguments, folder, to[0], from[1], errors);
    }
    close(to[0]);
    close(from[1]);
    if (child > 0 && input) write_all(to[1], input);
    close(to[1]);
    if (child > 0) read_all(from[0], words->said, sizeof words->said);
    close(from[0]);
    int state = 0;
    if (child < 0) return fail(e, ST_FAIL, "cannot start %s: %s", arguments[0], strerror(errno));
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR) return fail(e, ST_FAIL, "cannot wait for %s: %s", arguments[0], strerror(errno));
    lseek(errors, 0, SEEK_SET); /* the program wrote it until its end */
    read_all(errors, words->complained, sizeof words->complained);
    if (!WIFEXITED(state)) return fail(e, ST_FAIL, "%s was ended by signal %d", arguments[0], WTERMSIG(state));
    *code = WEXITSTATUS(state);
    if (*code == PROGRAM_MISSING) return fail(e, ST_DATA, "there is no program %s in PATH", arguments[0]);
    return ST_OK;
}

enum status program_run(const char *const *arguments, const char *folder, const char *input,
                        struct program_words *words, int *code, struct error *e) {
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    /* Standard error goes to a file in memory, so that only one pipe has to be read at a time. */
    int errors = memfd_create("errors", MFD_CLOEXEC);
    *words = (struct program_words){"", ""};
    if (errors < 0 || pipe(to) != 0 || pipe(from) != 0) {
        fail(e, ST_FAIL, "cannot start %s: %s", arguments[0], strerror(errno));
        close(errors);
        close(to[0]);
        close(to[1]);
        return ST_FAIL;
    }
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    enum status status = talk(arguments, folder, input, to, from, errors, words, code, e);
    signal(SIGPIPE, before);
    close(errors);
    return status;
}
