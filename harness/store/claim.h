/* claim.h - who is doing a run: OUT/claims/<run_id>.<n>, so that sweeps on one folder share their runs.
 *
 * The file of the largest n says how things stand: somebody does the run, or (a file with the word "free") nobody does.
 * It is made by link(), which never replaces, so of all who want number n + 1 one gets it, on NFS too. As long as a run
 * has no record its numbers only grow; when it has one its claims are removed, and whoever gets a claim looks for the
 * record again. Records are linked without overwriting, so a run that two did at once is one run all the same: a claim
 * saves work, nothing more hangs on it.
 *
 * A claim is stale when its process is gone, if it is one of this machine, boot and container; else when nobody has
 * touched it for CLAIM_STALE_S by the clock of the file system. */
#ifndef LRNN_HARNESS_STORE_CLAIM_H
#define LRNN_HARNESS_STORE_CLAIM_H

#include <stdbool.h>

#include "harness/store/record.h"

#define CLAIM_BEAT_S  30.0  /* between two touches by the owner */
#define CLAIM_STALE_S 600.0 /* without one */

enum claim_state { CLAIM_MINE, CLAIM_OTHERS };

struct claim {
    char path[RECORD_TEXT * 2]; /* of the file; "" = none */
};

/* Says in words what a claim is of: "s3 lstm lr 0.001 seed 1". */
void claim_words(char what[RECORD_TEXT], const char *task, const char *model, double lr, int64_t seed);

/* Wants the run. CLAIM_OTHERS: another process does it. `what` says in words what is done ("s3 lstm lr 0.001 seed 1").
 * ST_FAIL: the folder cannot be written. */
enum status claim_take(struct claim *c, const char *out, const char *run_id, const char *what, enum claim_state *state,
                       struct error *e);

/* Says that its owner lives; to be called every CLAIM_BEAT_S. */
void claim_beat(const struct claim *c);

/* Leaves a text for those who watch the run, in place of the former one: OUT/claims/.<run_id>.live, which goes with
 * the claim. Nothing rests on it, so it is not flushed to the disk, and what cannot be written is not there. */
void claim_tell(const struct claim *c, const char *text, size_t size);

/* The latest such text of a run; the caller frees it. NULL: there is none. */
char *claim_told(const char *out, const char *run_id);

/* The run is to be had again (stopped before its end), or it has a record: all claims of it are removed. */
void claim_release(struct claim *c);
void claim_done(struct claim *c, const char *out, const char *run_id);

/* A claim as it stands. */
struct claim_info {
    char run_id[RUN_ID_HEX], host[64], what[RECORD_TEXT], since[32];
    long pid;
    bool live; /* not stale, not free */
};

/* Every run under OUT/claims that somebody does or was doing; the caller frees *list. None, where there is no
 * folder. Nothing is written, so that the age of another machine's claim is by the clock of this one. */
enum status claims_list(const char *out, struct claim_info **list, int *n, struct error *e);

#endif
