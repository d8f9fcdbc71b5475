/* run_lines.h - runs in progress as lines for people who watch: two lines a run, no wider than their terminal. */
#ifndef LRNN_HARNESS_POOL_RUN_LINES_H
#define LRNN_HARNESS_POOL_RUN_LINES_H

#include <stdio.h>

#include "harness/store/claim.h"

/* How the lines are looked at. */
struct run_look {
    int width, height; /* columns and lines; 0: no end */
    bool utf8;         /* the curve may be drawn by block characters, else by ASCII */
};

/* Prints the text on one line of at most `width` columns (0: no end), a tilde where it goes on. Control characters
 * become blanks, a byte of no character a question mark. */
void print_cut(FILE *f, int width, const char *text);

/* Whether the environment says that terminals show UTF-8 (LC_ALL, LC_CTYPE or LANG). */
bool run_look_utf8(void);

/* Prints "0123abcd s3 lstm lr 0.001 seed 1, host 123", and below it "  100/1500 loss 1.20 acc 0.53 #=-._ 98k tok/s
 * 12m05s +-40s left", as much as `width` columns hold; the curve is that of the loss, from its least to its largest
 * value. Control characters of names become blanks. A claim whose owner is gone says so. */
void run_lines_print(FILE *f, const struct run_look *look, const char *out, const struct claim_info *c);

#endif
