/* label.h - the text that names a task or a model together with its options: "name:key=value,key=value".
 *
 * A value may be a list of whole numbers (key=1,2). The command line, profiles, config files, records, reports and
 * published numbers use labels, and only this file parses and formats them. A label that is too long is an error; it is
 * never cut off. */
#ifndef LRNN_CORE_LABEL_H
#define LRNN_CORE_LABEL_H

#include "core/option.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LABEL_TEXT 4096 /* bytes of a label as text, terminator included */

/* May be copied. All zeros is the empty label. */
struct label {
    size_t used;           /* bytes of `text`; the formatted label with its terminator takes as many */
    int n;                 /* pairs */
    char text[LABEL_TEXT]; /* name, key, value, key, value, ..., each ended by a 0 */
};

/* Reads "name:key=value,..." or just a name. `kind` ("task", "model") and the name appear in messages. ST_USAGE: a part
 * is no pair, a key is given twice, the text is too long. */
enum status label_parse(struct label *l, const char *kind, const char *text, struct error *e);

/* Reads pairs without a name, separated by any of `separators`: "epochs=12 lr=0.002" (NULL: no pair). Same errors as
 * label_parse; `owner` appears in messages. */
enum status label_parse_pairs(struct label *l, const char *owner, const char *text, const char *separators,
                              struct error *e);

/* The name; the key and the value of pair number i < l->n; the value of a key, NULL if the label lacks the key. All are
 * valid until the label is changed. */
const char *label_name(const struct label *l);
const char *label_key(const struct label *l, int i);
const char *label_value(const struct label *l, int i);
const char *label_get(const struct label *l, const char *key);

/* label_set_name renames the label. label_add appends a pair. label_set changes the value of a key that the label has,
 * else appends the pair. ST_USAGE: the label would be too long; label_add: the label already has the key. */
enum status label_set_name(struct label *l, const char *name, struct error *e);
enum status label_add(struct label *l, const char *key, const char *value, struct error *e);
enum status label_set(struct label *l, const char *key, const char *value, struct error *e);

/* Removes the pair with that key; a missing key is no error. */
void label_remove(struct label *l, const char *key);

/* Writes "name:key=value,...", or "key=value,..." if the label has no name. ST_USAGE: the text is longer than the
 * buffer, or a value has a comma without a whole number after it, so that label_parse could not read it. */
enum status label_format(const struct label *l, char *buffer, size_t size, struct error *e);

/* --- against an option table -------------------------------------------------------------------------------------- */

/* Sets the label's options in *object; `owner` names it in messages. Errors as options_set. */
enum status label_apply(const struct label *l, const struct option *table, void *object, const char *owner,
                        struct error *e);

/* The label of an object: every option in table order, in canonical form, except options with a flag of
 * `skip_flags`. */
enum status label_of(struct label *l, const char *name, const struct option *table, const void *object,
                     unsigned skip_flags, struct error *e);

/* Writes every value in its canonical form ("1k" of an integer option as "1000"). ST_USAGE as options_set. */
enum status label_normalise(struct label *l, const struct option *table, struct error *e);

/* The canonical form: every option of the table in its order, defaults filled in. Equal settings have equal canonical
 * forms, however they were written. ST_USAGE as options_set. */
enum status label_canonical(struct label *l, const struct option *table, struct error *e);

/* The short form: the canonical form without options at their default, unless the option has a flag of `always`. */
enum status label_shorten(struct label *l, const struct option *table, unsigned always, struct error *e);

/* Whether a label has the name and every pair of `wanted`; both are normalised, or both canonical. */
bool label_includes(const struct label *l, const struct label *wanted);

/* Stores in `difference` the pairs of `l` that `base` lacks or has with another value, under the name of `base`.
 * `difference` must be neither `l` nor `base`. */
enum status label_difference(const struct label *l, const struct label *base, struct label *difference,
                             struct error *e);

/* --- lists -------------------------------------------------------------------------------------------------------- */

/* text_copy copies a text. text_part copies from *at up to the first of `stops` or to the end, and moves *at there.
 * ST_USAGE: the text does not fit. */
enum status text_copy(const char *text, char *copy, size_t size, struct error *e);
enum status text_part(const char **at, const char *stops, char *part, size_t size, struct error *e);

/* Removes blanks and a carriage return at the end of the text. */
void text_trim(char *text);

/* Whether the text ends in `ending` and is longer: "a.json", but not ".json". */
bool text_ends(const char *text, const char *ending);

#ifdef __cplusplus
}
#endif
#endif
