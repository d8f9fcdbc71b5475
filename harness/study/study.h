/* study.h - the one place where it is decided which value of a flag or an option holds.
 *
 * A study is an ordered list of assignments "key = value", each with its origin. Keys are flags of a run, task.OPTION,
 * model.OPTION, models, seeds and variants. The strongest origin that says something of a key holds, whatever else the
 * key has: a list of values makes as many runs, and rates and seeds are lists like any other.
 *
 * One rule says how long a run is: a stronger origin's word on length voids the weaker ones. --steps and --epochs
 * void each other, and the steps of one origin stand over its epochs; any word on length, a --limit too, voids a weaker
 * --stop-after or --budget, which end a run early and leave its schedule as it is. */
#ifndef LRNN_HARNESS_STUDY_STUDY_H
#define LRNN_HARNESS_STUDY_STUDY_H

#include "harness/study/profile.h"
#include "harness/study/setup.h"

/* From the weakest to the strongest. The flags that one model has after its '@' stand over those that the same origin
 * has for all models. */
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
    bool limited;                  /* a time for all runs is a word on length, too, of the command line */
};

/* Gives the value that holds and its origin; NULL: the default holds. */
const char *study_get(const struct study *s, const char *key, enum origin *from);

/* Adds the flags after the '@' of a model's word "bdlru:m=5@dim=64,lr=0.01". `of` is the origin of the word. A word
 * without flags gets those that the profile has for that model. Errors as label_parse_pairs. */
enum status study_add_word(struct study *s, const char *word, enum origin of, struct error *e);

/* Gives the configuration. A flag with a list takes the value that `chosen` has for it, or stays at its default. Errors
 * as config_set. */
enum status study_config(const struct study *s, const struct label *chosen, struct config *c, struct error *e);

/* Writes the origin of a key's value: "profile s5/quick", "plan", "config file", "command line". */
void study_origin_text(const struct study *s, const char *key, char *text, size_t size);

/* Notes a flag of the command line: one of a run, with one value, or "c", the config file. *done: it was one. Errors as
 * config_set, for a bad value is told at once. */
enum status study_note(struct label *said, char config_file[OPTION_TEXT], const char *name, const char *value,
                       bool *done, struct error *e);

/* A config file's own task and model, labels without a name where it has only options of them, empty without a file.
 * *flags: those that it sets. Errors as config_read. */
enum status study_file(const char *config_file, struct label *task, struct label *model, struct label *flags,
                       struct error *e);

/* Finds one run's task, model and config file. The file's lines task.KEY and model.KEY hold for the task and model of
 * the words, which overrule them, or else for the file's own task and model. ST_USAGE: the file has options of another
 * task or model than the words name. */
enum status study_words(const char *config_file, char task[LABEL_TEXT], char model[LABEL_TEXT], struct error *e);

/* Reads a config file, or the configuration in a run's record (*.json): key=value lines, '#' comments, after a value
 * too. Keys are task.KEY, model.KEY, task, model and flags. Task and model texts are collected into `task` and `model`
 * ("s5:length=8"); flags are set in *c, and *flags says which. Errors: ST_DATA when unreadable, ST_USAGE with file and
 * line. */
enum status config_read(const char *path, struct config *c, char task[LABEL_TEXT], char model[LABEL_TEXT],
                        struct label *flags, struct error *e);

/* Like config_read, from text, as run records and exported weights hold it; `name` stands for the path in messages. */
enum status config_read_text(const char *text, const char *name, struct config *c, char task[LABEL_TEXT],
                             char model[LABEL_TEXT], struct error *e);

/* A resolved setup on the heap from texts and configuration; NULL with *e set. Freed with setup_free and free. */
struct setup *setup_make(const struct config *config, const char *task, const char *model, struct error *e);

/* Like setup_make, from a stored configuration (config_read_text), as run records and exported weights hold it.
 * ST_DATA: it is wrong; `name` names its file in the message. */
struct setup *setup_stored(const char *text, const char *name, int64_t threads, struct error *e);

#endif
