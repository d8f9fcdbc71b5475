/* device_kernels.c - rows of `lrnn perf device` for kernels: errors against the references, and times. "warm" uses one
 * set of buffers, which at small shapes stays in the cache; "cold" uses more sets than fit into the cache. */
#include "harness/perf/device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_plan.h"
#include "core/graph_walk.h"
#include "core/label.h"

#define SETS_MOST  40 /* most sets of buffers: 40 of 2.5 MB for a cache of 50 MB */
#define SETS_SMALL 2
#define MARGIN     16 /* factor on a kernel's tolerance, which is for the tests' small sizes */

/* The shapes: many short sequences, few long ones, blocks of several sizes; states, trees, grids and flows at our
 * models' default widths; and the shapes of an S5 model of about a million parameters. */
static const struct {
    const char *op, *shape;
} cases[] = {
    {"scan_diag", "batch=128 length=1024 blocks=256"},
    {"scan_diag", "batch=128 length=16 blocks=256"},
    {"scan_diag", "batch=128 length=128 blocks=256"},
    {"scan_diag", "batch=8 length=2048 blocks=256"},
    {"scan_diag", "batch=1 length=65536 blocks=256"},
    {"scan_diag_complex", "batch=128 length=128 blocks=128"},
    {"scan_block", "batch=128 length=16 blocks=64 m=5"},
    {"scan_block", "batch=128 length=128 blocks=64 m=1"},
    {"scan_block", "batch=128 length=128 blocks=64 m=2"},
    {"scan_block", "batch=128 length=128 blocks=64 m=4"},
    {"scan_block", "batch=128 length=128 blocks=64 m=5"},
    {"scan_block", "batch=128 length=128 blocks=64 m=8"},
    {"scan_companion", "batch=128 length=128 blocks=256 m=2"},
    {"scan_companion", "batch=128 length=128 blocks=256 m=5"},
    {"scan_block", "batch=128 length=1024 blocks=64 m=5"},
    {"scan_block", "batch=4 length=4096 blocks=64 m=5"},
    {"scan_companion", "batch=4 length=4096 blocks=256 m=5"},
    {"scan_lstm", "batch=128 length=16 dim=256"},
    {"scan_lstm", "batch=128 length=128 dim=256"},
    {"scan_outer", "batch=128 length=128 heads=4 dk=64 dv=64"},
    {"scan_outer", "batch=8 length=2048 heads=4 dk=64 dv=64"},
    {"scan_delta", "batch=128 length=128 heads=4 dk=64 dv=64"},
    {"scan_delta", "batch=128 length=128 heads=4 dk=64 dv=64 substeps=2"},
    {"scan_plstm", "batch=128 length=128 heads=4 dk=64 dv=64 m=1"},
    {"grid_scan", "batch=32 length=256 heads=4 dk=32 dv=32"},
    {"dag_scan", "batch=32 length=64 heads=4 dk=32 dv=32"},
    {"softmax_attention", "batch=128 length=128 heads=4 dk=64"},
    {"softmax_attention", "batch=8 length=1024 heads=4 dk=64"},
    {"tree_solve", "batch=128 length=128 blocks=64"},
    {"tree_solve", "batch=8 length=1024 blocks=64"},
    {"scan_flow", "batch=128 length=16 blocks=64 m=4"},
    {"scan_flow", "batch=128 length=128 blocks=16 m=16"},
    {"scan_dplr", "batch=128 length=128 dim=128 m=2"},
    {"scan_hadamard", "batch=128 length=128 dim=128"},
    {"expm_skew", "batch=128 length=128 heads=8 m=8"},
    {"linear", "batch=128 length=16 dim=256 out=1920"},
    {"linear", "batch=128 length=16 dim=320 out=256"},
    {"rmsnorm", "batch=128 length=128 dim=256"},
    {"layernorm", "batch=128 length=128 dim=256"},
    {"add_norm", "batch=128 length=128 dim=256"},
    {"add", "batch=128 length=128 dim=256"},
    {"silu_mul", "batch=128 length=128 dim=688"},
    {"activate", "batch=128 length=128 dim=688"},
    {"dropout", "batch=128 length=128 dim=256"},
    {"embedding", "batch=128 length=128 dim=256 vocab=120"},
    {"cross_entropy", "batch=128 length=128 vocab=120"},
};

/* --- errors ------------------------------------------------------------------------------------------------------- */

static void walk_both(void *context) {
    struct kernel_run *r = context;
    graph_forward(&r->graph, r->live);
    if (r->graph.root) graph_backward(&r->graph, r->live);
}

