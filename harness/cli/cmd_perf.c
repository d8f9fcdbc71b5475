/* cmd_perf.c - `lrnn perf`: the flags of the speed measurements. */
#include <inttypes.h>
#include <string.h>

#include "harness/cli/cli.h"
#include "harness/perf/measure.h"
#include "harness/perf/perf.h"
#include "harness/perf/perf_rows.h"
#include "kernels/kernel.h"
#include "kernels/lib/parallel.h"

enum { OP, COMPARE, STEP, CROSSOVER, DATA, LAYERS, DEVICE, LAUNCHES, SUBS };
static const struct command subs[SUBS + 1];

/* Reads the flags of the sets, their defaults first, and one word, which may be missing if `words` is 0. */
static enum status read_line(struct cli *cli, int words, int argc, char **argv, struct error *e) {
    for (int i = 0; i < cli->n_sets; i++) TRY(options_default(cli->sets[i].table, cli->sets[i].object, e));
    TRY(cli_parse(cli, argc, argv, e));
    if (cli->n_positional < words)
        return fail(e, ST_USAGE, "%s: a name is missing; usage: lrnn %s", cli->command->name, cli->command->usage);
    return ST_OK;
}

/* --- op ----------------------------------------------------------------------------------------------------------- */

/* Flags for the display of a table; AT gives the offsets of the fields. */
#define SHEET_FLAGS                                                                                                    \
    {"format", OPT_CHOICE, AT(format), "term", 0, 0, SHEET_FORMAT_NAMES, "format of the table", 0},                    \
        {"columns",                                                                                                    \
         OPT_TEXT_FIELD,                                                                                               \
         AT(columns),                                                                                                  \
         "",                                                                                                           \
         0,                                                                                                            \
         0,                                                                                                            \
         NULL,                                                                                                         \
         "headings of the columns to show; +NAME adds a column to the usual ones",                                     \
         0},                                                                                                           \
    {                                                                                                                  \
        "sort", OPT_TEXT_FIELD, AT(sort), "", 0, 0, NULL,                                                              \
            "sort rows by this column, largest value first; -NAME: smallest first", 0                                  \
    }

#define AT(field) offsetof(struct perf_op_request, field)
static const struct option op_flags[] = {
    {"kernel", OPT_TEXT_FIELD, AT(kernel), "", 0, 0, NULL, "only this kernel, or 'reference'", 0},
    {"threads", OPT_INT, AT(threads), "auto", 1, 4096, NULL, "CPU threads; auto = all cores", OPT_AUTO},
    {"seconds", OPT_TIME, AT(seconds), "1s", 0, 3600, NULL, "time for each kernel", 0},
    {"json", OPT_BOOL, AT(json), "no", 0, 0, NULL, "print one JSON object per line", 0},
    {"shapes", OPT_TEXT_FIELD, AT(shapes), "", 0, 0, NULL, "file with one shape per line: 'length=64 m=5'", OPT_FILLED},
    {"sweep", OPT_TEXT_FIELD, AT(sweep), "", 0, 0, NULL,
     "sizes to combine: 'T=64..4096 m=2,4'; FROM..TO doubles; with several shapes the reference is left out",
     OPT_FILLED},
    {"against", OPT_TEXT_FIELD, AT(against), "", 0, 0, NULL,
     "earlier perf.csv, or its folder: also show how each time has changed since", OPT_FILLED},
    {"to", OPT_TEXT_FIELD, AT(to), "", 0, 0, NULL, "also add the numbers to perf.csv in this folder", OPT_FILLED},
    {"plot", OPT_TEXT_FIELD, AT(plot), "", 0, 0, NULL, "draw a roofline plot into this folder", OPT_FILLED},
    SHEET_FLAGS,
    {0},
};
#undef AT

static const char *op_name(const void *list, int i) {
    return ((const struct op *const *)list)[i]->name;
}

/* Finds the op. ST_USAGE: there is no such op, or a given size has no effect on it. Every op reads the variant. */
static enum status choose_op(const struct cli *cli, const struct op **op, struct error *e) {
    const struct op *const *ops = op_list();
    int n = 0, index;
    char names[256] = "";
    size_t used = 0;
    while (ops[n]) n++;
    TRY(name_choose("op", *cli->positional, n, op_name, ops, &index, e));
    *op = ops[index];
    for (const struct option *o = op_sizes_options; o->name; o++)
        if (op_reads_size(*op, o->name) && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, " --%s", o->name);
    for (const struct option *o = op_sizes_options; o->name; o++)
        if (cli_given(cli, o->name) && !op_reads_size(*op, o->name) && strcmp(o->name, "variant") != 0)
            return fail(e, ST_USAGE, "%s: %s has no --%s; its sizes are%s", cli->command->name, (*op)->name, o->name,
                        names);
    return ST_OK;
}

