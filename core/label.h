/* label.h - a label is the text that names a task or a model together with its options: "name:key=value,key=value".
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

/* A label. It may be copied. All zeros is the empty label. */
struct label {
    size_t used;           /* bytes of `text`; the formatted label with its terminator has as many */
    int n;                 /* number of pairs */
    char text[LABEL_TEXT]; /* name, key, value, key, value, ...; each ends with a 0 */
};

/* Parses "name:key=value,..." or only a name. `kind` ("task", "model") and the name are for messages. ST_USAGE: a part
 * is no pair, a key is given twice, or the text is too long. */
enum status label_parse(struct label *l, const char *kind, const char *text, struct error *e);

/* Parses pairs without a name, such as "epochs=12 lr=0.002", which any of `separators` separate; NULL means no pair.
 * Errors as label_parse; `owner` is for messages. */
enum status label_parse_pairs(struct label *l, const char *owner, const char *text, const char *separators,
                              struct error *e);

/* These return the name; the key, and the value, of pair number i < l->n; the value of a key, or NULL if the label
 * lacks the key. The results are valid until the label is changed. */
const char *label_name(const struct label *l);
const char *label_key(const struct label *l, int i);
const char *label_value(const struct label *l, int i);
const char *label_get(const struct label *l, const char *key);

/* label_set_name renames the label. label_add appends a pair. label_set changes the value of a key; if the label lacks
 * the key, it appends the pair. ST_USAGE: the label would be too long; in label_add also if the label already has the
 * key. */
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

/* Makes the label of an object: every option in the order of the table, in canonical form, except options with a flag
 * of `skip_flags`. */
enum status label_of(struct label *l, const char *name, const struct option *table, const void *object,
                     unsigned skip_flags, struct error *e);

/* Writes every value in its canonical form (for an integer option, "1k" becomes "1000"). ST_USAGE as options_set. */
enum status label_normalise(struct label *l, const struct option *table, struct error *e);

/* Brings the label into canonical form: every option of the table, in its order, also options at their default. Equal
 * settings then have equal labels, however they were written. ST_USAGE as options_set. */
enum status label_canonical(struct label *l, const struct option *table, struct error *e);

/* Like label_canonical, but without options at their default, unless the option has a flag of `always`. */
enum status label_shorten(struct label *l, const struct option *table, unsigned always, struct error *e);

/* Whether a label has the name and every pair of `wanted`. Both must be normalised, or both canonical. */
bool label_includes(const struct label *l, const struct label *wanted);

/* Stores in `difference` the pairs of `l` that `base` lacks or has with another value, under the name of `base`.
 * `difference` must be neither `l` nor `base`. */
enum status label_difference(const struct label *l, const struct label *base, struct label *difference,
                             struct error *e);

/* --- lists -------------------------------------------------------------------------------------------------------- */

/* text_copy copies a text. text_part copies from *at up to the first of the characters `stops`, or to the end, and
 * moves *at there. ST_USAGE: the text does not fit. */
enum status text_copy(const char *text, char *copy, size_t size, struct error *e);
enum status text_part(const char **at, const char *stops, char *part, size_t size, struct error *e);

/* Removes blanks and a carriage return at the end of the text. */
void text_trim(char *text);

/* Whether the text ends with `ending` and is longer: "a.json" is, ".json" is not. */
bool text_ends(const char *text, const char *ending);

#ifdef __cplusplus
}
#endif
#endif
