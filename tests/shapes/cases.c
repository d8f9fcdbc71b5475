/* cases.c - see cases.h. */
#include "tests/shapes/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "harness/study/graphs.h"
#include "harness/study/request.h"
#include "kernels/gated/gated.h"
#include "tests/lib/support.h"

/* A case with more than MOST_WORK (call_work) takes the first of these batches that is below it, or the last that still
 * has several parts: kernels share out their work by sequence and head where an op has heads, else by rows, of which
 * two chunks are LEAST_ROWS; scan_lstm has larger ones. One of more than MOST_ANYHOW, or whose tensors have more than
 * MOST_BYTES, takes the first that is below it whatever its parts: a comparison takes ten seconds for the one, holds
 * six times the other and has to fit in 16 GB. */
#define MOST_WORK       1e8
#define MOST_ANYHOW     4e9
#define MOST_BYTES      2e9
#define LEAST_HEADS     24
#define LEAST_ROWS      256
#define LEAST_LSTM_ROWS 2048
static const int64_t batches[] = {128, 48, 24, 12, 6, 3, 2};
#define N_BATCHES (int)(sizeof batches / sizeof *batches)

#define TABLE (1 << 18) /* places for the hashes of calls */

static _Noreturn void stop(const char *what, const char *why) {
    fprintf(stderr, "test-shapes: %s: %s\n", what, why);
    exit(1);
}

static void *allocate(size_t bytes) {
    void *p = calloc(1, bytes);
    if (!p) stop("the list of shapes", "no memory");
    return p;
}

/* --- which calls are the same ------------------------------------------------------------------------------------- */

/* Attributes are compared as bytes, pointers and padding too: a shape may be met twice, none is left out. */
static XXH128_hash_t hash_of(const struct call *c) {
    XXH3_state_t *state = XXH3_createState();
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, &c->op, sizeof c->op);
    if (c->attr) XXH3_128bits_update(state, c->attr, c->attr_bytes);
    for (int i = 0; i < c->n_in; i++) {
        const struct tensor *t = c->in[i];
        int64_t facts[5 + TENSOR_MAX_RANK] = {i, t != NULL};
        if (t) {
            const int64_t own[] = {t->dtype, t->limit, t->ignorable * 2 + t->needs_grad};
            memcpy(facts + 2, own, sizeof own);
            memcpy(facts + 5, t->dims, (size_t)t->rank * sizeof *t->dims);
        }
        XXH3_128bits_update(state, facts, sizeof facts);
    }
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

/* Whether the call is new; from then on it is not. */
static bool is_new(const struct call *c) {
    static XXH128_hash_t *table;
    static int used;
    if (!table) table = allocate(TABLE * sizeof *table);
    XXH128_hash_t hash = hash_of(c), none = {0, 0};
    size_t at = hash.low64 % TABLE;
    for (; !XXH128_isEqual(table[at], none); at = (at + 1) % TABLE)
        if (XXH128_isEqual(table[at], hash)) return false;
    if (++used > TABLE / 2) stop("the list of shapes", "the table of calls is full; raise TABLE");
    table[at] = hash;
    return true;
}

/* --- nets --------------------------------------------------------------------------------------------------------- */

/* A run's graphs at one batch; not planned. */
struct built {
    struct setup *setup; /* NULL: not yet built */
    struct params params;
    struct graph graphs[2]; /* training, evaluation */
    bool kept;              /* a case is one of its calls */
};

static void build(struct built *r, const struct setup *of, int64_t batch) {
    struct error e;
    struct step_nets nets;
    struct net net;
    r->setup = allocate(sizeof *r->setup);
    r->setup->spec.config = of->spec.config;
    r->setup->spec.config.batch = batch;
    if (batch != of->spec.config.batch) r->setup->spec.config.warmup = 0; /* it would be no whole number of epochs */
    r->setup->spec.model = of->spec.model;
    const struct graph_source from = {&r->setup->spec, &r->setup->shapes, NULL};
    enum status status = task_parse(&r->setup->spec.task, of->spec.task.asked, &e);
    if (status == ST_OK) status = setup_resolve(r->setup, &e);
    if (status == ST_OK) status = params_create(&r->params, &e);
    if (status == ST_OK) status = graphs_build_training(&r->graphs[0], &from, &r->params, &nets, &e);
    if (status == ST_OK) status = graphs_build_evaluation(&r->graphs[1], &from, &r->params, &net, &e);
    for (int i = 0; i < 2 && status == ST_OK; i++)
        if (r->graphs[i].error.status != ST_OK) stop(of->id.model_label, r->graphs[i].error.text);
    if (status != ST_OK) stop(of->id.model_label, e.text);
}

static void forget(struct built *r) {
    if (!r->setup || r->kept) return;
    for (int i = 0; i < 2; i++) graph_free(&r->graphs[i]);
    params_free(&r->params);
    setup_free(r->setup);
}

/* Whether c, built for `full` sequences, has several parts with `batch` of them. */
static bool has_parts(const struct call *c, int64_t full, int64_t batch) {
    if (c->op->heads) return c->op->heads(c).count * batch >= LEAST_HEADS;
    return tensor_rows(c->in[0]) / full * batch >= (c->op == &op_scan_lstm ? LEAST_LSTM_ROWS : LEAST_ROWS);
}

static void add_case(struct shape_cases *cases, struct built *r, const struct call *c, const char *profile,
                     int64_t full) {
    if (!is_new(c)) return;
    cases->list = realloc(cases->list, (size_t)(cases->n + 1) * sizeof *cases->list);
    if (!cases->list) stop("the list of shapes", "no memory");
    struct shape_case *new = &cases->list[cases->n++];
    *new =
        (struct shape_case){.call = c, .batch = r->setup->spec.config.batch, .full_batch = full, .work = call_work(c)};
    snprintf(new->net, sizeof new->net, "%s %s %s", profile, r->setup->spec.task.name, r->setup->id.model_label);
    r->kept = true;
}