static enum status run_op(int argc, char **argv, struct error *e) {
    struct perf_op_request q;
    const struct flag_set sets[] = {{op_sizes_options, &q.sizes}, {op_flags, &q}};
    const struct op *op;
    const char *name;
    struct cli cli = {.command = &subs[OP], .sets = sets, .n_sets = 2, .positional = &name, .max_positional = 1};
    TRY(read_line(&cli, 1, argc, argv, e));
    TRY(choose_op(&cli, &op, e));
    TRY(parallel_start(q.threads, &q.threads, e));
    q.view = (struct sheet_view){q.columns, q.sort};
    return perf_op(op, &q, e);
}

/* --- compare ------------------------------------------------------------------------------------------------------ */

struct compare_flags {
    int format;
    char columns[OPTION_TEXT], sort[OPTION_TEXT];
};

#define AT(field) offsetof(struct compare_flags, field)
static const struct option compare_flags[] = {SHEET_FLAGS, {0}};
#undef AT

static enum status run_compare(int argc, char **argv, struct error *e) {
    struct compare_flags flags;
    const struct flag_set set = {compare_flags, &flags};
    const char *paths[2];
    struct sheets sheets = {0};
    struct cli cli = {.command = &subs[COMPARE], .sets = &set, .n_sets = 1, .positional = paths, .max_positional = 2};
    TRY(read_line(&cli, 2, argc, argv, e));
    enum status status = perf_compare(sheets_add(&sheets), paths, e);
    if (status == ST_OK) status = sheets_view(&sheets, &(struct sheet_view){flags.columns, flags.sort}, e);
    if (status == ST_OK) status = sheets_write(&sheets, sheet_formats()[flags.format], stdout, e);
    sheets_free(&sheets);
    return status;
}

/* --- step --------------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct perf_step_request, field)
static const struct option step_flags[] = {
    {"batch", OPT_INT, AT(config.batch), "128", 1, 1 << 24, NULL, "sequences per step", 0},
    {"length", OPT_INT, AT(length), "16", 1, 1e9, NULL, "tokens per sequence", 0},
    {"min-length", OPT_INT, AT(least), "auto", 1, 1e9, NULL,
     "shortest sequence; lengths are spread evenly up to --length; auto = all have --length; tokens/s do not count "
     "padding",
     OPT_AUTO},
    {"vocab", OPT_INT, AT(vocab), "120", 1, 1e9, NULL, "token and label ids", 0},
    {"steps", OPT_INT, AT(count), "30", 1, PERF_SAMPLES, NULL, "steps measured", 0},
    {"threads", OPT_INT, AT(threads), "auto", 1, 4096, NULL, "CPU threads; auto = all cores", OPT_AUTO},
    {"device", OPT_TEXT_FIELD, AT(config.device), "cpu", 0, 0, NULL, "cpu", 0},
    {"precision", OPT_CHOICE, AT(config.precision), REAL_NAME, 0, 0, CONFIG_PRECISIONS, "like that of `lrnn train`", 0},
    {"kernel", OPT_TEXT_FIELD, AT(config.kernel), "", 0, 0, NULL, "force this kernel, or 'reference'", 0},
    {"profile", OPT_BOOL, AT(profile), "no", 0, 0, NULL,
     "print the time of each op, the farthest above its floor first", 0},
    {"json", OPT_BOOL, AT(config.json), "no", 0, 0, NULL, "one JSON object", 0},
    {0},
};
#undef AT

static enum status run_step(int argc, char **argv, struct error *e) {
    struct perf_step_request q;
    const struct flag_set sets[] = {{backbone_options, &q.config.net}, {step_flags, &q}};
    const char *model;
    struct cli cli = {.command = &subs[STEP], .sets = sets, .n_sets = 2, .positional = &model, .max_positional = 1};
    TRY(config_default(&q.config, e));
    TRY(read_line(&cli, 1, argc, argv, e));
    if (strcmp(q.config.device, "cpu") != 0)
        return fail(e, ST_USAGE, "perf step measures the CPU; `lrnn perf device` measures a CUDA device");
    if (q.least > q.length)
        return fail(e, ST_USAGE, "perf step: --min-length %" PRId64 " is more than --length %" PRId64, q.least,
                    q.length);
    TRY(parallel_start(q.threads, &q.threads, e));
    return perf_step(model, &q, e);
}

/* --- crossover ---------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct perf_crossover_request, field)
static const struct option crossover_flags[] = {
    {"from", OPT_INT, AT(from), "4", 1, 1 << 24, NULL, "shortest length; each further length is twice as long", 0},
    {"to", OPT_INT, AT(to), "1024", 1, 1 << 24, NULL, "longest length", 0},
    {"seconds", OPT_TIME, AT(seconds), "0.1s", 0, 3600, NULL, "time for each kernel and length", 0},
    {"json", OPT_BOOL, AT(json), "no", 0, 0, NULL, "print one JSON object per line", 0},
    {0},
};
#undef AT

static enum status run_crossover(int argc, char **argv, struct error *e) {
    struct option sizes[32] = {{0}}; /* without the length, which takes all values; fewer sequences, for one core */
    int n = 0;
    for (const struct option *o = op_sizes_options; o->name && n < 31; o++) {
        if (strcmp(o->name, "length") == 0) continue;
        sizes[n] = *o;
        if (strcmp(o->name, "batch") == 0) sizes[n].value = "4";
        n++;
    }
    struct perf_crossover_request q = {0};
    const struct flag_set sets[] = {{sizes, &q.sizes}, {crossover_flags, &q}};
    const struct op *op;
    const char *name;
    struct cli cli = {.command = &subs[CROSSOVER], .sets = sets, .n_sets = 2, .positional = &name, .max_positional = 1};
    TRY(read_line(&cli, 1, argc, argv, e));
    TRY(choose_op(&cli, &op, e));
    TRY(parallel_start(1, NULL, e));
    return perf_crossover(op, &q, e);
}

