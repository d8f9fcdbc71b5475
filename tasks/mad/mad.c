/* mad.c - see mad.h. */
#include "tasks/mad/mad.h"

#include "tasks/examples.h"

struct rng mad_rng(const struct mad *m, enum split split, int64_t index) {
    return example_rng(m->seed, split, index);
}

void mad_shape(const struct mad *m, int64_t T, int64_t answers, struct task_shape *out) {
    out->T = T;
    out->vocab_in = out->vocab_out = m->vocab;
    out->needs_causal = true;
    out->examples[SPLIT_TRAIN] = m->n_train;
    out->examples[SPLIT_VAL] = m->n_val;
    out->examples[SPLIT_TEST] = m->n_test;
    out->chance = out->floor = 1.0 / (double)answers;
    out->solved = 0.999;
    out->metric = METRIC_MACRO_ACC;
}

enum status mad_check_noise(const char *task, const struct mad_noise *noise, struct error *e) {
    if (noise->share == 0 || noise->vocab > 0) return ST_OK;
    return fail(e, ST_USAGE, "%s: noise=%g needs ids of its own, but noise_vocab=0; raise noise_vocab", task,
                noise->share);
}

enum status mad_deal_ids(const char *task, const struct mad *m, int64_t noise_vocab, int64_t special, int64_t min_keys,
                         int64_t min_values, struct mad_ids *ids, struct error *e) {
    int64_t left = m->vocab - noise_vocab - special, keys = left > 0 ? left / 2 : 0,
            values = left > 0 ? left - keys : 0;
    char taken[64] = "";
    if (noise_vocab > 0) snprintf(taken, sizeof taken, " less noise_vocab=%lld", (long long)noise_vocab);
    if (keys < min_keys || values < min_values)
        return fail(e, ST_USAGE,
                    "%s: vocab=%lld%s and %lld special id%s leaves %lld keys and %lld values, but at least %lld and "
                    "%lld are needed; raise vocab",
                    task, (long long)m->vocab, taken, (long long)special, special == 1 ? "" : "s", (long long)keys,
                    (long long)values, (long long)min_keys, (long long)min_values);
    *ids = (struct mad_ids){(int32_t)keys, (int32_t)values, (int32_t)noise_vocab};
    return ST_OK;
}
