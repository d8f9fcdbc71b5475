/* args.h - what the commands `train` and `bench` share: flags, config file, TASK and MODEL texts. */
#ifndef LRNN_HARNESS_STUDY_ARGS_H
#define LRNN_HARNESS_STUDY_ARGS_H

#include "harness/study/setup.h"

/* The command line of a run, read but not yet resolved: flags given there stand over a config file's and a
 * profile's. */
struct args {
    struct config config;
    char task[LABEL_TEXT], model[LABEL_TEXT]; /* labels, possibly empty */
    char config_file[OPTION_TEXT];
    struct label given; /* flags of the command line */
};

/* Applies, in this order: defaults, `profile_flags` (or NULL), `more` flags (a plan's, or NULL),
 * the config file, the flags given. Call args_note for every flag first. Task and model are taken from the file where
 * the words have none; else its lines of them are not looked at (args_merge). */
enum status args_apply(struct args *a, const struct label *profile_flags, const struct label *more, struct error *e);

/* Lines task.KEY and model.KEY of the config file hold for the task and the model of the words as well, which stand
 * over them. A run's record (.json) holds one whole task and one whole model: words take their places. Call before
 * args_apply. ST_USAGE: the file has options of another task or model than the words name. */
enum status args_merge(struct args *a, struct error *e);

/* The config file's own task and model, labels without a name where it has but options of them; without pairs where
 * there is no file, or it is a run's record. *flags: those that it sets. Errors as config_read. */
enum status args_file(const struct args *a, struct label *task, struct label *model, struct label *flags,
                      struct error *e);

/* Sets flags of one origin in a configuration that has those of lower ones. Epochs among them say how long a run is, so
 * they void steps that come from below. ST_USAGE as config_set. */
enum status args_set(const struct label *flags, struct config *c, struct error *e);

/* Whether they do: epochs without steps of the same origin, which stand over epochs. */
bool args_void_steps(const struct label *flags);

/* Remembers a flag of the command line; a run flag (config or backbone) or "c" is taken (*done = true). */
enum status args_note(struct args *a, const char *name, const char *value, bool *done, struct error *e);

/* A resolved setup on the heap from texts and configuration; NULL with *e set. Freed with setup_free and free. */
struct setup *setup_make(const struct config *config, const char *task, const char *model, struct error *e);

/* The same from a stored configuration (config_read_text), as run records and exported weights hold it. Whatever is
 * wrong with it is the fault of what `name` names: ST_DATA. */
struct setup *setup_stored(const char *text, const char *name, int64_t threads, struct error *e);

#endif
