/* check_sheet_pick.c - which columns of a sheet a reader sees, and in which order its rows stand. */
#include "harness/sheet/sheet_pick.h"

#include <math.h>
#include <string.h>

#include "harness/sheet/sheet.h"
#include "tests/testing.h"

static struct sheets sheets;
static struct error problem;

static void open_fixture(void) {
    sheets = (struct sheets){0};
}

static void close_fixture(void) {
    sheets_free(&sheets);
}

/* Two rows, with footnotes and a remark. */
static struct sheet *add_example(void) {
    struct sheet *s = sheets_add(&sheets);
    sheet_caption(s, "example");
    sheet_column(s, SHEET_LEFT, "model");
    sheet_column(s, SHEET_RIGHT, "n & m");
    sheet_column(s, SHEET_RIGHT, "acc");
    for (int i = 0; i < 2; i++) {
        sheet_row(s);
        sheet_text(s, "m%d", i);
        sheet_footnote(s, "of row %d", i);
        sheet_int(s, i);
        sheet_real(s, "%.1f", i / 3.0);
    }
    sheet_note(s, "n: sizes");
    return s;
}

static void expect_view(const char *columns, const char *sort, enum status expected) {
    struct sheet_view view = {columns, sort};
    enum status status = sheets_view(&sheets, &view, &problem);
    ck_assert_msg(status == expected, "status %d: %s", status, problem.text);
}

/* A table of another kind has not the column, and stays whole; a column that no table has is an error. */
START_TEST(columns_are_picked_where_they_are) {
    add_example();
    struct sheet *other = sheets_add(&sheets);
    sheet_column(other, SHEET_LEFT, "model");
    sheet_column(other, SHEET_RIGHT, "mean");
    for (int i = 0; i < 2; i++) {
        sheet_row(other);
        sheet_text(other, "m%d", i);
        sheet_real(other, "%g", i);
    }
    expect_view("acc,model", "mean", ST_OK);
    ck_assert_str_eq(other->cells[0].text, "m1");
    ck_assert_str_eq(sheets.list[0]->columns[0].heading, "acc");
    ck_assert_int_eq(sheets.list[0]->n_columns, 2);
    ck_assert_str_eq(other->columns[1].heading, "mean");
    ck_assert_int_eq(other->n_columns, 2);
    expect_view("acc,mean", NULL, ST_USAGE);
    ck_assert_str_eq(problem.text, "no table has all of the columns 'acc,mean'; there are: acc, model; model, mean");
    expect_view("mean,no", NULL, ST_USAGE);
    ck_assert_str_eq(problem.text, "no column 'no'; there are: acc, model; model, mean");
    for (int i = 0; i < 2; i++) {
        expect_view(NULL, i ? "acc,model" : "+acc", ST_USAGE);
        ck_assert_ptr_nonnull(strstr(problem.text, i ? "no column 'acc,model'; " : "no column '+acc'; "));
    }
    expect_view("acc,acc", NULL, ST_USAGE);
    ck_assert_str_eq(problem.text, "column 'acc' is named twice");
}

/* A row without a number has a text where the others have one, or a number that is none. */
START_TEST(what_is_no_number_is_sorted_behind_the_numbers) {
    static const char *const wanted[] = {"9 2 nan - >3", "2 9 nan >3 -"};
    for (int way = 0; way < 2; way++) {
        char got[64] = "";
        struct sheet *s = sheets_add(&sheets);
        sheet_column(s, SHEET_RIGHT, "n");
        for (int i = 0; i < 5; i++) {
            sheet_row(s);
            if (i == 0 || i == 2)
                sheet_text(s, "%s", i ? ">3" : "-");
            else if (i == 3)
                sheet_real(s, "%g", NAN);
            else
                sheet_int(s, i == 1 ? 2 : 9);
        }
        expect_view(NULL, way ? "-n" : "n", ST_OK);
        for (int i = 0; i < 5; i++) {
            const char *text = s->cells[i].kind == SHEET_REAL ? "nan" : s->cells[i].text;
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? " " : "", text);
        }
        ck_assert_str_eq(got, wanted[way]);
        sheets_free(&sheets);
    }
}
END_TEST

