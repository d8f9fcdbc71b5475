/* cmd_show.c - lrnn show RUN: prints a run's record and the command that repeats the run; lrnn rerun RUN: repeats it
 * and says whether the bits agree. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/paragraph.h"
#include "harness/cli/cli.h"
#include "harness/run/rerun.h"
#include "harness/run/signals.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"
#include "harness/store/shell.h"

struct flags {
    char out[OPTION_TEXT];
    int64_t threads;
    bool keep;
};

#define AT(field) offsetof(struct flags, field)
#define OUT_FLAG                                                                                                       \
    {                                                                                                                  \
        "out", OPT_TEXT_FIELD, AT(out), "results", 0, 0, NULL, "folder of run records in which RUN is searched",       \
            OPT_FILLED                                                                                                 \
    }
static const struct option show_flags[] = {OUT_FLAG, {0}};
static const struct option rerun_flags[] = {
    OUT_FLAG,
    {"threads", OPT_INT, AT(threads), "auto", 1, 4096, NULL, "CPU threads; they change no bits; auto = all cores",
     OPT_AUTO},
    {"keep", OPT_BOOL, AT(keep), "no", 0, 0, NULL, "keep the files of the second run in OUT/rerun", 0},
    {0}};

/* --- show --------------------------------------------------------------------------------------------------------- */

/* Prints "name   value" of every field that has a value. */
static void print_fields(const struct run *run) {
    for (const struct field *f = runs_table.fields; f->name; f++) {
        char number[64];
        const char *text = field_text(f, run, number, sizeof number);
        if (text) printf("  %-16s %s\n", f->name, text);
    }
}

static void print_curve(const struct run_record *r) {
    printf("\nstep, loss, accuracy in validation\n");
    for (int64_t i = 0; i < r->n_curve; i++)
        if (r->curve[i].split == 1)
            printf("  %8" PRId64 " %10.4f %8.4f\n", r->curve[i].step, r->curve[i].loss, r->curve[i].acc);
}

static enum status show(const char *out, const struct run_record *r, struct error *e) {
    char command[8192], shown[8192], products[256], folder[4 * PATH_BYTES];
    struct error why;
    const struct run run = run_shown(&r->run);
    printf("run %.8s: %s on %s, lr %g, seed %" PRIu64 "\n\n", run.run_id, run.layers, run.task, run.lr, run.seed);
    enum status status = rerun_command(r, command, sizeof command, &why);
    if (status == ST_MEMORY) return fail(e, status, "%s", why.text);
    if (status == ST_OK) {
        /* A command with control characters cannot be copied from a terminal. */
        if (!strcmp(command, text_shown(command, shown, sizeof shown)))
            printf("again: %s%s\n   or: ", shell_program(), shown + strlen("lrnn"));
        else
            printf("again: ");
        printf("%s rerun %.8s --out %s\n\n", shell_program(), run.run_id, shell_word(out, folder, sizeof folder));
    } else
        printf("again: not here: %s\n\n", why.text);
    if (rerun_rounds(&run, NULL, products, sizeof products))
        printf("%s: it repeats to rounding, not bit for bit\n\n", products);
    print_fields(&run);
    print_curve(r);
    return ST_OK;
}

/* --- both --------------------------------------------------------------------------------------------------------- */

/* Finds the run that the command line names, reads its record, and calls `what` with it. */
static enum status with_run(const struct command *command, const struct option *table, int argc, char **argv,
                            enum status (*what)(const struct flags *f, const char *out, const struct run_record *r,
                                                struct error *e),
                            struct error *e) {
    struct flags f = {.keep = false};
    const char *word = NULL;
    const struct flag_set sets[] = {{table, &f}};
    struct cli cli = {.command = command, .sets = sets, .n_sets = 1, .positional = &word, .max_positional = 1};
    char out[PATH_BYTES], id[RUN_ID_HEX];
    struct open_record *open;
    TRY(options_default(table, &f, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (!word) return fail(e, ST_USAGE, "%s: say which run, by the first digits of its id", command->name);
    snprintf(out, sizeof out, "%s", f.out);
    TRY(run_find(command->name, word, out, id, e));
    TRY(run_record_open(command->name, out, id, &open, e));
    enum status status = what(&f, out, &open->record, e);
    record_close(open);
    return status;
}

static enum status show_it(const struct flags *f, const char *out, const struct run_record *r, struct error *e) {
    (void)f;
    return show(out, r, e);
}

static enum status rerun_it(const struct flags *f, const char *out, const struct run_record *r, struct error *e) {
    struct rerun_result result;
    char products[256];
    signals_install();
    TRY(rerun_do(r, out, f->threads, f->keep, &result, e));
    printf("run %.8s: %s\n", r->run.run_id, result.text);
    if (result.agrees) return ST_OK;
    if (rerun_rounds(&r->run, result.products, products, sizeof products))
        return fail(e, ST_FAIL, "the second run of %.8s is not the first, which was to be expected: %s", r->run.run_id,
                    products);
    return fail(e, ST_FAIL, "the second run of %.8s is not the first", r->run.run_id);
}

static enum status run_show(int argc, char **argv, struct error *e) {
    return with_run(&command_show, show_flags, argc, argv, show_it, e);
}

static enum status run_rerun(int argc, char **argv, struct error *e) {
    return with_run(&command_rerun, rerun_flags, argc, argv, rerun_it, e);
}

const struct command command_show = {.name = "show",
                                     .usage = "show RUN [--out FOLDER]",
                                     .summary = "print the record of a run, and the command that repeats it",
                                     .run = run_show};
const struct command command_rerun = {.name = "rerun",
                                      .usage = "rerun RUN [--out FOLDER] [--threads N] [--keep]",
                                      .summary = "train a recorded run again and say whether the bits agree",
                                      .run = run_rerun};
