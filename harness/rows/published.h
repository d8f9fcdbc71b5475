/* published.h - the papers' numbers, which are in results/published.csv. */
#ifndef LRNN_HARNESS_ROWS_PUBLISHED_H
#define LRNN_HARNESS_ROWS_PUBLISHED_H

#include <math.h>
#include <stdbool.h>

#include "harness/store/csv.h"
#include "harness/store/record.h"
#include "tasks/task.h"

struct published {
    struct csv_table table; /* it has no rows if the file was not found */
    bool own;               /* the table is from the folder's own file, not from the file shipped with the program */
};

#define OWN_NUMBERS_NOTE                                                                                               \
    "The papers' numbers are of published.csv in the folder of the records, not the program's" /* note for `own` */

/* Reads OUT/published.csv if it exists, else the file shipped with the program. ST_DATA: the file is damaged or not
 * found; the table is then empty and may be used. */
enum status published_read(struct published *p, const char *out, struct error *e);
void published_free(struct published *p);

/* A number as a paper's table prints it, such as "0.851 +- 0.06". The texts are borrowed from the file. */
struct published_value {
    double value;               /* NAN: there is no number */
    double spread;              /* NAN: no spread is printed */
    const char *kind;           /* kind of spread: "sd", "ci90"; "" or "none" */
    const char *arxiv, *source; /* the paper and its table */
    int n;                      /* number of values; 0: the paper does not say */
    int decimals;               /* digits after the point, as printed */
    double rounding;            /* half a unit of the last digit */
    /* it is the mean over the task and its variants, in which one option has another value (tasks/variants.h) */
    bool settings;
    bool best;   /* it is the best of the paper's runs, not a mean over seeds or a single run */
    bool unsaid; /* the paper does not say whether it is a best */
};
#define PUBLISHED_NONE ((struct published_value){.value = NAN, .spread = NAN, .kind = "", .arxiv = "", .source = ""})

/* Gives the printf format that prints the value with the paper's digits: "%.3f" for "0.370". */
#define PUBLISHED_FORMAT_BYTES 16
void published_format(const struct published_value *v, char format[PUBLISHED_FORMAT_BYTES]);

/* Whether a mixer and its flags have all options and flags of a text such as "plstm2d:mode=PD@positions=none". `mixer`
 * is a label with every option (label_canonical), and `flags` a row_key (NULL: none). */
bool published_model_fits(const char *text, const struct label *mixer, const struct label *flags);

/* Whether the numbers of examples in the run's record are those of the complete released data of its task. */
bool published_data_fits(const struct run *run);

/* Whether a paper's table has numbers for a task, found by the task's whole label. */
bool published_has_task(const struct published *p, const char *arxiv, const char *table, const char *task);

/* Returns half the width of the paper's interval. A standard deviation of n values is converted to the 95 % t-interval
 * of their mean. 0: the table has only the number, or the kind of spread is unknown. */
double published_half_width(const struct published_value *v);

/* The facts by which a number is found. */
struct published_query {
    const char *arxiv, *source; /* the paper and its table; NULL: any */
    const char *task;           /* the task's whole label; NULL: any */
    const char *metric;         /* "acc", or at a length of test sequences "acc_384" */
    const struct label *mixer;  /* has every option (label_canonical) */
    const struct label *flags;  /* row_key, compared with flags such as in "plstm2d:mode=PD@positions=none" */
};

/* Finds the number of the published model that fits the query. If several fit, the one with the most options counts.
 * *row (may be NULL) gets the paper's name of the model, or "" if the table does not have it. */
struct published_value published_find(const struct published *p, const struct published_query *q, const char **row);

/* Finds the number for a run. The run's numbers of validation and test examples need not agree. */
struct published_value published_of_run(const struct published *p, const struct run *run, const struct label *key);

#endif
