/* accuracy.c - golden traces bit by bit, and the seeds rule; see gate.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/gate/gate.h"
#include "harness/gate/seeds.h"
#include "harness/store/clock.h"

/* --- a baseline --------------------------------------------------------------------------------------------------- */

static enum status measure_traces(struct baseline *b, enum trace_kernels kernels, int most, struct error *e) {
    struct trace t;
    for (int i = 0; i < most && trace_at(i, &t); i++) {
        if (b->n_traces == BASELINE_TRACES)
            return fail(e, ST_FAIL, "a baseline has at most %d traces", BASELINE_TRACES);
        struct baseline_trace *to = &b->traces[b->n_traces++];
        to->kernels = kernels;
        TRY(trace_run(&t, trace_kernel_flags[kernels], &to->row, e));
    }
    return ST_OK;
}

enum status gate_measure(struct baseline *b, int traces, int seeds, struct error *e) {
    for (int k = 0; k < TRACE_KERNELS; k++) TRY(measure_traces(b, (enum trace_kernels)k, traces, e));
    for (int i = 0; i < seeds_count(); i++) {
        struct baseline_bank *bank = &b->banks[b->n_banks++];
        seeds_name(i, bank->name);
        TRY(seeds_numerics(bank->name, bank->numerics, e));
        bank->n = seeds;
        TRY(seeds_run(i, 1, seeds, bank->metric, &bank->solved, e));
    }
    return ST_OK;
}

/* --- traces ------------------------------------------------------------------------------------------------------- */

/* Of kernels that a run takes only the size of the difference counts: they may sum in another order. */
static void judge_trace(const struct baseline_trace *then, const struct trace_row *now, struct gate_row *row) {
    bool same = trace_same_bits(now, &then->row);
    bool near = then->kernels == TRACE_TAKEN && trace_is_near(now, &then->row, trace_tuned_bounds);
    row->compared = true;
    if (strcmp(now->numerics, then->row.numerics) != 0) {
        row->verdict = VERDICT_INCONCLUSIVE;
        snprintf(row->detail, sizeof row->detail, "numerics %s, in the baseline %s: bits that are meant to differ",
                 now->numerics, then->row.numerics);
        return;
    }
    row->verdict = same || near ? VERDICT_SAME : VERDICT_REGRESSED;
    if (!same)
        snprintf(row->detail, sizeof row->detail,
                 "losses %.9g %.9g %.9g at steps 1, 10 and 50, in the baseline %.9g %.9g %.9g: %s", now->loss[0],
                 now->loss[1], now->loss[2], then->row.loss[0], then->row.loss[1], then->row.loss[2],
                 near ? "the order of sums" : "other numbers under the same numerics version");
}

static enum status compare_trace(const struct baseline_trace *then, struct gate_row *row, struct error *e) {
    struct trace t;
    struct trace_row now;
    struct error why = {ST_OK, ""};
    snprintf(row->name, sizeof row->name, "%s, %s kernels", then->row.name, trace_kernel_names[then->kernels]);
    if (!trace_find(then->row.name, &t)) {
        snprintf(row->detail, sizeof row->detail, "this program has no such trace");
        return ST_OK;
    }
    if (trace_run(&t, trace_kernel_flags[then->kernels], &now, &why) == ST_OK) {
        judge_trace(then, &now, row);
        return ST_OK;
    }
    if (why.status == ST_MEMORY) return fail(e, why.status, "%s", why.text);
    row->compared = true; /* what the baseline could train cannot be trained any more */
    row->verdict = VERDICT_REGRESSED;
    snprintf(row->detail, sizeof row->detail, "%.500s", why.text);
    return ST_OK;
}

/* --- seeds -------------------------------------------------------------------------------------------------------- */

static enum verdict worse(enum verdict a, enum verdict b) {
    return a > b ? a : b;
}

static enum verdict judge_seeds(const struct baseline_bank *bank, const double *metric, int solved, int n,
                                struct gate_row *row) {
    double difference[2 * GATE_SEEDS];
    for (int i = 0; i < n; i++) difference[i] = metric[i] - bank->metric[i];
    enum verdict rate = seeds_verdict(solved, n), size = metric_verdict(difference, n);
    snprintf(row->detail, sizeof row->detail, "%d of %d seeds solved, mean metric %+.4f of that of the same seeds%s",
             solved, n, stats_mean(difference, n),
             size == VERDICT_INCONCLUSIVE ? ": too good to be the baseline unseen" : "");
    return worse(rate, size);
}

static enum status compare_seeds(const struct baseline_bank *bank, struct gate_row *row, struct error *e) {
    double metric[2 * GATE_SEEDS];
    int cell = seeds_find(bank->name), solved = 0, n = GATE_SEEDS;
    snprintf(row->name, sizeof row->name, "%s", bank->name);
    if (cell < 0 || bank->n < 2 * GATE_SEEDS || bank->solved < bank->n) {
        snprintf(row->detail, sizeof row->detail,
                 "the bank has %d of %d runs that solved it: the rule asks for %d of %d", bank->solved, bank->n,
                 GATE_BANK, GATE_BANK);
        if (cell < 0) snprintf(row->detail, sizeof row->detail, "this program has no such cell");
        return ST_OK;
    }
    /* Another numerics version may train otherwise, but must solve it too. */
    TRY(seeds_run(cell, 1, n, metric, &solved, e));
    row->verdict = judge_seeds(bank, metric, solved, n, row);
    if (seeds_verdict(solved, n) == VERDICT_INCONCLUSIVE) {
        TRY(seeds_run(cell, 1 + n, n, metric + n, &solved, e));
        n *= 2;
        row->verdict = judge_seeds(bank, metric, solved, n, row);
    }
    row->compared = true;
    return ST_OK;
}

/* --- both --------------------------------------------------------------------------------------------------------- */

enum status gate_accuracy(const struct baseline *b, struct gate_result *r, struct error *e) {
    for (int i = 0; i < b->n_traces + b->n_banks; i++) {
        struct gate_row *row = &r->rows[r->n++];
        double start = time_now_s();
        *row = (struct gate_row){.kind = i < b->n_traces ? "trace" : "seeds"};
        if (i < b->n_traces)
            TRY(compare_trace(&b->traces[i], row, e));
        else
            TRY(compare_seeds(&b->banks[i - b->n_traces], row, e));
        row->seconds = time_now_s() - start;
    }
    return ST_OK;
}
