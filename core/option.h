/* option.h - option tables. A struct's settable fields are described once by a table; the command line, config files,
 * --help, `lrnn info`, --print-config and the stored configuration all read that table. */
#ifndef LRNN_CORE_OPTION_H
#define LRNN_CORE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OPTION_TEXT 256 /* bytes of an OPT_TEXT field, terminator included */

enum option_type {
    OPT_INT,        /* int64_t; accepts k, M and G as 1e3, 1e6, 1e9 ("100k") */
    OPT_REAL,       /* double */
    OPT_BOOL,       /* bool; yes or no */
    OPT_CHOICE,     /* int; index into the blank-separated `choices` */
    OPT_TEXT_FIELD, /* char[OPTION_TEXT] */
    OPT_TIME        /* double seconds; accepts s, m and h ("30m") */
};

enum option_flag {
    OPT_AXIS = 1,    /* a difficulty axis of a task: profiles and sweeps may vary it */
    OPT_AUTO = 2,    /* the word auto stands for "derived from the sizes", held as 0, which is below `min` */
    OPT_RUNTIME = 4, /* does not change results (threads, output folder): left out of the run's identity */
    OPT_HERE = 8,    /* of this machine or this call (a file, a folder, quiet): left out of stored configurations too */
    OPT_LATER =
        16,        /* came after runs were recorded: left out of a run's identity while at its default, which is written
                        in canonical form, so that those runs keep their identity */
    OPT_SEED = 32, /* tells the runs of one cell apart: left out of the cell's identity */
    OPT_BLOCKS = 64, /* how many blocks or channels a mixer has: always part of a run's label, and its column `block` */
    OPT_ORDER = 128, /* block size or order of a mixer: always part of labels, tables' too, and the column `order` */
    OPT_LENGTH = 256, /* tokens of a task's sequences: what a sweep over lengths varies */
    OPT_RATE = 512,   /* tells the cells of one row of a table apart: left out of the row's key */
    OPT_OPEN = 1024,  /* how and where numbers are computed, and for how long at most: a profile says nothing of it */
    OPT_FOLD = 2048,  /* which part of a task's examples is tested on: what is reported is the mean over all parts */
    OPT_FOUND = 4096, /* found from a file by the program itself (its hash): no part of names, no flag to be typed */
    /* A file, a folder or the like: refused where it is given as an empty text, as a shell's unset variable makes it,
     * which would name the root folder or pass as not given. Its default may be empty. */
    OPT_FILLED = 8192
};

struct option {
    const char *name; /* with hyphens; the table ends with {0} */
    enum option_type type;
    size_t offset;       /* of the field in the object */
    const char *value;   /* default, as text */
    double min, max;     /* inclusive bounds of OPT_INT, OPT_REAL and OPT_TIME */
    const char *choices; /* OPT_CHOICE: blank-separated names; OPT_AUTO of OPT_INT: the option whose value auto stands
                            for, or NULL */
    const char *help;    /* one line: meaning, unit */
    unsigned flags;
};

/* Sets every field of *object to its default. */
enum status options_default(const struct option *table, void *object, struct error *e);

/* Sets one field from text. `owner` names the table's object in messages ("mixer bdlru", "task s5").
 * Errors, ST_USAGE: unknown name (with the nearest one), text that is not wholly a value, value out of range, as
 * option_filled. */
enum status options_set(const struct option *table, void *object, const char *owner, const char *name,
                        const char *value, struct error *e);

/* Writes "name=value<separator>name=value" of all fields, in table order, canonical form (shortest text that reads
 * back the same), leaving out what option_left_out says. Returns the length it wants, as snprintf. */
int options_format(const struct option *table, const void *object, const char *separator, unsigned skip_flags,
                   char *buffer, size_t size);

/* Whether an entry of that value is left out: its flags are among skip_flags; of OPT_LATER, and the value is its
 * default. */
bool option_left_out(const struct option *option, const char *value, unsigned skip_flags);

/* Value of one field in canonical form; as snprintf. */
int option_format_value(const struct option *option, const void *object, char *buffer, size_t size);

/* Where auto stands for the value of another option (`choices`): options_plain turns that value into auto wherever it
 * was given, so that nothing has two names; option_meant is the option that has the value of one at auto, else this
 * one itself. */
void options_plain(const struct option *table, void *object);
const struct option *option_meant(const struct option *table, const struct option *option, const void *object);

/* The canonical form of an option's text: shortest, units and multiples resolved. `buffer` has OPTION_TEXT + 1 bytes or
 * more. Errors as options_set. */
enum status option_canonical(const struct option *table, const char *owner, const char *name, const char *value,
                             char *buffer, size_t size, struct error *e);

/* ST_USAGE: the value is empty, and the entry of OPT_FILLED. */
enum status option_filled(const struct option *option, const char *owner, const char *value, struct error *e);

/* The entry of that name, or NULL. */
const struct option *option_find(const struct option *table, const char *name);

/* Of `count` names (name_of(list, i)), the one nearest to `name` by edit distance; NULL if none is near. */
const char *nearest_name(const char *name, int count, const char *(*name_of)(const void *list, int i),
                         const void *list);

/* Finds `name` among these names and stores its *index. ST_USAGE: "unknown KIND 'NAME'; did you mean 'NEAREST'?", or
 * where none is near all names but a template's; of a long list, the commands that print it. */
enum status name_choose(const char *kind, const char *name, int count, const char *(*name_of)(const void *list, int i),
                        const void *list, int *index, struct error *e);

/* Prints one line an option: name, default, range or choices, help. `prefix` is "--" for flags, "" for keys. */
void options_print_help(const struct option *table, const char *prefix, FILE *out);

/* Strict number parsing: the whole text or an error, which a number too large or too small for the type is as well; -0
 * is read as 0. Shortest decimal text that reads back as the same double. */
bool parse_int64(const char *text, int64_t *value);
bool parse_double(const char *text, double *value);
int format_double(double value, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
