/* planned.h - which runs the sweeps of a folder are made of, for whoever looks at it while they run: OUT/sweeps/NAME-
 * HASH.tsv, a line a run. What is done of them the records say, what is being done the claims. */
#ifndef LRNN_HARNESS_POOL_PLANNED_H
#define LRNN_HARNESS_POOL_PLANNED_H

#include "harness/study/plan.h"

/* Writes the list of a plan's runs; the same plan has the same file. ST_FAIL with path and reason. *new, unless it is
 * NULL: what of it was not there before, for planned_withdraw. */
struct planned_new {
    bool out, list;
};
enum status planned_write(const struct plan *plan, const char *out, const char *name, struct planned_new *new,
                          struct error *e);

/* Takes away what the same call of planned_write has made, because nothing comes of the plan. */
void planned_withdraw(const struct plan *plan, const char *out, const char *name, const struct planned_new *new);

struct planned {
    char name[128]; /* of the file, without its ending */
    char (*ids)[RUN_ID_HEX];
    double *flops; /* of each run: its share of the work */
    int n;
};

/* Every list of the folder, by their names; the caller frees them by planned_free. None: no sweep has begun there.
 * ST_DATA: one is damaged. */
enum status planned_read(const char *out, struct planned **list, int *n, struct error *e);
void planned_free(struct planned *list, int n);

/* Takes the lists of `from` over that `out` has not. ST_DATA: one is damaged; ST_FAIL: it cannot be written. */
enum status planned_merge(const char *from, const char *out, struct error *e);

/* Whether every list of the folder is whole: ST_DATA. */
enum status planned_check(const char *out, struct error *e);

#endif
