/* check_sheet.c - one sheet in every format, byte for byte, and what may not be built. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/report/sheet.h"
#include "harness/report/sheet_pick.h"
#include "tests/testing.h"

static struct sheets sheets;
static struct error problem;

static void open_fixture(void) {
    sheets = (struct sheets){0};
}

static void close_fixture(void) {
    sheets_free(&sheets);
}

/* A cell of every kind, and what each format has to escape. */
static struct sheet *add_example(void) {
    struct sheet *s = sheets_add(&sheets);
    sheet_caption(s, "Task_%d: 50 %%", 1);
    sheet_column(s, SHEET_LEFT, "model");
    sheet_column(s, SHEET_RIGHT, "n & m");
    sheet_column(s, SHEET_RIGHT, "acc");
    sheet_row(s);
    sheet_text(s, "a|b_c");
    sheet_footnote(s, "%s", "died, of $1");
    sheet_footnote(s, "too");
    sheet_int(s, -1);
    sheet_real(s, "%+.2f", -0.125);
    sheet_row(s);
    sheet_text(s, "=d");
    sheet_footnote(s, "third");
    sheet_int(s, 12345678901);
    sheet_real(s, "%.1f", 1.0 / 3);
    sheet_append(s, " (%d)", 7);
    sheet_strong(s);
    sheet_row(s);
    sheet_text(s, "\xc3\xa9\n");
    sheet_count(s, 1384000);
    sheet_real(s, "%.1f", NAN);
    sheet_note(s, "n: <sizes>");
    return s;
}

/* Not inlined: gcc 12 takes a pointer into the stream's text for one to the variable that holds it. */
__attribute__((noinline)) static char *render(const struct sheet_format *format, enum status expected) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    enum status status = sheets_write(&sheets, format, f, &problem);
    fclose(f);
    ck_assert_msg(status == expected, "status %d: %s", status, problem.text);
    return text;
}

static void expect(const struct sheet_format *format, const char *wanted) {
    char *text = render(format, ST_OK);
    ck_assert_str_eq(text, wanted);
    free(text);
}

START_TEST(one_sheet_in_every_format) {
    add_example();
    expect(&format_term, "Task_1: 50 %\n"
                         "\n"
                         "model              n & m      acc\n"
                         "---------------------------------\n"
                         "a|b_c [1-2]            -    -0.12\n"
                         "=d [3]       12345678901  0.3 (7)\n"
                         "\xc3\xa9                  1.38M        -\n"
                         "\n"
                         "[1] died, of $1\n"
                         "[2] too\n"
                         "[3] third\n"
                         "n: <sizes>\n");
    expect(&format_md, "### Task\\_1: 50 %\n"
                       "\n"
                       "| model | n & m | acc |\n"
                       "|:--|--:|--:|\n"
                       "| a\\|b\\_c \\[1-2\\] | - | -0.12 |\n"
                       "| =d \\[3\\] | 12345678901 | **0.3 (7)** |\n"
                       "| \xc3\xa9  | 1.38M | - |\n"
                       "\n"
                       "- \\[1\\] died, of \\$1\n"
                       "- \\[2\\] too\n"
                       "- \\[3\\] third\n"
                       "- n: \\<sizes\\>\n");
    expect(&format_latex, "% needs \\usepackage{booktabs,graphicx}\n"
                          "\\begin{table}\n"
                          "\\caption{Task\\_1: 50 \\%}\n"
                          "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
                          "\\begin{tabular}{lrr}\n"
                          "\\toprule\n"
                          "model & n \\& m & acc \\\\\n"
                          "\\midrule\n"
                          "a$|$b\\_c [1-2] & - & $-0.12$ \\\\\n"
                          "=d [3] & 12345678901 & \\textbf{0.3 (7)} \\\\\n"
                          "\xc3\xa9  & 1.38M & - \\\\\n"
                          "\\bottomrule\n"
                          "\\end{tabular}}\n"
                          "\n"
                          "\\footnotesize\n"
                          "{}[1] died, of \\$1\\\\\n"
                          "{}[2] too\\\\\n"
                          "{}[3] third\\\\\n"
                          "n: $<$sizes$>$\\\\\n"
                          "\\end{table}\n");
    expect(&format_csv, "model,n & m,acc\n"
                        "a|b_c,,-0.125\n"
                        "'=d,12345678901,0.3333333333333333\n"
                        "\"\xc3\xa9\n\",1384000,\n");
    expect(&format_json, "{\"model\":\"a|b_c\",\"n & m\":null,\"acc\":-0.125}\n"
                         "{\"model\":\"=d\",\"n & m\":12345678901,\"acc\":0.3333333333333333}\n"
                         "{\"model\":\"\xc3\xa9\\u000a\",\"n & m\":1384000,\"acc\":null}\n");
    char *page = render(&format_html, ST_OK);
    ck_assert_ptr_nonnull(strstr(page, "<!doctype html>\n<html lang=\"en\">"));
    ck_assert_ptr_nonnull(
        strstr(page, "<section>\n"
                     "<h2>Task_1: 50 %</h2>\n"
                     "<div class=\"box\"><table>\n"
                     "<thead><tr><th>model</th><th class=\"r\">n &amp; m</th><th class=\"r\">acc</th></tr></thead>\n"
                     "<tbody>\n"
                     "<tr><td>a|b_c<sup>1-2</sup></td><td class=\"r\">-</td><td class=\"r\">-0.12</td></tr>\n"
                     "<tr><td>=d<sup>3</sup></td><td class=\"r\">12345678901</td><td class=\"r\"><strong>0.3 "
                     "(7)</strong></td></tr>\n"
                     "<tr><td>\xc3\xa9 </td><td class=\"r\">1.38M</td><td class=\"r\">-</td></tr>\n"
                     "</tbody>\n"
                     "</table></div>\n"
                     "<ul>\n"
                     "<li><sup>1</sup> died, of $1</li>\n"
                     "<li><sup>2</sup> too</li>\n"
                     "<li><sup>3</sup> third</li>\n"
                     "<li>n: &lt;sizes&gt;</li>\n"
                     "</ul>\n"
                     "</section>\n"
                     "</body>\n</html>\n"));
    free(page);
}
END_TEST

