/* spirals.c - which way round does a series turn? Several planes of two channels, in each a noisy spiral:
 *
 *   x_t = c + r_t (cos a_t, sin a_t) + noise,   a_t = a_0 + s 2 pi t / turn,   s = +1 or -1,   r_t from r_0 to r_1
 *
 * Turn (steps per turn) is uniform in min_turn..max_turn, a_0 uniform, r_0 and r_1 uniform in 0.5..1.5, c and the noise
 * normal; `walks` more channels are random walks without information. The label is the number whose bits are the signs
 * s, the first plane's first: 2^planes classes, equally frequent. A plane's sign is the sign of its signed area 1/2 sum
 * (x dy - y dx), so the log-signature of an interval has it at depth 2. Depth 1, the displacement, does not show it:
 * over an interval longer than half a turn, a turn in the other direction can have the same displacement (log-ODE form
 * of SLiCE). */
#include <math.h>
#include <string.h>

#include "tasks/examples.h"
#include "tasks/series/series.h"

#define MAX_LENGTH 65536
#define WALK_STEP  0.3
#define TWO_PI     6.28318530717958647693

struct spirals {
    int64_t min_length, max_length, planes, walks;
    double min_turn, max_turn, noise;
    struct series series;
    int64_t examples[SPLIT_COUNT];
    uint64_t seed;
};

static const struct option options[] = {
    {"min_length", OPT_INT, offsetof(struct spirals, min_length), "96", 4, MAX_LENGTH, NULL,
     "points of a series at least", OPT_AXIS},
    {"max_length", OPT_INT, offsetof(struct spirals, max_length), "128", 4, MAX_LENGTH, NULL,
     "points of a series at most", OPT_AXIS},
    {"planes", OPT_INT, offsetof(struct spirals, planes), "2", 1, 8, NULL, "planes of two channels; 2^planes classes",
     OPT_AXIS},
    {"walks", OPT_INT, offsetof(struct spirals, walks), "2", 0, 64, NULL, "further channels, of random walks",
     OPT_AXIS},
    {"min_turn", OPT_REAL, offsetof(struct spirals, min_turn), "4", 2.5, 1e4, NULL, "steps of a whole turn at least",
     OPT_AXIS},
    {"max_turn", OPT_REAL, offsetof(struct spirals, max_turn), "12", 2.5, 1e4, NULL, "steps of a whole turn at most",
     OPT_AXIS},
    {"noise", OPT_REAL, offsetof(struct spirals, noise), "0.3", 0, 100, NULL, "standard deviation of a point's noise",
     OPT_AXIS},
    SERIES_OPTIONS(struct spirals, series),
    EXAMPLES_OPTIONS(struct spirals, examples, "20000", "1000", "2000", "series"),
    {0},
};

static enum status spirals_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct spirals *w = inst;
    (void)host;
    w->seed = seed;
    TRY(check_length_range("spirals", w->min_length, w->max_length, e));
    if (w->max_turn < w->min_turn)
        return fail(e, ST_USAGE, "spirals: no turn is at least min_turn=%g and at most max_turn=%g", w->min_turn,
                    w->max_turn);
    return ST_OK;
}

static int64_t channels_of(const struct spirals *w) {
    return 2 * w->planes + w->walks;
}

static void spirals_shape(const void *inst, struct task_shape *out) {
    const struct spirals *w = inst;
    shape_of_labels(out, w->max_length, INT64_C(1) << w->planes);
    out->unequal_test = w->min_length < w->max_length;
    out->channels = series_channels(&w->series, channels_of(w));
    out->version = series_version(&w->series, 1);
    memcpy(out->examples, w->examples, sizeof out->examples);
}

static void put_plane(const struct spirals *w, struct rng *r, int64_t plane, bool back, int64_t length,
                      struct example *x) {
    double turn = w->min_turn + (w->max_turn - w->min_turn) * rng_uniform(r), angle = TWO_PI * rng_uniform(r);
    double first = 0.5 + rng_uniform(r), last = 0.5 + rng_uniform(r), centre[2] = {rng_normal(r), rng_normal(r)};
    double step = (back ? -TWO_PI : TWO_PI) / turn;
    for (int64_t t = 0; t < length; t++) {
        double radius = first + (last - first) * (double)t / (double)length, a = angle + step * (double)t;
        real *point = series_point(&w->series, channels_of(w), t, x) + 2 * plane;
        point[0] = (real)(centre[0] + radius * cos(a) + w->noise * rng_normal(r));
        point[1] = (real)(centre[1] + radius * sin(a) + w->noise * rng_normal(r));
    }
}

static void put_walk(const struct spirals *w, struct rng *r, int64_t channel, int64_t length, struct example *x) {
    double at = rng_normal(r);
    for (int64_t t = 0; t < length; t++) {
        series_point(&w->series, channels_of(w), t, x)[channel] = (real)at;
        at += WALK_STEP * rng_normal(r);
    }
}

static void spirals_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct spirals *w = inst;
    struct rng r = example_rng(w->seed, split, index);
    int64_t length = draw_length(&r, w->min_length, w->max_length);
    int32_t label = (int32_t)rng_below(&r, UINT64_C(1) << w->planes);
    for (int64_t p = 0; p < w->planes; p++) put_plane(w, &r, p, label >> p & 1, length, x);
    for (int64_t c = 2 * w->planes; c < channels_of(w); c++) put_walk(w, &r, c, length, x);
    x->targets[0] = label;
    series_end(&w->series, channels_of(w), length, w->max_length, x);
}

_Static_assert(sizeof(struct spirals) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_spirals = {
    .name = "spirals",
    .summary = "which way round does each plane of a noisy series turn? (this project)",
    .suite = "series",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct spirals),
    .open = spirals_open,
    .shape = spirals_shape,
    .fill = spirals_fill,
};
