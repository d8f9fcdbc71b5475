/* row_key.h - what tells the rows of a table apart: the identity of a run without learning rate and seed.
 *
 * Nothing is listed here: the option tables say which options are part of a run's identity and which tell runs of one
 * row apart (OPT_SEED, OPT_RATE). */
#ifndef LRNN_HARNESS_STUDY_ROW_KEY_H
#define LRNN_HARNESS_STUDY_ROW_KEY_H

#include "harness/study/config.h"
#include "harness/store/record.h"

/* Reads the lines "key=value" of an identity (struct setup) or of a stored configuration into pairs: "task",
 * "task.KEY"..., "model", "model.KEY"..., the flags of a run in the order of their tables, then what stands after them
 * ("numerics"). Values are canonical and an option that the text lacks, because it came later, has its default; mlp and
 * norm are left out where the net has neither of those that they choose (backbone_takes_parts); what this program does
 * not know stays as it is. Equal keys are of one row, however they were written. ST_USAGE: a line that is no pair, or
 * too much text. */
enum status row_key(const char *text, struct label *key, struct error *e);

/* The value of a pair of a key; of what its net has no use for the default, so that it tells that row from no other;
 * "": it has none of that name. */
const char *row_key_value(const struct label *key, const char *name);

/* Gives a row's name: the hash of the key of one of its runs' identities. Errors as row_key. */
enum status row_key_id(const char *identity, char id[RUN_ID_HEX], struct error *e);

/* The option that a pair of a key sets, or NULL: not of a run's flags. */
const struct option *row_key_flag(const char *name);

/* Checks the value, or each of a list of values, of an option; or of a flag, of "task.OPTION" or of "model.OPTION", by
 * any option of that name; another key holds what it likes. ST_USAGE: it is none; `origin` says where it stands:
 * "papers/x.plan line 7". */
enum status row_key_check_option(const struct option *o, const char *value, const char *origin, struct error *e);
enum status row_key_check(const char *name, const char *value, const char *origin, struct error *e);

/* Whether a value is a list or a range of a flag that takes several. */
bool row_key_is_list(const char *name, const char *value);

/* Like row_key_flag, for "task.OPTION" and "model.OPTION": the first task or model that has the option counts. */
const struct option *row_key_option(const char *name);

/* The form in which a key has the value of a pair, of the first task or model whose option takes it. A value of what is
 * no option stays as it is. ST_USAGE: none takes it; `owner` names the flag in the message. */
enum status row_key_canonical(const char *name, const char *owner, const char *value, char *buffer, size_t size,
                              struct error *e);

#endif
