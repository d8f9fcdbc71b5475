/* published.h - the papers' numbers, results/published.csv. */
#ifndef LRNN_HARNESS_ROWS_PUBLISHED_H
#define LRNN_HARNESS_ROWS_PUBLISHED_H

#include <math.h>
#include <stdbool.h>

#include "harness/store/csv.h"
#include "harness/store/record.h"
#include "tasks/task.h"

struct published {
    struct csv_table table; /* rows == 0 when the file was not found */
    bool own;               /* it is the folder's, in the place of the one that ships with the program */
};

#define OWN_NUMBERS_NOTE                                                                                               \
    "The papers' numbers are of published.csv in the folder of the records, not the program's" /* where it is so */

/* Reads OUT/published.csv if it is there, else the one that ships with the program. ST_DATA: damaged, or in no place
 * where it should be; the table is then empty and may be used. */
enum status published_read(struct published *p, const char *out, struct error *e);
void published_free(struct published *p);

/* A number as a table of a paper prints it: "0.851 +- 0.06". Its texts are the file's. */
struct published_value {
    double value;               /* NAN: none */
    double spread;              /* NAN: none is printed */
    const char *kind;           /* of the spread: "sd", "ci90"; "" or "none" */
    const char *arxiv, *source; /* the paper and its table */
    int n;                      /* values that it is of; 0: nobody says */
    int decimals;               /* digits after the point, as printed */
    double rounding;            /* half a unit of the last digit */
    bool settings;              /* the mean over the task and its one-at-a-time changes (tasks/variants.h) */
    bool best;                  /* the best of the paper's grid, not a mean over seeds or a single run */
    bool unsaid;                /* whether it is a best, nobody says */
};
#define PUBLISHED_NONE ((struct published_value){.value = NAN, .spread = NAN, .kind = "", .arxiv = "", .source = ""})

/* The format, of one double, by which the value prints with the paper's digits: "%.3f" of "0.370". */
#define PUBLISHED_FORMAT_BYTES 16
void published_format(const struct published_value *v, char format[PUBLISHED_FORMAT_BYTES]);

/* Whether a mixer, whose label has every option (label_canonical), and its flags (row_key; NULL: none) are what a text
 * "plstm2d:mode=PD@positions=none" asks for. */
bool published_model_fits(const char *text, const struct label *mixer, const struct label *flags);

/* Whether the run may be on the whole released files that its task reads: a record says on how many examples it was. */
bool published_data_fits(const struct run *run);

/* Whether a table of a paper has numbers of a task, by the task's whole label. */
bool published_has_task(const struct published *p, const char *arxiv, const char *table, const char *task);

/* Half the width of the paper's interval: a spread that is one, of a standard deviation of n values the t-interval of
 * 95 % of their mean. 0: the table has the number alone, or nobody says what the spread is. */
double published_half_width(const struct published_value *v);

/* The facts by which a number is looked for. */
struct published_query {
    const char *arxiv, *source; /* the paper and its table; NULL: any */
    const char *task;           /* its whole label; NULL: any */
    const char *metric;         /* "acc", or with a length of the test sequences "acc_384" */
    const struct label *mixer;  /* has every option (label_canonical) */
    const struct label *flags;  /* row_key, for which a published model "plstm2d:mode=PD@positions=none" asks */
};

/* The number of the published model that the query fits; of several the one that asks for most. *row (NULL: not wanted)
 * is what the table calls the model, "" if it does not have it. */
struct published_value published_find(const struct published *p, const struct published_query *q, const char **row);

/* The number for a run: its task stands for every number of validation and test examples. */
struct published_value published_of_run(const struct published *p, const struct run *run, const struct label *key);

#endif
