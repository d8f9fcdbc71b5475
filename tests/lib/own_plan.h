/* own_plan.h - a plan of a test's own, and the commands that are about it. */
#ifndef LRNN_TESTS_LIB_OWN_PLAN_H
#define LRNN_TESTS_LIB_OWN_PLAN_H

#include <stdbool.h>

#include "tests/lib/program.h"

/* S3 and S4 of two models, of which the published numbers know LRU: below 0.001 and 0.999. */
extern const char own_plan[];

/* Writes a file into the test's folder. */
void write_text(const char *name, const char *text);

/* Writes a plan to own.plan of the test's folder, and published numbers into its folder of records, r. */
void begin_plan(const char *text);

#define REPORT "report --paper %s/own.plan --out %s/r"

/* Runs the program with arguments of which each %s, one to three, is the test's folder. */
void expect(const char *format, int status);

/* Whether a text stands in what was printed, and once. */
bool is_once(const char *text);

#endif
