/* layers.c - the report "layers": for tasks that differ only in length, the fewest layers with which each model learns
 * them. Walker et al. 2025 (SLiCE), figure of A5. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "harness/table/family.h"
#include "tasks/task.h"

#define REACHED 0.9 /* Walker et al. 2025: more than 90 % */

/* "a5-slice:length=3,n_val=100" -> "a5-slice:n_val=100". */
static void name_family(const struct run *run, char *family, size_t size) {
    task_label_without(run->task, OPT_LENGTH, family, size);
}

static int64_t length_of(const struct run *run) {
    return run->len_train;
}

struct value {
    int runs;             /* 0: nothing has been run */
    int64_t layers, most; /* fewest layers that reach the bound, 0: none does; most layers tried */
    double acc;           /* mean at `layers`, or the best mean */
    int cut_off, failed;  /* numbers of runs that were cut off, that failed */
};

static struct value value_of(const struct family *s, int model, int task) {
    struct value v = {.acc = -INFINITY};
    for (int i = 0; i < s->n; i++) {
        const struct report_row *row = s->entries[i].row;
        if (!family_is(s, &s->entries[i], model, task)) continue;
        int64_t layers = row->run->n_layers;
        bool reached = row->mean > REACHED, fewer = v.layers == 0 || layers < v.layers;
        v.runs += row->n_all;
        v.cut_off += row->n_cut_all;
        v.failed += row->n_failed_all;
        if (layers > v.most) v.most = layers;
        if (reached ? fewer : v.layers == 0 && row->mean > v.acc) v.acc = row->mean;
        if (reached && fewer) v.layers = layers;
    }
    return v;
}

/* Adds "3", or ">5 (0.62)" if no number of layers reaches the bound, which is sorted last. */
static void add_cell(struct sheet *sheet, const struct value *v) {
    if (!v->runs) {
        sheet_text(sheet, "-");
    } else if (v->layers) {
        sheet_int(sheet, v->layers);
    } else {
        sheet_text(sheet, ">%" PRId64 " (%.2f)", v->most, v->acc);
        sheet_sort_key(sheet, (double)v->most + 0.5);
    }
    marks_append(sheet, v->cut_off, v->failed, false);
}

static void fill(struct sheet *sheet, const struct family *s, const struct report_tables *tables, struct marks *marks,
                 bool legend) {
    if (sheet) sheet->bare = true;
    sheet_caption(sheet, "%s, profile %s: fewest layers above 90 %% at each length, chance %.4f", s->entries->family,
                  s->entries->row->profile, run_chance(s->entries->row->run));
    sheet_column(sheet, SHEET_LEFT, "model, length:");
    for (int t = 0; t < s->n_tasks; t++) sheet_column(sheet, SHEET_RIGHT, "%" PRId64, s->tasks[t]->row->run->len_train);
    for (int m = 0; m < s->n_models; m++) {
        sheet_row(sheet);
        sheet_text(sheet, "%s", s->models[m]->model);
        for (int t = 0; t < s->n_tasks; t++) {
            struct value v = value_of(s, m, t);
            add_cell(sheet, &v);
            marks->runs += v.runs;
            marks->failed += v.failed;
            marks->cut_off = marks->cut_off || v.cut_off;
        }
    }
    for (int i = 0; i < s->n; i++) facts_add(&marks->facts, s->entries[i].row);
    if (tables->confirm) sheet_note(sheet, CONFIRMED_NOTE ".", (long long)tables->confirm);
    if (legend) marks_note(sheet, marks);
}

static void fill_data(struct sheet *sheet, const struct family *s, const struct report_tables *tables) {
    (void)tables;
    for (int m = 0; m < s->n_models; m++)
        for (int t = 0; t < s->n_tasks; t++) {
            struct value v = value_of(s, m, t);
            if (!v.runs) continue;
            family_begin_row(sheet, s, m);
            sheet_int(sheet, s->tasks[t]->row->run->len_train);
            sheet_int(sheet, v.layers ? v.layers : -1);
            sheet_int(sheet, v.most);
            sheet_real(sheet, "%g", v.acc);
            sheet_int(sheet, v.runs);
            sheet_int(sheet, v.cut_off);
            sheet_int(sheet, v.failed);
            add_flags_data(sheet, s->models[m]->row);
        }
}

static const struct family_report lengths = {
    .name_family = name_family,
    .rank = length_of,
    .axis = "layers",
    .least_tasks = 2,
    .fill = fill,
    .columns = FAMILY_COLUMNS "length|fewest_layers|most_layers|acc|n_runs|n_cut_off|n_failed|flags",
    .fill_data = fill_data,
    .nothing = "no task has been run at several lengths; `lrnn bench a5-slice` does",
};

static enum status make(struct sheets *sheets, const struct report_tables *tables, bool data, struct error *e) {
    return family_make(&lengths, sheets, tables, data, e);
}

const struct report report_layers = {
    .name = "layers",
    .help = "for tasks at several lengths: the smallest number of layers that reaches accuracy 0.9 at each length",
    .has_no_use_for = " protocol ",
    .make = make,
};