double device_error(const real *got, const real *want, int64_t n) {
    double off = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        double difference = fabs((double)got[i] - (double)want[i]);
        if (!isfinite(difference)) return INFINITY;
        off = fmax(off, difference);
        size = fmax(size, fabs((double)want[i]));
    }
    return size > 0 ? off / size : off;
}

/* Makes and walks the reference of a shape, once for all its kernels, because it runs on the host and takes longer than
 * they do. */
static enum status open_reference(struct kernel_run **reference, const struct op *op, const struct op_sizes *sizes,
                                  struct error *e) {
    const char *why;
    if (*reference) return ST_OK;
    *reference = calloc(1, sizeof **reference);
    if (!*reference) return fail(e, ST_MEMORY, "no memory for the reference");
    TRY(kernel_run_open(*reference, op, kernel_reference(op), sizes, &why, e));
    walk_both(*reference);
    return ST_OK;
}

/* Walks the kernel and sets *error to the largest error of its outputs and gradients. Errors beyond rounding are
 * counted, and the command fails after all rows. */
static enum status compare(struct device_run *d, struct kernel_run *r, const struct kernel_run *reference,
                           double *error, struct error *e) {
    const struct call *c = r->call, *want = reference->call;
    const struct kernel *k = c->kernel;
    double bound = k->inexact ? MARGIN * k->tolerance * REAL_EPSILON : 0;
    size_t bytes = 1;
    for (int i = 0; i < r->graph.n_tensors; i++)
        if (tensor_bytes(r->graph.tensors[i]) > bytes) bytes = tensor_bytes(r->graph.tensors[i]);
    real *got = malloc(bytes);
    if (!got) return fail(e, ST_MEMORY, "no memory for the comparison with the reference");
    walk_both(r);
    enum status status = place_wait(r->place, e);
    *error = 0;
    for (int j = 0; j < c->n_out && status == ST_OK; j++) {
        if (c->out[j]->dtype != DT_REAL) continue;
        graph_get(&r->graph, c->out[j], got);
        *error = fmax(*error, device_error(got, tensor_real(want->out[j]), tensor_count(c->out[j])));
    }
    for (int i = 0; i < c->n_in && r->graph.root && status == ST_OK; i++) {
        if (!c->in[i] || !c->in[i]->grad) continue;
        graph_get_grad(&r->graph, c->in[i], got);
        *error = fmax(*error, device_error(got, want->in[i]->grad, tensor_count(c->in[i])));
    }
    free(got);
    if (status == ST_OK && *error > bound && d->failed + d->inexact++ == 0)
        fail(&d->first, ST_FAIL, "%s at %s is %.3g off its reference, at most %.3g is expected", k->name, r->shape,
             *error, bound);
    return status;
}

/* --- times -------------------------------------------------------------------------------------------------------- */

int device_cold_sets(double cache, double bytes) {
    double sets = ceil(2 * cache / fmax(1, bytes));
    return sets > SETS_MOST ? 0 : sets < 1 ? 1 : (int)sets;
}

/* Prints a row for the forward pass and a row for both passes, over n sets of buffers in turn. The first set exists
 * already. */
static enum status measure_sets(struct device_run *d, struct kernel_run **runs, int n, const struct op_sizes *sizes,
                                struct device_row *row, struct error *e) {
    const char *why = NULL;
    for (int i = 1; i < n; i++) {
        runs[i] = calloc(1, sizeof *runs[i]);
        if (!runs[i]) return fail(e, ST_MEMORY, "no memory for the samples");
        runs[i]->place = &d->place;
        TRY(kernel_run_open(runs[i], runs[0]->call->op, runs[0]->call->kernel, sizes, &why, e));
    }
    row->cache = n > 1 ? "cold" : "warm";
    for (int both = 0; both <= (runs[0]->graph.root != NULL); both++) {
        struct device_work w = {
            .work = both ? walk_both : kernel_run_forward, .contexts = (void *const *)runs, .n = n, .captured = true};
        row->pass = both ? "both" : "forward";
        row->cost = runs[0]->cost[both ? PASS_BOTH : PASS_FORWARD];
        TRY(device_sample(d, &w, &runs[0]->time[0], e));
        device_print_row(d, row, &runs[0]->time[0]);
    }
    return ST_OK;
}