/* --- data --------------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct perf_data_request, field)
static const struct option data_flags[] = {
    {"split", OPT_CHOICE, AT(split), "train", 0, 0, "train val test", "split whose examples are made", 0},
    {"seconds", OPT_TIME, AT(seconds), "1s", 0.01, 3600, NULL, "time to spend", 0},
    {"seed", OPT_INT, AT(seed), "1", 0, 9e18, NULL, "seed of the data", 0},
    {"json", OPT_BOOL, AT(json), "no", 0, 0, NULL, "one JSON object", 0},
    {"files", OPT_TEXT_FIELD, AT(files), "", 0, 0, NULL,
     "read a data set's released files in this folder, like `lrnn data import`, instead of making examples",
     OPT_FILLED},
    {"out", OPT_TEXT_FIELD, AT(out), "", 0, 0, NULL, "also add the numbers to perf.csv in this folder", OPT_FILLED},
    {0},
};
#undef AT

static enum status run_data(int argc, char **argv, struct error *e) {
    struct perf_data_request q;
    const struct flag_set set = {data_flags, &q};
    const char *name;
    struct cli cli = {.command = &subs[DATA], .sets = &set, .n_sets = 1, .positional = &name, .max_positional = 1};
    TRY(read_line(&cli, 1, argc, argv, e));
    return perf_data(name, &q, e);
}

/* --- layers ------------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct perf_layers_request, field)
static const struct option layers_flags[] = {
    {"dim", OPT_INT, AT(dim), "128", 1, 1 << 16, NULL, "width D", 0},
    {"batch", OPT_INT, AT(batch), "32", 1, 1 << 24, NULL, "sequences", 0},
    {"threads", OPT_INT, AT(threads), "1", 1, 4096, NULL, "CPU threads; auto = all cores", OPT_AUTO},
    {"seconds", OPT_TIME, AT(seconds), "1s", 0, 3600, NULL, "time for each number, after its warm-up", 0},
    {"out", OPT_TEXT_FIELD, AT(out), "", 0, 0, NULL, "also add the numbers to perf.csv in this folder", OPT_FILLED},
    {0},
};
#undef AT

static enum status run_layers(int argc, char **argv, struct error *e) {
    struct perf_layers_request q;
    const struct flag_set set = {layers_flags, &q};
    struct cli cli = {.command = &subs[LAYERS], .sets = &set, .n_sets = 1};
    TRY(read_line(&cli, 0, argc, argv, e));
    TRY(parallel_start(q.threads, &q.threads, e));
    return perf_layers(&q, e);
}

/* --- device ------------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct perf_device_request, field)
static const struct option device_flags[] = {
    {"device", OPT_TEXT_FIELD, AT(device), "cuda", 0, 0, NULL, "cuda or cuda:N", 0},
    {"seconds", OPT_TIME, AT(seconds), "0.2s", 0, 3600, NULL, "time for each number", 0},
    {"out", OPT_TEXT_FIELD, AT(out), "", 0, 0, NULL, "also write the rows into a new file in this folder", OPT_FILLED},
    {"only", OPT_TEXT_FIELD, AT(only), "", 0, 0, NULL, "measure only this op's kernels, and no step", 0},
    {"shape", OPT_TEXT_FIELD, AT(shape), "", 0, 0, NULL,
     "measure kernels only at shapes with these words: 'length=16 m=5'", 0},
    {"rows", OPT_CHOICE, AT(rows), "all", 0, 0, "all steps calls kernels",
     "what to measure besides copies and products: steps (walked and replayed), the calls of a step, kernels", 0},
    {"taken", OPT_BOOL, AT(taken), "no", 0, 0, NULL, "measure only the kernels that a run uses by default", 0},
    {"once", OPT_BOOL, AT(once), "no", 0, 0, NULL, "run each kernel once without timing it, for a profiler", 0},
    {"compare", OPT_BOOL, AT(compare), "yes", 0, 0, NULL,
     "compare kernels with their references, which the host computes", 0},
    {"small", OPT_BOOL, AT(small), "no", 0, 0, NULL, "use tiny sizes, to show that everything runs", 0},
    {0},
};
#undef AT

static enum status run_device(int argc, char **argv, struct error *e) {
    struct perf_device_request q;
    const struct flag_set set = {device_flags, &q};
    struct cli cli = {.command = &subs[DEVICE], .sets = &set, .n_sets = 1};
    TRY(read_line(&cli, 0, argc, argv, e));
    if (*q.only && q.rows != DEVICE_ROWS_ALL && q.rows != DEVICE_ROWS_KERNELS)
        return fail(e, ST_USAGE, "perf device: --only names the op of kernels; leave it or --rows out");
    return perf_device(&q, e);
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct perf_launches_request, field)
static const struct option launches_flags[] = {
    {"device", OPT_TEXT_FIELD, AT(device), "cuda", 0, 0, NULL, "cuda or cuda:N", 0},
    {"dim", OPT_INT, AT(dim), "128", 1, 1 << 16, NULL, "width D", 0},
    {"batch", OPT_INT, AT(batch), "32", 1, 1 << 20, NULL, "sequences", 0},
    {"length", OPT_INT, AT(length), "64", 1, 1 << 24, NULL, "tokens per sequence", 0},
    {"precision", OPT_CHOICE, AT(precision), REAL_NAME, 0, 0, CONFIG_PRECISIONS, "like that of `lrnn train`", 0},
    {0},
};
#undef AT

static enum status run_launches(int argc, char **argv, struct error *e) {
    struct perf_launches_request q = {0};
    const struct flag_set set = {launches_flags, &q};
    struct cli cli = {
        .command = &subs[LAUNCHES], .sets = &set, .n_sets = 1, .positional = &q.model, .max_positional = 1};
    TRY(read_line(&cli, 0, argc, argv, e));
    if (!strcmp(q.device, "cpu"))
        return fail(e, ST_USAGE, "perf launches counts launches on a CUDA device; --device cpu launches nothing");
    return perf_launches(&q, e);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static const struct command subs[SUBS + 1] = {
    [OP] = {.name = "perf op",
            .usage = "perf op OP [flags]",
            .summary = "time every kernel of an op and compare it with the floors of its bytes and FLOPs",
            .run = run_op},
    [COMPARE] = {.name = "perf compare",
                 .usage = "perf compare A B [flags]",
                 .summary = "print the ratio of each pair of times in two perf.csv files or their folders",
                 .run = run_compare},
    [STEP] = {.name = "perf step",
              .usage = "perf step MODEL [flags]",
              .summary = "time a training step and compare it with the floor of its matrix products",
              .run = run_step},
    [CROSSOVER] = {.name = "perf crossover",
                   .usage = "perf crossover OP [flags]",
                   .summary = "find the length from which on one kernel of an op is faster than another",
                   .run = run_crossover},
    [DATA] = {.name = "perf data",
              .usage = "perf data TASK [flags]",
              .summary = "measure how many tokens are generated, or bytes of files read, per second on one core",
              .run = run_data},
    [LAYERS] = {.name = "perf layers",
                .usage = "perf layers [flags]",
                .summary = "measure tokens/s of one layer of every mixer; print a Markdown table",
                .run = run_layers},
    [DEVICE] = {.name = "perf device",
                .usage = "perf device [flags]",
                .summary = "time every CUDA kernel, copies, products and a step on a device; print CSV",
                .run = run_device},
    [LAUNCHES] = {.name = "perf launches",
                  .usage = "perf launches [MODEL] [flags]",
                  .summary =
                      "count the launches and bytes of a training step of one model, or of every mixer, on a device",
                  .run = run_launches},
};

static enum status run(int argc, char **argv, struct error *e) {
    return command_group(&command_perf, argc, argv, e);
}

const struct command command_perf = {
    .name = "perf",
    .usage = "perf op|compare|step|crossover|data|layers|device|launches NAME [flags]",
    .summary = "measure speeds and compare them with the limits of the machine",
    .run = run,
    .subs = subs,
};
