/* program.h - the program as its users run it: exit status, and what it prints. */
#ifndef LRNN_TESTS_LIB_PROGRAM_H
#define LRNN_TESTS_LIB_PROGRAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/lib/scratch.h"

/* The output of the last run; freed by the next one and by free_output. */
extern char *out, *err;
void free_output(void);

/* Exit status of `program arguments`, its output kept in files of `folder`. Ends the test if a signal ended the
 * program. */
int run_program(const char *folder, const char *program, const char *arguments);

/* Path of a program: the environment variable, or the one in the root of the repository. */
const char *named_program(const char *variable, const char *fallback);

/* --- a fixture: a folder, and the program that LRNN names run in it ----------------------------------------------- */

extern char program_folder[SCRATCH_BYTES];
void program_begin(void);
void program_end(void);

/* program_begin, and the folder is the working one, so that what a command writes by default lies in it. */
void program_begin_inside(void);

/* program_begin, and released data are looked for in that folder, which has none. */
void program_begin_without_data(void);

/* Whether a file or folder of that name is in it; the records in the folder of that name there. */
bool is_in_folder(const char *name);
int records_in(const char *name);

int run(const char *arguments);
void expect_status(int got, int want, const char *arguments);
void expect_text(const char *text, const char *wanted, const char *arguments);

/* --- JSON that it prints ------------------------------------------------------------------------------------------ */

/* The line as JSON; the caller releases it. */
json_t *parse_line(const char *line);
int64_t whole(const json_t *object, const char *key);
double number(const json_t *object, const char *key);

#endif