/* "9/64" is less than "10/64". */
START_TEST(a_text_is_sorted_by_its_number_where_it_has_one) {
    struct sheet *s = sheets_add(&sheets);
    static const double steps[] = {9, 10, 100};
    sheet_column(s, SHEET_RIGHT, "steps");
    for (int i = 0; i < 4; i++) {
        sheet_row(s);
        if (i == 3)
            sheet_text(s, "-");
        else
            sheet_text(s, "%g/640", steps[i]), sheet_sort_key(s, steps[i]);
    }
    expect_view(NULL, "steps", ST_OK);
    ck_assert_str_eq(s->cells[0].text, "100/640");
    ck_assert_str_eq(s->cells[2].text, "9/640");
    expect_view(NULL, "-steps", ST_OK);
    ck_assert_str_eq(s->cells[0].text, "9/640");
    ck_assert_str_eq(s->cells[3].text, "-");
}
END_TEST

START_TEST(the_list_of_columns_ends_with_a_whole_name) {
    struct sheet *s = sheets_add(&sheets);
    for (int i = 0; i < 64; i++) sheet_column(s, SHEET_RIGHT, "the column that is called %02d", i);
    expect_view("no", NULL, ST_USAGE);
    ck_assert_str_eq(strrchr(problem.text, '2'), "24, ...");
}
END_TEST

START_TEST(more_columns_than_a_table_can_have_are_refused) {
    struct sheet *s = sheets_add(&sheets);
    char names[65 * 4] = "";
    for (int i = 0; i < 65; i++) {
        sheet_column(s, SHEET_RIGHT, "c%02d", i);
        snprintf(names + strlen(names), sizeof names - strlen(names), "%sc%02d", i ? "," : "", i);
    }
    expect_view(names, NULL, ST_USAGE);
    ck_assert_str_eq(problem.text, "more than 64 columns are named");
}
END_TEST

/* A remark on columns that are left out says nothing to the reader; one on the table stays. */
START_TEST(a_note_goes_with_its_columns) {
    struct sheet *s = add_example();
    int n = s->n_notes;
    sheet_note(s, "of the table");
    sheet_note_on(s, "n & m,acc", "of two columns");
    sheet_note_on(s, "acc", "of one");
    expect_view("model,n & m", NULL, ST_OK);
    ck_assert_int_eq(s->n_notes, n + 2);
    ck_assert_str_eq(s->notes[n].text, "of the table");
    ck_assert_str_eq(s->notes[n + 1].text, "of two columns");
}
END_TEST

START_TEST(what_names_the_rows_stays) {
    for (int named = 0; named < 2; named++) {
        struct sheet *s = sheets_add(&sheets);
        sheet_column(s, SHEET_LEFT, "model");
        sheet_names_rows(s);
        sheet_column(s, SHEET_RIGHT, "s3");
        sheet_column(s, SHEET_RIGHT, "s4");
        sheet_row(s);
        sheet_text(s, "lstm");
        sheet_real(s, "%g", 3);
        sheet_real(s, "%g", 4);
        expect_view(named ? "s4,model" : "s4", NULL, ST_OK);
        ck_assert_int_eq(s->n_columns, 2);
        ck_assert_str_eq(s->columns[named].heading, "model");
        ck_assert_str_eq(s->cells[named].text, "lstm");
        ck_assert_str_eq(s->cells[!named].text, "4");
        sheets_free(&sheets);
    }
}
END_TEST

static struct sheet *add_sheet_with_a_column_on_request(void) {
    struct sheet *s = sheets_add(&sheets);
    sheet_column(s, SHEET_LEFT, "run");
    sheet_on_request(s);
    sheet_column(s, SHEET_LEFT, "model");
    for (int i = 0; i < 2; i++) {
        sheet_row(s);
        sheet_text(s, "id%d", i);
        sheet_text(s, "m%d", i);
    }
    return s;
}

