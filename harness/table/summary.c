/* summary.c - see summary.h. */
#include "harness/table/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/store/files.h"
#include "harness/store/schema.h"
#include "harness/table/report.h"

/* Columns of runs.csv in which all runs of a row agree. */
static const char *const columns_of_runs[] = {"task",         "task_version", "profile",   "layers",    "d_model",
                                              "n_layers",     "backbone",     "mlp",       "norm",      "n_train",
                                              "len_train",    "len_test",     "optimizer", "schedule",  "warmup_steps",
                                              "weight_decay", "beta1",        "beta2",     "grad_clip", "batch",
                                              "max_steps",    "dtype",        "backend",   "numerics",  NULL};

/* solved: by every seed at the chosen rate; partly: by some; unsolved: by none; failed: no run ended well. */
static const char *verdict(const struct report_row *row) {
    if (row->n_failed == row->n) return "failed";
    return row->solved == row->n ? "solved" : row->solved > 0 ? "partly" : "unsolved";
}

static void add_field(struct sheet *s, const struct field *field, const void *object) {
    const void *value = (const char *)object + field->offset;
    switch (field->type) {
    case FIELD_INT:
        sheet_int(s, *(const int64_t *)value);
        break;
    case FIELD_U64:
        sheet_text(s, "%llu", (unsigned long long)*(const uint64_t *)value);
        break;
    case FIELD_REAL:
        sheet_real(s, "%g", *(const double *)value);
        break;
    case FIELD_TEXT:
        sheet_text(s, "%s", (const char *)value);
        break;
    case FIELD_NAME:
        sheet_text(s, "%s", field->names[*(const int64_t *)value]);
        break;
    case FIELD_SCHEMA:
        sheet_int(s, RECORD_SCHEMA);
        break;
    }
}

static void add_row(struct sheet *s, const struct report_row *row, const struct report_tables *tables) {
    sheet_row(s);
    sheet_int(s, RECORD_SCHEMA);
    sheet_text(s, "%s", row->chosen[0]->run.cell_id);
    sheet_text(s, "%s", row->run->model);
    for (int i = 0; columns_of_runs[i]; i++) {
        if (!strcmp(columns_of_runs[i], "profile"))
            sheet_text(s, "%s", row->profile); /* the table's profile, since runs of a row may have several */
        else
            add_field(s, table_field(&runs_table, columns_of_runs[i]), row->run);
    }
    sheet_text(s, "%s", protocol_of(tables->protocol)->name);
    sheet_int(s, row->n);
    sheet_int(s, row->n_failed);
    sheet_real(s, "%g", row->mean);
    sheet_real(s, "%g", row->interval.low);
    sheet_real(s, "%g", row->interval.high);
    sheet_text(s, "%s", interval_kind_name(row->interval.kind));
    sheet_real(s, "%g", row->median);
    sheet_real(s, "%g", row->iqm);
    sheet_real(s, "%g", row->best);
    sheet_int(s, row->solved);
    sheet_int(s, row->n);
    sheet_real(s, "%g", row->solve_rate.low);
    sheet_real(s, "%g", row->solve_rate.high);
    sheet_real(s, "%g", row->lr);
    sheet_real(s, "%g", row->published.value);
    sheet_real(s, "%g", row->delta);
    sheet_text(s, "%s", verdict(row));
    sheet_int(s, row->n_all);
    sheet_int(s, row->n_failed_all);
    sheet_real(s, "%g", row->seq_acc);
    sheet_int(s, row->run->params);
    sheet_int(s, row->run->state_floats);
    sheet_real(s, "%g", row->tok_per_s);
    sheet_real(s, "%g", run_chance(row->run));
    sheet_text(s, "%s", row->id);
    sheet_text(s, "%s", row->label);
    sheet_int(s, row->n_cut);
    sheet_int(s, row->n_cut_all);
    sheet_real(s, "%g", row->estimate);
    sheet_text(s, "%s", published_setting(row));
    sheet_int(s, isfinite(row->tok_per_s) ? !row->disturbed : -1);
    sheet_int(s, row->confirm);
    add_flags_data(s, row);
    sheet_text(s, "%s", row->unlike);
}

void summary_make(struct sheets *sheets, const struct report_tables *tables) {
    struct sheet *s = sheets_add(sheets);
    sheet_columns(s, "schema|cell_id|model");
    for (int i = 0; columns_of_runs[i]; i++) sheet_columns(s, columns_of_runs[i]);
    sheet_columns(s, "protocol|n|n_failed|mean|ci_lo|ci_hi|ci_kind|median|iqm|best|solve_k|solve_n|solve_lo|solve_hi|"
                     "lr_chosen|published|delta|verdict|n_grid|n_failed_grid|seq_acc|params|state_floats|tok_per_s|"
                     "chance|row_id|label|n_cut_off|n_cut_off_grid|estimate|published_setting|speed_quiet|"
                     "confirm_seeds|flags|published_differs");
    for (int i = 0; i < tables->n; i++)
        for (int k = 0; k < tables->list[i].n_rows; k++) add_row(s, &tables->list[i].rows[k], tables);
}

static enum status summary_path(const char *to, char path[PATH_BYTES], struct error *e) {
    TRY(path_format(path, PATH_BYTES, e, "%s/summary.csv", to));
    return own_file_check(path, e);
}

enum status summary_check(const char *to, struct error *e) {
    char path[PATH_BYTES];
    return summary_path(to, path, e);
}

enum status summary_format(const struct record_set *set, const struct report_filter *filter, const char *out,
                           char **text, size_t *size, struct error *e) {
    struct report_tables tables;
    struct sheets sheets = {0};
    *text = NULL;
    TRY(report_tables_make(&tables, set, filter, out, e));
    summary_make(&sheets, &tables);
    struct printed csv;
    enum status status = printed_begin(&csv, "summary.csv", e);
    if (status == ST_OK) status = printed_end(&csv, sheets_write(&sheets, &format_csv, csv.f, e), "summary.csv", e);
    sheets_free(&sheets);
    report_tables_free(&tables);
    *text = csv.text;
    *size = csv.size;
    return status;
}

enum status summary_write(const char *text, size_t size, const char *to, struct error *e) {
    char path[PATH_BYTES];
    TRY(summary_path(to, path, e));
    return write_file_atomic(path, text, size, e);
}
