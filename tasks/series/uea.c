/* uea.c - time series of the UEA archive, as SLiCE's experiments take them (log-neural-cdes, data_dir).
 *
 * The archive's two parts are put together, exact duplicates of a series left out (the first one stays), and divided
 * anew by the seed: 70 % for training, 15 % for validation, the rest for test. scale=yes maps each channel to [-1, 1]
 * by its least and greatest value in the whole set, test series included, as in SLiCE's code; constant channels become
 * 0. The files come from `lrnn data import`. */
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "core/philox.h"
#include "tasks/data/datasets.h"
#include "tasks/data/file_entries.h"
#include "tasks/examples.h"
#include "tasks/series/series.h"

struct uea {
    char set[OPTION_TEXT];
    bool scale;
    struct series series;
    struct file_entries from;
    uint64_t seed;
    double floor;
    int64_t n;           /* series without duplicates */
    const int32_t *use;  /* (n) their entries */
    const double *range; /* (channels) pairs of least and factor: value -> (value - least) factor - 1; NULL: unscaled */
};

static const struct option options[] = {
    {"set", OPT_TEXT_FIELD, offsetof(struct uea, set), "eigenworms", 0, 0, NULL,
     "eigenworms, ethanolconcentration, heartbeat, motorimagery, selfregulationscp1, selfregulationscp2, or another by "
     "its "
     "name in the archive, imported as uea:NAME",
     OPT_FILLED},
    {"scale", OPT_BOOL, offsetof(struct uea, scale), "no", 0, 0, NULL,
     "map each channel to [-1, 1] by its range in the whole set", 0},
    SERIES_OPTIONS(struct uea, series),
    FILE_ENTRIES_OPTIONS(struct uea, from),
    {0},
};

static const struct task_alias aliases[] = {
    {"eigenworms", "set=eigenworms", "worms' movements, 5 kinds"},
    {"ethanolconcentration", "set=ethanolconcentration", "spectra of spirits, 4 concentrations"},
    {"heartbeat", "set=heartbeat", "heart sounds, 2 kinds"},
    {"motorimagery", "set=motorimagery", "ECoG of two imagined movements"},
    {"selfregulationscp1", "set=selfregulationscp1", "EEG of two intentions, a healthy subject"},
    {"selfregulationscp2", "set=selfregulationscp2", "EEG of two intentions, an ALS patient"},
    {NULL, NULL, NULL},
};

