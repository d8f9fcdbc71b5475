/* shell.h - text that a shell reads as it stands, and programs that are run without one. */
#ifndef LRNN_HARNESS_STORE_SHELL_H
#define LRNN_HARNESS_STORE_SHELL_H

#include <stddef.h>
#include <stdio.h>

#include "core/status.h"

/* Writes the text as one word of a shell: as it stands where that is no more than a shell takes for a word, else in
 * single quotes. */
void shell_quote(FILE *f, const char *text);

/* Writes it as text and returns the text; a word that has no room in `size` bytes is cut off. */
const char *shell_word(const char *text, char *word, size_t size);

/* This program as a command has it: by the path of its call, "./lrnn"; "lrnn" where it was called without one. */
const char *shell_program(void);

/* Writes text in which commands of this program are called "lrnn bench s3", with the program as it was called. */
void shell_hint(FILE *f, const char *text);

/* Runs a program out of PATH with these arguments (the first is its name, the last NULL) in `folder` (NULL: where this
 * one is), `input` (or NULL) on its standard input. *words: what it prints, each output cut off to fit and without line
 * ends at its end; *code: its exit status. ST_DATA: there is no such program; ST_FAIL: it could not be run, or a signal
 * ended it. */
struct program_words {
    char said[4096], complained[16384]; /* on its standard output; on its standard error */
};
enum status program_run(const char *const *arguments, const char *folder, const char *input,
                        struct program_words *words, int *code, struct error *e);

#endif
