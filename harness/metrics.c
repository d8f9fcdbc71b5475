/* metrics.c - see metrics.h. */
#include "harness/metrics.h"

#include <string.h>

enum status metrics_create(struct metrics *m, int64_t vocab, struct arena *arena, struct error *e) {
    *m = (struct metrics){.vocab = vocab};
    m->truths = arena_alloc(arena, 3 * (size_t)vocab * sizeof *m->truths);
    if (!m->truths) return fail(e, ST_FAIL, "no memory to count %lld classes", (long long)vocab);
    m->hits = m->truths + vocab;
    m->wrong = m->hits + vocab;
    return ST_OK;
}

void metrics_reset(struct metrics *m) {
    *m = (struct metrics){.vocab = m->vocab, .truths = m->truths, .hits = m->hits, .wrong = m->wrong};
}

static double macro_recall(const struct metrics *m) {
    double sum = 0;
    int64_t classes = 0;
    for (int64_t v = 0; v < m->vocab; v++) {
        if (!m->truths[v] && !m->wrong[v]) continue;
        classes++;
        if (m->truths[v]) sum += (double)m->hits[v] / (double)m->truths[v];
    }
    return classes ? sum / (double)classes : 0;
}

void metrics_add(struct metrics *m, const int32_t *targets, const int32_t *predictions, int64_t rows, int64_t T,
                 double loss) {
    memset(m->truths, 0, 3 * (size_t)m->vocab * sizeof *m->truths);
    int64_t scored_before = m->scored;
    for (int64_t b = 0; b < rows; b++) {
        bool all = true, last = false, any = false;
        for (int64_t t = 0; t < T; t++) {
            int32_t want = targets[b * T + t], got = predictions[b * T + t];
            if (want == IGNORED) continue;
            any = true;
            last = got == want;
            all = all && last;
            m->scored++;
            m->right += last;
            m->truths[want]++;
            if (last)
                m->hits[want]++;
            else
                m->wrong[got]++;
        }
        m->sequences++;
        m->sequences_right += any && all;
        m->last_right += any && last;
    }
    m->loss_sum += loss * (double)(m->scored - scored_before);
    m->macro_sum += macro_recall(m) * (double)rows;
}

static double ratio(double a, int64_t b) {
    return b ? a / (double)b : 0;
}

struct scores metrics_scores(const struct metrics *m) {
    return (struct scores){
        .loss = ratio(m->loss_sum, m->scored),
        .acc = ratio((double)m->right, m->scored),
        .macro_acc = ratio(m->macro_sum, m->sequences),
        .seq_acc = ratio((double)m->sequences_right, m->sequences),
        .last_acc = ratio((double)m->last_right, m->sequences),
        .sequences = m->sequences,
        .scored = m->scored,
    };
}
