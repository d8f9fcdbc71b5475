/* site_papers.c - papers.js: the table of each built-in plan as its paper prints it, and ours beside it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/site/script.h"
#include "harness/site/site_parts.h"
#include "harness/store/csv.h"
#include "harness/table/paper.h"

#define SHOWN_ID 12 /* digits of a run's id */

/* The task of a run, by the digits of its id; "": it has no record. */
static const char *task_of(const struct site *site, const char *ids) {
    for (int i = 0; ids && i < site->set->n; i++)
        if (!strncmp(site->set->list[i].run.run_id, ids, RUN_ID_HEX - 1)) return site->set->list[i].run.task;
    return "";
}

static void put_cell(FILE *f, const struct site *site, const struct paper_cell *c) {
    char format[PUBLISHED_FORMAT_BYTES], text[64] = "", stem[STEM_BYTES];
    const struct published_value *v = &c->published;
    published_format(v, format);
    if (isfinite(v->value)) snprintf(text, sizeof text, format, v->value);
    put_open(f, NULL, '{');
    put_int(f, "row", c->row);
    put_int(f, "column", c->column);
    put_text(f, "printed", text);
    put_real(f, "published", v->value);
    put_real(f, "ours", c->ours);
    put_real(f, "low", c->interval.low);
    put_real(f, "high", c->interval.high);
    put_int(f, "done", c->done);
    put_int(f, "planned", c->planned);
    put_int(f, "cut", c->cut_off);
    put_text(f, "verdict", paper_verdict_names[c->verdict]);
    put_int(f, "other", paper_cell_is_other(c));
    put_text(f, "unlike", c->unlike);
    task_stem(task_of(site, c->run_ids), stem);
    put_text(f, "task", stem);
    put_open(f, "runs", '[');
    for (const char *id = c->run_ids; id && *id; id += strcspn(id, " "), id += strspn(id, " "))
        fprintf(f, "\"%.*s\",", SHOWN_ID, id);
    put_close(f, ']');
    put_close(f, '}');
}

/* The notes below the table and below its cells, as `lrnn report --paper` prints them. */
static void put_notes(FILE *f, const struct paper_cells *p) {
    struct sheets sheets = {0};
    put_open(f, "notes", '[');
    if (report_make(&sheets, &report_paper, NULL, p, false, NULL, NULL) == ST_OK)
        for (int k = 0; k < sheets.n; k++)
            for (int i = 0; i < sheets.list[k]->n_notes; i++)
                if (!sheets.list[k]->notes[i].on_strong) put_text(f, NULL, sheets.list[k]->notes[i].text);
    put_close(f, ']');
    sheets_free(&sheets);
}

static void put_lists(FILE *f, const struct site *site, const struct paper_cells *p) {
    put_int(f, "done", p->n_done);
    put_int(f, "planned", p->n_planned);
    put_int(f, "speed", p->speed);
    put_text(f, "profile", p->resolved.profile);
    put_text(f, "protocol", protocol_of(p->protocol)->phrase);
    put_open(f, "rows", '[');
    for (int r = 0; r < p->n_rows; r++) put_text(f, NULL, p->rows[r]);
    put_close(f, ']');
    put_open(f, "columns", '[');
    for (int c = 0; c < p->n_columns; c++) put_text(f, NULL, p->columns[c]);
    put_close(f, ']');
    put_open(f, "cells", '[');
    for (int i = 0; i < p->n_rows * p->n_columns; i++)
        if (p->cells[i].planned) put_cell(f, site, &p->cells[i]);
    put_close(f, ']');
    put_notes(f, p);
}

/* Whether a run with that line in its configuration is of a task of the plan, by the name of either. */
static bool some_run_has(const struct site *site, const char *plan, const char *line) {
    struct plan_file file;
    const char *tasks = plan_file_read(&file, plan, NULL) == ST_OK ? label_get(&file.lines, "tasks") : NULL;
    for (int i = 0; tasks && i < site->set->n; i++) {
        const struct run_record *r = &site->set->list[i];
        char name[RECORD_TEXT];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(r->run.task, ":"), r->run.task);
        if (strstr(tasks, name) && strstr(r->config, line)) return true;
    }
    return false;
}

/* Writes one plan with its runs under these flags, or that its data are missing. Flags without runs are left out. */
static enum status put_plan(FILE *f, const struct site *site, const char *name, const char *where, struct error *e) {
    struct error why = {ST_OK, ""};
    struct paper_choice choice = {.name = name, .tasks = "", .profile = "", .where = where};
    struct plan_file file;
    struct paper_cells *p = calloc(1, sizeof *p);
    if (!p) return fail(e, ST_MEMORY, "no memory for a page");
    enum status status = some_run_has(site, name, "") ? paper_cells_of(p, &choice, site->set, site->out, &why)
                                                      : fail(&why, ST_DATA, "No run of its tasks is on record.");
    bool shown = !*where || (status == ST_OK && p->n_done > 0);
    if (shown && plan_file_read(&file, name, NULL) == ST_OK) {
        static const char *const keys[] = {"title", "paper", "source"};
        put_open(f, NULL, '{');
        put_text(f, "name", name);
        put_text(f, "where", where);
        for (int i = 0; i < 3; i++)
            put_text(f, keys[i], label_get(&file.lines, keys[i]) ? label_get(&file.lines, keys[i]) : "");
        if (status == ST_OK)
            put_lists(f, site, p);
        else
            put_text(f, "missing", why.text);
        put_close(f, '}');
    }
    paper_cells_free(p);
    free(p);
    return status == ST_MEMORY ? fail(e, status, "%s", why.text) : ST_OK;
}

enum status site_write_papers(struct site *site, struct error *e) {
    static const struct {
        const char *line, *flags;
    } others[] = {{"\nprecision=bf16\n", "precision=bf16"}, {"\ndevice=cuda\n", "precision=bf16 device=cuda"}};
    struct printed data;
    const char *name;
    TRY(script_begin(&data, "papers", e));
    enum status status = ST_OK;
    put_open(data.f, "plans", '[');
    for (int i = 0; !site->part && status == ST_OK && (name = plan_file_built_in(PLAN_PAPERS, i)); i++) {
        status = put_plan(data.f, site, name, "", e);
        for (int k = 0; k < 2 && status == ST_OK; k++)
            if (some_run_has(site, name, others[k].line)) status = put_plan(data.f, site, name, others[k].flags, e);
    }
    put_close(data.f, ']');
    if (status == ST_OK) return script_write(site, &data, "papers", e);
    return printed_end(&data, status, "a page", e);
}
