/* cmd_list.c - `lrnn list`: lists models, tasks, papers and so on, one per line, the name first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/paragraph.h"
#include "harness/cli/cli.h"
#include "harness/study/plan_file.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "kernels/twins.h"
#include "models/model.h"
#include "tasks/task.h"

static void print_line(const char *name, const char *text) {
    int column = printf("%-22s ", name);
    paragraph_print(stdout, terminal_width(stdout), column, 23, text);
    putchar('\n');
}

static enum status list_models(struct error *e) {
    (void)e;
    for (const struct model *const *m = model_list(); *m; m++)
        if (!(*m)->hidden) print_line((*m)->name, (*m)->summary);
    return ST_OK;
}

static enum status list_tasks(struct error *e) {
    (void)e;
    for (const struct task *const *t = task_list(); *t; t++) {
        if ((*t)->hidden) continue;
        print_line((*t)->name, (*t)->summary);
        for (const struct task_alias *a = (*t)->aliases; a && a->name; a++) {
            char text[512];
            snprintf(text, sizeof text, "%s (%s:%s)", a->summary, (*t)->name, a->options);
            print_line(a->name, text);
        }
    }
    return ST_OK;
}

static enum status list_ops(struct error *e) {
    (void)e;
    for (const struct op *const *o = op_list(); *o; o++) {
        char text[512];
        if ((*o)->hidden) continue;
        snprintf(text, sizeof text, "%s%s", (*o)->maths, op_has_cuda_twin(*o) ? "" : " (on the CPU alone)");
        print_line((*o)->name, text);
    }
    return ST_OK;
}

static enum status list_kernels(struct error *e) {
    (void)e;
    for (const struct kernel *const *k = kernel_list(); *k; k++) {
        if ((*k)->op->hidden) continue;
        char text[256];
        snprintf(text, sizeof text, "%s of %s on the %s", (*k)->reference ? "reference" : "tuned kernel",
                 (*k)->op->name, (*k)->device == DEVICE_CPU ? "CPU" : "GPU");
        print_line((*k)->name, text);
    }
    return ST_OK;
}

/* Whether an earlier row has the same paper. A paper's rows need not be neighbours. */
static bool paper_is_above(const struct csv_table *t, int row) {
    for (int above = 0; above < row; above++)
        if (strcmp(csv_cell(t, above, "paper"), csv_cell(t, row, "paper")) == 0) return true;
    return false;
}

/* Prints each paper in results/published.csv once. */
static enum status list_published(struct error *e) {
    char path[PATH_BYTES];
    struct csv_table t;
    TRY(shipped_file_find("results/published.csv", path, sizeof path, e));
    TRY(csv_read_edited(&t, path, e));
    for (int row = 0; row < t.rows; row++) {
        if (paper_is_above(&t, row)) continue;
        const char *arxiv = csv_text_plain(csv_cell(&t, row, "arxiv"));
        char text[512];
        snprintf(text, sizeof text, "%s%s%s", csv_text_plain(csv_cell(&t, row, "paper")),
                 *arxiv ? ", https://arxiv.org/abs/" : "", arxiv);
        print_line(*arxiv ? arxiv : "-", text);
    }
    csv_free(&t);
    return ST_OK;
}

static void print_plan(const struct plan_file *p) {
    const char *title = label_get(&p->lines, "title"), *link = label_get(&p->lines, "link");
    char text[512];
    snprintf(text, sizeof text, "%s%s%s", title ? title : "", link ? ", " : "", link ? link : "");
    print_line(p->name, text);
}

/* Prints the papers, then the plans of their tables and figures. */
static enum status list_papers(struct error *e) {
    const char *name;
    struct plan_file *plan = calloc(1, sizeof *plan);
    if (!plan) return fail(e, ST_MEMORY, "no memory for a plan");
    enum status status = list_published(e);
    for (int i = 0; status == ST_OK && (name = plan_file_built_in(PLAN_PAPERS, i)); i++) {
        status = plan_file_read(plan, name, e);
        if (status == ST_OK) print_plan(plan);
    }
    free(plan);
    return status;
}

static const struct {
    const char *name, *heading;
    enum status (*print)(struct error *e);
} kinds[] = {
    {"models", "models (lrnn train TASK MODEL)", list_models},
    {"tasks", "tasks, and short names for their settings", list_tasks},
    {"ops", "ops", list_ops},
    {"kernels", "kernels, in order of preference for each op", list_kernels},
    {"papers", "papers whose numbers are compared with ours, and plans of their tables (lrnn bench PLAN)", list_papers},
};

#define N_KINDS ((int)(sizeof kinds / sizeof kinds[0]))

static const char *kind_name(const void *list, int i) {
    (void)list;
    return kinds[i].name;
}

static enum status run(int argc, char **argv, struct error *e) {
    const char *what[1];
    struct cli cli = {.command = &command_list, .positional = what, .max_positional = 1};
    int only = -1;
    TRY(cli_parse(&cli, argc, argv, e));
    if (cli.n_positional) TRY(name_choose("kind", what[0], N_KINDS, kind_name, NULL, &only, e));
    bool headings = isatty(STDOUT_FILENO);
    for (int i = 0; i < N_KINDS; i++) {
        if (only >= 0 && i != only) continue;
        if (headings) printf("%s%s\n", only < 0 && i > 0 ? "\n" : "", kinds[i].heading);
        TRY(kinds[i].print(e));
    }
    return ST_OK;
}

const struct command command_list = {
    .name = "list",
    .usage = "list [models|tasks|ops|kernels|papers]",
    .summary = "list models, tasks, ops, kernels or papers, one per line with an explanation",
    .run = run,
};