static float value_at(const struct entry *r, int64_t i) {
    float value;
    memcpy(&value, r->bytes + i * (int64_t)sizeof value, sizeof value);
    return value;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static bool same_series(const struct entry *a, const struct entry *b) {
    return a->length == b->length && a->size == b->size && memcmp(a->bytes, b->bytes, (size_t)a->size) == 0;
}

/* Lists the entries that do not repeat an earlier entry, with a hash table of 2^k slots. */
static enum status leave_duplicates_out(struct uea *w, struct arena *host, struct error *e) {
    const struct entry_set *s = &w->from.set;
    int64_t all = entry_count(s), slots = 2;
    while (slots < 2 * all) slots *= 2;
    int32_t *use = arena_alloc(host, (size_t)all * sizeof *use),
            *seen = arena_alloc(host, (size_t)slots * sizeof *seen);
    if (!use || !seen) return fail(e, ST_MEMORY, "uea: no room for the order of %lld series", (long long)all);
    for (int64_t p = 0; p < slots; p++) seen[p] = -1;
    for (int64_t i = 0; i < all; i++) {
        struct entry r = entry_get(s, i), other;
        int64_t p = (int64_t)(XXH3_64bits(r.bytes, (size_t)r.size) & (uint64_t)(slots - 1));
        for (; seen[p] >= 0; p = (p + 1) & (slots - 1)) {
            other = entry_get(s, seen[p]);
            if (same_series(&r, &other)) break;
        }
        if (seen[p] >= 0) continue;
        seen[p] = (int32_t)i;
        use[w->n++] = (int32_t)i;
    }
    w->use = use;
    return ST_OK;
}

static enum status find_ranges(struct uea *w, struct arena *host, struct error *e) {
    int64_t C = w->from.set.width;
    double *range = arena_alloc(host, (size_t)(2 * C) * sizeof *range);
    if (!range) return fail(e, ST_MEMORY, "uea: no room for the ranges of %lld channels", (long long)C);
    for (int64_t c = 0; c < C; c++) range[2 * c] = INFINITY, range[2 * c + 1] = -INFINITY;
    for (int64_t i = 0; i < w->n; i++) {
        struct entry r = entry_get(&w->from.set, w->use[i]);
        for (int64_t k = 0; k < r.length * C; k++) {
            double value = (double)value_at(&r, k);
            range[2 * (k % C)] = fmin(range[2 * (k % C)], value);
            range[2 * (k % C) + 1] = fmax(range[2 * (k % C) + 1], value);
        }
    }
    for (int64_t c = 0; c < C; c++) {
        double width = range[2 * c + 1] - range[2 * c];
        range[2 * c + 1] = width > 0 ? 2 / width : 0;
    }
    w->range = range;
    return ST_OK;
}

/* Checks that a payload has the floats that width and length say. */
static enum status check_entries(const struct uea *w, struct error *e) {
    const struct entry_set *s = &w->from.set;
    for (int64_t i = 0; i < entry_count(s); i++) {
        struct entry r = entry_get(s, i);
        if (s->width < 1 || r.length < 1 || r.size != r.length * s->width * (int64_t)sizeof(float))
            return fail(e, ST_DATA, "uea: series %lld has %lld bytes, expected %lld points of %lld floats",
                        (long long)i, (long long)r.size, (long long)r.length, (long long)s->width);
    }
    return ST_OK;
}

/* Ends of training and validation: 70 and 85 % of all, each rounded down, as in the authors' code. */
static int64_t split_size(const struct uea *w, enum split split) {
    int64_t train = 7 * w->n / 10, val = 85 * w->n / 100 - train;
    return split == SPLIT_TRAIN ? train : split == SPLIT_VAL ? val : w->n - train - val;
}

/* The share of the commonest label: the accuracy of a constant answer. */
static enum status find_floor(struct uea *w, struct arena *host, struct error *e) {
    const struct entry_set *s = &w->from.set;
    int64_t *count = arena_alloc(host, (size_t)s->labels * sizeof *count), most = 0;
    if (!count) return fail(e, ST_MEMORY, "uea: no room for %lld labels", (long long)s->labels);
    memset(count, 0, (size_t)s->labels * sizeof *count);
    for (int64_t i = 0; i < w->n; i++) {
        int64_t of_label = ++count[entry_get(s, w->use[i]).label];
        most = of_label > most ? of_label : most;
    }
    w->floor = (double)most / (double)w->n;
    return ST_OK;
}

static enum status uea_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct uea *w = inst;
    w->seed = seed;
    w->n = 0;
    const struct dataset *known;
    char of_archive[OPTION_TEXT + 8];
    snprintf(of_archive, sizeof of_archive, "uea:%s", w->set);
    bool is_known = dataset_find(w->set, &known, NULL) == ST_OK;
    TRY(file_entries_open(&w->from, w->set, is_known ? w->set : of_archive, e));
    TRY(check_entries(w, e));
    TRY(leave_duplicates_out(w, host, e));
    if (w->n < 7)
        return fail(e, ST_DATA, "%s: expected at least 7 different series, found %lld", w->set, (long long)w->n);
    w->range = NULL;
    TRY(find_floor(w, host, e));
    return w->scale ? find_ranges(w, host, e) : ST_OK;
}

static int64_t shortest(const struct uea *w) {
    int64_t least = w->from.set.longest;
    for (int64_t i = 0; i < w->n; i++) {
        int64_t length = entry_get(&w->from.set, w->use[i]).length;
        if (length < least) least = length;
    }
    return least;
}

static void uea_shape(const void *inst, struct task_shape *out) {
    const struct uea *w = inst;
    shape_of_labels(out, w->from.set.longest, w->from.set.labels);
    out->floor = w->floor;
    out->unequal_test = shortest(w) < out->T;
    out->channels = series_channels(&w->series, w->from.set.width);
    out->version = series_version(&w->series, 2);
    for (int split = 0; split < SPLIT_COUNT; split++) out->examples[split] = split_size(w, (enum split)split);
}

/* --- examples ----------------------------------------------------------------------------------------------------- */

static void uea_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct uea *w = inst;
    int64_t C = w->from.set.width;
    for (int before = 0; before < (int)split; before++) index += split_size(w, (enum split)before);
    uint64_t at = permute_index(w->seed, STREAM_TABLE, 0, (uint64_t)index, (uint64_t)w->n);
    struct entry r = entry_get(&w->from.set, w->use[at]);
    for (int64_t t = 0; t < r.length; t++) {
        real *point = series_point(&w->series, C, t, x);
        for (int64_t c = 0; c < C; c++) {
            double value = (double)value_at(&r, t * C + c);
            if (w->range) value = w->range[2 * c + 1] > 0 ? (value - w->range[2 * c]) * w->range[2 * c + 1] - 1 : 0;
            point[c] = (real)value;
        }
    }
    x->targets[0] = (int32_t)r.label;
    series_end(&w->series, C, r.length, w->from.set.longest, x);
}

_Static_assert(sizeof(struct uea) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_uea = {
    .name = "uea",
    .summary = "classes of multivariate time series (UEA archive, Bagnall et al. 2018)",
    .suite = "uea",
    .data = "eigenworms",
    .divided_by_seed = true,
    .version = 2, /* in version 1 each share was rounded separately */
    .options = options,
    .inst_bytes = sizeof(struct uea),
    .aliases = aliases,
    .open = uea_open,
    .shape = uea_shape,
    .fill = uea_fill,
};
