/* baseline.c - see baseline.h. */
#include "harness/gate/baseline.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/store/files.h"
#include "harness/store/version.h"

#define HEAD       "lrnn-gate-baseline 1 "
#define HEAD_BYTES (sizeof HEAD - 1 + HASH_HEX) /* the line feed stands for the terminator */
#define MOST_BYTES ((size_t)16 << 20)

const char *const trace_kernel_names[TRACE_KERNELS] = {"reference", "taken"};
const char *const trace_kernel_flags[TRACE_KERNELS] = {"reference", ""};

void baseline_init(struct baseline *b) {
    struct machine m;
    machine_read(&m);
    *b = (struct baseline){0};
    snprintf(b->machine_id, sizeof b->machine_id, "%s", m.id);
    snprintf(b->env_epoch, sizeof b->env_epoch, "%s", m.env_epoch);
    snprintf(b->commit, sizeof b->commit, "%s", build_info()->commit);
    snprintf(b->real, sizeof b->real, "%s", REAL_NAME);
    snprintf(b->arithmetic, sizeof b->arithmetic, "%s", trace_arithmetic());
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void print_body(FILE *f, const struct baseline *b) {
    char line[TRACE_LINE], number[32];
    fprintf(f, "machine\t%s\t%s\n", b->machine_id, b->env_epoch);
    fprintf(f, "build\t%s\t%s\t%s\n", b->commit, b->real, b->arithmetic);
    for (int i = 0; i < b->n_traces; i++) {
        trace_format(&b->traces[i].row, line);
        fprintf(f, "trace\t%s\t%s\n", trace_kernel_names[b->traces[i].kernels], line);
    }
    for (const struct baseline_bank *bank = b->banks; bank < b->banks + b->n_banks; bank++) {
        fprintf(f, "bank\t%s\t%s\t%d\t%d", bank->name, bank->numerics, bank->n, bank->solved);
        for (int i = 0; i < bank->n; i++) {
            format_double(bank->metric[i], number, sizeof number);
            fprintf(f, "\t%s", number);
        }
        fputc('\n', f);
    }
    for (const struct baseline_figure *x = b->figures; x < b->figures + b->n_figures; x++) {
        fprintf(f, "figure\t%s\t%s\t%s\t%d", x->cell, x->figure, x->numerics, x->n);
        for (int i = 0; i < x->n; i++) {
            format_double(x->value[i], number, sizeof number);
            fprintf(f, "\t%" PRId64 "\t%s", x->seed[i], number);
        }
        fputc('\n', f);
    }
    for (int i = 0; i < b->n_floors; i++) {
        format_double(b->floors[i].aa_p99, number, sizeof number);
        fprintf(f, "floor\t%s\t%s\n", b->floors[i].bench, number);
    }
}

enum status baseline_write(const struct baseline *b, const char *path, struct error *e) {
    char hex[HASH_HEX];
    struct printed p;
    TRY(printed_begin(&p, path, e));
    fprintf(p.f, "%*s\n", (int)HEAD_BYTES - 1, "");
    print_body(p.f, b);
    TRY(printed_end(&p, ST_OK, path, e));
    record_hash_bytes(p.text + HEAD_BYTES, p.size - HEAD_BYTES, hex);
    memcpy(p.text, HEAD, sizeof HEAD - 1);
    memcpy(p.text + sizeof HEAD - 1, hex, HASH_HEX - 1);
    enum status status = write_file_atomic(path, p.text, p.size, e);
    free(p.text);
    return status;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool read_trace(struct baseline *b, const char *text) {
    size_t n = strcspn(text, "\t");
    struct baseline_trace *t = &b->traces[b->n_traces];
    if (b->n_traces == BASELINE_TRACES || !text[n] || !trace_parse(text + n + 1, &t->row)) return false;
    int k = 0;
    while (k < TRACE_KERNELS && (strlen(trace_kernel_names[k]) != n || strncmp(text, trace_kernel_names[k], n) != 0))
        k++;
    t->kernels = (enum trace_kernels)k;
    b->n_traces++;
    return k < TRACE_KERNELS;
}

static bool read_bank(struct baseline *b, const char *text) {
    struct baseline_bank *bank = &b->banks[b->n_banks];
    int end = 0;
    if (b->n_banks == BASELINE_BANKS) return false;
    if (sscanf(text, "%399[^\t]\t%95[^\t]\t%d\t%d%n", bank->name, bank->numerics, &bank->n, &bank->solved, &end) != 4)
        return false;
    if (bank->n < 1 || bank->n > GATE_BANK || bank->solved < 0 || bank->solved > bank->n) return false;
    text += end;
    for (int i = 0; i < bank->n; i++, text += end)
        if (sscanf(text, "\t%lf%n", &bank->metric[i], &end) != 1) return false;
    b->n_banks++;
    return *text == 0;
}

static bool read_figure(struct baseline *b, const char *text) {
    struct baseline_figure *x = &b->figures[b->n_figures];
    int end = 0;
    if (b->n_figures == BASELINE_FIGURES ||
        sscanf(text, "%399[^\t]\t%47[^\t]\t%95[^\t]\t%d%n", x->cell, x->figure, x->numerics, &x->n, &end) != 4 ||
        x->n < 1 || x->n > GATE_VALUES)
        return false;
    text += end;
    for (int i = 0; i < x->n; i++, text += end)
        if (sscanf(text, "\t%" SCNd64 "\t%lf%n", &x->seed[i], &x->value[i], &end) != 2) return false;
    b->n_figures++;
    return *text == 0;
}

static bool read_line(struct baseline *b, const char *line) {
    size_t n = strcspn(line, "\t");
    const char *rest = line + n + (line[n] != 0);
    if (!strncmp(line, "machine\t", n + 1)) return sscanf(rest, "%16s\t%16s", b->machine_id, b->env_epoch) == 2;
    if (!strncmp(line, "build\t", n + 1)) return sscanf(rest, "%63s\t%7s\t%7s", b->commit, b->real, b->arithmetic) == 3;
    if (!strncmp(line, "trace\t", n + 1)) return read_trace(b, rest);
    if (!strncmp(line, "bank\t", n + 1)) return read_bank(b, rest);
    if (!strncmp(line, "figure\t", n + 1)) return read_figure(b, rest);
    if (strncmp(line, "floor\t", n + 1) != 0 || b->n_floors == BASELINE_FLOORS) return false;
    struct baseline_floor *f = &b->floors[b->n_floors++];
    return sscanf(rest, "%63[^\t]\t%lf", f->bench, &f->aa_p99) == 2 && isfinite(f->aa_p99) && f->aa_p99 >= 0;
}

/* Reads the whole text of a file; its first line holds the hash of the others. */
static enum status read_text(struct baseline *b, char *text, size_t size, const char *path, struct error *e) {
    char hex[HASH_HEX], *rest = NULL;
    int number = 1;
    if (size < HEAD_BYTES || memcmp(text, HEAD, sizeof HEAD - 1) != 0 || text[HEAD_BYTES - 1] != '\n')
        return fail(e, ST_DATA,
                    "%s is no baseline of a gate, or is cut off in its first line, \"" HEAD
                    "HASH\"; `lrnn gate --write %s` makes one, and `lrnn gate PLAN --update` that of a plan",
                    path, path);
    record_hash_bytes(text + HEAD_BYTES, size - HEAD_BYTES, hex);
    if (memcmp(text + sizeof HEAD - 1, hex, HASH_HEX - 1) != 0)
        return fail(e, ST_DATA,
                    "the baseline %s was cut off or edited: what it holds has the hash %s, its first line says %.32s; "
                    "`lrnn gate --write %s` makes a new one, and `lrnn gate PLAN --update` that of a plan",
                    path, hex, text + sizeof HEAD - 1, path);
    for (char *line = strtok_r(text + HEAD_BYTES, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        number++;
        if (!read_line(b, line))
            return fail(e, ST_DATA, "%s: line %d is no line of a baseline: '%.100s'", path, number, line);
    }
    return *b->machine_id && *b->real ? ST_OK : fail(e, ST_DATA, "%s does not say which build made it", path);
}

enum status baseline_read(struct baseline *b, const char *path, struct error *e) {
    char *text = NULL;
    size_t size;
    *b = (struct baseline){0};
    TRY(file_read(path, MOST_BYTES, &text, &size, e));
    enum status status = read_text(b, text, size, path, e);
    free(text);
    return status;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

/* ST_USAGE: a trace or a bank has another numerics version in this program. One that it lacks is passed over. */
static enum status check_numerics(const struct baseline *b, const char *path, struct error *e) {
    for (int i = 0; i < b->n_traces + b->n_banks; i++) {
        const struct baseline_trace *trace = i < b->n_traces ? &b->traces[i] : NULL;
        const struct baseline_bank *bank = trace ? NULL : &b->banks[i - b->n_traces];
        const char *name = trace ? trace->row.name : bank->name, *then = trace ? trace->row.numerics : bank->numerics;
        char now[NUMERICS_TEXT] = "";
        struct trace t;
        if (bank)
            TRY(seeds_numerics(name, now, e));
        else if (trace_find(name, &t))
            TRY(trace_numerics(&t, trace_kernel_flags[trace->kernels], now, e));
        if (*now && strcmp(now, then) != 0)
            return fail(e, ST_USAGE,
                        "the baseline %s, of commit %.12s, is of other numerics: %s has version %s there and %s here; "
                        "--force compares the others",
                        path, b->commit, name, then, now);
    }
    return ST_OK;
}

enum status baseline_check(const struct baseline *b, const char *path, bool force, struct error *e) {
    struct machine m;
    machine_read(&m);
    if (strcmp(b->real, REAL_NAME) != 0 || strcmp(b->arithmetic, trace_arithmetic()) != 0)
        return fail(
            e, ST_USAGE,
            "the baseline %s, of commit %.12s, is of %s with %s arithmetic, this program computes in %s with %s", path,
            b->commit, b->real, b->arithmetic, REAL_NAME, trace_arithmetic());
    if (force) return ST_OK;
    if (strcmp(b->machine_id, m.id) != 0)
        return fail(e, ST_USAGE, "the baseline %s is of machine %s, this is %s; --force compares them all the same",
                    path, b->machine_id, m.id);
    if (strcmp(b->env_epoch, m.env_epoch) != 0)
        return fail(e, ST_USAGE,
                    "the baseline %s is of this machine with another system or library (epoch %s, now %s); --force "
                    "compares them all the same",
                    path, b->env_epoch, m.env_epoch);
    return check_numerics(b, path, e);
}

const struct baseline_figure *baseline_figure(const struct baseline *b, const char *cell, const char *figure) {
    for (const struct baseline_figure *x = b->figures; x < b->figures + b->n_figures; x++)
        if (!strcmp(x->cell, cell) && !strcmp(x->figure, figure)) return x;
    return NULL;
}

double baseline_aa_p99(const struct baseline *b, const char *bench) {
    for (int i = 0; i < b->n_floors; i++)
        if (!strcmp(b->floors[i].bench, bench)) return b->floors[i].aa_p99;
    return NAN;
}

enum status baseline_set_floor(struct baseline *b, const char *bench, double aa_p99, struct error *e) {
    int i = 0;
    while (i < b->n_floors && strcmp(b->floors[i].bench, bench) != 0) i++;
    if (i == BASELINE_FLOORS) return fail(e, ST_FAIL, "a baseline has at most %d benches", BASELINE_FLOORS);
    if (i == b->n_floors) b->n_floors++;
    snprintf(b->floors[i].bench, sizeof b->floors[i].bench, "%s", bench);
    b->floors[i].aa_p99 = aa_p99;
    return ST_OK;
}
