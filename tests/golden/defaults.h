/* defaults.h - the defaults of all options that are part of a run's identity, as tests/golden/defaults.txt holds them.
 *
 * An identity leaves out an option that stands at its default. A changed default would therefore give new runs the ids
 * of runs that were done with the former one, so it raises the version of its owner. The committed file tells a changed
 * default from a new option. */
#ifndef LRNN_TESTS_GOLDEN_DEFAULTS_H
#define LRNN_TESTS_GOLDEN_DEFAULTS_H

#include "core/status.h"

#define DEFAULTS_FILE "tests/golden/defaults.txt"

/* The text that the file should have, one line an option, "OWNER OPTION VERSION VALUE". The version belongs to the
 * model or task; for flags it is NUMERICS_BASE. The caller frees the text; NULL: no memory. */
char *defaults_text(void);

/* ST_FAIL: an option of the text `now` has another value than in the text `before`, under the same version. */
enum status defaults_compare(const char *now, const char *before, struct error *e);

/* ST_FAIL: the file is not as defaults_text; the message says what to do about it. */
enum status defaults_check(struct error *e);

/* Writes the file. ST_FAIL: it cannot be written, or as defaults_compare. */
enum status defaults_write(struct error *e);

#endif
