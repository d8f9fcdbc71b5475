/* text.h - text of tables as the formats for people want it. */
#ifndef LRNN_HARNESS_REPORT_TEXT_H
#define LRNN_HARNESS_REPORT_TEXT_H

#include <stdbool.h>
#include <stdio.h>

/* The text with what the format would take for its own commands escaped. */
void print_plain(FILE *f, const char *text);
void print_md(FILE *f, const char *text);
void print_latex(FILE *f, const char *text);

/* Columns it takes on a terminal: UTF-8 continuation bytes take none. */
int width_of(const char *text);
void print_padded(FILE *f, const char *text, int width, bool left, const char *separator);

#endif
