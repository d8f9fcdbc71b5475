/* report.c - see report.h. */
#include "harness/table/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/rows/setting.h"
#include "harness/store/claim.h"

const struct report *const *report_list(void) {
    static const struct report *const list[] = {
#define REPORT(name) &report_##name,
#include "harness/table/reports.def"
#undef REPORT
        NULL};
    return list;
}

enum status report_make(struct sheets *sheets, const struct report *report, const struct report_tables *tables,
                        const struct paper_cells *cells, bool data, const struct sheet_view *view, struct error *e) {
    static const struct sheet_view whole = {NULL, NULL};
    TRY(report->make_plan ? report->make_plan(sheets, cells, data, e) : report->make(sheets, tables, data, e));
    for (int i = 0; i < sheets->n; i++) { /* named by report and caption, since two reports on a task are two tables */
        struct sheet *s = sheets->list[i];
        if (!s->caption || s->name) continue;
        const char *end = strstr(s->caption, ": ");
        sheet_name(s, "%s %.*s", report->name, (int)(end ? (size_t)(end - s->caption) : strlen(s->caption)),
                   s->caption);
    }
    return sheets_view(sheets, view ? view : &whole, e);
}

bool report_has_run(const struct record_set *set, const char *run_id) {
    for (int i = 0; i < set->n; i++)
        if (!strcmp(set->list[i].run.run_id, run_id)) return true;
    return false;
}

/* Says how many runs of the tables' tasks have no row because their process was killed. */
static void note_lost(struct sheets *sheets, const struct report_tables *tables, const struct record_set *set,
                      const char *out) {
    struct claim_info *claims;
    int n, lost = 0;
    if (!sheets->n || claims_list(out, &claims, &n, NULL) != ST_OK) return;
    for (int i = 0; i < n; i++) {
        size_t task = strcspn(claims[i].what, " ");
        bool asked = false;
        for (int k = 0; k < tables->n; k++)
            asked =
                asked || (strlen(tables->list[k].task) == task && !strncmp(claims[i].what, tables->list[k].task, task));
        lost += asked && !claims[i].live && !report_has_run(set, claims[i].run_id);
    }
    free(claims);
    if (lost)
        sheet_note(sheets->list[sheets->n - 1],
                   "%d run%s began, but the process was killed; no number includes %s. lrnn status names %s.", lost,
                   lost == 1 ? "" : "s", lost == 1 ? "it" : "them", lost == 1 ? "it" : "them");
}

enum status report_print(const struct report *report, const struct record_set *set, const struct report_filter *filter,
                         const struct sheet_view *view, const struct sheet_format *format, const char *out,
                         FILE *stream, struct error *e) {
    struct report_tables tables;
    struct sheets sheets = {0};
    TRY(report_tables_make(&tables, set, filter, out, e));
    enum status status = report_make(&sheets, report, &tables, NULL, format->for_programs, view, e);
    if (status == ST_OK && !format->for_programs) note_lost(&sheets, &tables, set, out);
    if (status == ST_OK) status = sheets_write(&sheets, format, stream, e);
    sheets_free(&sheets);
    report_tables_free(&tables);
    return status;
}

/* --- marks -------------------------------------------------------------------------------------------------------- */

void marks_append(struct sheet *s, bool cut_off, bool failed, bool settings) {
    if (cut_off) sheet_append(s, CUT_OFF_MARK);
    if (failed) sheet_append(s, FAILED_MARK);
    if (settings) sheet_append(s, SETTINGS_MARK);
}

void marks_count(struct marks *m, const struct report_row *row) {
    m->settings = m->settings || row->unlike_published;
    if (row->unlike_published) unlike_add(m->unlike, row->unlike);
    if (row->published.settings) unlike_add(m->unlike, "a mean over settings (report --what settings has ours)");
    facts_add(&m->facts, row);
}

void marks_note_facts(struct sheet *s, const struct facts *facts) {
    char text[FACT_TEXT];
    for (int i = 0; facts_sentence(facts, i, text); i++) sheet_note(s, "%s.", text);
}

void marks_note_unlike(struct sheet *s, const char *columns, const char *unlike) {
    sheet_note_on(s, columns, "%s: %s.", SETTINGS_NOTE, *unlike ? unlike : "other settings of the task");
}

void marks_note(struct sheet *s, const struct marks *m) {
    if (m->cut_off) sheet_note(s, "%s.", CUT_OFF_NOTE);
    if (m->failed) sheet_note(s, FAILED_COUNT_NOTE ".", m->failed, m->runs);
    marks_note_facts(s, &m->facts);
    if (m->settings) marks_note_unlike(s, NULL, m->unlike);
}

void note_speeds(struct sheet *s, const char *columns, const char *format, const struct facts *facts) {
    char text[4 * SPEED_PLACE], place[SPEED_PLACE];
    if (!facts->n_speeds) return;
    speed_place(&facts->speed, place, sizeof place);
    snprintf(text, sizeof text, format,
             facts->speeds_differ ? "of several machines, thread counts, precisions or devices, which the footnotes "
                                    "name; beside each other they say nothing of the models"
                                  : place);
    sheet_note_on(s, columns, "%s%s.", text,
                  !facts->speeds_differ && facts->builds_differ ? "; by several builds of the program" : "");
}

void note_own_numbers(struct sheet *s, bool own) {
    if (own) sheet_note(s, "%s.", OWN_NUMBERS_NOTE);
}

void note_more_runs(struct sheet *s, const struct report_row *row) {
    const struct published_value *v = &row->published;
    if (v->best && v->n && v->n < row->n_all) sheet_append(s, " (best of %d, paper: of %d)", row->n_all, v->n);
}

void add_flags_data(struct sheet *s, const struct report_row *row) {
    struct facts facts = {0};
    char flags[FACT_TEXT];
    facts_add(&facts, row);
    facts_shared(&facts, flags);
    sheet_text(s, "%s", flags);
}

const char *published_setting(const struct report_row *row) {
    return !isfinite(row->published.value) ? "" : row->unlike_published ? "other" : "same";
}

static void append_spread(struct sheet *s, const struct published_value *v) {
    if (isfinite(v->spread)) sheet_append(s, " +- %g", v->spread);
}

void published_append(struct sheet *s, const struct published_value *v) {
    char format[PUBLISHED_FORMAT_BYTES], number[64] = "-";
    published_format(v, format);
    if (isfinite(v->value)) snprintf(number, sizeof number, format, v->value);
    sheet_append(s, " / %s", number);
    append_spread(s, v);
}

void published_cell(struct sheet *s, const struct published_value *v) {
    char format[PUBLISHED_FORMAT_BYTES];
    published_format(v, format);
    sheet_real(s, format, v->value);
    append_spread(s, v);
}
