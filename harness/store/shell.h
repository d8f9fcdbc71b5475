/* shell.h - text that a shell reads as it stands, and programs that are run without one. */
#ifndef LRNN_HARNESS_STORE_SHELL_H
#define LRNN_HARNESS_STORE_SHELL_H

#include <stddef.h>
#include <stdio.h>

#include "core/status.h"

/* Writes the text in single quotes, as one word of a shell. */
void shell_quote(FILE *f, const char *text);

/* Runs a program out of PATH with these arguments (the first is its name, the last NULL) in `folder` (NULL: where this
 * one is), `input` (or NULL) on its standard input. What it prints on both outputs goes to `said`, cut off at `size`,
 * without line ends at its end. *code: its exit status. ST_DATA: there is no such program; ST_FAIL: it could not be
 * run, or a signal ended it. */
enum status program_run(const char *const *arguments, const char *folder, const char *input, char *said, size_t size,
                        int *code, struct error *e);

#endif
