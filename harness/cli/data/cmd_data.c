/* cmd_data.c - `lrnn data`: prints examples of a task as JSON lines, and statistics of their targets. Released data is
 * in data_sets.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cli.h"
#include "harness/cli/data/data_sets.h"
#include "harness/study/setup.h"
#include "harness/plot/picture.h"
#include "harness/run/batches/examples.h"
#include "harness/store/files.h"
#include "harness/cli/data/npz.h"
#include "tasks/task.h"

#define STATS_EXAMPLES 10000 /* examples read unless --count says otherwise */
#define PNG_EXAMPLES   60    /* examples drawn unless --count says otherwise */
#define SPLIT_NAMES    "train val test extra"
#define SPLIT_EXTRA    SPLIT_COUNT /* the second batch's strings of another length (tasks/task.h) */

struct data_flags {
    int split;
    int64_t first, count, seed, batch, epochs, steps;
    int format;
    bool json, stats;
    char order[OPTION_TEXT], png[OPTION_TEXT];
};

#define AT(field) offsetof(struct data_flags, field)
#define SPLIT_FLAG                                                                                                     \
    {                                                                                                                  \
        "split", OPT_CHOICE, AT(split), "train", 0, 0, SPLIT_NAMES,                                                    \
            "split of the examples; train has the targets of the loss; extra: strings of another length for each "     \
            "step",                                                                                                    \
            0                                                                                                          \
    }
#define FIRST_FLAG                                                                                                     \
    { "first", OPT_INT, AT(first), "0", 0, 1e18, NULL, "index of the first example", 0 }
#define SEED_FLAG                                                                                                      \
    { "seed", OPT_INT, AT(seed), "1", 0, 9e18, NULL, "seed of the data", 0 }

static const struct option show_flags[] = {
    SPLIT_FLAG,
    FIRST_FLAG,
    {"count", OPT_INT, AT(count), "auto", 1, 1e18, NULL, "number of examples; auto = 1, with --png at most 60",
     OPT_AUTO},
    SEED_FLAG,
    {"stats", OPT_BOOL, AT(stats), "no", 0, 0, NULL, "print statistics instead, like `lrnn data stats`", 0},
    {"json", OPT_BOOL, AT(json), "no", 0, 0, NULL, "with --stats: print one JSON object", 0},
    {"png", OPT_TEXT_FIELD, AT(png), "", 0, 0, NULL, "write the images to this file, as one picture with their labels",
     OPT_FILLED},
    {"order", OPT_TEXT_FIELD, AT(order), "", 0, 0, NULL,
     "print instead the indices of the examples of each step of this epoch; 0 = the first epoch", OPT_FILLED},
    {"batch", OPT_INT, AT(batch), "128", 1, 1 << 24, NULL, "with --order: sequences per step, as for train", 0},
    {"epochs", OPT_INT, AT(epochs), "20", 1, 1e9, NULL, "with --order: passes over the training examples", 0},
    {"steps", OPT_INT, AT(steps), "auto", 1, 1e12, NULL,
     "with --order: steps of the run; auto = epochs x steps per epoch", OPT_AUTO},
    {0},
};

static const struct option stats_flags[] = {
    SPLIT_FLAG,
    FIRST_FLAG,
    {"count", OPT_INT, AT(count), "auto", 1, 1e18, NULL, "number of examples; auto = at most 10000", OPT_AUTO},
    SEED_FLAG,
    {"json", OPT_BOOL, AT(json), "no", 0, 0, NULL, "one JSON object", 0},
    {0},
};

enum { DUMP_BY_NAME, DUMP_NPZ, DUMP_JSONL };
static const struct option dump_flags[] = {
    SPLIT_FLAG,
    FIRST_FLAG,
    {"count", OPT_INT, AT(count), "auto", 1, 1e18, NULL, "number of examples; auto = all from the first", OPT_AUTO},
    SEED_FLAG,
    {"format", OPT_CHOICE, AT(format), "auto", 0, 0, "auto npz jsonl",
     "npz: arrays input, target and length, padded with 0 and -100; jsonl: the lines of `lrnn data show`; auto: by the "
     "end of the file's name",
     0},
    {0},
};

/* Task and room for one example. */
struct view {
    struct data_flags flags;
    struct task_choice task;
    const char *file; /* of dump */
    struct arena host;
    struct example example;
    int64_t targets; /* targets per sequence: its length, or 1 */
};

