/* gate.c - throughput as rows, and what all rows come to; see gate.h. */
#include "harness/gate/gate.h"

#include <string.h>

#include "harness/gate/peer.h"

/* The benches that are named, all where none is. */
static enum status choose(const char *names, struct compare_row *rows, int *n, struct error *e) {
    char copy[OPTION_TEXT], *rest = NULL;
    *n = 0;
    snprintf(copy, sizeof copy, "%s", names);
    for (char *name = strtok_r(copy, " ", &rest); name && *n < GATE_BENCHES; name = strtok_r(NULL, " ", &rest))
        TRY(gate_bench_find(name, &rows[(*n)++].bench, e));
    if (*n == 0)
        for (const struct gate_bench *bench = gate_benches(); bench->name; bench++) rows[(*n)++].bench = bench;
    return ST_OK;
}

enum status gate_throughput_check(const struct compare_request *q, const char *names, struct error *e) {
    struct compare_row rows[GATE_BENCHES];
    int n;
    TRY(choose(names, rows, &n, e));
    TRY(peer_check(q->a, e));
    return peer_check(q->b, e);
}

enum status gate_throughput(const struct baseline *b, const struct compare_request *q, const char *names,
                            struct gate_result *r, struct error *e) {
    struct compare_row rows[GATE_BENCHES] = {0};
    int n;
    TRY(choose(names, rows, &n, e));
    for (int i = 0; i < n; i++) rows[i].floor = gate_floor(baseline_aa_p99(b, rows[i].bench->name));
    enum status status = compare_builds(q, rows, n, e);
    for (int i = 0; i < n; i++) {
        bool compared = rows[i].measured || rows[i].verdict == VERDICT_REGRESSED;
        if (status != ST_OK && !compared) continue; /* its turn had not come */
        struct gate_row *row = &r->rows[r->n++];
        *row = (struct gate_row){.kind = "throughput",
                                 .verdict = rows[i].verdict,
                                 .compared = compared,
                                 .seconds = rows[i].seconds,
                                 .speed = rows[i]};
        snprintf(row->name, sizeof row->name, "%s", rows[i].bench->name);
        snprintf(row->detail, sizeof row->detail, "%s", rows[i].detail);
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