START_TEST(a_bare_sheet_has_a_remark_for_a_caption) {
    for (int i = 0; i < 2; i++) {
        struct sheet *s = sheets_add(&sheets);
        s->bare = true;
        sheet_caption(s, "a_b\n%d", i);
        sheet_column(s, SHEET_LEFT, "x");
    }
    expect(&format_term, "a_b 0\n\nx\n-\n\na_b 1\n\nx\n-\n");
    expect(&format_md, "### a_b 0\n\n| x |\n|:--|\n\n### a_b 1\n\n| x |\n|:--|\n");
    expect(&format_latex,
           "% a_b 0\n\n% needs \\usepackage{booktabs}\n\\begin{tabular}{l}\n\\toprule\nx \\\\\n\\midrule\n"
           "\\bottomrule\n\\end{tabular}\n\n"
           "% a_b 1\n\n% needs \\usepackage{booktabs}\n\\begin{tabular}{l}\n\\toprule\nx \\\\\n\\midrule\n"
           "\\bottomrule\n\\end{tabular}\n");
}
END_TEST

/* What prints alike is marked alike; one number alone is the best of nothing; neither is a mark a part of it. */
START_TEST(the_best_of_a_column_are_all_that_print_alike) {
    static const double values[][3] = {{1, NAN, 0.5}, {0.9999, 0.25, NAN}, {0.9994, NAN, 0.5}};
    static const bool wanted[][3] = {{true, false, true}, {true, false, false}, {false, false, true}};
    struct sheet *s = sheets_add(&sheets);
    for (int c = 0; c < 3; c++) sheet_column(s, SHEET_RIGHT, "c%d", c);
    for (int r = 0; r < 3; r++) {
        sheet_row(s);
        for (int c = 0; c < 3; c++) {
            sheet_real(s, "%.3f", values[r][c]);
            sheet_append(s, "%s / %d", r ? "" : "*", r);
        }
    }
    sheet_note_on_strong(s, "Bold: the best.");
    sheet_note(s, "more");
    for (int c = 0; c < 3; c++) sheet_strong_best(s, c);
    for (int i = 0; i < 9; i++)
        ck_assert_msg(s->cells[i].strong == wanted[i / 3][i % 3], "row %d column %d", i / 3, i % 3);
    char *text = render(&format_term, ST_OK);
    ck_assert_msg(!strstr(text, "Bold") && !strchr(text, '\033') && strstr(text, "\n\nmore\n"), "no terminal: %s",
                  text);
    free(text);
    text = render(&format_md, ST_OK);
    ck_assert_ptr_nonnull(strstr(text, "**1.000\\* / 0**"));
    ck_assert_ptr_nonnull(strstr(text, "- Bold: the best.\n"));
    free(text);
}
END_TEST

/* A table of so many rows, each of a text so long. */
static struct sheet *add_long(int rows, int width) {
    struct sheet *s = sheets_add(&sheets);
    sheet_caption(s, "c");
    sheet_name(s, "%s", "s3:n=4, a_b");
    sheet_column(s, SHEET_LEFT, "m");
    sheet_column(s, SHEET_RIGHT, "n");
    for (int i = 0; i < rows; i++) {
        sheet_row(s);
        sheet_text(s, "%*d", width, i);
        sheet_int(s, i);
    }
    sheet_note(s, "note");
    return s;
}

