/* paragraph.h - text for people, as wide as their terminal. */
#ifndef LRNN_CORE_PARAGRAPH_H
#define LRNN_CORE_PARAGRAPH_H

#include <stdbool.h>
#include <stdio.h>

/* Columns of the stream's terminal; 0: it is none, and what is written is read by programs as well, a line a thing. */
int terminal_width(FILE *f);

/* Whether the stream is a terminal that knows escape codes (TERM), so that a line can be written over; and whether what
 * is bold may be written bold there, which a reader takes away by NO_COLOR, as no-color.org has it. */
bool terminal_has_codes(FILE *f);
bool terminal_has_bold(FILE *f);

/* What --no-color asks for, of this process and those it starts: NO_COLOR. */
void terminal_be_plain(void);

/* Columns that UTF-8 text takes: continuation bytes take none. */
int text_width(const char *text);

/* Writes text of which `column` columns of the line are taken already. Words that would pass `width` columns go on in
 * the next line behind `indent` spaces, unless they are the first there; width 0: all in one line. Control characters
 * become spaces. No newline at the end. */
void paragraph_print(FILE *f, int width, int column, int indent, const char *text);

#endif