static double call_bytes(const struct call *c) {
    double bytes = 0;
    for (int i = 0; i < c->n_in; i++) bytes += c->in[i] ? (double)tensor_bytes(c->in[i]) : 0;
    for (int i = 0; i < c->n_out; i++) bytes += (double)tensor_bytes(c->out[i]);
    return bytes;
}

/* Whether the call c, `whole` or a call of a smaller batch, is too large for a comparison and the batch after it is not
 * too small. */
static bool is_cut(const struct call *c, const struct call *whole, int64_t full, int64_t batch) {
    if (call_bytes(c) > MOST_BYTES || call_work(c) > MOST_ANYHOW) return true;
    return call_work(c) > MOST_WORK && has_parts(whole, full, batch);
}

static void collect_net(struct shape_cases *cases, const struct setup *s, const char *profile) {
    struct built full = {0}, smaller[N_BATCHES] = {{0}};
    build(&full, s, s->spec.config.batch);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < full.graphs[i].n_calls; k++) {
            const struct call *whole = &full.graphs[i].calls[k], *c = whole;
            struct built *from = &full;
            for (int b = 0; b < N_BATCHES; b++) {
                if (batches[b] >= s->spec.config.batch || !is_cut(c, whole, s->spec.config.batch, batches[b])) continue;
                from = &smaller[b];
                if (!from->setup) build(from, s, batches[b]);
                c = &from->graphs[i].calls[k];
            }
            add_case(cases, from, c, profile, s->spec.config.batch);
        }
    forget(&full);
    for (int b = 0; b < N_BATCHES; b++) forget(&smaller[b]);
    cases->nets++;
}

/* --- profiles ----------------------------------------------------------------------------------------------------- */

/* Plans a task like `lrnn bench`, for one rate and one seed: shapes depend on neither. A task that its profile does
 * not suit is refused there as well. */
static void collect_task(struct shape_cases *cases, const char *task, const struct profile *profile) {
    struct error e;
    struct plan plan = {0};
    struct resolved *resolved = allocate(sizeof *resolved);
    struct request *r = allocate(sizeof *r);
    snprintf(r->profile, sizeof r->profile, "%s", profile->name);
    enum status status = request_say(r, "lr", "1e-3", &e);
    if (status == ST_OK) status = request_say(r, "seeds", "1", &e);
    if (status == ST_OK) status = request_words(r, &task, 1, &e);
    if (status == ST_OK) status = request_plan(r, &plan, resolved, &e);
    if (status == ST_OK)
        cases->walked++;
    else
        cases->refused++, printf("refused, as by bench %s --profile %s: %s\n", task, profile->name, e.text);
    for (int i = 0; i < plan.n && status == ST_OK; i++) collect_net(cases, plan.setups[i], profile->name);
    plan_free(&plan);
    free(r);
    free(resolved);
}

/* A task or an alias that has such a profile; of some suites there is none of that name. */
static void collect_name(struct shape_cases *cases, const char *name, const char *suite, const char *profile_name) {
    const struct profile *profile;
    struct error e;
    if (profile_find(name, suite, profile_name, &profile, &e) == ST_OK) collect_task(cases, name, profile);
}

void cases_collect(struct shape_cases *cases, const char *profile) {
    for (const struct task *const *t = task_list(); *t; t++) {
        collect_name(cases, (*t)->name, (*t)->suite, profile);
        for (const struct task_alias *a = (*t)->aliases; a && a->name; a++)
            collect_name(cases, a->name, (*t)->suite, profile);
    }
}

/* --- plans of papers ---------------------------------------------------------------------------------------------- */

/* Plans a task of a plan like `lrnn bench PLAN TASK`, for one rate and one seed. */
static void collect_plan_task(struct shape_cases *cases, const char *name, const char *task) {
    struct error e;
    struct plan plan = {0};
    struct resolved *resolved = allocate(sizeof *resolved);
    struct request *r = allocate(sizeof *r);
    enum status status = request_say(r, "lr", "1e-3", &e);
    if (status == ST_OK) status = request_say(r, "seeds", "1", &e);
    if (status == ST_OK) status = request_words(r, (const char *const[]){name, task}, 2, &e);
    if (status == ST_OK) status = request_plan(r, &plan, resolved, &e);
    if (status == ST_OK)
        cases->walked++;
    else
        cases->refused++, printf("refused, as by sweep %s %s: %s\n", name, task, e.text);
    for (int i = 0; i < plan.n && status == ST_OK; i++) collect_net(cases, plan.setups[i], name);
    plan_free(&plan);
    free(r);
    free(resolved);
}

/* Task by task: one of data that are not there leaves the others. */
static void collect_plan(struct shape_cases *cases, const char *name) {
    struct error e;
    char task[LABEL_TEXT];
    struct plan_file *file = allocate(sizeof *file);
    if (plan_file_read(file, name, &e) != ST_OK) stop(name, e.text);
    const char *profile = plan_file_get(file, "", "profile");
    const char *at = plan_file_get(file, profile ? profile : "quick", "tasks");
    for (at = at ? at + strspn(at, " ") : ""; *at; at += strspn(at, " ")) {
        if (text_part(&at, " ", task, sizeof task, &e) != ST_OK) stop(name, e.text);
        collect_plan_task(cases, name, task);
    }
    free(file);
}

void cases_collect_plans(struct shape_cases *cases) {
    const char *name;
    for (int i = 0; (name = plan_file_built_in(PLAN_PAPERS, i)); i++) collect_plan(cases, name);
}
