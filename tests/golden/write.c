/* write.c - a program that writes the golden traces of its build into tests/golden/traces.tsv, and keeps the rows of
 * other builds. `make golden` runs it in every build.
 *
 *   golden [MIXER...]      trains the traces of these mixers, or all; exit status: 0 written, 1 failed
 *   golden --defaults      writes tests/golden/defaults.txt alone (defaults.h), as the other form does first
 *
 * It fails, and leaves the files as they are, if a trace has other bits, or an option another default, under the same
 * version. */
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "kernels/lib/gemm.h"
#include "tests/golden/defaults.h"
#include "tests/golden/trace_file.h"
#include "tests/lib/workers.h"

/* Whether the trace is one of the mixers': its model starts with the name, and ':' or the end follows. */
static bool is_wanted(const struct trace *t, int n, char **mixers) {
    for (int i = 0; i < n; i++)
        if (strcspn(t->model, ":") == strlen(mixers[i]) && !strncmp(t->model, mixers[i], strlen(mixers[i])))
            return true;
    return n == 0;
}

/* A trace that is trained: its row, or why there is none. Shared by all processes. */
struct result {
    struct trace_row row;
    struct error why;
};

struct work {
    atomic_int next;
    int n_mixers;
    char **mixers;
    struct result results[];
};

static enum status train(const struct trace *t, struct trace_row *row, struct error *e) {
    struct trace_row before;
    struct error none;
    TRY(trace_run(t, "reference", row, e));
    if (trace_find_row(row->name, row->real, row->arithmetic, &before, &none) == ST_OK &&
        !trace_same_bits(row, &before) && !strcmp(row->numerics, before.numerics))
        return fail(e, ST_FAIL,
                    "%s: other bits than in %s under the same numerics version %s; first raise "
                    "`version` beside the op, kernel, model or backbone that changed, or NUMERICS_BASE",
                    row->name, TRACE_FILE, row->numerics);
    return ST_OK;
}

/* Trains one trace after the other, until none is left. */
static void train_traces(int process, void *context) {
    struct work *w = context;
    struct trace t;
    (void)process;
    gemm_init();
    omp_set_num_threads(1); /* the trainings are small */
    for (int i; trace_at(i = atomic_fetch_add(&w->next, 1), &t);)
        if (is_wanted(&t, w->n_mixers, w->mixers)) train(&t, &w->results[i].row, &w->results[i].why);
}

/* Writes the rows of one build, in the order of the traces. A trace that is not trained keeps its row, if it has one;
 * a row whose trace is no longer listed goes. */
static enum status write_build(FILE *to, const char *precision, const char *arithmetic, struct work *w,
                               struct error *e) {
    bool own = !strcmp(precision, REAL_NAME) && !strcmp(arithmetic, trace_arithmetic());
    char line[TRACE_LINE], name[TRACE_TEXT];
    struct trace_row row;
    struct error none;
    struct trace t;
    for (int i = 0; trace_at(i, &t); i++) {
        trace_name(&t, name);
        if (own && is_wanted(&t, w->n_mixers, w->mixers)) {
            *e = w->results[i].why;
            TRY(e->status);
            row = w->results[i].row;
        } else if (trace_find_row(name, precision, arithmetic, &row, &none) != ST_OK) {
            continue;
        }
        trace_format(&row, line);
        fprintf(to, "%s\n", line);
    }
    return ST_OK;
}

static enum status write_all(FILE *to, struct work *w, struct error *e) {
    static const char *const builds[][2] = {{"fp32", "fma"}, {"fp32", "plain"}, {"fp64", "fma"}, {"fp64", "plain"}};
    fputs("# Golden traces, written by `make golden`. Columns: name, precision, arithmetic, numerics version, loss of "
          "steps 1, 10 and 50 (of long sequences 1, 3 and 3), hash of the weights.\n",
          to);
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) TRY(write_build(to, builds[i][0], builds[i][1], w, e));
    return ST_OK;
}

static enum status every_mixer_has_a_trace(int n, char **mixers, struct error *e) {
    for (int m = 0; m < n; m++) {
        struct trace t;
        int i = 0;
        while (trace_at(i, &t) && !is_wanted(&t, 1, mixers + m)) i++;
        if (!trace_at(i, &t))
            return fail(e, ST_USAGE,
                        "MODELS: no golden trace trains a mixer \"%s\"; `lrnn list models` names the mixers",
                        mixers[m]);
    }
    return ST_OK;
}

int main(int argc, char **argv) {
    struct error e = {0};
    struct trace t;
    int n = 0;
    if (defaults_write(&e) != ST_OK) {
        fprintf(stderr, "golden: %s\n", e.text);
        return 1;
    }
    if (argc == 2 && !strcmp(argv[1], "--defaults")) return 0;
    while (trace_at(n, &t)) n++;
    struct work *w = workers_share(sizeof *w + (size_t)n * sizeof *w->results);
    w->n_mixers = argc - 1;
    w->mixers = argv + 1;
    enum status status = every_mixer_has_a_trace(argc - 1, argv + 1, &e);
    if (status == ST_OK && workers_run(workers_wanted(), train_traces, w) > 0)
        status = fail(&e, ST_FAIL, "a process ended before its trainings did");
    FILE *f = status == ST_OK ? fopen(TRACE_FILE ".new", "w") : NULL;
    if (status == ST_OK && !f) status = fail(&e, ST_FAIL, "cannot write %s.new", TRACE_FILE);
    if (f) {
        status = write_all(f, w, &e);
        if (fclose(f) != 0 && status == ST_OK) status = fail(&e, ST_FAIL, "cannot write %s.new", TRACE_FILE);
        if (status == ST_OK && rename(TRACE_FILE ".new", TRACE_FILE) != 0)
            status = fail(&e, ST_FAIL, "cannot replace %s", TRACE_FILE);
        if (status != ST_OK) remove(TRACE_FILE ".new");
    }
    if (status != ST_OK) fprintf(stderr, "golden: %s\n", e.text);
    return status == ST_OK ? 0 : 1;
}
