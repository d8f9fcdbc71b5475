/* own.c - the user's own examples: `lrnn train FILE.jsonl MODEL`, or FILE.npz, is the task own:file=FILE (own_file.h
 * describes the files).
 *
 * The file's key "split" names the examples for validation and test, or they come from the files `val` and `test`.
 * Without either, a tenth of the training examples is for test, and then a tenth for validation: the last ones of a
 * permutation with seed 42, for every seed of a run. The XXH3-128 of the files is part of a run's identity. */
#include <string.h>
#include <xxhash.h>

#include "core/philox.h"
#include "tasks/own/own_file.h"
#include "tasks/examples.h"

#define SPLIT_SEED 42

struct own {
    char file[SPLIT_COUNT][OPTION_TEXT], name[OPTION_TEXT], content[OPTION_TEXT];
    bool causal;

    /* made by open */
    struct own_file part[SPLIT_COUNT]; /* contents of the files; splits without a file have no example */
    const int64_t *place[SPLIT_COUNT]; /* per split, its examples; the low two bits are the number of the part */
    int64_t n[SPLIT_COUNT], labels, vocab, longest[2]; /* longest: of training; of validation and test */
    bool unequal;                                      /* test examples differ in length */
    double floor;
};

#define FILE_ROW(NAME, SPLIT, HELP)                                                                                    \
    { NAME, OPT_TEXT_FIELD, offsetof(struct own, file[SPLIT]), "", 0, 0, NULL, HELP, OPT_HERE }

static const struct option options[] = {
    {"name", OPT_TEXT_FIELD, offsetof(struct own, name), "own", 0, 0, NULL, "its name in tables", OPT_AXIS},
    {"causal", OPT_BOOL, offsetof(struct own, causal), "yes", 0, 0, NULL,
     "with a target a position: an answer depends on the inputs up to it alone; no: a mixer may look ahead", 0},
    FILE_ROW("file", SPLIT_TRAIN, "FILE.jsonl or FILE.npz; none: own.jsonl in the cache folder"),
    FILE_ROW("val", SPLIT_VAL, "validation examples, in a file of their own"),
    FILE_ROW("test", SPLIT_TEST, "test examples, in a file of their own"),
    {"content", OPT_TEXT_FIELD, offsetof(struct own, content), "", 0, 0, NULL,
     "XXH3-128 of the files; found by itself, and part of a run's identity", OPT_FOUND},
    {0},
};

/* --- opening ------------------------------------------------------------------------------------------------------ */

static enum status open_files(struct own *w, struct error *e) {
    char path[CACHE_PATH], hashes[SPLIT_COUNT * CACHE_HASH] = "", digest[CACHE_HASH];
    XXH128_canonical_t whole;
    for (int i = 0; i < SPLIT_COUNT; i++) {
        w->part[i] = (struct own_file){0};
        if (i > 0 && !*w->file[i]) continue;
        snprintf(path, sizeof path, "%s", w->file[i]);
        if (!*path) TRY(cache_path("own", "jsonl", path, e));
        TRY(cache_open(path, own_file_parse, &w->part[i], sizeof w->part[i], e));
        strcat(hashes, w->part[i].hash);
        if (w->part[i].per_sequence != w->part[0].per_sequence || w->part[i].channels != w->part[0].channels ||
            !w->part[i].vocab != !w->part[0].vocab)
            return fail(e, ST_DATA, "%s and %s are not of one kind: tokens or values, channels, a label or a list",
                        w->file[0], path);
    }
    XXH128_canonicalFromHash(&whole, XXH3_128bits(hashes, strlen(hashes)));
    cache_hex(whole.digest, digest);
    if (*w->content && strcmp(w->content, digest) != 0)
        return fail(e, ST_DATA, "%s: the XXH3-128 of the files is %s, expected content=%.40s: they are other files",
                    w->file[0], digest, w->content);
    memcpy(w->content, digest, sizeof digest);
    return ST_OK;
}

/* The split of an example: its own key, or the split of its file. */
static int split_of(const struct own *w, int part, int64_t i) {
    int said = w->part[part].example[i].split;
    return part ? part : said >= 0 ? said : SPLIT_TRAIN;
}

/* Takes a tenth of the training examples, at least one, for a split that has none: the last ones of the permutation of
 * all of them. */
static void hold_out(struct own *w, int64_t *place[SPLIT_COUNT], enum split split) {
    int64_t n = w->n[SPLIT_TRAIN], held = n > 10 ? n / 10 : 1;
    if (w->n[split] || n < 2) return;
    int64_t *train = place[SPLIT_TRAIN], *mixed = place[split];
    for (int64_t i = 0; i < n; i++)
        mixed[i] = train[permute_index(SPLIT_SEED, STREAM_TABLE, (uint64_t)split, (uint64_t)i, (uint64_t)n)];
    memcpy(train, mixed, (size_t)(n - held) * sizeof *train);
    memmove(mixed, mixed + n - held, (size_t)held * sizeof *mixed);
    w->n[SPLIT_TRAIN] = n - held;
    w->n[split] = held;
}

