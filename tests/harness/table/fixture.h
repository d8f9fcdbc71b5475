/* fixture.h - run records made by hand, in memory, and a folder to report into: what the tests of reports share. */
#ifndef LRNN_TESTS_HARNESS_TABLE_FIXTURE_H
#define LRNN_TESTS_HARNESS_TABLE_FIXTURE_H

#include "harness/table/report.h"
#include "tasks/task.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

#define FIXTURE_MOST 160

/* State of the running test: the folder and the set are empty at its beginning. */
extern char fixture_folder[SCRATCH_BYTES];
extern struct error fixture_problem;
extern struct run_record fixture_records[FIXTURE_MOST]; /* the set's */
extern struct record_set fixture_set;

/* One finished run of task s5 (120 symbols); the tests change what they are about. Its curve ends in its val_acc. */
struct run *add_run(const char *layers, double lr, uint64_t seed, double val, double test);

/* Writes the line KEY=VALUE into the identity and the configuration of the record that holds the run, in place of the
 * one it has. */
void identify(struct run *run, const char *key, const char *value);

/* Gives the record the identity of the first run that a plan has of its task and model. */
void as_planned(struct run *run, const char *plan);

/* Records the run as one that ended before its 300 steps. */
void cut_off(struct run *run, int64_t steps);

/* Records the run as one that failed. */
void spoil(struct run *run, enum run_status status, const char *detail);

/* Two rates, three seeds: validation prefers 0.001, the test split would have preferred 0.003. */
void add_grid(void);

/* The report "tables" as text; the caller frees it. */
char *render(const struct sheet_format *format, const struct report_filter *filter);

/* Any report of all records as text; the caller frees it. */
char *render_report(const struct report *report, const struct sheet_format *format);

/* The one row that the records make; the caller frees the tables. */
struct report_row *only_row(struct report_tables *tables);

/* Instead of gnuplot: keeps what it was to draw in script.kept and data.kept, and leaves files where it would. */
void stand_in_for_gnuplot(void);

void ck_ok(enum status status);
void ck_holds(const char *text, const char *part);

/* Make and remove the folder of a test, before and after it. */
void fixture_open(void);
void fixture_close(void);

/* A suite of `n` tests, each with records and folder of its own. */
Suite *fixture_suite(const char *name, const TTest *const *tests, int n);

#endif
