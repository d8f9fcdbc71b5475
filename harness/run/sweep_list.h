/* sweep_list.h - the file OUT/sweeps/NAME-HASH.tsv lists the runs of a sweep, one per line: id, FLOPs, task, model,
 * rate, seed and steps. A first line "#" has the request that planned them (request_call), as pairs between tabs. `lrnn
 * status` reads these files to say how many runs of each sweep are done. */
#ifndef LRNN_HARNESS_RUN_SWEEP_LIST_H
#define LRNN_HARNESS_RUN_SWEEP_LIST_H

#include "harness/study/plan.h"

struct sweep_list {
    char name[128];    /* name of the file without its ending */
    struct label call; /* the request; it has no pairs if it was not stored */
    int64_t written_ns;
    char (*ids)[RUN_ID_HEX];
    double *flops;  /* FLOPs of each run */
    int64_t *steps; /* steps of each run; 0: not known */
    int n;
};

/* Writes the list of a plan's runs. The same runs give the same file. call NULL: the request cannot be stored as pairs.
 * *new, unless NULL, says which files did not exist before, for sweep_list_withdraw. ST_FAIL, with path and reason. */
struct sweep_list_new {
    bool out, list;
};
enum status sweep_list_write(const struct plan *plan, const char *out, const char *name, const struct label *call,
                             struct sweep_list_new *new, struct error *e);

/* Removes the files that sweep_list_write has made, because the plan will not be carried out. */
void sweep_list_withdraw(const struct plan *plan, const char *out, const char *name, const struct sweep_list_new *new);

/* Reads every list of the folder, sorted by name. *n is 0 if no sweep has begun there. Free the lists with
 * sweep_lists_free. ST_DATA: a list is damaged. */
enum status sweep_lists_read(const char *out, struct sweep_list **lists, int *n, struct error *e);
void sweep_lists_free(struct sweep_list *lists, int n);

/* Copies the lists of the folder `from` that `out` lacks. ST_DATA: a list is damaged; ST_FAIL: it cannot be written. */
enum status sweep_lists_merge(const char *from, const char *out, struct error *e);

/* ST_DATA: a list of the folder is damaged. */
enum status sweep_lists_check(const char *out, struct error *e);

#endif
