/* baseline.h - the file of text that a gate compares with: where and by which build it was made, golden traces with
 * reference kernels and with the kernels that a run takes, solve rates of a bank of runs, how much the throughput of
 * one build varies, and the figures of a plan's cells. The first line holds the XXH3-128 of all bytes after it. */
#ifndef LRNN_HARNESS_GATE_BASELINE_H
#define LRNN_HARNESS_GATE_BASELINE_H

#include "harness/gate/expect.h"
#include "harness/gate/trace.h"
#include "harness/gate/verdict.h"
#include "harness/store/machine.h"

enum trace_kernels { TRACE_REFERENCE, TRACE_TAKEN, TRACE_KERNELS };
extern const char *const trace_kernel_names[TRACE_KERNELS]; /* "reference", "taken" */
extern const char *const trace_kernel_flags[TRACE_KERNELS]; /* value of --kernel for them */

struct baseline_trace {
    enum trace_kernels kernels;
    struct trace_row row;
};

/* Bank of a cell: the runs of seeds 1 to GATE_BANK. */
struct baseline_bank {
    char name[TRACE_TEXT]; /* "task model flags" (trace.h) */
    char numerics[NUMERICS_TEXT];
    int n, solved;
    double metric[GATE_BANK]; /* of seed i + 1 */
};

struct baseline_floor {
    char bench[64];
    double aa_p99; /* of expm1(|log(B/A)|) of A/A sittings' medians */
};

/* Figure of a plan's cell (expect.h), of each of its seeds or sittings. */
#define GATE_VALUES 64
struct baseline_figure {
    char cell[TRACE_TEXT], figure[FIGURE_BYTES], numerics[NUMERICS_TEXT];
    int n;
    int64_t seed[GATE_VALUES];
    double value[GATE_VALUES];
};

#define BASELINE_TRACES  512
#define BASELINE_BANKS   8
#define BASELINE_FLOORS  64
#define BASELINE_FIGURES 512

struct baseline {
    char machine_id[17], env_epoch[17], commit[64], real[8], arithmetic[8];
    int n_traces, n_banks, n_floors, n_figures;
    struct baseline_trace traces[BASELINE_TRACES];
    struct baseline_bank banks[BASELINE_BANKS];
    struct baseline_floor floors[BASELINE_FLOORS];
    struct baseline_figure figures[BASELINE_FIGURES];
};

/* Makes an empty baseline of this machine and build. */
void baseline_init(struct baseline *b);

/* Replaces the file, whole or not at all. ST_FAIL with path and reason. */
enum status baseline_write(const struct baseline *b, const char *path, struct error *e);

/* ST_DATA: no such file, cut off, edited, or of another format. */
enum status baseline_read(struct baseline *b, const char *path, struct error *e);

/* Checks that this program on this machine may be compared with it. ST_USAGE: it has another precision; or, without
 * `force`, another machine, another system on this one, or traces or banks of another numerics version. */
enum status baseline_check(const struct baseline *b, const char *path, bool force, struct error *e);

/* Finds the figure of a cell; NULL: the baseline has none. */
const struct baseline_figure *baseline_figure(const struct baseline *b, const char *cell, const char *figure);

/* Gives the 99th percentile of a bench; NAN: the baseline does not say. */
double baseline_aa_p99(const struct baseline *b, const char *bench);

/* Sets the 99th percentile of a bench. */
enum status baseline_set_floor(struct baseline *b, const char *bench, double aa_p99, struct error *e);

#endif
