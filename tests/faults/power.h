/* power.h - power that goes: from the log of what programs did to files (file_log.h), every state in which the disk may
 * be found. */
#ifndef LRNN_TESTS_FAULTS_POWER_H
#define LRNN_TESTS_FAULTS_POWER_H

#include <stddef.h>

#include "tests/faults/spawn.h"

#define POWER_PROMISES 16

struct power_log {
    char *bytes;
    size_t size;
    struct power_event *events;
    int n_events;
    int n_promises;
    size_t promises[POWER_PROMISES]; /* sizes of the log at which one more run had been reported done */
};

/* A program has just ended well: `runs` more runs are promised from here on. */
void power_promise(struct power_log *p, const char *log_path, int runs);

/* `forgetful`: as if no fsync had reached the disk, which a replay must notice. */
void power_read(struct power_log *p, const char *log_path, int forgetful);
void power_free(struct power_log *p);

/* Starts the program again where FOLDER/store is such a state, and counts as bad what is then lost or another. */
typedef void power_goes_on(const char *folder, struct tally *t);

/* Builds, after every event, the states that the store's folder may have, and reads each: all promised runs are there,
 * what has a name for good is whole. A folder's names that no fsync has made durable may have reached the disk each on
 * its own; at most `choices` of their subsets are tried, at random if there are more. In each `every`-th state goes_on
 * is called, unless it is NULL. Counts the states and the bad ones. */
void power_replay(const struct power_log *p, const char *store, int choices, int every, power_goes_on *goes_on,
                  struct tally *t);

/* The first path that a program has made, changed or taken away outside of the folder; NULL: none. */
const char *power_outside(const struct power_log *p, const char *folder);

#endif
