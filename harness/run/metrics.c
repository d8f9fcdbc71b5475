/* metrics.c - see metrics.h. */
#include "harness/run/metrics.h"

#include <math.h>
#include <string.h>

size_t metrics_bytes(int64_t vocab, int64_t longest) {
    return 3 * (size_t)vocab * sizeof(int64_t) + (size_t)(2 * longest + 1) * sizeof(struct counts) + 2 * ARENA_ALIGN;
}

enum status metrics_create(struct metrics *m, int64_t vocab, int64_t longest, struct arena *arena, struct error *e) {
    *m = (struct metrics){.vocab = vocab, .longest = longest, .documents = 1};
    m->truths = arena_alloc(arena, 3 * (size_t)vocab * sizeof *m->truths);
    m->by_length = arena_alloc(arena, (size_t)(2 * longest + 1) * sizeof *m->by_length);
    if (!m->truths || !m->by_length)
        return fail(e, ST_MEMORY, "no memory to count %lld classes and %lld lengths", (long long)vocab,
                    (long long)longest);
    m->by_position = m->by_length + longest + 1;
    m->hits = m->truths + vocab;
    m->wrong = m->hits + vocab;
    metrics_reset(m);
    return ST_OK;
}

void metrics_reset(struct metrics *m) {
    memset(m->by_length, 0, (size_t)(2 * m->longest + 1) * sizeof *m->by_length);
    memset(&m->all, 0, sizeof m->all);
    m->loss_sum = m->macro_sum = 0;
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

/* Counts the scored positions of one sequence. */
static struct counts count_row(struct metrics *m, const int32_t *targets, const int32_t *predictions, int64_t labels) {
    struct counts c = {.sequences = 1};
    bool last = false;
    for (int64_t t = 0; t < labels; t++) {
        int32_t want = targets[t], got = predictions[t];
        if (want == IGNORED) continue;
        last = got == want;
        c.scored++;
        c.right += last;
        c.undefined += got == NO_CLASS;
        m->by_position[t].scored++;
        m->by_position[t].right += last;
        m->truths[want]++;
        if (last)
            m->hits[want]++;
        else if (got != NO_CLASS)
            m->wrong[got]++;
    }
    c.sequences_right = c.scored && c.right == c.scored;
    c.last_right = last;
    return c;
}

static void add_counts(struct counts *sum, const struct counts *c) {
    sum->scored += c->scored;
    sum->right += c->right;
    sum->undefined += c->undefined;
    sum->sequences += c->sequences;
    sum->sequences_right += c->sequences_right;
    sum->last_right += c->last_right;
}

void metrics_add(struct metrics *m, const int32_t *targets, const int32_t *predictions, const int32_t *lengths,
                 int64_t rows, int64_t labels, double loss) {
    memset(m->truths, 0, 3 * (size_t)m->vocab * sizeof *m->truths);
    int64_t scored_before = m->all.scored;
    for (int64_t b = 0; b < rows; b++) {
        struct counts c = count_row(m, targets + b * labels, predictions + b * labels, labels);
        add_counts(&m->all, &c);
        add_counts(&m->by_length[lengths[b * m->documents]], &c);
    }
    m->loss_sum += loss * (double)(m->all.scored - scored_before);
    m->macro_sum += macro_recall(m) * (double)rows;
}

static double ratio(double a, int64_t b) {
    return b ? a / (double)b : 0;
}

static struct scores scores_of(const struct counts *c, double loss, double macro_acc) {
    return (struct scores){
        .loss = loss,
        .acc = ratio((double)c->right, c->scored),
        .macro_acc = macro_acc,
        .seq_acc = ratio((double)c->sequences_right, c->sequences),
        .last_acc = ratio((double)c->last_right, c->sequences),
        .nonfinite = ratio((double)c->undefined, c->scored),
        .sequences = c->sequences,
        .scored = c->scored,
    };
}

struct scores metrics_scores(const struct metrics *m) {
    return scores_of(&m->all, ratio(m->loss_sum, m->all.scored), ratio(m->macro_sum, m->all.sequences));
}

struct scores metrics_of_length(const struct metrics *m, int64_t length) {
    return scores_of(&m->by_length[length], NAN, NAN);
}

struct scores metrics_of_positions(const struct metrics *m, int64_t first, int64_t end) {
    struct counts sum = {0};
    for (int64_t t = first; t < end; t++) add_counts(&sum, &m->by_position[t]);
    sum.sequences = sum.scored;
    struct scores s = scores_of(&sum, NAN, NAN);
    s.seq_acc = s.last_acc = NAN;
    return s;
}
