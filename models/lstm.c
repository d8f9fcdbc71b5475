/* lstm.c - the LSTM with PyTorch's parameters: the nonlinear baseline that the linear recurrences are measured against.
 *
 *   p_t = W_x x_t + b_x + W_h h_{t-1} + b_h, gates i, f, g, o     c_t = sig(f) c_{t-1} + sig(i) tanh(g)
 *   h_t = sig(o) tanh(c_t)                                        y_t = W_o h_t if hidden != D, else h_t
 *
 * Hochreiter & Schmidhuber 1997; gates, biases and initial values as PyTorch's LSTM. */
#include "kernels/dense/dense.h"
#include "kernels/gated/gated.h"
#include "models/parts.h"

struct lstm {
    int64_t hidden;
};

static const struct option options[] = {
    {"hidden", OPT_INT, offsetof(struct lstm, hidden), "auto", 1, 1 << 20, NULL, "hidden width H; auto = D", OPT_AUTO},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    (void)e;
    struct lstm *o = inst;
    if (o->hidden == 0) o->hidden = d->D;
    return ST_OK;
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct lstm *o = inst;
    int64_t H = o->hidden, D = x->dims[2];
    struct init uniform = init_linear(H, 1); /* the bound of every parameter, also wx and biases, depends on H */
    struct tensor *wx =
        graph_param(g, &(struct param_spec){.name = "wx", .rank = 2, .dims = {4 * H, D}, .init = uniform});
    struct tensor *wh =
        graph_param(g, &(struct param_spec){.name = "wh", .rank = 2, .dims = {4 * H, H}, .init = uniform});
    struct tensor *bx = vector(g, "bx", 4 * H, uniform, AS_CONTRACT);
    struct tensor *bh = vector(g, "bh", 4 * H, uniform, AS_CONTRACT);
    struct tensor *h = scan_lstm(g, linear(g, x, wx, bx), wh, bh);
    return H == D ? h : linear(g, h, weight(g, "out.weight", D, H, 1, AS_CONTRACT), NULL);
}

static int64_t state_floats(const void *inst, const struct dims *d) {
    int64_t hidden = ((const struct lstm *)inst)->hidden;
    return 2 * (hidden ? hidden : d->D);
}

const struct model model_lstm = {
    .name = "lstm",
    .title = "LSTM",
    .summary = "long short-term memory, PyTorch's gates and initialisation (Hochreiter & Schmidhuber 1997)",
    .equation = "c_t = sig(f) c_{t-1} + sig(i) tanh(g);  h_t = sig(o) tanh(c_t);  (i,f,g,o) = W_x x_t + b_x + W_h "
                "h_{t-1} + b_h",
    .options = options,
    .small = "lstm lstm:hidden=10",
    .inst_bytes = sizeof(struct lstm),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