/* Measures a kernel that is open in runs[0]; further runs are sets of buffers for the cold rows. */
static enum status measure_opened(struct device_run *d, struct kernel_run **runs, const struct op_sizes *sizes,
                                  struct kernel_run **reference, struct error *e) {
    struct kernel_run *r = runs[0];
    const char *why;
    if (d->request->once) {
        walk_both(r);
        return place_wait(&d->place, e);
    }
    bool taken = graph_kernel_unasked(&r->graph, r->call, &why) == r->call->kernel;
    if (d->request->taken && !taken) return ST_OK;
    struct device_row row = {.name = r->call->op->name,
                             .kernel = r->call->kernel->name,
                             .shape = r->shape,
                             .taken = taken ? "yes" : "no",
                             .precision = PRECISION_FULL,
                             .error = NAN};
    if (d->request->compare) {
        TRY(open_reference(reference, r->call->op, sizes, e));
        TRY(compare(d, r, *reference, &row.error, e));
    }
    TRY(measure_sets(d, runs, 1, sizes, &row, e));
    /* The bytes of the forward pass are a lower bound for those of both passes. */
    int n = device_cold_sets((double)d->info.cache, r->cost[PASS_FORWARD].bytes);
    if (d->request->small && n != 1) n = SETS_SMALL;
    return n > 1 ? measure_sets(d, runs, n, sizes, &row, e) : ST_OK;
}

static enum status measure_kernel(struct device_run *d, const struct kernel *k, const struct op_sizes *sizes,
                                  struct kernel_run **reference, struct error *e) {
    struct kernel_run *runs[SETS_MOST] = {calloc(1, sizeof *runs[0])};
    const char *why = NULL;
    if (!runs[0]) return fail(e, ST_MEMORY, "no memory for the samples");
    runs[0]->place = &d->place;
    enum status status = kernel_run_open(runs[0], k->op, k, sizes, &why, e);
    if (status == ST_OK && !why) status = measure_opened(d, runs, sizes, reference, e);
    for (int i = 0; i < SETS_MOST && runs[i]; i++) {
        kernel_run_close(runs[i]);
        free(runs[i]);
    }
    return status;
}

/* Measures all kernels of a case. After a failure the device is opened again, because a place keeps its first
 * failure. */
static enum status measure_case(struct device_run *d, const char *op, const char *shape, struct error *e) {
    struct op_sizes sizes;
    struct kernel_run *reference = NULL;
    TRY(device_read_sizes(shape, d->request->small, &sizes, e));
    enum status status = ST_OK;
    for (const struct kernel *const *k = kernel_list(); *k && status == ST_OK; k++) {
        struct error failure = {ST_OK, ""};
        if ((*k)->device != DEVICE_CUDA || strcmp((*k)->op->name, op) != 0) continue;
        if (measure_kernel(d, *k, &sizes, &reference, &failure) == ST_OK) continue;
        fprintf(stderr, "%s at %s: %s\n", (*k)->name, shape, failure.text);
        if (d->failed++ + d->inexact == 0)
            fail(&d->first, failure.status, "%s at %s: %s", (*k)->name, shape, failure.text);
        device_close(d);
        status = device_open(d, e);
    }
    if (reference) kernel_run_close(reference);
    free(reference);
    return status;
}

/* --- the request -------------------------------------------------------------------------------------------- */

/* True if the shape has every wanted word. */
static bool is_wanted_shape(const char *shape, const char *wanted) {
    char word[OPTION_TEXT], given[OPTION_TEXT + 2], part[OPTION_TEXT + 2];
    snprintf(given, sizeof given, " %s ", shape);
    for (const char *at = wanted; *at; at += *at == ' ') {
        if (text_part(&at, " ", word, sizeof word, NULL) != ST_OK) return false;
        snprintf(part, sizeof part, " %s ", word);
        if (*word && !strstr(given, part)) return false;
    }
    return true;
}

static bool is_wanted(const struct perf_device_request *request, size_t i) {
    return (!*request->only || !strcmp(request->only, cases[i].op)) && is_wanted_shape(cases[i].shape, request->shape);
}

enum status device_check_request(const struct perf_device_request *request, struct error *e) {
    char known[2048] = "";
    bool only_known = false;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (is_wanted(request, i)) return ST_OK;
        only_known |= !strcmp(request->only, cases[i].op);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *name = only_known ? cases[i].shape : cases[i].op;
        if (only_known ? strcmp(request->only, cases[i].op) != 0 : i && !strcmp(cases[i].op, cases[i - 1].op)) continue;
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", name);
    }
    if (only_known) return fail(e, ST_USAGE, "--shape '%s': of %s there are %s", request->shape, request->only, known);
    return fail(e, ST_USAGE, "--only %s: perf device measures %s", request->only, known);
}

enum status device_measure_kernels(struct device_run *d, struct error *e) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (is_wanted(d->request, i)) TRY(measure_case(d, cases[i].op, cases[i].shape, e));
    return ST_OK;
}
