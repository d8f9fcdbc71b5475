/* option.h - tables of options. A table describes the fields of a struct that can be set. The command line, config
 * files, --help, `lrnn info`, --print-config and the stored configuration all use it. */
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
    OPT_CHOICE,     /* int: the index into `choices`, which blanks separate */
    OPT_TEXT_FIELD, /* char[OPTION_TEXT] */
    OPT_TIME        /* double seconds; accepts s, m and h ("30m") */
};

enum option_flag {
    OPT_AXIS = 1,    /* makes a task harder; profiles and sweeps may vary it */
    OPT_AUTO = 2,    /* "auto" means that it follows from the sizes; stored as 0, which is below `min` */
    OPT_RUNTIME = 4, /* does not change results (threads, output folder), so it is not in the run's identity */
    /* concerns only this machine or this command (a file, a folder), so it is not in stored configurations */
    OPT_HERE = 8,
    OPT_SEED = 16,     /* it alone distinguishes the runs of a cell, so it is not in the cell's identity */
    OPT_BLOCKS = 32,   /* number of blocks or channels of a mixer: always in a run's label; it is the column `block` */
    OPT_ORDER = 64,    /* block size or order of a mixer: always in labels, also in tables; it is the column `order` */
    OPT_LENGTH = 128,  /* length of a task's sequences; a sweep over lengths varies it */
    OPT_RATE = 256,    /* it alone distinguishes the cells of a table's row, so it is not in the row's key */
    OPT_OPEN = 512,    /* how, where and how long numbers are computed; profiles do not set it */
    OPT_FOLD = 1024,   /* which part of a task's examples is the test set; reports show the mean over all parts */
    OPT_TESTED = 8192, /* set to each value of a task's test_length in turn, for test examples of that length */
    OPT_STATE = 16384, /* the option of a mixer by which --match sets the size of its state */
    OPT_FOUND = 2048,  /* the program finds it in a file (the file's hash); it is neither part of names nor a flag */
    /* A file or a folder. An empty text (for example an unset variable of the shell) is refused, because it would name
     * the root folder or count as not given. The default may be empty. */
    OPT_FILLED = 4096
};

struct option {
    const char *name; /* with hyphens; {0} ends the table */
    enum option_type type;
    size_t offset;     /* of the field in the struct */
    const char *value; /* default, as text */
    double min, max;   /* inclusive bounds of OPT_INT, OPT_REAL and OPT_TIME */
    /* OPT_CHOICE: names with blanks between them; OPT_INT with OPT_AUTO: the option whose value "auto" means, or
     * NULL */
    const char *choices;
    const char *help; /* one line with meaning and unit */
    unsigned flags;
};

/* Sets every field of *object to its default. */
enum status options_default(const struct option *table, void *object, struct error *e);

/* Sets one field from text. In messages, `owner` says whose option it is or where the value was given: "mixer bdlru",
 * "command line", "papers/x.plan line 7". ST_USAGE: the name is unknown (the message has the nearest one), the text is
 * no value, the value is out of range, or option_filled fails. */
enum status options_set(const struct option *table, void *object, const char *owner, const char *name,
                        const char *value, struct error *e);

/* Writes all fields as "name=value<separator>name=value", in the order of the table and in canonical form, which is the
 * shortest text that reads back the same. Fields with one of skip_flags are left out. Returns the length that it needs,
 * like snprintf. */
int options_format(const struct option *table, const void *object, const char *separator, unsigned skip_flags,
                   char *buffer, size_t size);

/* Writes the value of one field in canonical form. Returns like snprintf. */
int option_format_value(const struct option *option, const void *object, char *buffer, size_t size);

/* Whether a field has the same value in two objects. */
bool option_same(const struct option *option, const void *a, const void *b);

/* Options may have "auto" that means the value of another option (`choices`). If such an option has that value, this
 * sets it to auto, so that each setting has one name. */
void options_plain(const struct option *table, void *object);

/* Writes the canonical form of an option's text: the shortest, without units and multiples. `buffer` has at least
 * OPTION_TEXT + 1 bytes. Errors as options_set. */
enum status option_canonical(const struct option *table, const char *owner, const char *name, const char *value,
                             char *buffer, size_t size, struct error *e);

/* ST_USAGE: the value is empty, but the option has OPT_FILLED. */
enum status option_filled(const struct option *option, const char *owner, const char *value, struct error *e);

/* Returns the option with that name, or NULL. */
const struct option *option_find(const struct option *table, const char *name);

/* Returns the name nearest to `name` by edit distance, among `count` names (name_of(list, i)); NULL if none is near. */
const char *nearest_name(const char *name, int count, const char *(*name_of)(const void *list, int i),
                         const void *list);

/* Finds `name` among these names, and stores its *index. ST_USAGE: "unknown KIND 'NAME'; did you mean 'NEAREST'?". If
 * no name is near, the message lists all names except the template, or names the commands that print a long list. */
enum status name_choose(const char *kind, const char *name, int count, const char *(*name_of)(const void *list, int i),
                        const void *list, int *index, struct error *e);

/* Prints one line for each option: name, default, range or choices, help. `prefix` is "--" for flags, "" for keys. */
void options_print_help(const struct option *table, const char *prefix, FILE *out);

/* These parse a number strictly: false unless the whole text is a number in the range of the type. -0 is read as 0.
 * format_double writes the shortest decimal text that reads back as the same double. */
bool parse_int64(const char *text, int64_t *value);
bool parse_double(const char *text, double *value);
int format_double(double value, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
