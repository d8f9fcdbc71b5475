/* paragraph.h - text for people, which is wrapped to the width of their terminal. */
#ifndef LRNN_CORE_PARAGRAPH_H
#define LRNN_CORE_PARAGRAPH_H

#include <stdbool.h>
#include <stdio.h>

/* Returns the columns of the stream's terminal. 0: it is no terminal; then programs read the output, and each item
 * should be on one line. */
int terminal_width(FILE *f);
int terminal_height(FILE *f); /* its lines; 0: it is no terminal */

/* terminal_has_codes: whether the stream is a terminal that knows escape codes (TERM), so that a line can be
 * overwritten. terminal_has_bold: whether bold text may be used there; NO_COLOR forbids it (no-color.org). */
bool terminal_has_codes(FILE *f);
bool terminal_has_bold(FILE *f);

/* Returns how many columns a UTF-8 text takes. Continuation bytes take none. */
int text_width(const char *text);

/* Returns the bytes of the character at the beginning of the text if a terminal would obey it instead of showing it: a
 * control character (also U+0080 to U+009F), an end of a line or paragraph (U+2028, U+2029), or a bidi mark, which
 * changes the direction of text (Unicode's Bidi_Control). 0: any other character, or the end of the text. */
int control_bytes(const char *text);

/* Copies the text to `out` with each control character (control_bytes) as '?', and cuts it if it is longer than `size`.
 * `out` may be `text`. Returns `out`. */
const char *text_shown(const char *text, char *out, size_t size);

/* Writes text on a line that already has `column` columns. A word that would pass `width` columns goes to the next
 * line, after `indent` spaces, unless it is the first word of its line. If width is 0, everything is on one line.
 * Control characters become spaces. It writes no newline at the end. */
void paragraph_print(FILE *f, int width, int column, int indent, const char *text);

#endif
