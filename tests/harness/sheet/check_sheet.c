/* check_sheet.c - one sheet in every format, byte for byte, and what may not be built. */
#include <math.h>
#include <stdlib.h>
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

/* Numbers that print alike are marked alike; a number alone is the best of nothing; a mark is no part of a number. */
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

/* Faults in the example's rows, and where each is told. */
static void misbuild(struct sheet *s, int how) {
    if (how == 0) sheet_text(s, "one too many");
    if (how == 1) sheet_row(s), sheet_text(s, "the first of three");
    if (how == 2) sheet_row(s), sheet_text(s, "the first of three"), sheet_row(s);
    if (how == 3) sheet_column(s, SHEET_LEFT, "late");
}

static const char *const misbuilt[] = {"row 3 of the table Task_1: 50 % gets more cells than the 3 columns",
                                       "row 4 of the table Task_1: 50 % has 1 cells, its columns are 3",
                                       "row 4 of the table Task_1: 50 % has 1 cells, its columns are 3",
                                       "the table Task_1: 50 % gets a column after its first row"};

START_TEST(a_sheet_that_is_built_wrongly_is_told_and_not_written) {
    add_example();
    struct sheet *s = add_example();
    misbuild(s, _i);
    if (s->problem.status != ST_OK) sheet_text(s, "what comes after it changes nothing");
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

/* JSON consists of characters, but the name of a folder may have other bytes. */
START_TEST(json_has_characters_alone) {
    struct sheet *s = sheets_add(&sheets);
    sheet_column(s, SHEET_LEFT, "folder");
    sheet_row(s);
    sheet_text(s, "b\xe9"
                  "d \xc3\xa9 \xe2\x82 \xf0\x9f\x98\x80 \xed\xa0\x80 \xc0\x80");
    expect(&format_json, "{\"folder\":\"b\\ufffd"
                         "d \xc3\xa9 \\ufffd\\ufffd \xf0\x9f\x98\x80 "
                         "\\ufffd\\ufffd\\ufffd \\ufffd\\ufffd\"}\n");
}
END_TEST

/* A difference that prints as nothing has no sign of its own. */
START_TEST(nothing_is_not_negative) {
    struct sheet *s = sheets_add(&sheets);
    for (int i = 0; i < 3; i++) sheet_column(s, SHEET_RIGHT, "%d", i);
    sheet_row(s);
    sheet_difference(s, 3, -0.0004);
    sheet_difference(s, 3, -0.0006);
    sheet_difference(s, 3, NAN);
    ck_assert_str_eq(s->cells[0].text, "+0.000");
    ck_assert_str_eq(s->cells[1].text, "-0.001");
    ck_assert_str_eq(s->cells[2].text, "-");
    ck_assert_double_eq(s->cells[0].real, -0.0004);
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
    tcase_add_test(c, json_has_characters_alone);
    tcase_add_test(c, nothing_is_not_negative);
    suite_add_tcase(s, c);
    return s;
}
