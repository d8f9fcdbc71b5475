/* config.h - everything that decides a run: task with options, model with options, flags. Resolved once, stored whole.
 *
 * Precedence: flag > -c file > profile > default. The identity of a run is the hash of its resolved configuration
 * without what cannot change a result (threads, folders, output), plus seed, task version, device kind, dtype and
 * numerics version. */
#ifndef LRNN_HARNESS_CONFIG_H
#define LRNN_HARNESS_CONFIG_H

#include "core/label.h"
#include "core/schedule.h"
#include "harness/store/record.h"
#include "models/net.h"
#include "tasks/task.h"

#define CONFIG_TEXT   4096 /* bytes of a whole configuration as text */
#define NUMERICS_TEXT 32

/* --schedule, --precision and --keep-weights, in the order of their choices. */
enum run_schedule { RUN_CONSTANT, RUN_COSINE, RUN_COSINE_EPOCH, RUN_MAD_CONST, RUN_MAD_COSINE };
enum run_precision { PRECISION_NATIVE, PRECISION_TF32 };
enum keep_weights { KEEP_NONE, KEEP_BEST, KEEP_ALL };

struct config {
    struct backbone net; /* first, so that backbone_options apply to a struct config too */
    int64_t steps, epochs, batch, warmup, eval_every, patience, seed, threads;
    double lr, lr_min, decay, beta1, beta2, clip, stop_at, min_gain, budget, checkpoint_every;
    int schedule, precision, keep_weights; /* the enums above */
    bool allow_non_causal, ahead, quiet, json, no_color;
    char device[OPTION_TEXT], kernel[OPTION_TEXT], out[OPTION_TEXT], profile[OPTION_TEXT];
    char from[OPTION_TEXT], from_xxh3[OPTION_TEXT]; /* file of the first weights, and its content; "" = drawn */
};

extern const struct option config_options[]; /* all flags of a run but the backbone's */

/* A run to be done: parsed, then resolved. */
struct setup {
    struct config config;
    struct task_choice task;
    struct model_choice model;                  /* as parsed; resolving fits it to the training length */
    struct model_choice parsed;                 /* as parsed, to be fitted to any length; set by resolving */
    struct arena host;                          /* the task's tables */
    double flops;                               /* of the whole run, where somebody has counted (bench); else 0 */
    int64_t steps_per_epoch, steps, eval_every; /* resolved */
    char identity[CONFIG_TEXT], config_text[CONFIG_TEXT], model_label[RECORD_TEXT];
    char run_id[RUN_ID_HEX], cell_id[RUN_ID_HEX], numerics[NUMERICS_TEXT];
};

/* Defaults of every flag. */
enum status config_default(struct config *c, struct error *e);

/* Sets a flag by name; knows the backbone's too. */
enum status config_set(struct config *c, const char *name, const char *value, struct error *e);

/* Reads a config file: key=value lines, '#' comments, task.KEY, model.KEY, task=NAME, model=NAME, or a flag's name.
 * Task and model texts are collected into `task` and `model` ("s5:length=8"); flags are set in *c. Errors: ST_DATA when
 * unreadable, ST_USAGE with file and line. */
enum status config_read(const char *path, struct config *c, char task[LABEL_TEXT], char model[LABEL_TEXT],
                        struct error *e);

/* The same from text, as run records and exported weights hold it; `name` stands for the path in messages. */
enum status config_read_text(const char *text, const char *name, struct config *c, char task[LABEL_TEXT],
                             char model[LABEL_TEXT], struct error *e);

/* Opens the task, checks the model against the sizes, derives steps and ids. Call once, after everything is set. ST_USAGE: what
 * does not fit, together or into a record; ST_DATA: the file of the first weights cannot be read, or is not the one of
 * from_xxh3. */
enum status setup_resolve(struct setup *s, struct error *e);
void setup_free(struct setup *s);

/* Steps of an epoch and of the run, from the flags of an opened task; part of setup_resolve. */
void setup_length(struct setup *s);

/* What the task asks of the net in a split. */
struct net_shape setup_net_shape(const struct setup *s, enum split split);

/* Sequences of the strings of another length that each training step takes besides; 0 if the task has none. */
int64_t setup_extra_batch(const struct setup *s);

struct schedule setup_schedule(const struct setup *s);

#endif
