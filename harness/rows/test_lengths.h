/* test_lengths.h - accuracy by the length of the test sequences, or by position in them: `by` is EVAL_BY_LENGTH or
 * EVAL_BY_POSITION (record.h), and "length" below stands for both. */
#ifndef LRNN_HARNESS_ROWS_TEST_LENGTHS_H
#define LRNN_HARNESS_ROWS_TEST_LENGTHS_H

#include "harness/rows/rows.h"

#define TEST_LENGTHS_FEW 8

/* The lengths of a table's test sequences. Each of a few stands for itself; of more, neighbours share a number, so that
 * it rests on some dozens of sequences. */
struct test_lengths {
    int64_t shortest, longest; /* both 0: nothing was recorded by length */
    int64_t each[TEST_LENGTHS_FEW];
    int n; /* of `each`, ascending; 0: there are more than that */
};

struct test_lengths test_lengths_of(const struct report_table *t, const char *by);

/* A row's accuracy of the test sequences of the lengths from first to last, whose scored positions count alike in each
 * run, and the mean of the seeds that have some. A run that did not end well counts as chance. */
struct lengths_mean {
    double value;       /* NAN: no seed has any */
    int n;              /* seeds that it is the mean of */
    int64_t n_measured; /* sequences, or scored positions, of a seed that has the fewest of them; -1: none ended well */
    /* Wilson's, at 95 %, of a rate of `value` among n_measured: the test set's chance, not the seeds'. It is wide, for
     * positions of one sequence vary less than as many sequences. */
    struct interval interval;
};
struct lengths_mean lengths_mean(const struct report_row *row, const char *by, int64_t first, int64_t last);

/* Lengths, or positions, from first[i] to last[i], that share a number: each of a few by itself; of more, neighbours,
 * cut at the powers of two and half-way between them, or for a figure (`fine`) at the multiples of 8 or of the smallest
 * power of two that makes at most LENGTH_BINS_MOST. Where some row has fewer than LENGTHS_LEAST sequences, neighbours
 * join, for the accuracy of one sequence is 0 or 1. */
#define LENGTH_BINS_MOST 256
#define LENGTHS_LEAST    10
struct length_bins {
    const char *by;
    int64_t first[LENGTH_BINS_MOST], last[LENGTH_BINS_MOST];
    int64_t n_measured[LENGTH_BINS_MOST]; /* the fewest of any row that has some */
    int n;
};
struct length_bins length_bins_of(const struct report_table *t, const char *by, bool fine);

/* The number that a protocol makes of a row's accuracies on the test sequences of one length, at the rate that the row
 * has chosen, of the runs that have some. A run that did not end well counts as chance. ST_MEMORY. */
struct length_estimate {
    double value; /* NAN: no run has any */
    struct interval interval;
    bool cut;    /* a run that gives the value was cut off */
    int without; /* runs that would count and have none */
};
enum status length_estimate(const struct report_row *row, enum report_protocol protocol, int64_t length,
                            struct length_estimate *estimate, struct error *e);

#endif
