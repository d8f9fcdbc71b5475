/* gate_sheet.c - the gate's result as tables, and as JUnit XML; see gate.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/paragraph.h"
#include "harness/gate/gate.h"
#include "harness/store/files.h"

/* --- tables ------------------------------------------------------------------------------------------------------- */

static bool is_of(const struct gate_row *row, const char *kind) {
    return !strcmp(row->kind, kind);
}

static bool is_accuracy(const struct gate_row *row) {
    return is_of(row, "trace") || is_of(row, "seeds");
}

/* Counts the rows of a kind that have a verdict; for VERDICT_COUNT, the rows that were not compared. */
static int count(const struct gate_result *r, const char *kind, enum verdict verdict) {
    int n = 0;
    for (int i = 0; i < r->n; i++)
        n += is_of(&r->rows[i], kind) && verdict == (r->rows[i].compared ? r->rows[i].verdict : VERDICT_COUNT);
    return n;
}

static void note_chosen(const struct gate_result *r, struct sheet *s) {
    if (*r->chosen) sheet_note(s, "Chosen by who asked: %s.", r->chosen);
}

/* Rows that are the same are a number; each of the others has a line below. */
static void add_accuracy(const struct gate_result *r, struct sheet *s) {
    static const char *const kinds[] = {"trace", "seeds"};
    sheet_caption(s, "Accuracy");
    sheet_name(s, "gate accuracy");
    sheet_column(s, SHEET_LEFT, "what");
    for (int v = 0; v < VERDICT_COUNT; v++)
        if (v != VERDICT_IMPROVED) sheet_column(s, SHEET_RIGHT, "%s", verdict_names[v]);
    sheet_column(s, SHEET_RIGHT, "not compared");
    for (int k = 0; k < 2; k++) {
        sheet_row(s);
        sheet_text(s, "%s", k == 0 ? "golden traces" : "cells with many seeds");
        for (int v = 0; v < VERDICT_COUNT; v++)
            if (v != VERDICT_IMPROVED) sheet_int(s, count(r, kinds[k], (enum verdict)v));
        sheet_int(s, count(r, kinds[k], VERDICT_COUNT));
    }
    for (int i = 0; i < r->n; i++) {
        const struct gate_row *row = &r->rows[i];
        if (!is_accuracy(row) || (row->compared && row->verdict == VERDICT_SAME && is_of(row, "trace"))) continue;
        sheet_note(s, "%s: %s; %s", row->name, row->compared ? verdict_names[row->verdict] : "not compared",
                   row->detail);
    }
    note_chosen(r, s);
}

static void add_change(struct sheet *s, double log_ratio) {
    sheet_real(s, "%+.2f", 100 * expm1(log_ratio));
}

static void add_speed_row(const struct gate_row *row, struct sheet *s) {
    const struct compare_row *c = &row->speed;
    sheet_row(s);
    sheet_text(s, "%s", row->name);
    if (row->detail[0]) sheet_footnote(s, "%s", row->detail);
    sheet_real(s, "%.4f", c->measured ? 1e3 * c->a : NAN);
    sheet_real(s, "%.4f", c->measured ? 1e3 * c->b : NAN);
    add_change(s, c->measured ? c->pairs.median : NAN);
    add_change(s, c->measured ? c->pairs.interval.low : NAN);
    add_change(s, c->measured ? c->pairs.interval.high : NAN);
    sheet_real(s, "%.2f", 100 * c->floor);
    sheet_int(s, c->measured ? c->pairs.n : -1);
    sheet_real(s, "%.0f", 100 * c->foreign);
    sheet_text(s, "%s", row->compared ? verdict_names[row->verdict] : "not compared");
    if (row->compared && row->verdict == VERDICT_REGRESSED) sheet_strong(s);
}

/* True if many rows got slower and none got faster: the cause is more likely the sitting, or the builds, than the
 * change. */
static bool is_suspect(const struct gate_result *r) {
    int slower = 0, all = 0;
    for (int i = 0; i < r->n; i++) {
        all += r->rows[i].speed.measured;
        slower += r->rows[i].speed.measured && r->rows[i].verdict == VERDICT_REGRESSED;
    }
    return slower >= 3 && 2 * slower > all && count(r, "throughput", VERDICT_IMPROVED) == 0;
}