static const char *split_name(int split) {
    static const char *const names[] = {"train", "val", "test", "extra"};
    return names[split];
}

static int64_t view_examples(const struct view *v) {
    const struct task_shape *s = &v->task.shape;
    return v->flags.split == SPLIT_EXTRA ? s->second.examples : s->examples[v->flags.split];
}

static int64_t view_length(const struct view *v) {
    const struct task_shape *s = &v->task.shape;
    return v->flags.split == SPLIT_EXTRA ? s->second.T : task_length(s, (enum split)v->flags.split);
}

static enum status make_room(struct view *v, struct error *e) {
    const struct task_shape *s = &v->task.shape;
    int64_t T = view_length(v);
    v->targets = v->flags.split == SPLIT_EXTRA ? T : task_targets(s, (enum split)v->flags.split);
    v->example = (struct example){.targets = arena_alloc(&v->host, (size_t)v->targets * sizeof(int32_t))};
    if (s->vocab_in)
        v->example.tokens = arena_alloc(&v->host, (size_t)(T * task_documents(s)) * sizeof(int32_t));
    else
        v->example.values = arena_alloc(&v->host, (size_t)(T * s->channels) * sizeof(real));
    if (s->links.edges) v->example.links = arena_alloc(&v->host, (size_t)links_words(s->links) * sizeof(int32_t));
    if (!v->example.targets || (!v->example.tokens && !v->example.values) || (s->links.edges && !v->example.links))
        return fail(e, ST_MEMORY, "%s: no memory for an example of length %" PRId64, v->task.name, T);
    return ST_OK;
}

/* Checks flags of `data show`, which prints an epoch's order, statistics, a picture, or examples. Flags of another kind
 * are refused. */
static enum status check_show(const struct data_flags *f, const struct cli *cli, struct error *e) {
    enum { ORDER, STATS, EXAMPLES };
    int what = *f->order ? ORDER : f->stats ? STATS : EXAMPLES;
    static const char *const of_run = "is of a run whose order is asked for: --order 0 is its first epoch";
    static const char *const of_examples = "is of examples, and --order of a whole epoch of training";
    const struct {
        const char *flag;
        bool refused;
        const char *why;
    } rules[] = {{"split", what == ORDER, of_examples},
                 {"first", what == ORDER, of_examples},
                 {"count", what == ORDER, of_examples},
                 {"stats", what == ORDER, of_examples},
                 {"png", what == ORDER, of_examples},
                 {"json", what == ORDER, of_examples},
                 {"batch", what != ORDER, of_run},
                 {"epochs", what != ORDER, of_run},
                 {"steps", what != ORDER, of_run},
                 {"png", what == STATS, "is a picture of the examples, and --stats are numbers"},
                 {"json", what == EXAMPLES, "is of --stats; examples are JSON lines without it"}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].refused && cli_given(cli, rules[i].flag))
            return fail(e, ST_USAGE, "data show: --%s %s", rules[i].flag, rules[i].why);
    return ST_OK;
}

