/* cmd_sweep.c - lrnn bench TASK|PLAN...: does the runs of tasks or of a paper's table. lrnn sweep is the same
 * command. */
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cli.h"
#include "harness/study/profile.h"
#include "harness/rows/protocol.h"
#include "harness/pool/population.h"
#include "harness/pool/runner.h"
#include "harness/store/files.h"
#include "harness/store/shell.h"
#include "harness/pool/slurm.h"
#include "harness/pool/sweep.h"

#define AT(field) offsetof(struct sweep_options, field)
static const struct option sweep_flags[] = {
    {"confirm-seeds", OPT_INT, AT(confirm), "0", 0, 100000, NULL,
     "number of further seeds to train at the learning rate that validation chose; the table shows only these seeds; "
     "0 = none",
     0},
    {"protocol", OPT_CHOICE, AT(protocol), "val-mean", 0, 0, PROTOCOL_NAMES, PROTOCOL_HELP, 0},
    {"jobs", OPT_INT, AT(jobs), "auto", 1, RUNNER_MOST_JOBS, NULL,
     "processes that train at once; auto = one per core on the CPU, a single one for a GPU (it trains several runs)",
     OPT_AUTO},
    {"population", OPT_INT, AT(population), "auto", 1, POPULATION_MOST, NULL,
     "runs that one process trains side by side; auto = on a GPU as many as fit, at most 16; on the CPU 1", OPT_AUTO},
    {"limit", OPT_TIME, AT(limit), "auto", 1e-3, 1e9, NULL,
     "training time of all runs together; each run gets an equal share, and does the steps that fit into this share; "
     "auto = no limit",
     OPT_AUTO},
    {"timeout", OPT_TIME, AT(timeout), "0s", 0, 1e9, NULL,
     "time after which a run is killed and recorded as failed; 0 = never", 0},
    {"slurm", OPT_INT, AT(slurm), "auto", 1, SLURM_MOST_TASKS, NULL,
     "number of tasks of a Slurm array, among which the runs are divided; auto = train here without Slurm", OPT_AUTO},
    {"sbatch", OPT_TEXT_FIELD, AT(sbatch), "", 0, 0, NULL,
     "for --slurm: more flags for sbatch, as in --sbatch='--time=4:00:00 --mem=8G'", 0},
    {"gres", OPT_TEXT_FIELD, AT(gres), "", 0, 0, NULL,
     "for --slurm: devices of each task of the array, such as gpu:1 or gpu:a100:2", 0},
    {"retry-failed", OPT_BOOL, AT(retry_failed), "no", 0, 0, NULL, "repeat runs that were killed or failed", 0},
    {"strict", OPT_BOOL, AT(strict), "no", 0, 0, NULL,
     "exit with 1 if NaN or infinity ended a run; the other runs and the table are still done", 0},
    {"dry-run", OPT_BOOL, AT(dry_run), "no", 0, 0, NULL,
     "list the runs, their number, time and disk space; train nothing", 0},
    {"print-config", OPT_BOOL, AT(print_config), "no", 0, 0, NULL,
     "print what is common to the runs and where each value comes from; train nothing", 0},
    {"no-speed", OPT_BOOL, AT(no_speed), "no", 0, 0, NULL,
     "do not measure speeds; measuring takes some seconds per model on an otherwise idle machine", 0},
    {"no-plots", OPT_BOOL, AT(no_plots), "no", 0, 0, NULL, "print the table, draw no plots", 0},
    {0}};

static const struct option extra[] = {
    {"models", OPT_TEXT_FIELD, 0, "from the plan, else from the profile", 0, 0, NULL,
     "models with options: 'bdlru:m=1..5 lstm@dim=64,lr=0.01'; flags after @ are for that model only", 0},
    {"profile", OPT_CHOICE, 0, "from the plan, else quick", 0, 0,
     "smoke quick paper; MAD's tasks also have mad and hlru-paper",
     "take models, sizes, learning rates and training length from this profile of the task: smoke = seconds, quick = "
     "minutes, paper = as in the task's paper",
     0},
    {"lr", OPT_TEXT_FIELD, 0, "from the plan, else from the profile", 0, 0, NULL,
     "learning rates of the grid, comma-separated", 0},
    {"seeds", OPT_TEXT_FIELD, 0, "from the plan, else from the profile", 0, 0, NULL,
     "seeds of every model: 5 = seeds 1 to 5; 3,7 or 4..9 = exactly these seeds", 0},
    {"grid", OPT_TEXT_FIELD, 0, "", 0, 0, NULL,
     "train with each combination of these options of tasks and models: 'task.length=8,16 model.gate=softmax,none'. "
     "A flag with several values needs no --grid: --decay 0,0.1",
     0},
    {"variants", OPT_BOOL, 0, "from the plan, else from the profile", 0, 0, NULL,
     "also train on the task's published variants, which change one setting each; the table shows each variant, and "
     "the mean of all variants",
     0},
    {"shard", OPT_TEXT_FIELD, 0, "1/1", 0, 0, NULL,
     "train only part i/n of the runs, which are run i and every n-th run after it; print no table", 0},
    {"c", OPT_TEXT_FIELD, 0, "", 0, 0, NULL,
     "config file of key=value lines, or a run's record (.json); flags on the command line overrule the file",
     OPT_FILLED},
    {0}};

