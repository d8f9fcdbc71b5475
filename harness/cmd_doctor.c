/* cmd_doctor.c - `lrnn doctor`: what the program was built with, what the machine has, and what to do about it. */
#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "harness/cli.h"
#include "harness/files.h"
#include "harness/record.h"
#include "harness/version.h"
#include "kernels/gemm.h"

#define LEAST_DISK   ((double)100e6) /* bytes */
#define LEAST_MEMORY 0.5             /* GiB */

struct doctor_flags {
    char out[OPTION_TEXT];
};

static const struct option flags[] = {
    {"out", OPT_TEXT_FIELD, offsetof(struct doctor_flags, out), "results", 0, 0, NULL, "folder of results to look at", 0},
    {NULL, OPT_INT, 0, NULL, 0, 0, NULL, NULL, 0},
};

/* One line: ok, note (works without it) or BAD (does not), what, and how it is. */
enum verdict { GOOD, NOTE, BAD };
static int n_bad;

static void say(enum verdict verdict, const char *what, const char *format, ...) __attribute__((format(printf, 3, 4)));
