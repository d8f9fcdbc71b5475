/* setup.h - everything that decides a run: task with options, model with options, flags. Resolved once, stored whole.
 *
 * The identity of a run is the hash of its resolved configuration without what cannot change a result (threads,
 * folders, output) and without options that stand at their default, plus seed, task version, dtype and numerics
 * version. */
#ifndef LRNN_HARNESS_STUDY_SETUP_H
#define LRNN_HARNESS_STUDY_SETUP_H

#include "harness/study/config.h"
#include "harness/store/record.h"
#include "tasks/task.h"

struct schedule; /* core/schedule.h */

#define NUMERICS_TEXT 96   /* bytes of a version of the program's numbers */
#define CONFIG_TEXT   4096 /* bytes of a whole configuration as text */

/* Request for a run, typed: nothing here follows from something else. */
struct spec {
    struct config config;
    struct task_choice task;   /* opened by setup_resolve */
    struct model_choice model; /* as parsed; it is what records store */
};

/* Sizes that follow from the request: nets fitted to the batches of the task, and lengths in steps. */
struct shapes {
    struct model_choice model;        /* fitted to a training batch */
    struct model_choice eval_model;   /* fitted to a batch of validation or test */
    struct model_choice second_model; /* fitted to the second batch of a step, if the task has one */
    unsigned in_vain;                 /* flags without anything to act on; see setup_check_asked */
    struct arena host;                /* owns the task's tables; empty: setup_close */
    int64_t steps_per_epoch, eval_every;
    int64_t schedule_steps; /* over which the learning rate goes its way */
    int64_t steps;          /* that the run takes at most: those, or the first of them (--stop-after) */
};

/* The names of a run. `text` is the resolved configuration that can change a result; run_id is its hash, cell_id the
 * hash without the seed, row_id that of its row's key (row_key.h). Both texts are owned. */
struct identity {
    char *text, *config_text; /* config_text: what records hold, as it was asked for; NULL where the setup is closed */
    char model_label[RECORD_TEXT];
    char run_id[RUN_ID_HEX], cell_id[RUN_ID_HEX], row_id[RUN_ID_HEX], numerics[NUMERICS_TEXT];
};

/* Cost of the graphs of a run; zeros where nobody has counted (graphs_size). */
struct estimate {
    double flops;   /* of the whole run */
    int64_t params; /* that it trains */
    size_t memory;  /* bytes of its largest graph */
};

/* A run to be done. The caller fills `spec`, setup_resolve the other parts. */
struct setup {
    struct spec spec;
    struct shapes shapes;
    struct identity id;
    struct estimate estimate;
};

/* Opens the task, checks the model against the sizes, derives steps and ids. Call once, after everything is set.
 * ST_USAGE: what does not fit, together or into a record; ST_DATA: the file of the first weights cannot be read, or is
 * not the one of from_xxh3. */
enum status setup_resolve(struct setup *s, struct error *e);

/* Replaces --match by the size that comes nearest to it, so that the run is the one that names this size itself;
 * part of setup_resolve, after its task is open. params=N sets --dim. state=N sets --dim as well, or where the state
 * does not follow the width the mixer's option with OPT_STATE. Sizes that the mixer does not fit, such as widths that
 * its heads do not divide, are passed over. ST_USAGE: a text of another form, or the mixer fits no size or has none to
 * choose. */
enum status setup_match(struct setup *s, struct error *e);

/* Gives back a setup of setup_make, or of calloc. NULL is no error. */
void setup_free(struct setup *s);

/* Gives back the tables of the task and config_text: a plan has many runs, and only one that is trained, tested or
 * timed needs them. setup_open makes them again if they are not there; errors as setup_resolve. */
void setup_close(struct setup *s);
enum status setup_open(struct setup *s, struct error *e);

/* The run with the rate, the seed and the profile's name of `c`, closed: sizes, numerics and estimate are those of the
 * resolved `s`, and are not worked out again. NULL with *e set: errors as setup_resolve. Freed with setup_free. */
struct setup *setup_again(const struct setup *s, const struct config *c, struct error *e);

/* Writes config_text, of a closed setup too. ST_USAGE: it is too long. */
enum status setup_config_text(const struct setup *s, char text[CONFIG_TEXT], struct error *e);

/* Writes NUMERICS_BASE, then each raised part that the run uses: "1+slice.2+scan_block_cpu.3". Kernels count by the
 * kind of device, whichever of them a processor takes, so that a run has one identity on all machines; a run with
 * reference kernels has the versions of those alone. The setup's model must be fitted. ST_FAIL: the text is too short;
 * else what keeps the graphs from being built. */
enum status setup_numerics(const struct setup *s, char *text, size_t size, struct error *e);

/* ST_USAGE: the net sees later inputs than its task allows. A setup alone may be of such a run, as records,
 * measurements and golden traces are; what trains or tests asks this. */
enum status setup_check_causal(const struct setup *s, struct error *e);

/* Checks setup_check_causal for all runs. ST_USAGE also if --mlp, --norm or --pool was asked for, by a pair of `asked`
 * (NULL: by anybody), and acts in none of the runs. Runs in which it cannot act get its default, because otherwise one
 * net would be several runs. */
enum status setup_check_asked(struct setup *const *setups, int n, const struct label *asked, struct error *e);

/* Another run: the same but that training ends after that step (--stop-after), whatever time it was given. */
enum status setup_stop_after(struct setup *s, int64_t steps, struct error *e);

/* Steps of an epoch and of the run, from the flags of an opened task, into shapes and flags; part of setup_resolve. */
void setup_length(struct setup *s);

/* Gives the net's sizes for the task in a split. */
struct net_shape setup_net_shape(const struct setup *s, enum split split);

/* Sequences in the second batch of a step; 0 if the task has none. */
int64_t setup_second_rows(const struct setup *s);

/* The model fitted to the sequences of a net of that shape: as the run's own is, with the same parameters. */
enum status setup_fit(const struct setup *s, const struct net_shape *net, struct model_choice *fitted, struct error *e);

struct schedule setup_schedule(const struct setup *s);

#endif
