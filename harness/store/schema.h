/* schema.h - describes every stored field once; JSON, CSV and `lrnn schema` use these tables. Within a schema
 * (RECORD_SCHEMA) columns are only appended. Moving or removing a column raises the schema. Files of an earlier schema
 * are read by the names of their columns. */
#ifndef LRNN_HARNESS_STORE_SCHEMA_H
#define LRNN_HARNESS_STORE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/status.h"
#include "harness/store/csv.h"
#include "harness/store/machine.h"
#include "harness/store/record.h"

enum field_type {
    FIELD_INT,   /* int64_t; -1 = not applicable */
    FIELD_U64,   /* uint64_t */
    FIELD_REAL,  /* double; NAN = not applicable */
    FIELD_TEXT,  /* char[size] */
    FIELD_NAME,  /* int64_t, one of an enum; stored as its name */
    FIELD_SCHEMA /* RECORD_SCHEMA in every row; not stored in the object */
};

struct field {
    const char *name;
    enum field_type type;
    size_t offset, size;
    const char *unit, *meaning;
    const char *const *names; /* of FIELD_NAME, in the enum's order; NULL-terminated */
};

struct table {
    const char *name;           /* "runs" */
    const struct field *fields; /* ends with name == NULL */
};

/* The rows that curves.csv and evals.csv print. In JSON only `point` is stored: the rest repeats or follows from it. */
struct curve_row {
    struct curve_point point;
    char run_id[RUN_ID_HEX];
    double ppl;
};

struct eval_row {
    struct eval_point point;
    char run_id[RUN_ID_HEX];
};

/* One measurement of speed: a row of perf.csv. */
struct perf_row {
    char sitting[32], bench[64], shape[256], dtype[16], pass[8];
    int64_t samples; /* number of measurements, each of a step or of several (harness/perf/perf.h) */
    double time_ns, time_ns_mad, time_ns_p95, tok_per_s; /* median; median absolute deviation; 95th percentile */
    int64_t threads;
    char commit[64], build_id[RECORD_TEXT], machine_id[17], started[32];
    char cell_id[RUN_ID_HEX]; /* cell of the run; "": not a run's speed */
    double foreign;           /* share of the cores' time that other processes used */
    int64_t warm_up, quiet;   /* windows of warm-up, -1: never steady; 1: undisturbed, warm and steady */
    char source_id[17], compiler[RECORD_TEXT], device[16]; /* "": not known */
    char env_epoch[17];                                    /* the machine's system and libraries; "": not known */
    double best_ns, floor_ns, flops, bytes;                /* only for an op (lrnn perf op); else NAN */
};

/* The number of steps of a run with a time limit: a row of limits.csv. */
struct limit_row {
    char run_id[RUN_ID_HEX]; /* of the run before its steps were set; its --budget is part of the id */
    double seconds;          /* the time limit for its training */
    int64_t steps;           /* steps within the limit */
    double time_ns;          /* time of a step, the mean of a few, from which `steps` follows */
    int64_t threads;
    char commit[64], machine_id[17], started[32];
};

struct machine_row {
    struct machine machine;
    char first_seen[32];
};

#define LIST_MOST_COLUMNS 32 /* of curves_table and evals_table */

extern const struct table runs_table, curves_table, evals_table, perf_table, limits_table, machines_table;
extern const char *const split_names[]; /* train val test; NULL-terminated */

/* A record whose numbers do not apply yet (NAN, -1), schema set, texts empty. */
void record_init(struct run_record *r);

/* Whether two records have equal content, even if written under different schemas. */
bool record_equal(const struct run_record *a, const struct run_record *b);

/* Whether a field lies within a struct of `object_size` bytes. Derived fields of a row come after it. */
bool field_within(const struct field *field, size_t object_size);

/* Sets a field to its value for "does not apply": -1, NAN, 0 or "". */
void field_clear(const struct field *field, void *object);

/* table_field finds a field by name, or NULL. field_equal tells whether two objects agree in a field. */
const struct field *table_field(const struct table *table, const char *name);
bool field_equal(const struct field *field, const void *a, const void *b);

/* Returns a value as text for people and CSV: the text itself, or digits in `number` that read back to the value. NULL:
 * the value does not apply, is an empty text, or has no name. */
const char *field_text(const struct field *field, const void *object, char *number, size_t size);

/* Returns the run with control characters and bidi marks in its texts as '?' (text_shown), for a terminal. */
struct run run_shown(const struct run *run);

/* Write the header row and one row of a table's CSV. */
void table_csv_header(const struct table *table, FILE *f);
void table_csv_row(const struct table *table, const void *object, FILE *f);

/* Reads row `row` of a table's file into the object. Missing columns and invalid numbers become -1, NAN or ""; texts
 * are cut to fit. */
void table_from_csv(const struct table *table, const struct csv_table *t, int row, void *object);

/* Prints name, type, unit and meaning of every column of runs, curves, evals, perf, limits or machines, one per line,
 * from the same tables as the writers. ST_USAGE: no such table. */
enum status schema_print(const char *what, FILE *f, struct error *e);

#endif
