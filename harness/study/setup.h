/* setup.h - a setup is everything that decides a run: task and model with their options, and flags. It is resolved
 * once, and the record stores it completely.
 *
 * The identity of a run is the hash of its resolved configuration, seed, task version, dtype and numerics version.
 * Flags that cannot change a result (threads, folders, output) and options at their default are left out. */
#ifndef LRNN_HARNESS_STUDY_SETUP_H
#define LRNN_HARNESS_STUDY_SETUP_H

#include "harness/study/config.h"
#include "harness/store/record.h"
#include "tasks/task.h"

struct schedule; /* core/schedule.h */

#define NUMERICS_TEXT 96   /* bytes of a numerics version as text */
#define CONFIG_TEXT   4096 /* bytes of a whole configuration as text */

/* The request for a run, with typed values. No member follows from another. */
struct spec {
    struct config config;
    struct task_choice task;   /* opened by setup_resolve */
    struct model_choice model; /* as the user gave it, and as records store it */
};

/* Sizes that follow from the request: the model fitted to the batches of the task, and lengths in steps. */
struct shapes {
    struct model_choice model;        /* fitted to a training batch */
    struct model_choice eval_model;   /* fitted to a batch of validation or test */
    struct model_choice second_model; /* fitted to the second batch of a step, if the task has one */
    unsigned in_vain;                 /* bits of the flags that have no effect (setup_check_asked) */
    struct arena host;                /* owns the task's tables; empty after setup_close */
    int64_t steps_per_epoch, eval_every;
    int64_t schedule_steps; /* steps of the learning rate's schedule */
    int64_t steps;          /* at most so many steps: schedule_steps, or fewer with --stop-after */
};

/* The names of a run. `text` is the part of the resolved configuration that can change a result. run_id is the hash of
 * `text`. cell_id is the hash without the seed; a cell is all runs that differ only in the seed. row_id is the hash of
 * the row's key (row_key.h). Both texts are owned. */
struct identity {
    /* config_text: the requested configuration, which the record stores; NULL if the setup is closed */
    char *text, *config_text;
    char model_label[RECORD_TEXT];
    char run_id[RUN_ID_HEX], cell_id[RUN_ID_HEX], row_id[RUN_ID_HEX], numerics[NUMERICS_TEXT];
};

/* The cost of the graphs of a run; all zeros until graphs_estimate has computed it. */
struct estimate {
    double flops;   /* FLOPs of the whole run */
    int64_t params; /* number of trained parameters */
    size_t memory;  /* bytes of its largest graph */
};

/* A planned run. The caller fills `spec`, and setup_resolve the other parts. */
struct setup {
    struct spec spec;
    struct shapes shapes;
    struct identity id;
    struct estimate estimate;
};

/* Opens the task, checks the model against the sizes, and computes steps and ids. Call it once, after `spec` is
 * complete. ST_USAGE: sizes that do not fit each other, or texts too long for a record; ST_DATA: the file of the first
 * weights cannot be read, or its hash differs from from_xxh3. */
enum status setup_resolve(struct setup *s, struct error *e);

/* Replaces --match by the size that is nearest to it. So the run has the same id as a run with this size given
 * directly. It is a part of setup_resolve, after the task is open. params=N sets --dim. state=N sets the mixer's option
 * with OPT_STATE, and halves the width for as long as it makes the state too large; a mixer without such an option gets
 * a --dim. Sizes that the mixer does not accept are skipped, such as widths that its number of heads does not divide.
 * ST_USAGE: a text of another form, or no size to choose. */
enum status setup_match(struct spec *s, struct error *e);

/* Frees a setup from setup_make or calloc. NULL is allowed. */
void setup_free(struct setup *s);

/* setup_close frees the task's tables and config_text: a plan has many runs, and only those that are trained, tested or
 * timed need them. setup_open makes them again if they are missing; errors as setup_resolve. */
void setup_close(struct setup *s);
enum status setup_open(struct setup *s, struct error *e);

/* Makes a closed copy of the resolved `s`, with the rate, the seed and the profile's name of `c`. It copies sizes,
 * numerics and estimate and does not compute them again. NULL with *e set: errors as setup_resolve. Free it with
 * setup_free. */
struct setup *setup_again(const struct setup *s, const struct config *c, struct error *e);

/* Writes config_text, also for a closed setup. ST_USAGE: it is too long. */
enum status setup_config_text(const struct spec *s, char text[CONFIG_TEXT], struct error *e);

/* Writes NUMERICS_BASE, then each part that the run uses and whose number was raised: "1+slice.2+scan_block_cpu.3". All
 * kernels for the kind of device count, whichever a processor uses, so that a run has the same identity on all
 * machines. If the run forces the reference kernels, only these count. The model must be fitted. ST_FAIL: the
 * text is too short; other errors as building the graphs. */
enum status setup_numerics(const struct spec *s, const struct shapes *shapes, char *text, size_t size, struct error *e);

/* ST_USAGE: the net sees later inputs than its task allows. Training and testing check this. Records, measurements and
 * golden traces use setups without this check. */
enum status setup_check_causal(const struct spec *s, struct error *e);

/* Calls setup_check_causal for all runs. ST_USAGE also if --mlp, --norm or --pool was given but has no effect in any
 * run. `asked` has the flags that were given; NULL: it does not matter where they were set. Runs in which such a flag
 * has no effect get its default, because otherwise one net would have several ids. */
enum status setup_check_asked(struct setup *const *setups, int n, const struct label *asked, struct error *e);

/* Changes the run so that training ends after this step (--stop-after), and removes its time limit. */
enum status setup_stop_after(struct setup *s, int64_t steps, struct error *e);

/* Gives the sizes of the net for a split of the task. */
struct net_shape setup_net_shape(const struct spec *s, enum split split);

/* Returns the number of sequences in the second batch of a step; 0 if the task has none. */
int64_t setup_second_rows(const struct spec *s);

/* Fits the model to the sequences of a net of that shape, like the run's own model, with the same parameters. */
enum status setup_fit(const struct spec *s, const struct net_shape *net, struct model_choice *fitted, struct error *e);

/* Gives the schedule of the learning rate. */
struct schedule setup_schedule(const struct config *c, const struct shapes *s);

#endif
