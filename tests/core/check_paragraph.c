/* check_paragraph.c - text as wide as a terminal. */
#include <stdlib.h>
#include <string.h>

#include "core/paragraph.h"
#include "tests/testing.h"

/* Returns the text as it is written after "--n  ", 5 columns, on a terminal of that width; 0: on none. */
static char *written(int width, const char *text) {
    char *out = NULL;
    size_t size;
    FILE *f = open_memstream(&out, &size);
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(terminal_width(f), 0);
    fputs("--n  ", f);
    paragraph_print(f, width, 5, 5, text);
    fclose(f);
    return out;
}

START_TEST(words_go_on_in_the_next_line) {
    static const struct {
        int width;
        const char *text, *wanted;
    } known[] = {
        {0, "one two  three", "--n  one two  three"},
        {80, "one two  three", "--n  one two  three"},
        {12, "one two three", "--n  one two\n     three"},
        {11, "one two three", "--n  one\n     two\n     three"},
        {10, "extraordinary one", "--n  extraordinary\n     one"}, /* wider than there is room */
        {10, "", "--n  "},
        {12, "one\ttwo\x1b[1m", "--n  one two\n     [1m"},
        {12, "\xc3\xa4\xc3\xb6\xc3\xbc two x", "--n  \xc3\xa4\xc3\xb6\xc3\xbc two\n     x"},
        {12, "one\u202etwo\xc2\x9b\u2029three", "--n  one two\n     three"},
        {3, "a b", "--n  a\n     b"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char *out = written(known[i].width, known[i].text);
        ck_assert_str_eq(out, known[i].wanted);
        free(out);
    }
}
END_TEST

/* Every character that a terminal obeys is one question mark, its neighbours are not. */
START_TEST(what_a_terminal_obeys_is_a_question_mark) {
    static const struct {
        const char *text, *shown;
    } known[] = {
        {"", ""},
        {"a\tb\nc\033[31m\177", "a?b?c?[31m?"},
        {"\xc2\x80\xc2\x9f\u00a0", "??\u00a0"},
        {"\u061b\u061c\u061d", "\u061b?\u061d"},
        {"\u200d\u200e\u200f\u2010", "\u200d??\u2010"},
        {"\u2027\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u202f", "\u2027???????\u202f"},
        {"\u2065\u2066\u2067\u2068\u2069\u206a", "\u2065????\u206a"},
        {"\xe2\x80", "\xe2\x80"}, /* cut off */
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char text[64];
        ck_assert_str_eq(text_shown(known[i].text, text, sizeof text), known[i].shown);
        snprintf(text, sizeof text, "%s", known[i].text);
        ck_assert_str_eq(text_shown(text, text, sizeof text), known[i].shown);
    }
    char cut[4];
    ck_assert_str_eq(text_shown("abcdef", cut, sizeof cut), "abc");
}
END_TEST

Suite *check_paragraph(void);
Suite *check_paragraph(void) {
    Suite *suite = suite_create("paragraph");
    TCase *c = tcase_create("paragraph");
    tcase_add_test(c, words_go_on_in_the_next_line);
    tcase_add_test(c, what_a_terminal_obeys_is_a_question_mark);
    suite_add_tcase(suite, c);
    return suite;
}
