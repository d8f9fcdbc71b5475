/* same_runs.h - two folders of results that hold the same runs: every field of every record, but for times. */
#ifndef LRNN_TESTS_HARNESS_POOL_SAME_RUNS_H
#define LRNN_TESTS_HARNESS_POOL_SAME_RUNS_H

/* Ends the test unless both folders have the records of n runs, and each run the same one in both: identity, curve,
 * evaluations, hash of the weights, kernels, and all else but what a clock or the process's memory says. */
void expect_same_runs(const char *folder_a, const char *folder_b, int n);

#endif
