/* run_lines.h - prints runs in progress, two lines per run, no wider than the terminal. */
#ifndef LRNN_HARNESS_POOL_RUN_LINES_H
#define LRNN_HARNESS_POOL_RUN_LINES_H

#include <stdio.h>

#include "harness/store/claim.h"

/* The display of runs. */
struct run_look {
    int width, height; /* columns and lines; 0: no limit */
    bool utf8;         /* the curve may have block characters, else only ASCII */
};

/* Prints the text on one line of at most `width` columns (0: no limit). A tilde at the end shows that it was shortened.
 * Control characters become blanks, invalid bytes question marks. */
void print_cut(FILE *f, int width, const char *text);

/* Whether the environment says that terminals show UTF-8 (LC_ALL, LC_CTYPE or LANG). */
bool run_look_utf8(void);

/* Prints "0123abcd s3 lstm lr 0.001 seed 1, host 123", and below it "  100/1500 loss 1.20 acc 0.53 #=-._ 98k tok/s
 * 12m05s +-40s left", as much as fits into `width` columns. The curve shows the loss, from its least to its largest
 * value. Control characters in names become blanks. If the process that claimed the run is gone, the line says so. */
void run_lines_print(FILE *f, const struct run_look *look, const char *out, const struct claim_info *c);

#endif
