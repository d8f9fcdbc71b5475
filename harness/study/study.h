/* study.h - decides which value of a flag or an option is used, when several places set it.
 *
 * A study is an ordered list of assignments "key = value", each with its origin, the place that sets it (command line,
 * config file, plan, profile). Keys are flags of a run, task.OPTION, model.OPTION, models, seeds and variants. The
 * strongest origin that sets a key decides its value. A list of values makes as many runs; rates and seeds are lists
 * like any other.
 *
 * One more rule is for the length of a run: the strongest origin that sets a length cancels the lengths of weaker
 * origins. --steps and --epochs cancel each other; within one origin steps overrule epochs. Any length, --limit too,
 * cancels a weaker --stop-after or --budget, which end a run early without changing its schedule. */
#ifndef LRNN_HARNESS_STUDY_STUDY_H
#define LRNN_HARNESS_STUDY_STUDY_H

#include "harness/study/profile.h"
#include "harness/study/setup.h"

/* Origins from the weakest to the strongest. Flags of one model, after its '@', overrule the flags that the same origin
 * gives all models. */
enum origin {
    FROM_DEFAULT,
    FROM_PROFILE,
    FROM_PROFILE_MODEL,
    FROM_PLAN,
    FROM_PLAN_MODEL,
    FROM_FILE,
    FROM_COMMAND,
    FROM_COMMAND_MODEL,
    ORIGINS
};

struct study {
    struct label said[ORIGINS];
    const struct profile *profile; /* NULL: none */
    bool limited;                  /* --limit was given; it counts as a length on the command line */
};

/* Returns the value of the strongest origin; NULL: no origin sets the key, use the default. */
const char *study_get(const struct study *s, const char *key, enum origin *from);

/* Adds the flags after '@' of a model's word "bdlru:m=5@dim=64,lr=0.01". `of` is the origin of the word. A word without
 * flags gets the profile's flags for that model. Errors as label_parse_pairs. */
enum status study_add_word(struct study *s, const char *word, enum origin of, struct error *e);

/* Gives the configuration. A flag with a list takes its value in `chosen`, or stays at its default. Errors as
 * config_set. */
enum status study_config(const struct study *s, const struct label *chosen, struct config *c, struct error *e);

/* Writes the origin of a key's value: "profile s5/quick", "plan", "config file", "command line". */
void study_origin_text(const struct study *s, const char *key, char *text, size_t size);

/* Notes a flag of the command line: a flag of a run with one value, or "c", the config file. *done: it was such a flag.
 * Errors as config_set, since values are checked at once. */
enum status study_note(struct label *said, char config_file[OPTION_TEXT], const char *name, const char *value,
                       bool *done, struct error *e);

/* Gives the task, the model and the flags of a config file. A label has no name if the file has only options; all are
 * empty without a file. Errors as config_read. */
enum status study_file(const char *config_file, struct label *task, struct label *model, struct label *flags,
                       struct error *e);

/* Gives the task and model of one run from the words and the config file. The file's lines task.KEY and model.KEY apply
 * to the task and model of the words, whose own options overrule them, or else to the file's task and model. ST_USAGE:
 * the file has options of another task or model than the words name. */
enum status study_words(const char *config_file, char task[LABEL_TEXT], char model[LABEL_TEXT], struct error *e);

/* Reads a config file, or the configuration in a run's record (*.json): lines key=value, and comments after '#', which
 * may follow a value. Keys are task.KEY, model.KEY, task, model and flags. Task and model texts are collected into
 * `task` and `model` ("s5:length=8"); flags are set in *c, and *flags says which. Errors: ST_DATA when unreadable,
 * ST_USAGE with file and line. */
enum status config_read(const char *path, struct config *c, char task[LABEL_TEXT], char model[LABEL_TEXT],
                        struct label *flags, struct error *e);

/* Like config_read, from the text in run records and exported weights; `name` replaces the path in messages. */
enum status config_read_text(const char *text, const char *name, struct config *c, char task[LABEL_TEXT],
                             char model[LABEL_TEXT], struct error *e);

/* Makes a resolved setup on the heap from texts and configuration; NULL with *e set. Freed with setup_free. */
struct setup *setup_make(const struct config *config, const char *task, const char *model, struct error *e);

/* Like setup_make, from a configuration in a run record or exported weights (config_read_text). ST_DATA: it is wrong;
 * `name` names its file in the message. */
struct setup *setup_stored(const char *text, const char *name, int64_t threads, struct error *e);

#endif