START_TEST(a_column_on_request_is_there_for_who_names_it) {
    struct sheet *s = add_sheet_with_a_column_on_request();
    add_example();
    expect_view("model,run", NULL, ST_OK);
    ck_assert_int_eq(s->n_columns, 2);
    ck_assert_str_eq(s->cells[3].text, "id1");
    ck_assert_int_eq(sheets.list[1]->n_columns, 3);
    for (int named = 0; named < 2; named++) { /* no column is named, or columns of another sheet */
        s = add_sheet_with_a_column_on_request();
        expect_view(named ? "model,acc" : NULL, NULL, ST_OK);
        ck_assert_int_eq(s->n_columns, 1);
        ck_assert_str_eq(s->columns[0].heading, "model");
        ck_assert_str_eq(s->cells[1].text, "m1");
    }
}
END_TEST

/* Headings of a sheet, by blanks. */
static const char *headings(const struct sheet *s) {
    static char text[256];
    *text = 0;
    for (int c = 0; c < s->n_columns; c++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", c ? " " : "", s->columns[c].heading);
    return text;
}

/* Names of tasks and settings have commas; people write blanks after those of a list. */
START_TEST(a_heading_with_a_comma_is_one_name) {
    struct sheet *s = sheets_add(&sheets);
    static const char *const names[] = {"model", "s3:n=4", "s3:n=4,m=5", "acc"};
    for (int i = 0; i < 4; i++) sheet_column(s, SHEET_LEFT, "%s", names[i]);
    sheet_row(s);
    for (int i = 0; i < 4; i++) sheet_text(s, "%d", i);
    expect_view("s3:n=4,m=5, model , s3:n=4", NULL, ST_OK);
    ck_assert_str_eq(headings(s), "s3:n=4,m=5 model s3:n=4");
    expect_view("model,s3:n=4,m=6", NULL, ST_USAGE);
    ck_assert_str_eq(problem.text, "no column 'm=6'; there are: s3:n=4,m=5, model, s3:n=4");
}
END_TEST

START_TEST(a_plus_has_a_column_behind_the_usual_ones) {
    static const char *const views[][2] = {
        {"+run", "model run"}, {"+model", "model"}, {"+run,model", "run model"}, {"+", NULL}, {"+no", NULL}};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        struct sheet *s = add_sheet_with_a_column_on_request();
        add_example();
        expect_view(views[i][0], NULL, views[i][1] ? ST_OK : ST_USAGE);
        if (views[i][1]) ck_assert_str_eq(headings(s), views[i][1]);
        if (i == 0) ck_assert_str_eq(s->cells[3].text, "id1");
        if (i == 0) ck_assert_str_eq(headings(sheets.list[1]), "model n & m acc"); /* which has no such column */
        sheets_free(&sheets);
    }
}
END_TEST

Suite *check_sheet_pick(void) {
    Suite *s = suite_create("sheet_pick");
    TCase *c = tcase_create("sheet_pick");
    tcase_add_checked_fixture(c, open_fixture, close_fixture);
    tcase_add_test(c, columns_are_picked_where_they_are);
    tcase_add_test(c, what_is_no_number_is_sorted_behind_the_numbers);
    tcase_add_test(c, a_text_is_sorted_by_its_number_where_it_has_one);
    tcase_add_test(c, a_heading_with_a_comma_is_one_name);
    tcase_add_test(c, the_list_of_columns_ends_with_a_whole_name);
    tcase_add_test(c, more_columns_than_a_table_can_have_are_refused);
    tcase_add_test(c, a_note_goes_with_its_columns);
    tcase_add_test(c, a_column_on_request_is_there_for_who_names_it);
    tcase_add_test(c, a_plus_has_a_column_behind_the_usual_ones);
    tcase_add_test(c, what_names_the_rows_stays);
    suite_add_tcase(s, c);
    return s;
}
