/* test_lengths.h - accuracy by the length of the test sequences, or by the position in them. `by` is EVAL_BY_LENGTH or
 * EVAL_BY_POSITION (record.h). "Length" below means a length or a position. */
#ifndef LRNN_HARNESS_ROWS_TEST_LENGTHS_H
#define LRNN_HARNESS_ROWS_TEST_LENGTHS_H

#include "harness/rows/rows.h"

#define TEST_LENGTHS_FEW 8

/* The lengths of a table's test sequences. Up to TEST_LENGTHS_FEW lengths are shown one by one. If there are more,
 * neighbouring lengths share a number, so that each number is of some dozens of sequences. */
struct test_lengths {
    int64_t shortest, longest; /* both 0: nothing was recorded by length */
    int64_t each[TEST_LENGTHS_FEW];
    int n; /* number of lengths in `each`, which ascend; 0: there are more than fit */
};

struct test_lengths test_lengths_of(const struct report_table *t, const char *by);

/* A row's accuracy on test sequences with lengths from first to last. Within a run, all scored positions have equal
 * weight; the value is the mean over the seeds that have such sequences. A run that did not end well counts as
 * chance. */
struct lengths_mean {
    double value;       /* NAN: no seed has such sequences */
    int n;              /* number of seeds in the mean */
    int64_t n_measured; /* of all seeds, the fewest sequences or scored positions; -1: no run ended well */
    /* Wilson's 95 % interval of a rate `value` among n_measured. It shows the variation that comes from the test set,
     * not from seeds. It is wider than necessary, because the positions of a sequence vary less than independent
     * sequences. */
    struct interval interval;
};
struct lengths_mean lengths_mean(const struct report_row *row, const char *by, int64_t first, int64_t last);

/* Bins of lengths: bin i has the lengths from first[i] to last[i], which share a number. A few lengths have a bin each.
 * Otherwise bins are divided at the powers of two and half-way between them. For a figure (`fine`), they are divided at
 * the multiples of 8, or of the smallest power of two that gives at most LENGTH_BINS_MOST bins. If some row has fewer
 * than LENGTHS_LEAST sequences in a bin, neighbouring bins are joined, because the accuracy of one sequence is 0 or
 * 1. */
#define LENGTH_BINS_MOST 256
#define LENGTHS_LEAST    10
struct length_bins {
    const char *by;
    int64_t first[LENGTH_BINS_MOST], last[LENGTH_BINS_MOST];
    int64_t n_measured[LENGTH_BINS_MOST]; /* the fewest sequences of all rows that have some */
    int n;
};
struct length_bins length_bins_of(const struct report_table *t, const char *by, bool fine);

/* The protocol's number for a row, from the accuracies of its runs at the chosen rate on test sequences of one length.
 * Runs without such sequences are left out. A run that did not end well counts as chance. ST_MEMORY. */
struct length_estimate {
    double value; /* NAN: no run has such sequences */
    struct interval interval;
    bool cut;    /* a run that gives the value was cut off */
    int without; /* number of runs left out because they have no such sequences */
};
enum status length_estimate(const struct report_row *row, enum report_protocol protocol, int64_t length,
                            struct length_estimate *estimate, struct error *e);

#endif
