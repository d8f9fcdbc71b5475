/* study.h - decides which value of a flag or an option is used if several places set it.
 *
 * A study is an ordered list of assignments "key = value". Each assignment has an origin, the place that sets a value:
 * command line, config file, plan or profile. Keys are flags of a run, task.OPTION, model.OPTION, models, seeds and
 * variants. The strongest origin that sets a key decides its value. A list of values means one run for each value; this
 * is true for every key, also for rates and seeds.
 *
 * The length of a run has one more rule: the strongest origin that sets a length cancels the lengths of weaker origins.
 * --steps and --epochs cancel each other; if the same origin sets both, steps overrule epochs. Any length, also
 * --limit, cancels a weaker --stop-after or --budget, which end a run early without changing its schedule. */
#ifndef LRNN_HARNESS_STUDY_STUDY_H
#define LRNN_HARNESS_STUDY_STUDY_H

#include "harness/study/profile.h"
#include "harness/study/setup.h"

/* The origins, from the weakest to the strongest. FROM_..._MODEL has the flags of one model, which follow its '@'. They
 * overrule the flags that the same place sets for all models. */
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

/* Returns the value that the strongest origin gives to a key. NULL: no origin sets the key, so its default is used. */
const char *study_get(const struct study *s, const char *key, enum origin *from);

/* Adds the flags in a model's word: in "bdlru:m=5@dim=64,lr=0.01" they follow '@'. `of` is the origin of the word. If
 * the word has no flags, adds the profile's flags for this model. Errors as label_parse_pairs. */
enum status study_add_word(struct study *s, const char *word, enum origin of, struct error *e);

/* Sets *c to the study's configuration. If a flag has a list of values, its value is taken from `chosen`; if `chosen`
 * lacks the flag, it stays at its default. Errors as config_set. */
enum status study_config(const struct study *s, const struct label *chosen, struct config *c, struct error *e);

/* Writes the origin of a key's value: "profile s5/quick", "plan", "config file", "command line". */
void study_origin_text(const struct study *s, const char *key, char *text, size_t size);

/* Reads a flag of the command line. Flags of a run go to `said`, and "c", the config file, goes to config_file. Sets
 * *done if the flag was one of these. Values are checked at once, with the errors of config_set. */
enum status study_note(struct label *said, char config_file[OPTION_TEXT], const char *name, const char *value,
                       bool *done, struct error *e);

/* Reads the task, the model and the flags from a config file. A label has no name if the file has only options of the
 * task or model. Without a file, all labels are empty. Errors as config_read. */
enum status study_file(const char *config_file, struct label *task, struct label *model, struct label *flags,
                       struct error *e);

/* Notes the options of a task or model (`kind`) under keys such as "task.length". ST_USAGE: too much text. */
enum status study_note_options(struct label *said, const char *kind, const struct label *l, struct error *e);

/* Notes what the command line and the config file say about one run. `task` and `model` are words of the command line.
 * An empty word is replaced by the file's task or model. The options in the words overrule the file's lines task.KEY
 * and model.KEY, and words replace the task and model of a record. ST_USAGE: the file has options of another task or
 * model than the words name. */
enum status study_words(struct study *s, const char *config_file, char task[LABEL_TEXT], char model[LABEL_TEXT],
                        struct error *e);

/* Adds to a word of `kind` ("task" or "model") the options that the study has for it. `table` lists all its options;
 * the profile's options of other tasks and models are left out. ST_USAGE: the profile has a range of values. */
enum status study_complete(const struct study *s, const char *kind, const struct option *table, char word[LABEL_TEXT],
                           struct error *e);

/* Reads a config file, or the configuration in a run's record (*.json). Both have lines key=value; comments begin with
 * '#' and may follow a value. Keys are task, model, task.KEY, model.KEY and flags. `task` and `model` become texts like
 * "s5:length=8". *c receives the values of flags, and *flags has the flags that were set. Errors: ST_DATA: the file
 * cannot be read. ST_USAGE: a line is wrong; the message names file and line. */
enum status config_read(const char *path, struct config *c, char task[LABEL_TEXT], char model[LABEL_TEXT],
                        struct label *flags, struct error *e);

/* Like config_read, for a text from a run record or from exported weights. Messages say `name` in place of a path. */
enum status config_read_text(const char *text, const char *name, struct config *c, char task[LABEL_TEXT],
                             char model[LABEL_TEXT], struct error *e);

/* Makes a resolved setup from texts and a configuration. NULL with *e set after an error. Free it with setup_free. */
struct setup *setup_make(const struct config *config, const char *task, const char *model, struct error *e);

/* Like setup_make, from a text in a run record or in exported weights (config_read_text). `name` is the file's name,
 * which messages have. ST_DATA: the configuration is wrong. */
struct setup *setup_stored(const char *text, const char *name, int64_t threads, struct error *e);

#endif