static void expect_latex(bool holds, const char *text) {
    char *written = render(&format_latex, ST_OK);
    ck_assert_msg(!!strstr(written, text) == holds, "%s%s: %s", text, holds ? " is not there" : "", written);
    free(written);
}

/* A dash without a number, two hyphens, and signs in the middle of a cell. */
START_TEST(latex_has_minus_signs_where_numbers_are) {
    struct sheet *s = sheets_add(&sheets);
    sheet_column(s, SHEET_LEFT, "m");
    sheet_column(s, SHEET_RIGHT, "acc");
    sheet_row(s);
    sheet_text(s, "--mlp none");
    sheet_real(s, "%.3f", NAN);
    sheet_append(s, " / 1.000 +- 0");
    sheet_row(s);
    sheet_text(s, "+-x");
    sheet_real(s, "%+.2g", -1.5e-5);
    sheet_append(s, " [-0.3, +0.1]");
    sheet_note(s, "+-: spread; --paper takes -- too");
    expect_latex(true, "-{}-mlp none & - / 1.000 $\\pm$ 0 \\\\\n");
    expect_latex(true, "+-x & $-1.5e-05$ [$-0.3$, $+0.1$] \\\\\n");
    expect_latex(true, "$\\pm$: spread; -{}-paper takes -{}- too\\\\\n");
}
END_TEST

START_TEST(latex_of_more_than_a_page_is_a_longtable) {
    add_long(29, 4); /* and a line of notes */
    expect_latex(true, "\\begin{table}\n\\caption{c}\n\\label{tab:s3-n-4-a-b}\n\\resizebox{");
    expect_latex(false, "longtable");
    sheets_free(&sheets);
    add_long(31, 4);
    expect_latex(true, "% needs \\usepackage{booktabs,longtable}\n\\begingroup\n\\def\\tablecolumns{lr}\n"
                       "\\def\\tableheading{\\toprule\nm & n \\\\\n\\midrule\n}\n\\def\\tablerows{   0 & 0 \\\\\n");
    expect_latex(true, "  30 & 30 \\\\\n}\n");
    expect_latex(true,
                 "\\begin{longtable}{\\tablecolumns}\n\\caption{c}\n\\label{tab:s3-n-4-a-b}\\\\\n\\tableheading\n");
    expect_latex(true, "\\end{longtable}\n\\endgroup\n{\\footnotesize\\sloppy\\parindent=0pt\nnote\\par\n}\n");
    expect_latex(false, "\\begin{table}");
}
END_TEST

START_TEST(latex_too_wide_for_a_longtable_is_floats_of_some_rows) {
    add_long(31, 100);
    expect_latex(false, "longtable");
    expect_latex(true,
                 "\\end{table}\n\\begin{table}\nTable \\ref{tab:s3-n-4-a-b}, continued\\par\\medskip\n\\resizebox{");
    expect_latex(true, "\\end{table}\n{\\footnotesize\\sloppy\\parindent=0pt\nnote\\par\n}\n");
    sheets_free(&sheets);
    struct sheet *s = add_long(1, 4);
    for (int i = 0; i < 30; i++) sheet_note(s, "note"); /* they alone are more than a page */
    expect_latex(true, "\\end{table}\n{\\footnotesize\\sloppy\\parindent=0pt\nnote\\par\n");
    expect_latex(false, "continued");
}
END_TEST

START_TEST(counts_are_short) {
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},          {950, "950"},       {9999, "9999"}, {12345, "12.3k"}, {999400, "999k"},
                 {999500, "1.00M"}, {1384000, "1.38M"}, {-1, "-"},      {NAN, "-"},       {INFINITY, "-"}};
    struct sheet *s = sheets_add(&sheets);
    sheet_column(s, SHEET_RIGHT, "n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sheet_row(s);
        sheet_count(s, cases[i].value);
        ck_assert_str_eq(s->cells[i].text, cases[i].text);
    }
}
END_TEST

START_TEST(no_text_is_cut_off) {
    char *text = malloc(100001);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', 100000);
    text[100000] = 0;
    struct sheet *s = sheets_add(&sheets);
    sheet_caption(s, "%s", text);
    sheet_column(s, SHEET_LEFT, "%s", text);
    sheet_row(s);
    sheet_text(s, "%s", text);
    sheet_append(s, "%s", text);
    sheet_footnote(s, "%s", text);
    for (const struct sheet_format *const *format = sheet_formats(); *format; format++) {
        char *written = render(*format, ST_OK);
        ck_assert_uint_ge(strlen(written), 300000 - ((*format)->for_programs ? 1 : 0));
        free(written);
    }
    free(text);
}
END_TEST