static void add_throughput(const struct gate_result *r, struct sheet *s) {
    sheet_caption(s, "Throughput: a call on one core");
    sheet_name(s, "gate throughput");
    sheet_columns(s, "bench|>baseline ms|>here ms|>change %|>99 % from|>to|>floor %|>pairs|>load %|verdict");
    for (int i = 0; i < r->n; i++)
        if (is_of(&r->rows[i], "throughput")) add_speed_row(&r->rows[i], s);
    if (is_suspect(r))
        sheet_note(s,
                   "most benches are slower and none is faster: look at the machine and at how both were built first");
    sheet_note(s,
               "A step is timed with kernels on one thread; a second one makes its data. No evaluation is timed%s%s%s.",
               *r->left_out ? ", nor are " : "", r->left_out, *r->left_out ? " (--benches '*' times all)" : "");
    note_chosen(r, s);
}

/* A row for each expectation and cell. The figure is a ratio where two programs were timed in turns. */
static void add_expectations(const struct gate_result *r, struct sheet *s) {
    sheet_caption(s, "What the plan expects");
    sheet_name(s, "gate plan");
    sheet_columns(s, "cell|figure|>value|>95 % from|>to|>bound|verdict|why");
    for (const struct gate_row *row = r->rows; row < r->rows + r->n; row++) {
        if (!is_of(row, "expect")) continue;
        sheet_row(s);
        sheet_text(s, "%s", row->name);
        sheet_text(s, "%s%s", row->figure, row->speed.measured ? ", ratio" : "");
        if (row->speed.measured) sheet_footnote(s, "its interval is one of 99 %%");
        sheet_real(s, "%.6g", row->value);
        sheet_real(s, "%.6g", row->low);
        sheet_real(s, "%.6g", row->high);
        if (isfinite(row->bound))
            sheet_text(s, "%s %.6g", sense_names[row->sense], row->bound);
        else
            sheet_text(s, "-");
        sheet_text(s, "%s", row->compared ? verdict_names[row->verdict] : "not compared");
        if (row->compared && row->verdict == VERDICT_REGRESSED) sheet_strong(s);
        sheet_text(s, "%s", row->detail);
    }
    note_chosen(r, s);
}

/* A row a comparison for programs: the figure, its interval and its bound; of a trace all is in the detail. */
static void add_data(const struct gate_result *r, struct sheet *s) {
    sheet_columns(s,
                  "kind|name|verdict|figure|value|low|high|sense|bound|baseline_ms|here_ms|pairs|load_percent|detail");
    for (const struct gate_row *row = r->rows; row < r->rows + r->n; row++) {
        const struct compare_row *c = &row->speed;
        const bool judged = *row->figure;
        sheet_row(s);
        sheet_text(s, "%s", row->kind);
        sheet_text(s, "%s", row->name);
        sheet_text(s, "%s", row->compared ? verdict_names[row->verdict] : "not compared");
        sheet_text(s, "%s", row->figure);
        sheet_real(s, "%g", judged ? row->value : NAN);
        sheet_real(s, "%g", judged ? row->low : NAN);
        sheet_real(s, "%g", judged ? row->high : NAN);
        sheet_text(s, "%s", judged ? sense_names[row->sense] : "");
        sheet_real(s, "%g", judged ? row->bound : NAN);
        sheet_real(s, "%g", c->measured ? 1e3 * c->a : NAN);
        sheet_real(s, "%g", c->measured ? 1e3 * c->b : NAN);
        sheet_int(s, c->measured ? c->pairs.n : -1);
        sheet_real(s, "%g", c->measured ? 100 * c->foreign : NAN);
        sheet_text(s, "%s", row->detail);
    }
}

enum status gate_print(const struct gate_result *r, const struct sheet_format *format, FILE *f, struct error *e) {
    struct sheets sheets = {0};
    bool accuracy = false, throughput = false, expected = false;
    for (int i = 0; i < r->n; i++) {
        throughput |= is_of(&r->rows[i], "throughput");
        accuracy |= is_accuracy(&r->rows[i]);
        expected |= is_of(&r->rows[i], "expect");
    }
    if (format->for_programs) add_data(r, sheets_add(&sheets));
    if (accuracy && !format->for_programs) add_accuracy(r, sheets_add(&sheets));
    if (throughput && !format->for_programs) add_throughput(r, sheets_add(&sheets));
    if (expected && !format->for_programs) add_expectations(r, sheets_add(&sheets));
    enum status status = sheets_write(&sheets, format, f, e);
    sheets_free(&sheets);
    return status;
}

