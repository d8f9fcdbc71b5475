/* html.h - pages that need nothing from elsewhere: dark where the reader's system is, legible on a telephone. */
#ifndef LRNN_HARNESS_TABLE_HTML_H
#define LRNN_HARNESS_TABLE_HTML_H

#include <stdio.h>

/* Print what comes before a page's body, and after it. `title` is text; <meta name="generator"> says `generator`, by
 * which a page of ours is known. */
void html_begin(FILE *f, const char *generator, const char *title);
void html_end(FILE *f);

/* Text as it stands, which no character of it can leave: on one line; with its lines, for <pre>. What is not UTF-8 is
 * U+FFFD. */
void html_text(FILE *f, const char *text);
void html_lines(FILE *f, const char *text);

#endif
