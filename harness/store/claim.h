/* claim.h - claims say which process does a run, so that sweeps on one folder share their runs:
 * OUT/claims/<run_id>.<n>.
 *
 * The file of the largest n is valid: it names the process that does the run, or has the word "free". It is made by
 * link(), which never replaces a file, so only one process gets number n + 1, on NFS too. Numbers of a run only grow
 * until it has a record; then its claims are removed. A process that gets a claim therefore looks for the record again.
 * Claims only save work: if two processes do one run, the second record does not replace the first.
 *
 * A claim of this machine, boot and container is stale when its process is gone. Other claims are stale when they have
 * not been touched for CLAIM_STALE_S by the clock of the file system. */
#ifndef LRNN_HARNESS_STORE_CLAIM_H
#define LRNN_HARNESS_STORE_CLAIM_H

#include <stdbool.h>

#include "harness/store/record.h"

#define CLAIM_BEAT_S  30.0  /* seconds between two touches by the owner */
#define CLAIM_STALE_S 600.0 /* seconds without a touch */

enum claim_state { CLAIM_MINE, CLAIM_OTHERS };

struct claim {
    char path[RECORD_TEXT * 2]; /* of the file; "" = no claim */
};

/* Writes a run in words for its claim: "s3 lstm lr 0.001 seed 1". */
void claim_words(char what[RECORD_TEXT], const char *task, const char *model, double lr, int64_t seed);

/* Tries to claim the run. CLAIM_MINE: this process has it; if the run has an earlier claim, leftovers_remove is called.
 * CLAIM_OTHERS: another process does it. `what` is the run in words (claim_words). ST_FAIL: the folder cannot be
 * written. */
enum status claim_take(struct claim *c, const char *out, const char *run_id, const char *what, enum claim_state *state,
                       struct error *e);

/* Touches the claim to show that its owner lives. Call it every CLAIM_BEAT_S. */
void claim_beat(const struct claim *c);

/* Writes a text for people who watch the run to OUT/claims/.<run_id>.live, replacing the previous text. The file is
 * removed with the claim. It is not fsynced and write errors are ignored, since nothing depends on it. */
void claim_tell(const struct claim *c, const char *text, size_t size);

/* Returns the latest such text of a run; the caller frees it. NULL: there is none. */
char *claim_told(const char *out, const char *run_id);

/* claim_release frees a run that was stopped before its end. claim_done removes all claims of a run that has a
 * record. */
void claim_release(struct claim *c);
void claim_done(struct claim *c, const char *out, const char *run_id);

/* A claim as read from its file. */
struct claim_info {
    char run_id[RUN_ID_HEX], host[64], what[RECORD_TEXT], since[32];
    long pid;
    bool live; /* not stale, not free */
};

/* Lists every claimed run under OUT/claims, also with stale claims; the caller frees *list. *n is 0 if the folder is
 * missing. Nothing is written, so the age of another machine's claim is measured by this machine's clock. */
enum status claims_list(const char *out, struct claim_info **list, int *n, struct error *e);

#endif