enum status gate_summary(const struct gate_result *r, enum verdict worst, FILE *f, struct error *e) {
    static const char *const told[] = {[VERDICT_REGRESSED] = "regressed", [VERDICT_INCONCLUSIVE] = "undecided"};
    int all = 0, n[VERDICT_COUNT] = {0};
    for (int i = 0; i < r->n; i++) {
        all += r->rows[i].compared;
        if (r->rows[i].compared) n[r->rows[i].verdict]++;
    }
    fprintf(f, "## Gate: %s\n\n%d of %d comparisons are as they should be", verdict_names[worst],
            n[VERDICT_SAME] + n[VERDICT_IMPROVED], all);
    for (int v = VERDICT_INCONCLUSIVE; v <= VERDICT_REGRESSED; v++)
        if (n[v]) fprintf(f, ", %d %s", n[v], told[v]);
    fputs(".\n\n", f);
    return gate_print(r, &format_md, f, e);
}

/* --- JUnit -------------------------------------------------------------------------------------------------------- */

static void print_attribute(FILE *f, const char *name, const char *text) {
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    fprintf(f, " %s=\"", name);
    for (const char *p = text; *p;) {
        const char *at = strchr("&<>\"", *p);
        int control = control_bytes(p);
        if (at)
            fputs(names[at - "&<>\""], f);
        else
            fputc(control ? ' ' : *p, f);
        p += control ? control : 1;
    }
    fputc('"', f);
}

static bool is_failed(const struct gate_row *row) {
    return row->compared && row->verdict == VERDICT_REGRESSED;
}

static bool is_open(const struct gate_row *row) {
    return !row->compared || row->verdict == VERDICT_INCONCLUSIVE;
}

/* The figure, its interval and its bound, of rows that pass as well. */
static void print_properties(FILE *f, const struct gate_row *row) {
    const double numbers[] = {row->value, row->low, row->high, row->bound};
    static const char *const names[] = {"value", "low", "high", "bound"};
    fputs("<properties><property name=\"figure\"", f);
    print_attribute(f, "value", row->figure);
    fprintf(f, "/><property name=\"sense\"");
    print_attribute(f, "value", sense_names[row->sense]);
    fputs("/>", f);
    for (int i = 0; i < 4; i++)
        if (isfinite(numbers[i])) fprintf(f, "<property name=\"%s\" value=\"%.9g\"/>", names[i], numbers[i]);
    fputs("</properties>", f);
}

enum status gate_junit(const struct gate_result *r, const char *path, struct error *e) {
    struct printed xml;
    int failures = 0, skipped = 0;
    double seconds = 0;
    TRY(printed_begin(&xml, path, e));
    FILE *f = xml.f;
    for (int i = 0; i < r->n; i++) {
        failures += is_failed(&r->rows[i]);
        skipped += is_open(&r->rows[i]);
        seconds += r->rows[i].seconds;
    }
    char name[sizeof r->chosen + 32];
    snprintf(name, sizeof name, "lrnn gate%s%s%s", *r->chosen ? " (" : "", r->chosen, *r->chosen ? ")" : "");
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite", f);
    print_attribute(f, "name", name);
    fprintf(f, " tests=\"%d\" failures=\"%d\" errors=\"0\" skipped=\"%d\" time=\"%.3f\">\n", r->n, failures, skipped,
            seconds);
    for (const struct gate_row *row = r->rows; row < r->rows + r->n; row++) {
        bool failed = is_failed(row);
        fputs("  <testcase", f);
        print_attribute(f, "classname", row->kind);
        print_attribute(f, "name", row->name);
        fprintf(f, " time=\"%.3f\">", row->seconds);
        if (*row->figure) print_properties(f, row);
        if (failed || is_open(row)) {
            char message[1024];
            int used = snprintf(message, sizeof message, "%s%s%s",
                                row->compared ? verdict_names[row->verdict] : "not compared",
                                row->detail[0] ? ": " : "", row->detail);
            if (*row->figure && isfinite(row->value)) /* the figure and its bound */
                snprintf(message + used, sizeof message - (size_t)used,
                         ": %s %.6g, interval %.6g to %.6g, bound %s %.6g", row->figure, row->value, row->low,
                         row->high, sense_names[row->sense], row->bound);
            fputs(failed ? "<failure" : "<skipped", f);
            print_attribute(f, "message", message);
            fputs("/>", f);
        }
        fputs("</testcase>\n", f);
    }
    fprintf(f, "</testsuite>\n");
    return printed_write(&xml, ST_OK, path, e);
}
