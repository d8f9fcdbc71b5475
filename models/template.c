/* template.c - a mixer to copy: the identity map with one trained gain per channel, y_t = gain * x_t.
 *
 * 1. Copy this file to models/NAME.c and add MODEL(NAME) to models/list.def. Nothing else needs to know.
 * 2. Rename the struct, the functions' subject and model_template; set .name, .summary (ends with the paper's short
 *    cite) and .equation. Remove .hidden.
 * 3. Put the config keys of the mixer into the struct and its option table: name, type, default, bounds, help.
 * 4. check(): refuse sizes that do not fit, naming both numbers; fill fields that are "auto". Touch nothing else.
 * 5. build(): call the equations' ops, one per line, and declare each parameter by its contract name with its
 *    initialiser. Compute nothing. Gradients come from the ops. If no op has the recurrence, add an op in kernels/
 *    first.
 * 6. state_floats(): what one sequence must carry from t to t+1.
 * 7. .small: labels of its variants at small sizes; every suite that walks the mixers takes them.
 * 8. Put ground-truth cases into tests/cases/, names and shapes of the parameters into tests/models/contract/NAME.def;
 *    `make test` verifies every listed mixer. Keep it green at each step. */
#include "kernels/dense/dense.h"
#include "models/parts.h"

struct template_mixer {
    double gain;
};

static const struct option options[] = {{"gain", OPT_REAL, offsetof(struct template_mixer, gain), "1", -1000, 1000,
                                         NULL, "initial gain of every channel", 0},
                                        {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    (void)inst, (void)d, (void)e;
    return ST_OK;
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct template_mixer *o = inst;
    struct init gain = {.kind = INIT_CONST, .a = o->gain};
    return scale(g, x, vector(g, "gain", x->dims[2], gain, AS_CONTRACT));
}

static int64_t state_floats(const void *inst, const struct dims *d) {
    (void)inst, (void)d;
    return 0;
}

const struct model model_template = {
    .name = "template",
    .summary = "the identity with a gain per channel: copy it to write a mixer",
    .equation = "y_t = gain * x_t",
    .options = options,
    .small = "template",
    .inst_bytes = sizeof(struct template_mixer),
    .causal = true,
    .hidden = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
