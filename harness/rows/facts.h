/* facts.h - what a table says of all its runs below it: flags that they share and that are not as usual, how many of
 * them were made in an unusual way, and which of all runs the reader chose. */
#ifndef LRNN_HARNESS_ROWS_FACTS_H
#define LRNN_HARNESS_ROWS_FACTS_H

#include "harness/rows/rows.h"

#define FACTS_MOST 8

/* Starts as zeros. */
struct facts {
    struct label shared;        /* flags that all rows have with one value (row_key) */
    struct label usual;         /* those that their profiles have, all with one value, otherwise than by default */
    const char *task, *profile; /* of the latest row */
    int n, count[FACTS_MOST];   /* runs, and runs of each kind; only the last attempt at a run counts */
    bool outdated;              /* some are of other numerics than the program has now */
    bool uneven;                /* the rates of some row have different numbers of seeds */
    const struct report_filter *asked;
    int n_rows;
    int n_speeds;          /* rows that have one */
    struct perf_row speed; /* the first of them */
    bool speeds_differ;    /* in machine, threads, precision or device */
    bool builds_differ;    /* in the program's build or the machine's system */
};

void facts_add(struct facts *f, const struct report_row *row);

/* Adds runs without a row: of one key (row_key) and one profile. */
void facts_add_runs(struct facts *f, const struct label *key, const char *profile, const struct run_record *const *runs,
                    int n);
void facts_add_speed(struct facts *f, const struct perf_row *speed);

/* Writes sentence number i, from 0, without its full stop. False: there are fewer. */
#define FACT_TEXT (4 * RECORD_TEXT)
bool facts_sentence(const struct facts *f, int i, char text[FACT_TEXT]);

/* The flags of `shared` that are not as usual: "precision=bf16 dropout=0.1"; "": none. */
void facts_shared(const struct facts *f, char text[FACT_TEXT]);

/* Writes where a speed was measured: "4 threads, fp32, cpu, machine 1a2b3c4d". */
#define SPEED_PLACE 128
void speed_place(const struct perf_row *speed, char *text, size_t size);

#endif
