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
    OPT_AUTO = 2,    /* the word auto means "derived from the sizes"; stored as 0, which is below `min` */
    OPT_RUNTIME = 4, /* does not change results (threads, output folder): left out of the run's identity */
    OPT_HERE = 8,    /* concerns only this machine or this call (a file, a folder): left out of stored configurations */
    OPT_SEED = 16,   /* the runs of one cell differ only in it: left out of the cell's identity */
    OPT_BLOCKS = 32, /* number of blocks or channels of a mixer: always part of a run's label, and its column `block` */
    OPT_ORDER = 64,  /* block size or order of a mixer: always part of labels, also in tables; the column `order` */
    OPT_LENGTH = 128,  /* length of a task's sequences: a sweep over lengths varies it */
    OPT_RATE = 256,    /* the cells of one row of a table differ only in it: left out of the row's key */
    OPT_OPEN = 512,    /* how, where and how long numbers are computed: profiles do not set it */
    OPT_FOLD = 1024,   /* which part of a task's examples is tested on: reports show the mean over all parts */
    OPT_TESTED = 8192, /* set in turn to each value of a task's test_length, for test examples of that length */
    OPT_STATE = 16384, /* size of the state, for mixers whose state size is independent of the width; --match sets it */
    OPT_FOUND = 2048,  /* the program finds it in a file (the file's hash): not part of names, not a flag */
    /* A file or a folder. An empty text (an unset variable of the shell) is refused, because it would name the root
     * folder or count as not given. The default may be empty. */
    OPT_FILLED = 4096
};

struct option {
    const char *name; /* with hyphens; the table ends with {0} */
    enum option_type type;
    size_t offset;       /* of the field in the object */
    const char *value;   /* default, as text */
    double min, max;     /* inclusive bounds of OPT_INT, OPT_REAL and OPT_TIME */
    const char *choices; /* OPT_CHOICE: blank-separated names; OPT_INT with OPT_AUTO: the option whose value auto means,
                            or NULL */
    const char *help;    /* one line: meaning, unit */
    unsigned flags;
};

/* Sets every field of *object to its default. */
enum status options_default(const struct option *table, void *object, struct error *e);

/* Sets one field from text. `owner` says in messages whose option it is or where the value was given: "mixer bdlru",
 * "command line", "papers/x.plan line 7".
 * ST_USAGE: the name is unknown (the message has the nearest one), the text is no value, the value is out of range, or
 * option_filled fails. */
enum status options_set(const struct option *table, void *object, const char *owner, const char *name,
                        const char *value, struct error *e);

/* Writes all fields as "name=value<separator>name=value", in table order and canonical form (the shortest text that
 * reads back the same), except fields with one of skip_flags. Returns the length it needs, like snprintf. */
int options_format(const struct option *table, const void *object, const char *separator, unsigned skip_flags,
                   char *buffer, size_t size);

/* Writes the value of one field in canonical form. Returns like snprintf. */
int option_format_value(const struct option *option, const void *object, char *buffer, size_t size);

/* Whether a field has the same value in two objects. */
bool option_same(const struct option *option, const void *a, const void *b);

/* For each option whose auto means the value of another option (`choices`): if the option has that value, sets it to
 * auto, so that one setting has one name. */
void options_plain(const struct option *table, void *object);

/* Writes the canonical form of an option's text: shortest, units and multiples resolved. `buffer` has at least
 * OPTION_TEXT + 1 bytes. Errors as options_set. */
enum status option_canonical(const struct option *table, const char *owner, const char *name, const char *value,
                             char *buffer, size_t size, struct error *e);

/* ST_USAGE: the value is empty although the entry has OPT_FILLED. */
enum status option_filled(const struct option *option, const char *owner, const char *value, struct error *e);

/* The entry with that name, or NULL. */
const struct option *option_find(const struct option *table, const char *name);

/* The name nearest to `name` by edit distance, among `count` names (name_of(list, i)); NULL if none is near. */
const char *nearest_name(const char *name, int count, const char *(*name_of)(const void *list, int i),
                         const void *list);

/* Finds `name` among these names and stores its *index. ST_USAGE: "unknown KIND 'NAME'; did you mean 'NEAREST'?". If no
 * name is near, the message lists all names except the template, or names the commands that print a long list. */
enum status name_choose(const char *kind, const char *name, int count, const char *(*name_of)(const void *list, int i),
                        const void *list, int *index, struct error *e);

/* Prints one line an option: name, default, range or choices, help. `prefix` is "--" for flags, "" for keys. */
void options_print_help(const struct option *table, const char *prefix, FILE *out);

/* Parse a number strictly: false unless the whole text is a number in the range of the type; -0 is read as 0.
 * format_double writes the shortest decimal text that reads back as the same double. */
bool parse_int64(const char *text, int64_t *value);
bool parse_double(const char *text, double *value);
int format_double(double value, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
