/* facts.h - the notes below a table that hold for all its runs: unusual flags that they share, how many runs are
 * unusual in other ways, and how the user has chosen the runs. */
#ifndef LRNN_HARNESS_ROWS_FACTS_H
#define LRNN_HARNESS_ROWS_FACTS_H

#include "harness/rows/rows.h"

#define FACTS_MOST 8

/* Facts about the rows that were added. All zeros at the start. */
struct facts {
    struct label shared;        /* flags with the same value in all rows (row_key) */
    struct label usual;         /* flags that the rows' profiles all set to the same value, which is not the default */
    const char *task, *profile; /* of the row added last */
    /* n: number of runs; count: number of runs of each kind. Only the last attempt at a run counts */
    int n, count[FACTS_MOST];
    bool outdated; /* some runs have other numerics than this program */
    bool uneven;   /* in some row, not all rates have the same number of seeds */
    const struct report_filter *asked;
    int n_rows;
    int n_speeds;          /* number of rows that have a speed */
    struct perf_row speed; /* the first speed */
    bool speeds_differ;    /* in their machine, threads, precision or device */
    bool builds_differ;    /* in the program's build, or in the machine's system */
};

void facts_add(struct facts *f, const struct report_row *row);

/* Adds runs that are not in a row. All have the same key (row_key) and profile. */
void facts_add_runs(struct facts *f, const struct label *key, const char *profile, const struct run_record *const *runs,
                    int n);
void facts_add_speed(struct facts *f, const struct perf_row *speed);

/* Writes sentence number i, from 0, without its full stop. False: there are fewer sentences. */
#define FACT_TEXT (4 * RECORD_TEXT)
bool facts_sentence(const struct facts *f, int i, char text[FACT_TEXT]);

/* Writes those flags of `shared` that have unusual values, such as "precision=bf16 dropout=0.1", or "". */
void facts_shared(const struct facts *f, char text[FACT_TEXT]);

/* Writes where a speed was measured: "4 threads, fp32, cpu, machine 1a2b3c4d". */
#define SPEED_PLACE 128
void speed_place(const struct perf_row *speed, char *text, size_t size);

#endif
