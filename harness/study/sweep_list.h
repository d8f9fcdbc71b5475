/* sweep_list.h - OUT/sweeps/NAME-HASH.tsv, a sweep's runs, a line each: the id, the FLOPs of its steps, task, model,
 * rate, seed and steps. A first line "#" holds the call that planned them (request_call), its pairs between tabs. Who
 * looks at a folder finds in them how far its sweeps are, and which part of a plan they are of. */
#ifndef LRNN_HARNESS_STUDY_SWEEP_LIST_H
#define LRNN_HARNESS_STUDY_SWEEP_LIST_H

#include "harness/study/plan.h"

struct sweep_list {
    char name[128];    /* of the file, without its ending */
    struct label call; /* without pairs: none was noted */
    int64_t written_ns;
    char (*ids)[RUN_ID_HEX];
    double *flops;  /* of each run */
    int64_t *steps; /* likewise; 0: not said */
    int n;
};

/* Writes the list of a plan's runs; the same runs have the same file. call: NULL: its runs follow from more than words.
 * *new, unless it is NULL: the files that were missing before, for sweep_list_withdraw. ST_FAIL with path and
 * reason. */
struct sweep_list_new {
    bool out, list;
};
enum status sweep_list_write(const struct plan *plan, const char *out, const char *name, const struct label *call,
                             struct sweep_list_new *new, struct error *e);

/* Removes the files that the same call of sweep_list_write has made, because nothing comes of the plan. */
void sweep_list_withdraw(const struct plan *plan, const char *out, const char *name, const struct sweep_list_new *new);

/* Reads every list of the folder, sorted by name; the caller frees them by sweep_lists_free. None: no sweep has begun
 * there. ST_DATA: one is damaged. */
enum status sweep_lists_read(const char *out, struct sweep_list **lists, int *n, struct error *e);
void sweep_lists_free(struct sweep_list *lists, int n);

/* Copies the lists of `from` that `out` lacks. ST_DATA: one is damaged; ST_FAIL: it cannot be written. */
enum status sweep_lists_merge(const char *from, const char *out, struct error *e);

/* ST_DATA: a list of the folder is damaged. */
enum status sweep_lists_check(const char *out, struct error *e);

#endif
