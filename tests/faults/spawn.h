/* spawn.h - the program that LRNN names, started for an exercise, and what the exercises share. */
#ifndef LRNN_TESTS_FAULTS_SPAWN_H
#define LRNN_TESTS_FAULTS_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

#include "core/status.h"

/* A short training into the folder %s, of seed %ld. */
#define TRAIN                                                                                                          \
    "train s3:length=4,n_train=64,n_val=16,n_test=16 bdlru:m=2,blocks=4 --dim 8 --layers 1 --mlp none --batch 8 "      \
    "--steps 6 --threads 1 --keep-weights all --checkpoint-every 0 --quiet --out %s --seed %ld"

/* Short trainings of %d seeds, by two processes, into the folder %s/store. */
#define BENCH                                                                                                          \
    "bench s3:n_train=200,n_val=20,n_test=20,length=5 --profile smoke --models bdlru:m=2,blocks=4 --seeds %d --jobs "  \
    "2 --epochs 2 --checkpoint-every 0.02s --no-plots --no-speed --threads 1 --out %s/store"

/* The result of an exercise. */
struct tally {
    int64_t tried, failed; /* cases; those in which the program said that it failed */
    int64_t all;           /* cases that there are, where that can be counted; else 0 */
    int64_t bad;           /* in which something was lost, crashed or silently wrong */
    double worst;          /* seconds that the slowest answer to a signal, or command of many records, took */
    char first[1024];      /* the first of those, in words */
};

/* Counts a bad case, and keeps the first in words. */
void bad(struct tally *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Path of the program. */
const char *program(void);

/* Starts the program with these words, no shell between, its output in FOLDER/NAME.out and .err, in a group of its own;
 * `variables` are "NAME=VALUE" for it, NULL-terminated. */
pid_t start(const char *folder, const char *name, const char *const *variables, const char *arguments);

/* Starts it as "last" and waits: its exit status, 128 and the signal's number where one ended it. */
int run_words(const char *folder, const char *const *variables, const char *arguments);

/* Output ("out") or errors ("err") of the last one; the caller frees it. */
char *said(const char *folder, const char *stream);

/* Writes "LD_PRELOAD=" and the path of faults.so; returns `text`. */
const char *preload(char text[4096]);

/* Gives the number of records if all are whole; else -1 and why. */
int64_t whole_records(const char *store, struct error *e);

/* Counts as bad what is not so: every run of `alone` is in `store` with the same result, and there is no other run. */
void compare_stores(const char *store, const char *alone, int runs, struct tally *t);

/* A step that shares no divisor with n and is near the golden section of it: its multiples spread evenly. */
long spread_step(long n);

#endif