static enum status divide(struct own *w, struct arena *host, struct error *e) {
    static const char *const names[] = {"training", "validation", "test"}, *const keys[] = {"train", "val", "test"};
    int64_t *place[SPLIT_COUNT], all = 0;
    for (int i = 0; i < SPLIT_COUNT; i++) all += w->part[i].n, w->n[i] = 0;
    for (int i = 0; i < SPLIT_COUNT; i++) {
        w->place[i] = place[i] = arena_alloc(host, (size_t)all * sizeof *place[i]);
        if (!place[i]) return fail(e, ST_MEMORY, "own: no room for the order of %lld examples", (long long)all);
    }
    for (int part = 0; part < SPLIT_COUNT; part++)
        for (int64_t i = 0; i < w->part[part].n; i++) {
            int split = split_of(w, part, i);
            place[split][w->n[split]++] = i << 2 | part;
        }
    hold_out(w, place, SPLIT_TEST);
    hold_out(w, place, SPLIT_VAL);
    for (int i = 0; i < SPLIT_COUNT; i++)
        if (w->n[i] == 0)
            return fail(e, ST_DATA,
                        "%s: of %lld examples none is for %s; give some of them \"split\": \"%s\", or add examples",
                        w->file[0], (long long)all, names[i], keys[i]);
    return ST_OK;
}

static const struct own_example *example_at(const struct own *w, enum split split, int64_t i,
                                            const struct own_file **part) {
    *part = &w->part[w->place[split][i] & 3];
    return &(*part)->example[w->place[split][i] >> 2];
}

/* Measures the lengths of the splits, and the share of the commonest label among the scored test targets. */
static enum status summarise(struct own *w, struct arena *host, struct error *e) {
    const struct own_file *part;
    int64_t *count = arena_alloc(host, (size_t)w->labels * sizeof *count), scored = 0, most = 0;
    if (!count) return fail(e, ST_MEMORY, "own: no room for %lld labels", (long long)w->labels);
    memset(count, 0, (size_t)w->labels * sizeof *count);
    for (int split = 0; split < SPLIT_COUNT; split++) {
        int64_t *longest = &w->longest[split != SPLIT_TRAIN];
        for (int64_t i = 0; i < w->n[split]; i++) {
            const struct own_example *x = example_at(w, (enum split)split, i, &part);
            *longest = x->length > *longest ? x->length : *longest;
            for (int64_t t = 0; split == SPLIT_TEST && t < (part->per_sequence ? 1 : x->length); t++) {
                int32_t label = part->target[x->target + t];
                if (label == IGNORED) continue;
                scored++;
                if (++count[label] > most) most = count[label];
            }
        }
    }
    for (int64_t i = 1; i < w->n[SPLIT_TEST]; i++)
        w->unequal |= example_at(w, SPLIT_TEST, i, &part)->length != example_at(w, SPLIT_TEST, 0, &part)->length;
    if (!scored) return fail(e, ST_DATA, "%s: no target of a test example is scored", w->file[0]);
    w->floor = (double)most / (double)scored;
    return ST_OK;
}

static enum status own_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct own *w = inst;
    (void)seed;
    w->labels = w->vocab = w->longest[0] = w->longest[1] = 0;
    w->unequal = false;
    TRY(open_files(w, e));
    for (int i = 0; i < SPLIT_COUNT; i++) {
        if (w->part[i].labels > w->labels) w->labels = w->part[i].labels;
        if (w->part[i].vocab > w->vocab) w->vocab = w->part[i].vocab;
    }
    if (w->labels < 2) return fail(e, ST_DATA, "own: every target is 0, and there is nothing to learn");
    TRY(divide(w, host, e));
    return summarise(w, host, e);
}

static void own_shape(const void *inst, struct task_shape *out) {
    const struct own *w = inst;
    shape_of_labels(out, w->longest[0], w->labels);
    out->T_eval = w->longest[1];
    out->per_sequence = w->part[0].per_sequence;
    out->needs_causal = !out->per_sequence && w->causal;
    out->vocab_in = w->vocab;
    out->channels = w->vocab ? 0 : w->part[0].channels;
    out->unequal_test = w->unequal;
    memcpy(out->examples, w->n, sizeof out->examples);
    out->floor = w->floor;
}

/* --- examples ----------------------------------------------------------------------------------------------------- */

static void own_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct own *w = inst;
    const struct own_file *part;
    const struct own_example *from = example_at(w, split, index, &part);
    int64_t C = part->channels, T = w->longest[split != SPLIT_TRAIN];
    for (int64_t i = 0; i < T * C; i++) {
        float value = i < from->length * C ? part->input[from->input + i] : 0;
        if (x->tokens) x->tokens[i] = (int32_t)value;
        if (x->values) x->values[i] = (real)value;
    }
    for (int64_t t = 0; t < (part->per_sequence ? 1 : from->length); t++)
        x->targets[t] = part->target[from->target + t];
    x->length = from->length;
}

_Static_assert(sizeof(struct own) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_own = {
    .name = "own",
    .summary = "your own examples: a file of JSON lines, or NumPy's arrays (docs/data.md)",
    .suite = "own",
    .data = "own",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct own),
    .open = own_open,
    .shape = own_shape,
    .fill = own_fill,
};
