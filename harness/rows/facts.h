/* facts.h - the notes below a table on all its runs: unusual flags that they share, how many of them are unusual in
 * other ways, and the user's choice of runs. */
#ifndef LRNN_HARNESS_ROWS_FACTS_H
#define LRNN_HARNESS_ROWS_FACTS_H

#include "harness/rows/rows.h"

#define FACTS_MOST 8

/* Starts as zeros. */
struct facts {
    struct label shared;        /* flags with one value in all rows (row_key) */
    struct label usual;         /* flags that the rows' profiles set to one common value, other than the default */
    const char *task, *profile; /* of the row added last */
    int n, count[FACTS_MOST];   /* runs, and runs of each kind; only the last attempt at a run counts */
    bool outdated;              /* some runs have other numerics than this program */
    bool uneven;                /* the rates of some row have different numbers of seeds */
    const struct report_filter *asked;
    int n_rows;
    int n_speeds;          /* rows that have a speed */
    struct perf_row speed; /* the first speed */
    bool speeds_differ;    /* in machine, threads, precision or device */
    bool builds_differ;    /* in the program's build or the machine's system */
};

void facts_add(struct facts *f, const struct report_row *row);

/* Adds runs that are not in a row, all of one key (row_key) and one profile. */
void facts_add_runs(struct facts *f, const struct label *key, const char *profile, const struct run_record *const *runs,
                    int n);
void facts_add_speed(struct facts *f, const struct perf_row *speed);

/* Writes sentence number i, from 0, without its full stop. False: there are fewer. */
#define FACT_TEXT (4 * RECORD_TEXT)
bool facts_sentence(const struct facts *f, int i, char text[FACT_TEXT]);

/* Writes the flags of `shared` with unusual values: "precision=bf16 dropout=0.1"; "": none. */
void facts_shared(const struct facts *f, char text[FACT_TEXT]);

/* Writes where a speed was measured: "4 threads, fp32, cpu, machine 1a2b3c4d". */
#define SPEED_PLACE 128
void speed_place(const struct perf_row *speed, char *text, size_t size);

#endif