/* What is wrong with the example's rows, and where it is told. */
static void misbuild(struct sheet *s, int how) {
    if (how == 0) sheet_text(s, "one too many");
    if (how == 1) sheet_row(s), sheet_text(s, "the first of three");
    if (how == 2) sheet_row(s), sheet_text(s, "the first of three"), sheet_row(s);
    if (how == 3) sheet_column(s, SHEET_LEFT, "late");
}

static const char *const misbuilt[] = {"row 3 of the table Task_1: 50 % gets more cells than the 3 columns",
                                       "row 4 of the table Task_1: 50 % has 1 cells, its columns are 3",
                                       "row 4 of the table Task_1: 50 % has 1 cells, its columns are 3",
                                       "the table Task_1: 50 % gets a column behind its first row"};

START_TEST(a_sheet_that_is_built_wrongly_is_told_and_not_written) {
    add_example();
    struct sheet *s = add_example();
    misbuild(s, _i);
    if (s->problem.status != ST_OK) sheet_text(s, "what comes behind it changes nothing");
    char *text = render(&format_term, ST_FAIL);
    ck_assert_str_eq(text, "");
    ck_assert_str_eq(problem.text, misbuilt[_i]);
    free(text);
}
END_TEST

START_TEST(a_sheet_without_columns_or_with_a_note_to_no_cell_is_told) {
    struct sheet *s = sheets_add(&sheets);
    if (_i) sheet_footnote(s, "of what?");
    char *text = render(&format_csv, ST_FAIL);
    ck_assert_str_eq(problem.text,
                     _i ? "the table without a caption has no cell yet" : "the table without a caption has no column");
    free(text);
}
END_TEST

START_TEST(a_sheet_for_which_there_was_no_memory_is_told) {
    add_example();
    sheets.incomplete = true; /* as sheets_add leaves it; what follows gets its NULL */
    sheet_column(NULL, SHEET_LEFT, "x");
    sheet_row(NULL);
    sheet_text(NULL, "x");
    sheet_real(NULL, "%g", 1);
    sheet_append(NULL, "x");
    sheet_strong(NULL);
    sheet_strong_best(NULL, 0);
    sheet_note_on_strong(NULL, "x");
    sheet_footnote(NULL, "x");
    sheet_note(NULL, "x");
    sheet_caption(NULL, "x");
    sheet_name(NULL, "x");
    char *text = render(&format_md, ST_MEMORY);
    ck_assert_str_eq(text, "");
    ck_assert_str_eq(problem.text, "no memory for another table");
    free(text);
}
END_TEST

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
    for (int named = 0; named < 2; named++) { /* no column is named, or those of another sheet */
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

Suite *check_sheet(void) {
    Suite *s = suite_create("sheet");
    TCase *c = tcase_create("sheet");
    tcase_add_checked_fixture(c, open_fixture, close_fixture);
    tcase_add_test(c, one_sheet_in_every_format);
    tcase_add_test(c, a_bare_sheet_has_a_remark_for_a_caption);
    tcase_add_test(c, latex_has_minus_signs_where_numbers_are);
    tcase_add_test(c, latex_of_more_than_a_page_is_a_longtable);
    tcase_add_test(c, latex_too_wide_for_a_longtable_is_floats_of_some_rows);
    tcase_add_test(c, the_best_of_a_column_are_all_that_print_alike);
    tcase_add_test(c, counts_are_short);
    tcase_add_test(c, no_text_is_cut_off);
    tcase_add_loop_test(c, a_sheet_that_is_built_wrongly_is_told_and_not_written, 0,
                        (int)(sizeof misbuilt / sizeof *misbuilt));
    tcase_add_loop_test(c, a_sheet_without_columns_or_with_a_note_to_no_cell_is_told, 0, 2);
    tcase_add_test(c, a_sheet_for_which_there_was_no_memory_is_told);
    tcase_add_test(c, columns_are_picked_where_they_are);
    tcase_add_test(c, what_is_no_number_is_sorted_behind_the_numbers);
    tcase_add_test(c, more_columns_than_a_table_can_have_are_refused);
    tcase_add_test(c, a_note_goes_with_its_columns);
    tcase_add_test(c, a_column_on_request_is_there_for_who_names_it);
    tcase_add_test(c, a_plus_has_a_column_behind_the_usual_ones);
    tcase_add_test(c, what_names_the_rows_stays);
    suite_add_tcase(s, c);
    return s;
}
