/* record_csv.c - exports of the run records: runs.csv, curves.csv and evals.csv. */
#include "harness/store/record_csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/store/files.h"
#include "harness/store/own_file.h"
#include "harness/store/schema.h"

static void print_runs(FILE *f, const struct record_set *set) {
    table_csv_header(&runs_table, f);
    for (int i = 0; i < set->n; i++) table_csv_row(&runs_table, &set->list[i].run, f);
}

static void print_curves(FILE *f, const struct record_set *set) {
    table_csv_header(&curves_table, f);
    for (int i = 0; i < set->n; i++) {
        const struct run_record *r = &set->list[i];
        if (r->set_aside) continue; /* the rows have no column that would tell the attempts of an id apart */
        for (int64_t k = 0; k < r->n_curve; k++) {
            struct curve_row row = {.point = r->curve[k], .schema = RECORD_SCHEMA, .ppl = exp(r->curve[k].loss)};
            memcpy(row.run_id, r->run.run_id, sizeof row.run_id);
            table_csv_row(&curves_table, &row, f);
        }
    }
}

static void print_evals(FILE *f, const struct record_set *set) {
    table_csv_header(&evals_table, f);
    for (int i = 0; i < set->n; i++) {
        const struct run_record *r = &set->list[i];
        if (r->set_aside) continue;
        for (int64_t k = 0; k < r->n_evals; k++) {
            struct eval_row row = {.point = r->evals[k], .schema = RECORD_SCHEMA};
            memcpy(row.run_id, r->run.run_id, sizeof row.run_id);
            table_csv_row(&evals_table, &row, f);
        }
    }
}

static enum status export_one(const struct record_set *set, const char *out, const char *name,
                              void (*print)(FILE *, const struct record_set *), struct error *e) {
    char path[PATH_BYTES], *text = NULL;
    size_t size = 0;
    TRY(path_format(path, sizeof path, e, "%s/%s", out, name));
    FILE *f = open_memstream(&text, &size);
    if (!f) return fail(e, ST_MEMORY, "no memory to write %s", path);
    print(f, set);
    bool whole = !ferror(f);
    whole = fclose(f) == 0 && whole;
    enum status status =
        whole ? write_file_atomic(path, text, size, e) : fail(e, ST_MEMORY, "no memory to write %s", path);
    free(text);
    return status;
}

enum status records_export_check(const char *out, struct error *e) {
    static const char *const names[] = {"runs.csv", "curves.csv", "evals.csv"};
    char path[PATH_BYTES];
    for (int i = 0; i < 3; i++) {
        TRY(path_format(path, sizeof path, e, "%s/%s", out, names[i]));
        TRY(own_file_check(path, e));
    }
    return ST_OK;
}

enum status records_export_csv(const struct record_set *set, const char *out, struct error *e) {
    TRY(records_export_check(out, e));
    TRY(make_folder(out, e));
    TRY(export_one(set, out, "runs.csv", print_runs, e));
    TRY(export_one(set, out, "curves.csv", print_curves, e));
    return export_one(set, out, "evals.csv", print_evals, e);
}
