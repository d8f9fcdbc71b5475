/* op_walk.c - see op_walk.h. */
#include "tests/lib/op_walk.h"

#include <stdlib.h>
#include <string.h>

#include "core/label.h"
#include "tests/testing.h"

#define MOST 4096 /* sizes of one op */

static const char small[] =
    "batch=3 length=3 blocks=3 m=2 dim=5 out=4 vocab=6 heads=3 dk=3 dv=4 substeps=2 interval=2 examples=7";

/* Values that one size takes while the others are small. */
static const struct {
    const char *option, *edges, *lengthy;
} axes[] = {
    {"batch", "1 2 17", "40"},
    {"length", "1 2 16 31 33 64 67", "400"},
    {"blocks", "1 2 31 33", "400"},
    {"m", "1 2 3 4 5 6 7 8 9 16 17", NULL},
    {"dim", "1 2 16 31 33 64 67", "400"},
    {"out", "1 2 31 33", "400"},
    {"vocab", "1 2 33 120", "400"},
    {"heads", "1 2 16 31 33", "100"},
    {"dk", "1 2 16 31 33", "100"},
    {"dv", "1 2 16 31 33", "100"},
    {"substeps", "1 3", NULL},
    {"interval", "1 3 5", NULL},
    {"examples", "1 2 31 33", "400"},
};

/* Sequences that kernels cut into segments of 64 steps have states coupled by matrices of 4 x 4: products of smaller
 * ones at random vanish within a segment, and what passes through a whole one would not be seen. */
static const char *const real_sizes[] = {
    "batch=3 length=33 heads=7 dk=5 dv=7 m=3 blocks=13 dim=21 out=35 vocab=11 substeps=1 interval=5 examples=40",
    "batch=3 length=70 heads=6 dk=7 dv=5 m=5 blocks=21 dim=35 out=13 vocab=33 substeps=2 interval=16 examples=100",
    "batch=5 length=18 heads=5 dk=16 dv=16 m=1 blocks=40 dim=67 out=80 vocab=120 substeps=3 interval=4 examples=9",
    "batch=5 length=52 heads=4 dk=16 dv=17 m=2 blocks=13 dim=52 out=48 vocab=17 substeps=2 interval=4 examples=50",
    "batch=3 length=130 heads=9 dk=6 dv=9 m=4 blocks=9 dim=150 out=140 vocab=7 substeps=1 interval=3 examples=300",
};

/* Further sizes of single ops: grids of more rows than the device's kernel takes at once, of fewer columns than a
 * stretch has rows, of states that leave room for few rows, of several stretches on the CPU; the largest order that a
 * mixer takes; choices in several chunks of tokens; three uneven tiles of sequences and two of tokens; several
 * blocks of the device's angles, and of several sequences on the CPU. */
static const struct {
    const char *op, *sizes;
    unsigned walk;
} own_sizes[] = {
    {"grid_scan", "batch=1 length=400 heads=1 dk=5 dv=4", WALK_REAL},
    {"grid_scan", "batch=2 length=74 heads=3 dk=18 dv=34", WALK_REAL},
    {"grid_scan", "batch=1 length=100 heads=1 dk=100 dv=33", WALK_REAL},
    {"grid_scan", "batch=1 length=4225 heads=1 dk=2 dv=2", WALK_LARGE},
    {"scan_block", "batch=2 length=3 blocks=21 m=64", WALK_REAL},
    {"scan_companion", "batch=2 length=35 blocks=21 m=64", WALK_REAL},
    {"scan_turned", "batch=1 length=130 blocks=128 dim=257 m=3", WALK_REAL},
    {"scan_turned", "batch=5 length=20 blocks=3 dim=5 m=7", WALK_REAL},
    {"scan_route", "batch=3 length=100 blocks=35 m=9", WALK_REAL},
    {"scan_lstm", "batch=100 length=21 dim=5", WALK_REAL},
    {"scan_slstm", "batch=100 length=9 heads=2 dk=5", WALK_REAL},
    {"scan_plstm", "batch=1 length=1041 heads=2 dk=3 dv=4", WALK_LARGE},
};

