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
        {3, "a b", "--n  a\n     b"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char *out = written(known[i].width, known[i].text);
        ck_assert_str_eq(out, known[i].wanted);
        free(out);
    }
}
END_TEST

Suite *check_paragraph(void);
Suite *check_paragraph(void) {
    Suite *suite = suite_create("paragraph");
    TCase *c = tcase_create("paragraph");
    tcase_add_test(c, words_go_on_in_the_next_line);
    suite_add_tcase(suite, c);
    return suite;
}
