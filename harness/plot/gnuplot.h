/* gnuplot.h - draws a figure by gnuplot, started without a shell.
 *
 * A complete script is written beside the output: settings, plots/common.gp, plots/KIND.gp, and commands that repeat
 * the figure in the other formats. Names are passed only as single-quoted strings drawn without enhanced text, numbers
 * in a data file. */
#ifndef LRNN_HARNESS_PLOT_GNUPLOT_H
#define LRNN_HARNESS_PLOT_GNUPLOT_H

#include <stdio.h>

#include "core/status.h"

enum figure_format { FIGURE_SVG = 1, FIGURE_PNG = 2, FIGURE_PDF = 4 }; /* bits of `formats` */

struct figure {
    const char *stem; /* file name without its ending */
    const char *kind; /* KIND of plots/KIND.gp */
    int height;       /* in points; the width is 1200 */
    unsigned formats; /* 0: SVG and PNG */
    FILE *told;       /* gets the path of each written file, one per line; may be NULL */
};

#define FIGURE_WIDE 40 /* a name of so many characters takes about a third of the width */

/* Returns the height for a number of names in a column beside the plot, or below it; longest: characters of the longest
 * name. */
int figure_height(int names, int longest);

/* Prints settings for plots: the longest name, and whether names are below. */
void gnuplot_longest(FILE *f, int longest);

/* Writes TO/STEM.svg and so on, and nothing else. Makes the folder if needed, and removes it again if no figure is
 * drawn. `print` writes the settings, which are lines of a script, and the numbers of the data file. ST_FAIL: gnuplot
 * is missing (says what to install) or fails (with its message); ST_MEMORY. */
enum status gnuplot_draw(const struct figure *figure, void (*print)(FILE *settings, FILE *numbers, const void *context),
                         const void *context, const char *to, struct error *e);

/* Checks that gnuplot is installed. ST_FAIL says what to install. */
enum status gnuplot_find(struct error *e);

/* Checks that gnuplot_draw would not replace files of the user: ST_USAGE as own_file_check. Only stem and formats of
 * the figure are read. */
enum status gnuplot_check(const struct figure *figure, const char *to, struct error *e);

/* Parses "svg,png" to bits. ST_USAGE. */
enum status figure_formats_parse(const char *text, unsigned *formats, struct error *e);

/* Print settings: a line name = 'text', or name[index] = 'text', in which gnuplot expands nothing; a number, NaN if not
 * finite. */
void gnuplot_setting(FILE *f, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
void gnuplot_element(FILE *f, const char *name, int index, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void gnuplot_number(FILE *f, double value, const char *end);

/* gnuplot_row prints a line of n numbers; gnuplot_end_block ends a block (gnuplot's term) of lines. */
void gnuplot_row(FILE *f, int n, const double *values);
void gnuplot_end_block(FILE *f);

#endif
