/* check_paper_cells.c - which published numbers stand in the cells of a plan's table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/rows/paper_cells.h"
#include "tests/lib/scratch.h"
#include "tests/tasks/task_examples.h"

static char folder[SCRATCH_BYTES];

static void begin(void) {
    scratch_make(folder);
    import_data();
}

static void end(void) {
    drop_data();
    scratch_remove(folder);
}

/* The cells of a task of a plan in the plan's own profile, of one rate and seed; false: its data are not imported. */
static bool make_cells(struct paper_cells *p, const char *plan, const char *task) {
    const char *const words[] = {plan, task};
    struct error e = {ST_OK, ""};
    bool taken;
    *p = (struct paper_cells){.n_rows = 0};
    enum status status = request_words(&p->request, words, 2, &e);
    if (status == ST_OK) status = request_flag(&p->request, "seeds", "1", &taken, &e);
    if (status == ST_OK) status = request_flag(&p->request, "lr", "0.001", &taken, &e);
    if (status == ST_OK) status = paper_cells_make(p, folder, &e);
    bool missing = status == ST_DATA && strstr(e.text, "`lrnn data import pathfinder128 FOLDER`"); /* 16 MB */
    ck_assert_msg(status == ST_OK || missing, "%s %s: %s", plan, task, e.text);
    return !missing;
}

/* --- plans that ship ---------------------------------------------------------------------------------------------- */

/* Plans whose tables are empty of published numbers, and why. */
static const char *const without[][2] = {
    {"hlru-fig2", "a figure whose values are written nowhere"},
    {"hlru-fig3", "a figure whose values are written nowhere"},
    {"hlru-fig4", "a figure whose values are written nowhere"},
    {"hlru-fig5", "a figure whose values are written nowhere"},
    {"slice-a5", "a figure of which only the solved lengths can be read"},
    {"deltaproduct", "a figure of which only the fewest steps are told"},
    {"plstm-graphs", "graphs of our own"},
    {"state-tracking", "a table of our own"},
};

static const char *why_without(const char *plan) {
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (!strcmp(without[i][0], plan)) return without[i][1];
    return NULL;
}

static const char *setting(const struct plan_file *file, const char *key, const char *fallback) {
    const char *value = plan_file_get(file, plan_file_get(file, "", "profile"), key);
    return value ? value : fallback;
}

/* Takes from `left` every difference that the plan says and a cell has. */
static void take_differences(const struct paper_cells *p, bool left[PAPER_MOST_DIFFERENCES]) {
    for (int k = 0; k < PAPER_MOST_DIFFERENCES; k++)
        for (int i = 0; i < p->n_rows * p->n_columns; i++)
            if (p->cells[i].differs >> k & 1) left[k] = false;
}

/* Numbers that the plan finds for its tasks; every task for which its table has any must find one. */
static int count_numbers(const char *plan, const struct plan_file *file, const struct published *published) {
    struct paper_cells *p = calloc(1, sizeof *p);
    const char *model, *profile = plan_file_get(file, "", "profile");
    bool left[PAPER_MOST_DIFFERENCES], any = false; /* of the plan's differences, those that no row has */
    int n = 0;
    ck_assert_ptr_nonnull(p);
    memset(left, true, sizeof left);
    for (const char *at = setting(file, "tasks", ""); *at; at += strspn(at, " ")) {
        char task[LABEL_TEXT];
        struct error e;
        ck_assert_int_eq(text_part(&at, " ", task, sizeof task, &e), ST_OK);
        if (!make_cells(p, plan, task)) continue;
        any = true;
        take_differences(p, left);
        for (int i = 0; i < p->n_rows * p->n_columns; i++) n += isfinite(p->cells[i].published.value);
        ck_assert_msg(p->has_published || why_without(plan) ||
                          !published_has_task(published, setting(file, "paper", ""), setting(file, "source", ""), task),
                      "%s: none of the published numbers of %s is found", plan, task);
        paper_cells_free(p);
    }
    for (int k = 0; any && plan_file_differs(file, profile, k, &model); k++)
        ck_assert_msg(!left[k], "%s: no row is of the model of 'differs.%s'", plan, model);
    free(p);
    return n;
}

START_TEST(every_shipped_plan_finds_numbers_or_says_why_not) {
    struct published published;
    struct plan_file *file = calloc(1, sizeof *file);
    struct error e = {ST_OK, ""};
    const char *name;
    ck_assert_ptr_nonnull(file);
    ck_assert_msg(published_read(&published, folder, &e) == ST_OK, "%s", e.text);
    for (int i = 0; (name = plan_file_built_in(PLAN_PAPERS, i)); i++) {
        ck_assert_msg(plan_file_read(file, name, &e) == ST_OK, "%s", e.text);
        int found = count_numbers(name, file, &published);
        ck_assert_msg(found > 0 || why_without(name), "%s: no published number is found of paper %s, table '%s'", name,
                      setting(file, "paper", ""), setting(file, "source", ""));
        ck_assert_msg(found == 0 || !why_without(name), "%s has %d numbers, and is to have none: %s", name, found,
                      why_without(name));
    }
    free(file);
    published_free(&published);
}
END_TEST

/* A row without its paper's number would be found by no plan. */
START_TEST(every_published_number_says_where_it_stands) {
    static const char *const keys[] = {"paper", "arxiv", "table", "row", "task", "model", "metric", "value"};
    struct published published;
    struct error e = {ST_OK, ""};
    ck_assert_msg(published_read(&published, folder, &e) == ST_OK, "%s", e.text);
    for (int i = 0; i < published.table.rows; i++)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            ck_assert_msg(*csv_cell(&published.table, i, keys[k]) != 0, "row %d of published.csv has no %s", i + 1,
                          keys[k]);
    published_free(&published);
}
END_TEST

/* A task with one-at-a-time changes has four settings. */
START_TEST(a_cell_knows_of_how_many_settings_its_number_is_the_mean) {
    struct paper_cells *p = calloc(1, sizeof *p);
    ck_assert_ptr_nonnull(p);
    ck_assert(make_cells(p, "hlru-table1", "hlru-recall"));
    for (int i = 0; i < p->n_rows * p->n_columns; i++) ck_assert_int_eq(p->cells[i].settings, 4);
    paper_cells_free(p);
    ck_assert(make_cells(p, "hlru-table2", "s3"));
    for (int i = 0; i < p->n_rows * p->n_columns; i++) ck_assert_int_eq(p->cells[i].settings, 1);
    paper_cells_free(p);
    free(p);
}
END_TEST

Suite *check_paper_cells(void);
Suite *check_paper_cells(void) {
    Suite *suite = suite_create("paper_cells");
    TCase *c = tcase_create("paper_cells");
    tcase_add_checked_fixture(c, begin, end);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, every_shipped_plan_finds_numbers_or_says_why_not);
    tcase_add_test(c, every_published_number_says_where_it_stands);
    tcase_add_test(c, a_cell_knows_of_how_many_settings_its_number_is_the_mean);
    suite_add_tcase(suite, c);
    return suite;
}
