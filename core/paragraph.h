/* paragraph.h - text for people, as wide as their terminal. */
#ifndef LRNN_CORE_PARAGRAPH_H
#define LRNN_CORE_PARAGRAPH_H

#include <stdbool.h>
#include <stdio.h>

/* Columns of the stream's terminal; 0: it is no terminal, so programs read the output, one item a line. */
int terminal_width(FILE *f);

/* Whether the stream is a terminal that knows escape codes (TERM), so that a line can be written over; and whether bold
 * text may be used there, which NO_COLOR forbids (no-color.org). */
bool terminal_has_codes(FILE *f);
bool terminal_has_bold(FILE *f);

/* Columns that UTF-8 text takes: continuation bytes take none. */
int text_width(const char *text);

/* Writes text on a line that has `column` columns already. A word that would pass `width` columns goes to the next line
 * after `indent` spaces, unless it is the first word there; width 0: all in one line. Control characters become spaces.
 * No newline at the end. */
void paragraph_print(FILE *f, int width, int column, int indent, const char *text);

#endif
