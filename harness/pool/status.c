/* status.c - see status.h. */
#include "harness/pool/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/rows/rows.h"
#include "harness/run/checkpoint.h"
#include "harness/store/claim.h"
#include "harness/store/record_files.h"
#include "harness/pool/planned.h"

/* What a folder holds. */
struct folder {
    struct planned *sweeps;
    struct claim_info *claims;
    int n_sweeps, n_claims;
    struct record_set set;
};

static const struct run *find_record(const struct folder *f, const char *run_id) {
    for (int i = 0; i < f->set.n; i++)
        if (!f->set.list[i].set_aside && !strcmp(f->set.list[i].run.run_id, run_id)) return &f->set.list[i].run;
    return NULL;
}

static bool is_worked_on(const struct folder *f, const char *run_id) {
    for (int i = 0; i < f->n_claims; i++)
        if (f->claims[i].live && !strcmp(f->claims[i].run_id, run_id)) return true;
    return false;
}

/* Whether the list has runs left and nobody does any of them now. */
static bool print_sweep(const struct folder *folder, const struct planned *p, FILE *f) {
    int done = 0, failed = 0, working = 0;
    double work = 0, all = 0;
    for (int i = 0; i < p->n; i++) {
        const struct run *run = find_record(folder, p->ids[i]);
        all += p->flops[i];
        if (run) work += p->flops[i];
        done += run != NULL;
        failed += run && run_failed(run);
        working += !run && is_worked_on(folder, p->ids[i]);
    }
    fprintf(f, "%s: %d of %d runs done", p->name, done, p->n);
    if (failed) fprintf(f, ", %d of them failed", failed);
    if (working) fprintf(f, ", %d in work", working);
    fprintf(f, ", %d left", p->n - done);
    if (all > 0) fprintf(f, "; %.0f %% of the steps' work at most", 100 * work / all);
    bool idle = done < p->n && !working;
    fputs(idle ? "; nobody is at work on it\n" : "\n", f);
    return idle;
}

static int by_id(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* How many runs of the lists have no record. One may stand in several: --confirm-seeds adds to a list that is there. */
static enum status count_left(const struct folder *folder, int *left, struct error *e) {
    size_t n = 0;
    for (int i = 0; i < folder->n_sweeps; i++) n += (size_t)folder->sweeps[i].n;
    const char **ids = calloc(n + 1, sizeof *ids);
    if (!ids) return fail(e, ST_MEMORY, "no memory for lists of %zu runs", n);
    n = 0;
    for (int i = 0; i < folder->n_sweeps; i++)
        for (int k = 0; k < folder->sweeps[i].n; k++)
            if (!find_record(folder, folder->sweeps[i].ids[k])) ids[n++] = folder->sweeps[i].ids[k];
    qsort(ids, n, sizeof *ids, by_id);
    *left = 0;
    for (size_t i = 0; i < n; i++) *left += i == 0 || strcmp(ids[i], ids[i - 1]) != 0;
    free(ids);
    return ST_OK;
}

static void print_claim(const struct claim_info *c, const char *out, FILE *f) {
    int64_t step = checkpoint_step(out, c->run_id);
    fprintf(f, "  %.8s %s: %s %ld, since %s", c->run_id, c->what, c->host, c->pid, c->since);
    if (step >= 0) fprintf(f, ", saved at step %" PRId64, step);
    fputs(c->live ? "\n" : "; gone, the next sweep takes it over\n", f);
}

enum status status_print(const char *out, FILE *f, int *left, struct error *e) {
    struct folder folder = {0};
    *left = 0;
    if (access(out, F_OK) != 0) return fail(e, ST_DATA, "cannot read the folder %s: %s", out, strerror(errno));
    enum status status = records_load(&folder.set, out, e);
    if (status == ST_OK) status = planned_read(out, &folder.sweeps, &folder.n_sweeps, e);
    if (status == ST_OK) status = claims_list(out, &folder.claims, &folder.n_claims, e);
    if (status == ST_OK) {
        bool idle = false;
        for (int i = 0; i < folder.n_sweeps; i++) idle = print_sweep(&folder, &folder.sweeps[i], f) || idle;
        for (int i = 0; i < folder.n_claims; i++) /* of a run on record a kill has left it behind the record */
            if (!find_record(&folder, folder.claims[i].run_id)) print_claim(&folder.claims[i], out, f);
        if (idle) fprintf(f, "(a sweep that is given up is counted until its list in %s/sweeps is taken away)\n", out);
        if (folder.n_sweeps == 0)
            fprintf(f, "%d record%s, no list of a sweep: lrnn sweep writes one\n", folder.set.n,
                    folder.set.n == 1 ? "" : "s");
        status = count_left(&folder, left, e);
    }
    free(folder.claims);
    planned_free(folder.sweeps, folder.n_sweeps);
    records_free(&folder.set);
    return status;
}
