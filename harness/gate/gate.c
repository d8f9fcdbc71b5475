/* gate.c - golden traces bit by bit, the seeds rule, throughput as rows, and the gate's own test; see gate.h. */
#include "harness/gate/gate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/store/clock.h"

/* --- a baseline --------------------------------------------------------------------------------------------------- */

enum status gate_measure(struct baseline *b, int traces, int seeds, struct error *e) {
    struct trace t;
    for (int k = 0; k < TRACE_KERNELS; k++)
        for (int i = 0; i < traces && trace_at(i, &t); i++) {
            if (b->n_traces == BASELINE_TRACES)
                return fail(e, ST_FAIL, "a baseline has at most %d traces", BASELINE_TRACES);
            struct baseline_trace *to = &b->traces[b->n_traces++];
            to->kernels = (enum trace_kernels)k;
            TRY(trace_run(&t, trace_kernel_flags[k], &to->row, e));
        }
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

/* Judges a trace. With kernels that a run takes only the size of a difference counts: they may sum in another order. */
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
                 "losses %.9g %.9g %.9g at three steps, in the baseline %.9g %.9g %.9g: %s", now->loss[0], now->loss[1],
                 now->loss[2], then->row.loss[0], then->row.loss[1], then->row.loss[2],
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

static enum verdict judge_seeds(const struct baseline_bank *bank, const double *metric, int solved, int n,
                                struct gate_row *row) {
    double difference[2 * GATE_SEEDS];
    for (int i = 0; i < n; i++) {
        difference[i] = metric[i] - bank->metric[i];
        row->made.seed[i] = i + 1;
        row->made.value[i] = metric[i];
    }
    const struct interval interval = stats_t_interval(difference, n, 0.95);
    snprintf(row->figure, sizeof row->figure, "change of metric");
    snprintf(row->made.figure, sizeof row->made.figure, "metric");
    row->made.n = n;
    row->value = stats_mean(difference, n);
    row->low = interval.low;
    row->high = interval.high;
    row->bound = -GATE_POINT;
    enum verdict rate = seeds_verdict(solved, n), size = metric_verdict(difference, n);
    snprintf(row->detail, sizeof row->detail, "%d of %d seeds solved, mean metric %+.4f of that of the same seeds%s",
             solved, n, stats_mean(difference, n),
             size == VERDICT_INCONCLUSIVE ? ": too good to be the baseline unseen" : "");
    return rate > size ? rate : size;
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

/* --- throughput --------------------------------------------------------------------------------------------------- */

enum status gate_throughput_check(const struct compare_request *q, const char *names, struct error *e) {
    struct compare_row rows[GATE_BENCHES];
    int n;
    TRY(gate_benches_choose(names, rows, &n, e));
    TRY(program_check(q->a, e));
    return program_check(q->b, e);
}

static void add_throughput(const struct compare_row *c, bool compared, struct gate_row *row) {
    *row = (struct gate_row){
        .kind = "throughput", .verdict = c->verdict, .compared = compared, .seconds = c->seconds, .speed = *c};
    snprintf(row->name, sizeof row->name, "%s", c->bench->name);
    snprintf(row->detail, sizeof row->detail, "%s", c->detail);
    if (!c->measured) return;
    snprintf(row->figure, sizeof row->figure, "change of time in percent");
    snprintf(row->made.figure, sizeof row->made.figure, "ms");
    row->made.n = 1;
    row->made.value[0] = 1e3 * c->b;
    row->value = 100 * expm1(c->pairs.median);
    row->low = 100 * expm1(c->pairs.interval.low);
    row->high = 100 * expm1(c->pairs.interval.high);
    row->sense = SENSE_MOST;
    row->bound = 100 * c->floor;
}

enum status gate_throughput(const struct baseline *b, const struct compare_request *q, const char *names,
                            struct gate_result *r, struct error *e) {
    struct compare_row rows[GATE_BENCHES] = {0};
    struct compare_request of_baseline = *q;
    int n, known = 0;
    of_baseline.commit = b->commit;
    TRY(gate_benches_choose(names, rows, &n, e));
    for (int i = 0; i < n; i++) rows[i].floor = gate_floor(baseline_aa_p99(b, rows[i].bench->name));
    while (gate_benches()[known].name) known++;
    if (n < known) snprintf(r->left_out, sizeof r->left_out, "%d of %d benches", known - n, known);
    enum status status = compare_builds(&of_baseline, rows, n, e);
    for (int i = 0; i < n; i++) {
        bool compared = rows[i].measured || rows[i].verdict == VERDICT_REGRESSED;
        if (status != ST_OK && !compared) continue; /* its turn had not come */
        add_throughput(&rows[i], compared, &r->rows[r->n++]);
    }
    return status;
}

enum status gate_worst(const struct gate_result *r, enum verdict *worst, struct error *e) {
    int compared = 0;
    *worst = VERDICT_SAME;
    for (int i = 0; i < r->n; i++) {
        if (!r->rows[i].compared) continue;
        compared++;
        if (r->rows[i].verdict > *worst) *worst = r->rows[i].verdict;
    }
    if (compared) return ST_OK;
    return fail(e, ST_FAIL, "the gate compared nothing%s%s", r->n ? ": " : "; the baseline is empty",
                r->n ? r->rows[0].detail : "");
}

/* --- the gate's own test ------------------------------------------------------------------------------------------ */

struct tally {
    int n, verdicts[VERDICT_COUNT];
    double load;                   /* largest of a sitting */
    double *medians[GATE_BENCHES]; /* of each bench, as the sizes of changes; NULL: nobody asks */
};

/* Takes n whole sittings as a gate does, with the second measurement of inconclusive ones, and counts the worst verdict
 * of each. */
static enum status sit(const struct self_test_request *q, int n, double delay, struct tally *t, struct error *e) {
    struct compare_request request = q->compare;
    request.delay = delay;
    for (; t->n < n; t->n++) {
        struct compare_row rows[GATE_BENCHES] = {0};
        enum verdict worst = VERDICT_SAME;
        int benches;
        request.seed = q->compare.seed + (uint64_t)t->n;
        TRY(gate_benches_choose(q->benches, rows, &benches, e));
        for (int i = 0; i < benches; i++) rows[i].floor = gate_floor(NAN);
        TRY(compare_builds(&request, rows, benches, e));
        for (int i = 0; i < benches; i++) {
            if (!rows[i].measured) return fail(e, ST_FAIL, "%s", rows[i].detail);
            if (rows[i].verdict > worst) worst = rows[i].verdict;
            if (t->medians[i]) t->medians[i][t->n] = fabs(rows[i].pairs.median);
            t->load = fmax(t->load, isnan(rows[i].foreign) ? 0 : rows[i].foreign);
        }
        t->verdicts[worst]++;
    }
    return ST_OK;
}

static void add_tally(const struct self_test_request *q, double delay, const struct tally *t, struct sheet *s) {
    int red = t->verdicts[VERDICT_REGRESSED];
    struct interval i = stats_rate_interval(red, t->n, 0.95);
    sheet_row(s);
    sheet_text(s, "%s", q->benches);
    sheet_real(s, "%g", 100 * delay);
    sheet_int(s, t->n);
    for (int v = VERDICT_COUNT - 1; v >= 0; v--) sheet_int(s, t->verdicts[v]);
    sheet_real(s, "%.1f", 100.0 * red / t->n);
    sheet_real(s, "%.1f", 100 * i.low);
    sheet_real(s, "%.1f", 100 * i.high);
    sheet_real(s, "%.0f", 100 * t->load);
}

static enum status read_delays(const char *text, double delays[SELF_TEST_DELAYS], int *n, struct error *e) {
    char copy[OPTION_TEXT], *rest = NULL;
    *n = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        double percent;
        if (*n == SELF_TEST_DELAYS || !parse_double(word, &percent) || !(percent > 0 && percent <= 1000))
            return fail(e, ST_USAGE, "--delays '%.60s': expected at most %d numbers above 0, in percent", text,
                        SELF_TEST_DELAYS);
        delays[(*n)++] = percent / 100;
    }
    return ST_OK;
}

enum status gate_self_test(const struct self_test_request *q, struct baseline *b, struct sheet *s, struct error *e) {
    double delays[SELF_TEST_DELAYS];
    struct compare_row rows[GATE_BENCHES];
    struct tally aa = {0};
    int n, benches;
    TRY(read_delays(q->delays, delays, &n, e));
    TRY(gate_benches_choose(q->benches, rows, &benches, e));
    sheet_caption(s, "%d pairs, then %d where those do not decide", q->compare.pairs, 2 * q->compare.pairs);
    sheet_columns(s, "benches|>delay_percent|>gates|>regressed|>inconclusive|>improved|>same|>red_percent|>red_low|"
                     ">red_high|>load_percent");
    double *medians = calloc((size_t)q->sittings * (size_t)benches, sizeof *medians);
    if (!medians) return fail(e, ST_MEMORY, "no memory for %d sittings", q->sittings);
    for (int i = 0; i < benches; i++) aa.medians[i] = medians + (size_t)i * (size_t)q->sittings;
    enum status status = sit(q, q->sittings, 0, &aa, e);
    if (status == ST_OK) add_tally(q, 0, &aa, s);
    for (int i = 0; i < benches && status == ST_OK; i++) {
        double aa_p99 = expm1(stats_quantile(aa.medians[i], aa.n, 0.99));
        sheet_note(s, "%s beside itself: 99th percentile of the change %.2f %%, so a floor of %.2f %%",
                   rows[i].bench->name, 100 * aa_p99, 100 * gate_floor(aa_p99));
        status = baseline_set_floor(b, rows[i].bench->name, aa_p99, e);
    }
    free(medians);
    for (int i = 0; i < n && status == ST_OK && q->power > 0; i++) {
        struct tally t = {0};
        status = sit(q, q->power, delays[i], &t, e);
        if (status == ST_OK) add_tally(q, delays[i], &t, s);
    }
    return status;
}
