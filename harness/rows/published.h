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
};

/* Reads OUT/published.csv if it is there, else the one that ships with the program. ST_DATA: damaged, or in no place
 * where it should be; the table is then empty and may be used. */
enum status published_read(struct published *p, const char *out, struct error *e);
void published_free(struct published *p);

/* A number of a paper. */
struct published_number {
    double value;      /* NAN: none */
    bool settings;     /* the mean over the task and its one-at-a-time changes (tasks/variants.h), not the task alone */
    bool as_published; /* the run's nets, data and schedule are the paper's (profile_as_published,
                          published_data_fits) */
    bool best;         /* the best of the paper's grid, not a mean over seeds or a single run */
};

/* Whether a mixer, whose label has every option (label_canonical), and its flags (row_key; NULL: none) are what a text
 * "plstm2d:mode=PD@positions=none" asks for. */
bool published_model_fits(const char *text, const struct label *mixer, const struct label *flags);

/* Whether the run may be on the whole released files that its task reads: a record says on how many examples it was. */
bool published_data_fits(const struct run *run);

/* Whether there is one, of another setting than the run: to be shown, not compared. */
bool published_is_other(const struct published_number *p);

/* Whether a table of a paper has numbers of a task, by the task's whole label. */
bool published_has_task(const struct published *p, const char *arxiv, const char *table, const char *task);

/* The published number of the run's task, metric and model, as published if the run is of that profile. A task stands
 * for every number of validation and test examples; a published model "bdlru:m=5" for every run of that mixer with
 * those options, written or default, whatever its others are (blocks, layout, gate-init); one that asks for flags after
 * an '@' is a plan's alone. */
struct published_number published_find(const struct published *p, const struct run *run, const char *profile);

/* A number as a table prints it: ".851 +- .06". */
struct published_value {
    double value;     /* NAN: none */
    double spread;    /* NAN: none is printed */
    const char *kind; /* of the spread: "sd", "ci90"; "" or "none" */
    int n;            /* values that it is the mean of; 0: nobody says */
    double rounding;  /* half a unit of the last digit of the value */
};
#define PUBLISHED_NONE ((struct published_value){.value = NAN, .spread = NAN, .kind = ""})

/* Half the width of the paper's interval: a spread that is one, of a standard deviation of n values the t-interval of
 * 95 % of their mean. 0: the table has the number alone, or nobody says what the spread is. */
double published_half_width(const struct published_value *v);

/* The number that a table of a paper has for a task, of any where `task` is NULL, and a model: its mixer, whose label
 * has every option (label_canonical), and its flags (row_key), for which a published model "plstm2d:mode=PD@positions=
 * none" asks. Of several that fit, the one that asks for most. `metric`: "acc", or with a length of the test sequences
 * "acc_384". *row: what the table calls the model, "" if it does not have it. */
struct published_value published_of_table(const struct published *p, const char *arxiv, const char *table,
                                          const char *task, const char *metric, const struct label *mixer,
                                          const struct label *flags, const char **row);

#endif
