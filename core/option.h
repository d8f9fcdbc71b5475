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
    OPT_HERE = 8, /* for this machine or this call alone (a file, a folder, quiet): left out of stored configurations */
    OPT_SEED = 16,   /* tells the runs of one cell apart: left out of the cell's identity */
    OPT_BLOCKS = 32, /* how many blocks or channels a mixer has: always part of a run's label, and its column `block` */
    OPT_ORDER = 64,  /* block size or order of a mixer: always part of labels, tables' too, and the column `order` */
    OPT_LENGTH = 128,  /* tokens of a task's sequences: what a sweep over lengths varies */
    OPT_RATE = 256,    /* tells the cells of one row of a table apart: left out of the row's key */
    OPT_OPEN = 512,    /* how, where and how long numbers are computed: profiles leave it open */
    OPT_FOLD = 1024,   /* which part of a task's examples is tested on: reports have the mean over all parts */
    OPT_TESTED = 8192, /* set to each of a task's test_length for test examples of that length */
    OPT_STATE =
        16384,        /* how many numbers of state a mixer has whose state does not follow the width: --match sets it */
    OPT_FOUND = 2048, /* found from a file by the program itself (its hash): no part of names, no flag to be typed */
    /* A file or a folder: an empty text, as a shell's unset variable gives it, is refused, because it would name the
     * root folder or pass as not given. The default may be empty. */
    OPT_FILLED = 4096
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

/* Sets one field from text. `owner` names the table's object or the origin of the value in messages: "mixer bdlru",
 * "command line", "papers/x.plan line 7".
 * Errors, ST_USAGE: unknown name (with the nearest one), text that is not wholly a value, value out of range, as
 * option_filled. */
enum status options_set(const struct option *table, void *object, const char *owner, const char *name,
                        const char *value, struct error *e);

/* Writes all fields as "name=value<separator>name=value", in table order and canonical form (the shortest text that
 * reads back the same), except fields with one of skip_flags. Returns the length it wants, as snprintf. */
int options_format(const struct option *table, const void *object, const char *separator, unsigned skip_flags,
                   char *buffer, size_t size);

/* Value of one field in canonical form; as snprintf. */
int option_format_value(const struct option *option, const void *object, char *buffer, size_t size);

/* For options whose auto stands for the value of another option (`choices`): turns that value into auto wherever it was
 * given, so that one setting has one name. */
void options_plain(const struct option *table, void *object);

/* The canonical form of an option's text: shortest, units and multiples resolved. `buffer` has OPTION_TEXT + 1 bytes or
 * more. Errors as options_set. */
enum status option_canonical(const struct option *table, const char *owner, const char *name, const char *value,
                             char *buffer, size_t size, struct error *e);

/* ST_USAGE: the value is empty although the entry has OPT_FILLED. */
enum status option_filled(const struct option *option, const char *owner, const char *value, struct error *e);

/* The entry with that name, or NULL. */
const struct option *option_find(const struct option *table, const char *name);

/* The nearest to `name` by edit distance among `count` names (name_of(list, i)); NULL if none is near. */
const char *nearest_name(const char *name, int count, const char *(*name_of)(const void *list, int i),
                         const void *list);

/* Finds `name` among these names and stores its *index. ST_USAGE: "unknown KIND 'NAME'; did you mean 'NEAREST'?". Where
 * none is near, the message has all names except a template's, or for a long list the commands that print it. */
enum status name_choose(const char *kind, const char *name, int count, const char *(*name_of)(const void *list, int i),
                        const void *list, int *index, struct error *e);

/* Prints one line an option: name, default, range or choices, help. `prefix` is "--" for flags, "" for keys. */
void options_print_help(const struct option *table, const char *prefix, FILE *out);

/* Strict number parsing: the whole text is a number in the range of the type, else an error; -0 is read as 0. The
 * shortest decimal text that reads back as the same double. */
bool parse_int64(const char *text, int64_t *value);
bool parse_double(const char *text, double *value);
int format_double(double value, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
