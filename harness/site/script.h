/* script.h - data files of pages: JavaScript that hands one object to web/site.js, as site("task-s5", {...}). Pages
 * that are opened from a disk may load scripts, and nothing else.
 *
 * Every value ends with a comma, which JavaScript allows after the last one. Key NULL: an element of a list. */
#ifndef LRNN_HARNESS_SITE_SCRIPT_H
#define LRNN_HARNESS_SITE_SCRIPT_H

#include <stdint.h>
#include <stdio.h>

#include "core/label.h"

void put_text(FILE *f, const char *key, const char *text);
void put_int(FILE *f, const char *key, int64_t value);
void put_real(FILE *f, const char *key, double value); /* seven digits; null where it is not finite */
void put_pairs(FILE *f, const char *key, const struct label *pairs);

/* Begin an object or a list, by '{' or '[', and end it. */
void put_open(FILE *f, const char *key, char bracket);
void put_close(FILE *f, char bracket);

#endif
