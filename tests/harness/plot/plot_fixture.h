/* plot_fixture.h - figures of fixture records, and the files that are drawn. */
#ifndef LRNN_TESTS_HARNESS_PLOT_PLOT_FIXTURE_H
#define LRNN_TESTS_HARNESS_PLOT_PLOT_FIXTURE_H

#include "harness/plot/plot.h"
#include "tests/harness/table/fixture.h"

/* Asserts that the file of that name is a drawn PNG or SVG. */
void ck_is_image(const char *name);

/* Text of a file in the fixture's folder; the caller frees it. */
char *kept(const char *name);

/* Draws figures over steps. */
enum status plot(const struct report_filter *filter, const char *kind);

#endif
