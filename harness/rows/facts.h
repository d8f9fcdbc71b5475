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
    int n, count[FACTS_MOST];   /* runs, and those of each kind; of attempts at one run the last alone */
    bool outdated;              /* some are of other numerics than the program has now */
    const struct report_filter *asked;
    int n_rows;
    const struct report_row *fastest; /* a row with a speed; NULL: none has one */
    bool speeds_differ;               /* in machine, threads, precision or device */
};

void facts_add(struct facts *f, const struct report_row *row);

/* Writes sentence number i, from 0, without its full stop. False: there are fewer. */
#define FACT_TEXT (4 * RECORD_TEXT)
bool facts_sentence(const struct facts *f, int i, char text[FACT_TEXT]);

/* The flags of `shared` that are not as usual: "precision=bf16 dropout=0.1"; "": none. */
void facts_shared(const struct facts *f, char text[FACT_TEXT]);

/* Writes where a row's speed was measured: "4 threads, fp32, cpu, machine 1a2b3c4d". */
void speed_place(const struct report_row *row, char *text, size_t size);

#endif
