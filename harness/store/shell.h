/* shell.h - quotes text for a shell, and runs programs without a shell. */
#ifndef LRNN_HARNESS_STORE_SHELL_H
#define LRNN_HARNESS_STORE_SHELL_H

#include <stddef.h>
#include <stdio.h>

#include "core/status.h"

/* Writes the text as one word of a shell: unchanged if a shell reads it as one plain word, else in single quotes. */
void shell_quote(FILE *f, const char *text);

/* Like shell_quote, into `word`, which it returns. A word longer than `size` bytes is cut off. */
const char *shell_word(const char *text, char *word, size_t size);

/* Returns this program's name for use in a command: the path by which it was called, "./lrnn", or "lrnn". */
const char *shell_program(void);

/* Writes text with commands such as "lrnn bench s3", replacing "lrnn" by shell_program. */
void shell_hint(FILE *f, const char *text);

/* Runs a program from PATH with these arguments (the first is its name, the last NULL) in `folder` (NULL: the current
 * one), with `input` (or NULL) on its standard input. *words: its outputs, cut to fit, without line feeds at the end;
 * *code: its exit status. ST_DATA: there is no such program; ST_FAIL: it could not be run, or a signal ended it. */
struct program_words {
    char said[4096], complained[16384]; /* on its standard output; on its standard error */
};
enum status program_run(const char *const *arguments, const char *folder, const char *input,
                        struct program_words *words, int *code, struct error *e);

#endif