/* Reads the command line, opens the task, checks the range. */
static enum status view_open(struct view *v, const struct command *command, const struct option *table, int argc,
                             char **argv, struct error *e) {
    const char *task[2] = {NULL, NULL};
    struct flag_set set = {table, &v->flags};
    int words = table == dump_flags ? 2 : 1;
    struct cli cli = {.command = command, .sets = &set, .n_sets = 1, .positional = task, .max_positional = words};
    TRY(options_default(table, &v->flags, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (table == show_flags) TRY(check_show(&v->flags, &cli, e));
    if (cli.n_positional == 0)
        return fail(e, ST_USAGE, "%s: say which task; `lrnn list tasks` names them", command->name);
    if (cli.n_positional < words)
        return fail(e, ST_USAGE, "%s: say into which file; usage: lrnn %s", command->name, command->usage);
    v->file = task[1];
    TRY(task_parse(&v->task, task[0], e));
    TRY(arena_reserve(&v->host, TASK_TABLE_BYTES, e));
    TRY(task_open(&v->task, (uint64_t)v->flags.seed, &v->host, e));
    if (v->flags.split == SPLIT_EXTRA && !v->task.shape.second.T)
        return fail(e, ST_USAGE, "%s: training %s takes no strings of another length besides; a5-slice does",
                    command->name, v->task.name);
    int64_t n = view_examples(v), left = n - v->flags.first;
    bool stats = table == stats_flags || v->flags.stats;
    int64_t most = stats ? STATS_EXAMPLES : table == dump_flags ? n : *v->flags.png ? PNG_EXAMPLES : 1;
    if (v->flags.count == 0) v->flags.count = left < 1 ? 1 : left < most ? left : most;
    if (v->flags.count > left)
        return fail(e, ST_USAGE,
                    "%s: %s has %" PRId64 " %s examples, numbered from 0, but --first %" PRId64 " --count %" PRId64
                    " asks for more",
                    command->name, v->task.name, n, split_name(v->flags.split), v->flags.first, v->flags.count);
    return make_room(v, e);
}

/* Makes example number `index` of the range. */
static void view_fill(struct view *v, int64_t index) {
    for (int64_t i = 0; i < v->targets; i++) v->example.targets[i] = IGNORED;
    v->example.length = (int32_t)view_length(v);
    if (v->flags.split == SPLIT_EXTRA)
        v->task.shape.second.fill(v->task.inst, v->flags.first + index, &v->example);
    else
        task_fill(&v->task, (enum split)v->flags.split, v->flags.first + index, &v->example);
}

/* --- show --------------------------------------------------------------------------------------------------------- */

static void print_ints(FILE *f, const int32_t *x, int64_t n) {
    fputc('[', f);
    for (int64_t i = 0; i < n; i++) fprintf(f, "%s%" PRId32, i ? "," : "", x[i]);
    fputc(']', f);
}

/* Prints the edges of a graph, each once. */
static void print_edges(FILE *f, const struct view *v) {
    struct links_view l = {v->example.links, v->task.shape.links, view_length(v), false};
    const char *separator = "";
    int32_t tail, head;
    fprintf(f, ",\"edges\":[");
    for (int64_t e = 0; e < l.size.edges; e++) {
        if (!links_edge(&l, e, &tail, &head)) continue;
        fprintf(f, "%s[%" PRId32 ",%" PRId32 "]", separator, tail, head);
        separator = ",";
    }
    fputc(']', f);
}

/* Prints n rows of `channels` values; one channel is a flat list. */
static void print_values(FILE *f, const real *x, int64_t n, int64_t channels) {
    char text[40];
    fputc('[', f);
    for (int64_t i = 0; i < n * channels; i++) {
        if (i) fputc(',', f);
        if (channels > 1 && i % channels == 0) fputc('[', f);
        format_double((double)x[i], text, sizeof text);
        fputs(text, f);
        if (channels > 1 && i % channels == channels - 1) fputc(']', f);
    }
    fputc(']', f);
}

static void print_example(FILE *f, const struct view *v, int64_t index) {
    const struct example *x = &v->example;
    fprintf(f, "{\"index\":%" PRId64 ",\"input\":", v->flags.first + index);
    if (x->values) print_values(f, x->values, x->length, v->task.shape.channels);
    if (x->tokens) print_ints(f, x->tokens, x->length);
    if (x->tokens && x->second) {
        fprintf(f, ",\"second\":");
        print_ints(f, x->tokens + view_length(v), x->second);
    }
    if (x->links) print_edges(f, v);
    fprintf(f, ",\"target\":");
    if (v->task.shape.per_sequence)
        fprintf(f, "%" PRId32, x->targets[0]);
    else
        print_ints(f, x->targets, x->length);
    fprintf(f, "}\n");
}

static void print_examples(FILE *f, struct view *v) {
    for (int64_t i = 0; i < v->flags.count && !ferror(f); i++) {
        view_fill(v, i);
        print_example(f, v, i);
    }
}

/* Prints a line for each step of an epoch of the run. Steps are counted from 1, as in curves.csv. */
static void print_order(const struct spec *s, const struct run_length *length, int64_t epoch) {
    int64_t examples = s->task.shape.examples[SPLIT_TRAIN], B = s->config.batch, extra = setup_second_rows(s);
    for (int64_t first = 0, step = epoch * length->steps_per_epoch; first < examples && step < length->steps;
         first += B, step++) {
        int64_t rows = examples - first < B ? examples - first : B;
        printf("{\"epoch\":%" PRId64 ",\"step\":%" PRId64, epoch, step + 1);
        for (int64_t row = 0; row < rows; row++)
            printf("%s%" PRId64, row ? "," : ",\"indices\":[", train_example(s, epoch, first + row));
        for (int64_t row = 0; row < extra; row++)
            printf("%s%" PRId64, row ? "," : "],\"extra\":[", second_example(s, step * extra + row));
        printf("]}\n");
        if (ferror(stdout)) return;
    }
}

static enum status show_order(const struct view *v, struct error *e) {
    const struct data_flags *f = &v->flags;
    int64_t epoch;
    struct spec s = {.task = v->task, .config = {.batch = f->batch, .epochs = f->epochs, .steps = f->steps}};
    int64_t examples = s.task.shape.examples[SPLIT_TRAIN];
    TRY(config_check_length(&s.config, examples, e));
    struct run_length length = config_length(&s.config, examples);
    int64_t last = (length.steps - 1) / length.steps_per_epoch;
    if (!parse_int64(f->order, &epoch) || epoch < 0)
        return fail(e, ST_USAGE, "data show: --order %.100s is not an epoch, a whole number from 0", f->order);
    if (epoch > last)
        return fail(e, ST_USAGE,
                    "data show: --order %" PRId64 " is past the last epoch, %" PRId64 ": a run of %" PRId64
                    " steps with %" PRId64 " steps per epoch has epochs 0 to %" PRId64
                    "; --epochs and --steps make it longer",
                    epoch, last, length.steps, length.steps_per_epoch, last);
    print_order(&s, &length, epoch);
    return ST_OK;
}

static enum status show_picture(struct view *v, struct error *e) {
    struct picture p;
    TRY(picture_make(&p, &v->task.shape, (enum split)v->flags.split, v->flags.count, e));
    for (int64_t i = 0; i < v->flags.count; i++) {
        view_fill(v, i);
        picture_add(&p, i, &v->example);
    }
    enum status status = picture_write(&p, v->flags.png, e);
    if (status == ST_OK)
        printf("%s: %" PRId64 " %s examples of %s, from %" PRId64 "\n", v->flags.png, v->flags.count,
               split_name(v->flags.split), v->task.name, v->flags.first);
    picture_free(&p);
    return status;
}

/* --- stats -------------------------------------------------------------------------------------------------------- */

struct summary {
    int64_t *label_count;                         /* (vocab_out) scored targets of each label */
    int64_t scored, outside;                      /* outside: targets that are no label, an error in the task */
    int64_t top;                                  /* the commonest label */
    int64_t documents, tokens, shortest, longest; /* an example has one document or two */
};

static void add_length(struct summary *s, int64_t length) {
    s->documents++;
    s->tokens += length;
    if (length < s->shortest) s->shortest = length;
    if (length > s->longest) s->longest = length;
}

static enum status summarise(struct view *v, struct summary *s, struct error *e) {
    int64_t labels = v->task.shape.vocab_out;
    s->label_count = arena_alloc(&v->host, (size_t)labels * sizeof(int64_t));
    if (!s->label_count)
        return fail(e, ST_MEMORY, "%s: no memory for the counts of %" PRId64 " labels", v->task.name, labels);
    s->shortest = INT64_MAX;
    for (int64_t i = 0; i < v->flags.count; i++) {
        view_fill(v, i);
        const struct example *x = &v->example;
        for (int64_t t = 0; t < v->targets; t++) {
            int32_t label = x->targets[t];
            if (label == IGNORED) continue;
            s->scored++;
            if (label >= 0 && label < labels)
                s->label_count[label]++;
            else
                s->outside++;
        }
        add_length(s, x->length);
        if (task_documents(&v->task.shape) > 1) add_length(s, x->second);
    }
    for (int64_t i = 1; i < labels; i++)
        if (s->label_count[i] > s->label_count[s->top]) s->top = i;
    if (s->outside)
        return fail(e, ST_DATA, "%s: %" PRId64 " targets lie outside [0, %" PRId64 ")", v->task.name, s->outside,
                    labels);
    return ST_OK;
}

static double share(int64_t part, int64_t whole) {
    return whole ? (double)part / (double)whole : 0;
}

static void print_stats(const struct view *v, const struct summary *s) {
    const struct task_shape *shape = &v->task.shape;
    printf("%s, %s examples %" PRId64 " to %" PRId64 " of %" PRId64 "\n", v->task.name, split_name(v->flags.split),
           v->flags.first, v->flags.first + v->flags.count - 1, view_examples(v));
    printf("  lengths    %" PRId64 " to %" PRId64 ", mean %.1f\n", s->shortest, s->longest,
           share(s->tokens, s->documents));
    printf("  scored     %" PRId64 " positions, %.1f a sequence\n", s->scored, share(s->scored, v->flags.count));
    printf("  chance     %.4f  uniform guess (metric %s)\n", shape->chance, metric_names[shape->metric]);
    printf("  floor      %.4f  best trivial answer\n", shape->floor);
    printf("  majority   %.4f  always answers label %" PRId64 "\n", share(s->label_count[s->top], s->scored), s->top);
    if (v->task.task->notes) v->task.task->notes(v->task.inst, stdout);
    printf("  labels     %" PRId64 ", count of each:\n", shape->vocab_out);
    for (int64_t i = 0; i < shape->vocab_out; i++)
        printf("%s%5" PRId64 ":%8" PRId64 "%s", i % 8 == 0 ? "  " : "", i, s->label_count[i],
               i % 8 == 7 || i == shape->vocab_out - 1 ? "\n" : "");
}

static void print_stats_json(const struct view *v, const struct summary *s) {
    const struct task_shape *shape = &v->task.shape;
    printf("{\"task\":\"%s\",\"split\":\"%s\",\"first\":%" PRId64 ",\"count\":%" PRId64 ",\"length_min\":%" PRId64
           ",\"length_max\":%" PRId64 ",\"length_mean\":%.6g,\"scored\":%" PRId64
           ",\"chance\":%.6g,\"floor\":%.6g,\"majority\":%.6g,\"majority_label\":%" PRId64 ",\"labels\":[",
           v->task.name, split_name(v->flags.split), v->flags.first, v->flags.count, s->shortest, s->longest,
           share(s->tokens, s->documents), s->scored, shape->chance, shape->floor,
           share(s->label_count[s->top], s->scored), s->top);
    for (int64_t i = 0; i < shape->vocab_out; i++) printf("%s%" PRId64, i ? "," : "", s->label_count[i]);
    printf("]}\n");
}

static enum status show_stats(struct view *v, struct error *e) {
    struct summary s = {0};
    TRY(summarise(v, &s, e));
    (v->flags.json ? print_stats_json : print_stats)(v, &s);
    return ST_OK;
}

static enum status stats(int argc, char **argv, struct error *e) {
    struct view v = {0};
    enum status status = view_open(&v, &data_commands[DATA_STATS], stats_flags, argc, argv, e);
    if (status == ST_OK) status = show_stats(&v, e);
    arena_free(&v.host);
    return status;
}

static enum status show(int argc, char **argv, struct error *e) {
    struct view v = {0};
    enum status status = view_open(&v, &data_commands[DATA_SHOW], show_flags, argc, argv, e);
    if (status == ST_OK && *v.flags.order)
        status = show_order(&v, e);
    else if (status == ST_OK && v.flags.stats)
        status = show_stats(&v, e);
    else if (status == ST_OK && *v.flags.png)
        status = show_picture(&v, e);
    else if (status == ST_OK)
        print_examples(stdout, &v);
    arena_free(&v.host);
    return status;
}

/* --- dump --------------------------------------------------------------------------------------------------------- */

static enum status dump_lines(struct view *v, struct error *e) {
    struct printed lines;
    TRY(printed_begin(&lines, v->file, e));
    print_examples(lines.f, v);
    return printed_write(&lines, ST_OK, v->file, e);
}

/* Writes arrays with a row per example; entries past an example's length are 0, or IGNORED. */
static enum status dump_arrays(struct view *v, struct error *e) {
    const struct task_shape *s = &v->task.shape;
    int64_t T = view_length(v), n = v->flags.count;
    size_t step = s->vocab_in ? sizeof(int32_t) : (size_t)s->channels * sizeof(real), row_bytes = (size_t)T * step;
    if (task_documents(s) > 1)
        return fail(e, ST_USAGE, "data dump: an example of %s is %" PRId64 " documents, which --format jsonl has",
                    v->task.name, s->reading.documents);
    if (s->links.edges)
        return fail(e, ST_USAGE, "data dump: an example of %s is a graph, which --format jsonl has", v->task.name);
    if ((double)n * (double)(row_bytes + (size_t)v->targets * 4) >= (double)NPZ_MOST_BYTES)
        return fail(e, ST_USAGE, "data dump: %" PRId64 " examples do not fit into a file of 4 GiB; --count takes fewer",
                    n);
    char *input = calloc((size_t)n, row_bytes);
    int32_t *targets = calloc((size_t)n, (size_t)v->targets * sizeof *targets), *lengths = calloc((size_t)n, 4);
    enum status status =
        input && targets && lengths ? ST_OK : fail(e, ST_MEMORY, "no memory for %" PRId64 " examples", n);
    if (status == ST_OK) {
        for (int64_t i = 0; i < n; i++) {
            view_fill(v, i);
            const struct example *x = &v->example;
            const void *from = x->tokens ? (const void *)x->tokens : x->values;
            memcpy(input + (size_t)i * row_bytes, from, (size_t)x->length * step);
            memcpy(targets + i * v->targets, x->targets, (size_t)v->targets * sizeof *targets);
            lengths[i] = x->length;
        }
        const struct npz_array arrays[] = {{"input",
                                            s->vocab_in      ? "<i4"
                                            : REAL_IS_DOUBLE ? "<f8"
                                                             : "<f4",
                                            s->vocab_in ? 2 : 3,
                                            {n, T, s->channels},
                                            input},
                                           {"target", "<i4", 2, {n, v->targets}, targets},
                                           {"length", "<i4", 1, {n}, lengths}};
        status = npz_write(v->file, arrays, 3, e);
    }
    free(input);
    free(targets);
    free(lengths);
    return status;
}

static enum status dump(int argc, char **argv, struct error *e) {
    struct view v = {0};
    enum status status = view_open(&v, &data_commands[DATA_DUMP], dump_flags, argc, argv, e);
    int format = v.flags.format;
    if (status == ST_OK && format == DUMP_BY_NAME)
        format = text_ends(v.file, ".npz") ? DUMP_NPZ : text_ends(v.file, ".jsonl") ? DUMP_JSONL : DUMP_BY_NAME;
    if (status == ST_OK && format == DUMP_BY_NAME)
        status = fail(e, ST_USAGE, "data dump: %.300s ends with neither .npz nor .jsonl; name it so, or say --format",
                      v.file);
    if (status == ST_OK) status = (format == DUMP_NPZ ? dump_arrays : dump_lines)(&v, e);
    if (status == ST_OK)
        printf("%s: %" PRId64 " %s examples of %s, from %" PRId64 "\n", v.file, v.flags.count,
               split_name(v.flags.split), v.task.name, v.flags.first);
    arena_free(&v.host);
    return status;
}

const struct command data_commands[DATA_COMMANDS + 1] = {
    [DATA_SHOW] =
        {.name = "data show",
         .usage = "data show TASK [flags]",
         .summary =
             "print examples, one JSON object per line or as a picture, or the order in which training takes them",
         .run = show},
    [DATA_STATS] = {.name = "data stats",
                    .usage = "data stats TASK [flags]",
                    .summary = "print labels, lengths, and scores of trivial answers",
                    .run = stats},
    [DATA_DUMP] = {.name = "data dump",
                   .usage = "data dump TASK FILE [flags]",
                   .summary = "write a split's examples into a file for other programs",
                   .run = dump},
    [DATA_CHECK] = {.name = "data check",
                    .usage = "data check FILE",
                    .summary = "check a file of examples; print its contents and the scores of trivial answers",
                    .run = data_check},
    [DATA_LIST] = {.name = "data list",
                   .usage = "data list",
                   .summary = "list the released data that tasks read, and which of it is imported",
                   .run = data_sets_list},
    [DATA_URLS] = {.name = "data urls",
                   .usage = "data urls [NAME]",
                   .summary = "print address, size and SHA-256 of each file",
                   .run = data_sets_urls},
    [DATA_FETCH] = {.name = "data fetch",
                    .usage = "data fetch NAME [--mirror URL] [--folder FOLDER]",
                    .summary = "download the files with curl, check and import them; continues an interrupted download",
                    .run = data_fetch},
    [DATA_IMPORT] = {.name = "data import",
                     .usage = "data import NAME FOLDER",
                     .summary = "check the files in a folder and store them in the cache folder",
                     .run = data_sets_import},
    [DATA_VERIFY] = {.name = "data verify",
                     .usage = "data verify [NAME]",
                     .summary = "check that the imported data is complete",
                     .run = data_sets_verify},
    [DATA_PATH] = {.name = "data path",
                   .usage = "data path NAME",
                   .summary = "print the path of the file that an import writes and tasks read",
                   .run = data_sets_path},
};

static enum status run(int argc, char **argv, struct error *e) {
    return command_group(&command_data, argc, argv, e);
}

const struct command command_data = {
    .name = "data",
    .usage = "data show|stats|dump|check|list|urls|fetch|import|verify|path ...",
    .summary = "show a task's examples and their statistics; import released data",
    .run = run,
    .subs = data_commands,
};
