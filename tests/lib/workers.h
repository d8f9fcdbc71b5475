/* workers.h - test programs take their work in several processes: nothing is started in the one that forks them. */
#ifndef LRNN_TESTS_LIB_WORKERS_H
#define LRNN_TESTS_LIB_WORKERS_H

/* The number of cores, at most 8; CHECK_JOBS in the environment changes that. */
int workers_wanted(void);

/* Forks n processes, each of which calls work(i, context), and waits for them. Returns how many did not come to its
 * end, each of which it names on stdout. */
int workers_run(int n, void (*work)(int i, void *context), void *context);

/* Zeroed memory that all of them share; ends the program if there is none. */
void *workers_share(unsigned long bytes);

#endif