struct command_line {
    struct sweep_options options;
    struct request request;
    struct config ignored; /* request_flag takes every flag of a run */
};

static enum status on_flag(void *context, const char *name, const char *value, bool *done, struct error *e) {
    struct command_line *c = context;
    *done = true;
    if (!strcmp(name, "shard")) return shard_parse(value, &c->options.shard, &c->options.shards, e);
    *done = false;
    if (option_find(sweep_flags, name)) return ST_OK;
    return request_flag(&c->request, name, value, done, e);
}

/* Prints the rule of study.h for the length of a run. */
static void print_length(FILE *f) {
    fputs("\nlength of a run: command line > config file > plan > profile > default. The strongest that sets steps or\n"
          "  epochs gives the schedule (steps before epochs). stop-after, budget and limit end a run earlier. Any of\n"
          "  these five cancels stop-after and budget of weaker places.\n",
          f);
}

static enum status read_line(struct command_line *c, const struct command *command, int argc, char **argv,
                             struct error *e) {
    const char *words[REQUEST_MOST_TASKS];
    const struct flag_set sets[] = {
        {sweep_flags, &c->options}, {backbone_options, &c->ignored}, {config_options, &c->ignored}};
    struct cli cli = {.command = command,
                      .sets = sets,
                      .n_sets = 3,
                      .positional = words,
                      .max_positional = REQUEST_MOST_TASKS,
                      .extra = extra,
                      .common = " models profile lr seeds grid variants jobs limit dry-run dim layers epochs precision "
                                "device out ",
                      .short_flag = "jobs",
                      .profile_sets = profile_sets_flag,
                      .without = " seed ",
                      .headings = (const char *const[]){NULL, "the net", "training, and where it runs"},
                      .on_flag = on_flag,
                      .context = c,
                      .more_help = print_length};
    TRY(options_default(sweep_flags, &c->options, e));
    TRY(config_default(&c->ignored, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (cli.n_positional == 0)
        return fail(e, ST_USAGE,
                    "%s needs a task, for example `lrnn %s s3`; `lrnn list tasks` names them, `lrnn list papers` plans",
                    command->name, command->name);
    return request_words(&c->request, words, cli.n_positional, e);
}

/* Returns the number of leading words (a flag and its value) that the tasks of an array must not get; 0: none. */
static int words_of_array(char *const *words, int n) {
    static const char *const flags[] = {"--slurm", "--sbatch", "--gres", "--dry-run"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        size_t length = strlen(flags[i]);
        if (strncmp(words[0], flags[i], length) != 0 || (words[0][length] && words[0][length] != '=')) continue;
        if (words[0][length] || n < 2) return 1;
        bool alone = !strcmp(flags[i], "--dry-run") && strcmp(words[1], "yes") != 0 && strcmp(words[1], "no") != 0;
        return alone ? 1 : 2;
    }
    return 0;
}

/* Returns the words after the command's name without those flags, quoted for a shell; NULL: no memory. */
static char *words_of(int argc, char **argv) {
    struct printed words;
    if (printed_begin(&words, "a command", NULL) != ST_OK) return NULL;
    bool flags = true;
    for (int i = 1; i < argc;) {
        flags = flags && strcmp(argv[i], "--") != 0;
        int skipped = flags ? words_of_array(argv + i, argc - i) : 0;
        i += skipped;
        if (skipped) continue;
        if (ftell(words.f) > 0) fputc(' ', words.f);
        shell_quote(words.f, argv[i++]);
    }
    printed_end(&words, ST_OK, "a command", NULL);
    return words.text;
}

static enum status sweep(const struct command *command, int argc, char **argv, struct error *e) {
    struct command_line *c = calloc(1, sizeof *c);
    if (!c) return fail(e, ST_MEMORY, "no memory");
    enum status status = read_line(c, command, argc, argv, e);
    char *words = words_of(argc, argv);
    if (status == ST_OK && !words) status = fail(e, ST_MEMORY, "no memory");
    c->options.command = command->name;
    c->options.words = words;
    if (status == ST_OK) status = sweep_do(&c->request, &c->options, e);
    free(words);
    free(c);
    return status;
}

static enum status run_sweep(int argc, char **argv, struct error *e) {
    return sweep(&command_sweep, argc, argv, e);
}

static enum status run_bench(int argc, char **argv, struct error *e) {
    return sweep(&command_bench, argc, argv, e);
}

const struct command command_bench = {
    .name = "bench",
    .usage = "bench TASK|PLAN... [--models 'M M ...'] [--profile smoke|quick|paper] [flags]",
    .summary = "train models on tasks, or the runs of a paper's table (its plan); print the table, draw the plots",
    .run = run_bench};
const struct command command_sweep = {
    .name = "sweep",
    .usage = "sweep PLAN|TASK... [--dry-run] [-j N] [--shard i/n | --slurm N [--gres gpu:1]] [flags]",
    .summary = "another name of bench",
    .run = run_sweep};
