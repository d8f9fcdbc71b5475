/* gnuplot.h - one figure by gnuplot, which is started without a shell.
 *
 * A complete script is written beside the output: settings, plots/common.gp, plots/KIND.gp, and the same once more into
 * every other format. Names reach gnuplot only as single-quoted strings drawn without enhanced text, numbers through a
 * data file. */
#ifndef LRNN_HARNESS_PLOT_GNUPLOT_H
#define LRNN_HARNESS_PLOT_GNUPLOT_H

#include <stdio.h>

#include "core/status.h"

enum figure_format { FIGURE_SVG = 1, FIGURE_PNG = 2, FIGURE_PDF = 4 }; /* bits of `formats` */

struct figure {
    const char *stem; /* file name without its ending */
    const char *kind; /* of plots/KIND.gp */
    int height;       /* of 1200 points of width */
    unsigned formats; /* 0: SVG and PNG */
    FILE *told;       /* gets the path of each file that was written, a line each; NULL: nobody asks */
};

#define FIGURE_WIDE 40 /* characters of a name that takes about a third of the width */

/* For so many names, the longest of so many characters, which stand in a column beside the plot or below it. */
int figure_height(int names, int longest);

/* Settings that say so: longest, below. */
void gnuplot_longest(FILE *f, int longest);

/* Writes TO/STEM.svg and so on, and nothing else; makes the folder where there is none, and leaves none without a
 * figure. `print` writes the settings, which are lines of a script, and the numbers of the data file. ST_FAIL: no
 * gnuplot, with what to install; it could not draw, with its own words; ST_MEMORY. */
enum status gnuplot_draw(const struct figure *figure, void (*print)(FILE *settings, FILE *numbers, const void *context),
                         const void *context, const char *to, struct error *e);

/* Whether there is a gnuplot. ST_FAIL: what to install. */
enum status gnuplot_find(struct error *e);

/* Whether it could, so far as files of other people go: ST_USAGE as own_file_check. Of the figure only its stem and
 * formats are read. */
enum status gnuplot_check(const struct figure *figure, const char *to, struct error *e);

/* "svg,png" as bits. ST_USAGE. */
enum status figure_formats_parse(const char *text, unsigned *formats, struct error *e);

/* Prints a line of settings, name = 'text', in which nothing is expanded, or name[index] = 'text'; a number, NaN where
 * it is none. */
void gnuplot_setting(FILE *f, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
void gnuplot_element(FILE *f, const char *name, int index, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void gnuplot_number(FILE *f, double value, const char *end);

/* Prints a line of n numbers, and ends a block of lines, as gnuplot calls it. */
void gnuplot_row(FILE *f, int n, const double *values);
void gnuplot_end_block(FILE *f);

#endif
