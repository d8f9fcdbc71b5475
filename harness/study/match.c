/* match.c - finds the width at which a net has a given number of parameters or size of its state (setup_match). */
#include "harness/study/setup.h"

#include <inttypes.h>
#include <math.h>

#include "core/graph.h"
#include "kernels/kernel.h"

#define MOST (1 << 16) /* the largest size that is tried */

/* The numbers that --match asks for; 0: not given. */
struct wish {
    int64_t params, state;
};

static const struct option wishes[] = {
    {"params", OPT_INT, offsetof(struct wish, params), "auto", 1, 1e15, NULL, "parameters that are trained", OPT_AUTO},
    {"state", OPT_INT, offsetof(struct wish, state), "auto", 1, 1e15, NULL, "numbers of recurrent state", OPT_AUTO},
    {0}};

/* The size that is varied: the width, or an option of the mixer. */
struct knob {
    const struct option *option; /* the varied option; NULL: the width */
    struct wish wish;
};

static void turn(struct spec *s, const struct knob *k, int64_t size) {
    if (k->option)
        *(int64_t *)(void *)(s->model.inst + k->option->offset) = size;
    else
        s->config.net.dim = size;
}

/* Returns the smallest size in [size, 2 size) that the mixer accepts; 0: it accepts none of them. */
static int64_t fitting(struct spec *s, const struct knob *k, int64_t size, struct error *e) {
    const struct net_shape shape = setup_net_shape(s, SPLIT_TRAIN);
    struct model_choice fitted;
    for (int64_t most = 2 * size; size < most && size <= MOST; size++) {
        turn(s, k, size);
        if (setup_fit(s, &shape, &fitted, e) == ST_OK) return size;
    }
    return 0;
}

/* Counts the parameters, or the numbers of the state, of the net at a size that the mixer accepts. */
static enum status count(struct spec *s, const struct knob *k, int64_t size, double *amount, struct error *e) {
    struct net_shape shape = setup_net_shape(s, SPLIT_TRAIN);
    struct place cpu = {.device = DEVICE_CPU};
    struct graph_options options = {.training = true, .place = &cpu, .kernels = kernel_list()};
    struct params params = {0};
    struct graph g = {0};
    struct net net;
    struct model_choice fitted;
    shape.B = 1;
    turn(s, k, size);
    TRY(setup_fit(s, &shape, &fitted, e));
    *amount = (double)net_state_floats(&s->config.net, &fitted);
    if (k->wish.state) return ST_OK;
    enum status status = params_create(&params, e);
    if (status == ST_OK) status = graph_create(&g, &options, &params, e);
    if (status == ST_OK) status = net_build(&net, &g, &s->config.net, &fitted, &shape, e);
    *amount = (double)params_trained(&params);
    graph_free(&g);
    params_free(&params);
    return status;
}

/* Sets *below if the net has at most the wished amount at the smallest accepted size of at least `size`. */
static enum status is_below(struct spec *s, const struct knob *k, int64_t size, double wished, bool *below,
                            struct error *e) {
    double amount;
    int64_t fit = fitting(s, k, size, NULL);
    *below = false;
    if (!fit) return ST_OK;
    TRY(count(s, k, fit, &amount, e));
    *below = amount <= wished;
    return ST_OK;
}

/* Chooses the size whose amount is nearest to the wished one. The amount grows with the size, so bisection finds the
 * two sizes between which the wish lies. If the nearest amount is too far from the wish, sets *too_large to whether it
 * is larger; otherwise leaves it as it was. */
static enum status choose(struct spec *s, const struct knob *k, bool *too_large, struct error *e) {
    double wished = (double)(k->wish.params ? k->wish.params : k->wish.state), amounts[2];
    int64_t low = 1, high;
    bool below = true;
    while (low < MOST && !fitting(s, k, low, e)) low *= 2;
    if (low >= MOST) return e ? e->status : ST_USAGE;
    for (high = 2 * low; high < MOST && below; high *= 2) {
        TRY(is_below(s, k, high, wished, &below, e));
        if (below) low = high;
    }
    for (high = 2 * low; high - low > 1;) {
        int64_t middle = (low + high) / 2;
        TRY(is_below(s, k, middle, wished, &below, e));
        *(below ? &low : &high) = middle;
    }
    int64_t sizes[2] = {fitting(s, k, low, e)};
    sizes[1] = fitting(s, k, sizes[0] + 1, NULL);
    for (int i = 0; i < 2; i++)
        if (sizes[i]) TRY(count(s, k, sizes[i], &amounts[i], e));
    bool above = sizes[1] && fabs(amounts[1] - wished) < fabs(amounts[0] - wished);
    turn(s, k, sizes[above]);
    if (fabs(amounts[above] - wished) > wished / 2) {
        *too_large = amounts[above] > wished;
        return fail(e, ST_USAGE, "--match %.60s: the nearest net of %s has %.0f, at width %" PRId64, s->config.match,
                    s->model.model->name, amounts[above], s->config.net.dim);
    }
    return ST_OK;
}

/* Sets *follows if the state is larger at twice the width. */
static enum status state_follows(struct spec *s, const struct knob *k, bool *follows, struct error *e) {
    int64_t dim = s->config.net.dim;
    double narrow, wide;
    TRY(count(s, k, dim, &narrow, e));
    TRY(count(s, k, 2 * dim, &wide, e));
    s->config.net.dim = dim;
    *follows = wide > narrow;
    return ST_OK;
}

/* Chooses the mixer's option. While even the smallest state is too large, halves the width and tries again, but skips
 * widths that the mixer does not accept. If no width will do, keeps the given one and returns its error. */
static enum status choose_option(struct spec *s, const struct knob *k, struct error *e) {
    int64_t *dim = &s->config.net.dim, given = *dim;
    struct error why = {ST_OK, ""};
    bool too_large = false;
    enum status first = choose(s, k, &too_large, e), status = first;
    while (status == ST_USAGE && too_large && *dim > 1) {
        *dim /= 2;
        status = choose(s, k, &too_large, &why);
    }
    if (status == ST_OK || first != ST_USAGE) return status;
    *dim = given;
    return status == ST_USAGE ? status : fail(e, status, "%s", why.text);
}

enum status setup_match(struct spec *s, struct error *e) {
    struct label asked;
    struct knob k = {0};
    bool follows = true;
    const char *text = s->config.match;
    if (!*text) return ST_OK;
    TRY(label_parse_pairs(&asked, "--match", text, ",", e));
    TRY(options_default(wishes, &k.wish, e));
    TRY(label_apply(&asked, wishes, &k.wish, "--match", e));
    if (!k.wish.params == !k.wish.state)
        return fail(e, ST_USAGE, "--match %.60s: expected params=N or state=N, one of the two", text);
    for (const struct option *o = s->model.model->options; k.wish.state && o->name; o++)
        if (o->flags & OPT_STATE) k.option = o;
    if (k.wish.state && !k.option) TRY(state_follows(s, &k, &follows, e));
    if (!follows)
        return fail(e, ST_USAGE,
                    "--match %.60s: the state of %s follows neither the width nor an option of it; "
                    "match params",
                    text, s->model.model->name);
    if (k.option)
        TRY(choose_option(s, &k, e));
    else
        TRY(choose(s, &k, &(bool){false}, e));
    return config_set(&s->config, "match", "", e);
}