/* So that every kernel has work for several threads. */
static const char wide[] = "batch=64 length=36 heads=16 dk=3 dv=5 m=2 blocks=64 dim=20 out=2000";

static void apply(struct op_sizes *s, const char *text) {
    struct label pairs;
    struct error e = {0};
    ck_assert_msg(label_parse_pairs(&pairs, "sizes", text, " ", &e) == ST_OK, "%s", e.text);
    ck_assert_msg(label_apply(&pairs, op_sizes_options, s, "sizes", &e) == ST_OK, "%s", e.text);
}

struct op_sizes sizes_at(const char *text) {
    struct op_sizes s;
    struct error e = {0};
    ck_assert_msg(options_default(op_sizes_options, &s, &e) == ST_OK, "%s", e.text);
    apply(&s, small);
    apply(&s, text);
    return s;
}

/* Whether two sizes are the same to the op. */
static bool same_to(const struct op *op, const struct op_sizes *a, const struct op_sizes *b) {
    char of_a[256], of_b[256];
    ck_assert_int_lt(op_sizes_format(op, a, of_a, sizeof of_a), (int)sizeof of_a);
    ck_assert_int_lt(op_sizes_format(op, b, of_b, sizeof of_b), (int)sizeof of_b);
    return strcmp(of_a, of_b) == 0;
}

int choices_of(const struct op *op, const char *name) {
    int n = 1;
    if (!op_reads_size(op, name)) return n;
    for (const char *at = option_find(op_sizes_options, name)->choices; (at = strchr(at, ' ')); at++) n++;
    return n;
}

/* The sizes with every choice and variant, unless they are in the list. */
static void append(struct op_walk *w, const struct op *op, struct op_sizes s) {
    int gates = choices_of(op, "gate"), layouts = choices_of(op, "layout"), variants = op_variants(op);
    for (int i = 0; i < w->n; i += gates * layouts * variants)
        if (same_to(op, &w->at[i], &s)) return;
    ck_assert_int_le(w->n + gates * layouts * variants, MOST);
    for (s.gate = 0; s.gate < gates; s.gate++)
        for (s.layout = 0; s.layout < layouts; s.layout++)
            for (s.variant = 0; s.variant < variants; s.variant++) w->at[w->n++] = s;
}

static void append_axes(struct op_walk *w, const struct op *op, bool lengthy) {
    char pair[64], value[16];
    for (size_t a = 0; a < sizeof axes / sizeof *axes; a++) {
        const char *at = lengthy ? axes[a].lengthy : axes[a].edges;
        if (!op_reads_size(op, axes[a].option)) continue;
        for (; at && *at; at += strspn(at, " ")) {
            size_t n = strcspn(at, " ");
            snprintf(value, sizeof value, "%.*s", (int)n, at);
            snprintf(pair, sizeof pair, "%s=%s", axes[a].option, value);
            append(w, op, sizes_at(pair));
            at += n;
        }
    }
}

struct op_walk walk_of(const struct op *op, unsigned walks) {
    struct op_walk w = {.at = calloc(MOST, sizeof *w.at)};
    ck_assert_ptr_nonnull(w.at);
    if (walks & WALK_EDGES) append_axes(&w, op, false);
    if (walks & WALK_LONG) append_axes(&w, op, true);
    for (size_t i = 0; i < sizeof real_sizes / sizeof *real_sizes && (walks & WALK_REAL); i++)
        append(&w, op, sizes_at(real_sizes[i]));
    if (walks & WALK_WIDE) append(&w, op, sizes_at(wide));
    for (size_t i = 0; i < sizeof own_sizes / sizeof *own_sizes; i++)
        if ((walks & own_sizes[i].walk) && strcmp(op->name, own_sizes[i].op) == 0)
            append(&w, op, sizes_at(own_sizes[i].sizes));
    return w;
}

void walk_free(struct op_walk *w) {
    free(w->at);
    *w = (struct op_walk){0};
}
