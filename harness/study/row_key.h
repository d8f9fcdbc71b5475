/* row_key.h - the key of a table's row: the identity of a run without its learning rate and its seed. All runs with one
 * key are in one row.
 *
 * The option tables say which options are part of a run's identity, and which only distinguish the runs of a row
 * (OPT_SEED, OPT_RATE). */
#ifndef LRNN_HARNESS_STUDY_ROW_KEY_H
#define LRNN_HARNESS_STUDY_ROW_KEY_H

#include "harness/study/config.h"
#include "harness/store/record.h"

/* Reads the lines "key=value" of an identity (struct identity) or of a stored configuration into pairs: "task",
 * "task.KEY"..., "model", "model.KEY"..., the flags of a run in the order of their tables, then other lines
 * ("numerics"). Values are in canonical form, so equal keys mean the same row. An option that is newer than the text
 * gets its default. mlp and norm are left out if the net does not use them (backbone_takes_parts). Pairs that this
 * program does not know stay unchanged. ST_USAGE: a line that is no pair, or too much text. */
enum status row_key(const char *text, struct label *key, struct error *e);

/* Returns the value of a pair of a key; "": there is no such pair. A flag that the net does not use has its default. */
const char *row_key_value(const struct label *key, const char *name);

/* Returns the flag of a run that a pair of a key sets; NULL: it is not a flag. */
const struct option *row_key_flag(const char *name);

/* These check a value, or each value of a list. The first function is for an option. The second is for a flag,
 * "task.OPTION" or "model.OPTION"; it suffices that one option of that name accepts the value. Other keys may have any
 * value. ST_USAGE: a wrong value; `origin` ("papers/x.plan line 7") says where it was set. */
enum status row_key_check_option(const struct option *o, const char *value, const char *origin, struct error *e);
enum status row_key_check(const char *name, const char *value, const char *origin, struct error *e);

/* Whether a value is a list or a range, for a flag that may have several values. */
bool row_key_is_list(const char *name, const char *value);

/* Like row_key_flag, for "task.OPTION" and "model.OPTION": the first task or model that has the option counts. */
const struct option *row_key_option(const char *name);

/* Writes a value in its canonical form, by the first task or model whose option accepts it. If no option has that name,
 * the value stays unchanged. ST_USAGE: no option accepts it; `owner` names the flag in the message. */
enum status row_key_canonical(const char *name, const char *owner, const char *value, char *buffer, size_t size,
                              struct error *e);

#endif
