/* check_numbers.c - numbers in text files, by themselves and on plain lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/data/text_source.h"
#include "tests/testing.h"

/* Reads these characters by text_integer; -1: no number begins there. `left`: the character after it. */
static int64_t integer_of(const char *text, size_t n, int *left) {
    struct byte_source s = {0};
    struct error e = {ST_OK, ""};
    struct text_source *t = calloc(1, sizeof *t);
    int64_t value = -1;
    ck_assert(t && source_open_memory(&s, text, n, "NUMBER", &e) == ST_OK);
    text_open(t, &s, &e);
    if (!text_integer(t, 0, INT64_MAX, &value)) value = -1;
    *left = text_peek(t);
    source_close(&s);
    free(t);
    return value;
}

/* Tries every length up to 17 digits, followed by each character, by none, and by digits after that. */
START_TEST(whole_numbers_end_where_their_digits_do) {
    int left, digits = _i;
    for (int c = 0; c < 256; c++) {
        char text[64] = "90817263549081726";
        text[digits] = (char)c;
        strcpy(text + digits + 1, "1234567890123456789");
        bool may_go_on = (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
        if (may_go_on || c == '\r') continue;
        char *end;
        int64_t value = integer_of(text, (size_t)digits + 20, &left);
        text[digits] = '\0';
        ck_assert_msg(value == strtoll(text, &end, 10) && left == c, "%s, then %d: %lld, then %d", text, c,
                      (long long)value, left);
    }
    char number[64] = "90817263549081726";
    number[digits] = '\0';
    ck_assert_int_eq(integer_of(number, (size_t)digits, &left), strtoll(number, NULL, 10));
    ck_assert_int_eq(left, TEXT_END);
    strcat(number, ".5 and more"); /* no whole number, as far as a double holds the half */
    if (digits <= 15) ck_assert_int_eq(integer_of(number, strlen(number), &left), -1);
}
END_TEST

/* Writes `whole` digits, a point if `fraction` is not negative, and that many digits after it. */
static void put_decimal(char text[64], int whole, int fraction, bool minus) {
    static const char digits[] = "90817263549081726";
    snprintf(text, 64, "%s%.*s%s%.*s", minus ? "-" : "", whole, digits, fraction < 0 ? "" : ".",
             fraction < 0 ? 0 : fraction, digits + 1);
}

/* Compares with strtod, with few characters after the number and with many, and on a plain line if there are 15 digits
 * at most. */
START_TEST(decimals_are_the_nearest_doubles) {
    struct text_source *t = calloc(1, sizeof *t);
    struct error e = {ST_OK, ""};
    for (int whole = 0; whole <= 17; whole++)
        for (int fraction = -1; fraction <= 16; fraction++)
            for (int form = 0; form < 4; form++) {
                int digits = whole + (fraction < 0 ? 0 : fraction);
                char text[160];
                double value = 0;
                float plain = 0;
                put_decimal(text, whole, fraction, form % 2 == 1);
                double want = strtod(text, NULL);
                size_t n = strlen(text);
                snprintf(text + n, sizeof text - n, "\n%*s", form < 2 ? 1 : 80, "|");
                struct byte_source s = {0};
                ck_assert(t && source_open_memory(&s, text, strlen(text), "NUMBER", &e) == ST_OK);
                text_open(t, &s, &e);
                ck_assert_int_eq(text_peek(t), text[0]); /* fills the window */
                bool taken = text_plain_numbers(t, 1, 1, &plain) == 1;
                ck_assert_msg(taken == (digits > 0 && digits <= 15 && form >= 2), "%s", text);
                ck_assert_msg(t->at == (taken ? n + 1 : 0) && t->line == (taken ? 2 : 1), "%s", text);
                ck_assert_msg(!taken || plain == (float)want, "%s", text);
                t->at = 0;
                ck_assert_msg(text_number(t, &value) == (digits > 0), "%s", text);
                ck_assert_msg(digits == 0 || (value == want && t->at == n), "%s: %.17g, %.17g", text, want, value);
                source_close(&s);
            }
    free(t);
}
END_TEST

/* Takes, out of three lines of two numbers, the plain ones within bounds, and nothing of the next one. */
START_TEST(plain_lines_end_where_one_has_another_form) {
    static const struct {
        const char *text;
        int lines, at;
    } some[] = {{"1, 2\n3,4\n50000000, 6\n", 3, 21},
                {"1, 2\n3, 4\r\n5, 6\n", 3, 15},
                {"1, 2\n3, 4 \n5, 6\n", 1, 5},
                {"1, 2\n3,  4\n5, 6\n", 1, 5},
                {"1, 2\n3, 4\n5\n", 2, 10},
                {"1, 2\n3, 4\n5, 6, 7\n", 2, 10},
                {"1, 2\n3, 0\n5, 6\n", 1, 5},
                {"1, 2\n3, 4\n5, 50000001\n", 2, 10},
                {"1, 2\n3, 4\n5, 000000006\n", 2, 10},
                {"1, 2\n+3, 4\n5, 6\n", 1, 5},
                {"1, 2\n3, 4.\n5, 6\n", 1, 5},
                {"\n1, 2\n3, 4\n", 0, 0}};
    struct text_source *t = calloc(1, sizeof *t);
    struct error e = {ST_OK, ""};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        char text[160];
        int32_t values[6] = {0};
        struct byte_source s = {0};
        snprintf(text, sizeof text, "%s%90s", some[i].text, "|");
        ck_assert(t && source_open_memory(&s, text, strlen(text), "LINES", &e) == ST_OK);
        text_open(t, &s, &e);
        text_peek(t);
        ck_assert_msg(text_plain_integers(t, 2, 1, 50000000, 3, values) == some[i].lines, "%s", some[i].text);
        ck_assert_msg((int)t->at == some[i].at && t->line == 1 + some[i].lines, "%s", some[i].text);
        for (int k = 0; k < 2 * some[i].lines; k++) ck_assert_int_eq(values[k], k == 4 && i == 0 ? 50000000 : k + 1);
        source_close(&s);
    }
    free(t);
}
END_TEST

/* Some file systems say that a file of many bytes has none. */
START_TEST(a_file_whose_size_is_not_known_is_read_to_its_end) {
    struct byte_source s;
    struct error e;
    char bytes[4096], sha[SHA256_HEX];
    size_t got = 0;
    ck_assert_int_eq(source_open(&s, "/proc/self/cmdline", &e), ST_OK);
    ck_assert_int_eq(s.size, 0);
    ck_assert_int_eq(source_read(&s, bytes, sizeof bytes, &got, &e), ST_OK);
    ck_assert(got > 0);
    ck_assert_int_eq(source_end(&s, sha, &e), ST_OK);
    source_close(&s);
}
END_TEST

Suite *check_numbers(void) {
    Suite *suite = suite_create("numbers");
    TCase *t = tcase_create("numbers");
    tcase_add_loop_test(t, whole_numbers_end_where_their_digits_do, 1, 18);
    tcase_add_test(t, decimals_are_the_nearest_doubles);
    tcase_add_test(t, plain_lines_end_where_one_has_another_form);
    tcase_add_test(t, a_file_whose_size_is_not_known_is_read_to_its_end);
    suite_add_tcase(suite, t);
    return suite;
}
