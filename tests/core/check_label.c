/* check_label.c - labels, "name:key=value,...": read, changed, brought to canonical and short form, compared. */
#include <stdlib.h>
#include <string.h>

#include "core/label.h"
#include "tests/testing.h"

enum { OPT_ALWAYS = 1 << 20 }; /* a flag of the tests */

struct settings {
    int64_t m, blocks, width;
    double rate;
    int gate;
    char folder[OPTION_TEXT];
};

static const struct option table[] = {
    {"blocks", OPT_INT, offsetof(struct settings, blocks), "1k", 1, 1e6, NULL, "blocks", OPT_ALWAYS},
    {"m", OPT_INT, offsetof(struct settings, m), "5", 1, 64, NULL, "block size", 0},
    {"width", OPT_INT, offsetof(struct settings, width), "0", 0, 4096, NULL, "width", OPT_AUTO},
    {"rate", OPT_REAL, offsetof(struct settings, rate), "1e-3", 0, 10, NULL, "rate", 0},
    {"gate", OPT_CHOICE, offsetof(struct settings, gate), "softmax", 0, 0, "softmax relu", "gate", 0},
    {"folder", OPT_TEXT_FIELD, offsetof(struct settings, folder), "", 0, 0, NULL, "folder", 0},
    {0}};

static struct label read_label(const char *text) {
    struct label l;
    struct error e = {0};
    ck_assert_msg(label_parse(&l, "model", text, &e) == ST_OK, "%s: %s", text, e.text);
    return l;
}

static void expect_label(const struct label *l, const char *wanted) {
    char text[LABEL_TEXT];
    struct error e = {0};
    ck_assert_msg(label_format(l, text, sizeof text, &e) == ST_OK, "%s", e.text);
    ck_assert_str_eq(text, wanted);
}

static void expect_error(enum status status, const struct error *e, const char *part) {
    ck_assert_msg(status == ST_USAGE, "status %d, expected a sentence with \"%s\"", (int)status, part);
    ck_assert_msg(strstr(e->text, part) != NULL, "\"%s\" lacks \"%s\"", e->text, part);
}

/* --- text --------------------------------------------------------------------------------------------------------- */

START_TEST(a_label_is_read_pair_by_pair) {
    struct label l = read_label("slice:structure=block,file=/a:b=c,empty=");
    ck_assert_str_eq(label_name(&l), "slice");
    ck_assert_int_eq(l.n, 3);
    ck_assert_str_eq(label_key(&l, 0), "structure");
    ck_assert_str_eq(label_value(&l, 0), "block");
    ck_assert_str_eq(label_get(&l, "file"), "/a:b=c");
    ck_assert_str_eq(label_get(&l, "empty"), "");
    ck_assert_ptr_null(label_get(&l, "block")); /* a value, not a key */
    ck_assert_ptr_null(label_get(&l, "struct"));
    expect_label(&l, "slice:structure=block,file=/a:b=c,empty=");
}
END_TEST

START_TEST(a_name_alone_is_a_label) {
    static const char *const texts[] = {"lstm", "lstm:", "lstm:,"};
    struct label none = {0};
    for (int i = 0; i < 3; i++) {
        struct label l = read_label(texts[i]);
        ck_assert_int_eq(l.n, 0);
        ck_assert_ptr_null(label_get(&l, "lstm"));
        expect_label(&l, "lstm");
    }
    ck_assert_ptr_null(label_get(&none, ""));
    expect_label(&none, "");
}
END_TEST

START_TEST(pairs_are_read_without_a_name) {
    struct label l;
    struct error e = {0};
    ck_assert_int_eq(label_parse_pairs(&l, "profile", "  layers=1..4 decay=0,0.1 ", " ", &e), ST_OK);
    ck_assert_int_eq(l.n, 2);
    ck_assert_str_eq(label_get(&l, "decay"), "0,0.1");
    ck_assert_int_eq(label_parse_pairs(&l, "profile", "layers=2 decay=0", " ", &e), ST_OK);
    expect_label(&l, "layers=2,decay=0");
    ck_assert_int_eq(label_parse_pairs(&l, "profile", NULL, " ", &e), ST_OK);
    ck_assert_int_eq(l.n, 0);
    expect_label(&l, "");
    expect_error(label_parse_pairs(&l, "profile quick", "lr=1 steps", " ", &e), &e, "profile quick: 'steps'");
    expect_error(label_parse_pairs(&l, "profile quick", "lr=1,lr=2", ",", &e), &e, "profile quick: option 'lr'");
}
END_TEST

START_TEST(misfits_are_named) {
    struct label l;
    struct error e = {0};
    expect_error(label_parse(&l, "model", "bdlru:m", &e), &e, "model bdlru: 'm' is not of the form name=value");
    expect_error(label_parse(&l, "model", "bdlru:m=1,gate=relu,m=2", &e), &e, "model bdlru: option 'm' is given twice");
    l = read_label("bdlru:m=1");
    expect_error(label_add(&l, "m", "2", &e), &e, "option 'm' is given twice");
    expect_label(&l, "bdlru:m=1");
}
END_TEST

START_TEST(a_value_may_be_a_list_of_whole_numbers) {
    struct label l = read_label("s5:test_length=8,16,32,n_test=9"), pairs;
    struct error e = {0};
    ck_assert_int_eq(l.n, 2);
    ck_assert_str_eq(label_get(&l, "test_length"), "8,16,32");
    ck_assert_str_eq(label_get(&l, "n_test"), "9");
    expect_label(&l, "s5:test_length=8,16,32,n_test=9");
    ck_assert_int_eq(label_parse_pairs(&pairs, "profile", "a=1,2,3", ",", &e), ST_OK);
    expect_label(&pairs, "a=1,2,3");
    expect_error(
        label_parse(&l, "task", "s5:test_length=8,x", &e), &e,
        "task s5: 'x' is not of the form name=value; a sweep takes several values by --grid 'task.test_length=A,B'");
    expect_error(label_parse(&l, "task", "s5:8,16", &e), &e, "task s5: '8,16' is not of the form name=value");
    expect_error(label_parse(&l, "task", "s5:a=1,-2", &e), &e, "task s5: '-2' is not of the form name=value");
}
END_TEST

/* --- changes ------------------------------------------------------------------------------------------------------ */

START_TEST(values_change_in_their_place) {
    struct label l = read_label("bdlru:blocks=8,m=2,gate=relu"), copy = l;
    struct error e = {0};
    ck_assert_int_eq(label_set(&l, "m", "12345", &e), ST_OK);
    expect_label(&l, "bdlru:blocks=8,m=12345,gate=relu");
    ck_assert_int_eq(label_set(&l, "m", "", &e), ST_OK);
    expect_label(&l, "bdlru:blocks=8,m=,gate=relu");
    ck_assert_int_eq(label_set(&l, "rate", "1", &e), ST_OK);
    ck_assert_int_eq(label_add(&l, "width", "3", &e), ST_OK);
    ck_assert_int_eq(label_set_name(&l, "hlru-long", &e), ST_OK);
    expect_label(&l, "hlru-long:blocks=8,m=,gate=relu,rate=1,width=3");
    label_remove(&l, "blocks");
    label_remove(&l, "width");
    label_remove(&l, "absent");
    expect_label(&l, "hlru-long:m=,gate=relu,rate=1");
    expect_label(&copy, "bdlru:blocks=8,m=2,gate=relu");
}
END_TEST

START_TEST(a_label_without_a_name_can_be_built) {
    struct label l = {0}, other = {0};
    struct error e = {0};
    ck_assert_int_eq(label_add(&l, "m", "2", &e), ST_OK);
    ck_assert_int_eq(label_set_name(&l, "bdlru", &e), ST_OK);
    expect_label(&l, "bdlru:m=2");
    ck_assert_int_eq(label_set_name(&other, "s5", &e), ST_OK);
    expect_label(&other, "s5");
}
END_TEST

/* A label whose text has `length` characters. */
static struct label label_of_length(size_t length) {
    char text[LABEL_TEXT + 8] = "x:k=";
    memset(text + 4, 'v', length - 4);
    text[length] = 0;
    return read_label(text);
}

START_TEST(nothing_is_cut_off) {
    struct label most = label_of_length(LABEL_TEXT - 1), l;
    struct error e = {0};
    char text[LABEL_TEXT + 8] = "x:k=", small[8];
    expect_error(label_set(&most, "m", "", &e), &e, "longer than 4095 characters");
    expect_error(label_add(&most, "m", "", &e), &e, "longer than 4095 characters");
    expect_error(label_set_name(&most, "xy", &e), &e, "longer than 4095 characters");
    ck_assert_uint_eq(strlen(label_get(&most, "k")), LABEL_TEXT - 5);
    ck_assert_int_eq(label_format(&most, text, LABEL_TEXT, &e), ST_OK);
    expect_error(label_format(&most, text, LABEL_TEXT - 1, &e), &e, "longer than 4094 characters");
    memset(text + 4, 'v', LABEL_TEXT);
    text[LABEL_TEXT] = 0;
    expect_error(label_parse(&l, "model", text, &e), &e, "longer than 4095 characters");
    memset(text, 'v', 4);
    expect_error(label_parse(&l, "model", text, &e), &e, "longer than 4095 characters");
    l = read_label("bdlru:m=2");
    expect_error(label_format(&l, small, sizeof small, &e), &e, "'bdlru:...' with its options is longer than 7");
}
END_TEST

START_TEST(a_value_that_could_not_be_read_again_is_refused) {
    struct label l = read_label("bench");
    struct error e = {0};
    char text[64];
    ck_assert_int_eq(label_set(&l, "decay", "0,0.1", &e), ST_OK);
    expect_error(label_format(&l, text, sizeof text, &e), &e, "bench: '0,0.1' holds a comma");
}
END_TEST

/* --- against a table ---------------------------------------------------------------------------------------------- */

START_TEST(equal_settings_have_one_canonical_form) {
    static const char *const texts[] = {"bdlru", "bdlru:m=5", "bdlru:rate=0.001,gate=softmax,blocks=1000",
                                        "bdlru:width=auto,m=5,folder="};
    struct error e = {0};
    for (int i = 0; i < 4; i++) {
        struct label l = read_label(texts[i]);
        ck_assert_msg(label_canonical(&l, table, &e) == ST_OK, "%s", e.text);
        expect_label(&l, "bdlru:blocks=1000,m=5,width=auto,rate=0.001,gate=softmax,folder=");
    }
}
END_TEST

START_TEST(the_short_form_holds_what_differs) {
    static const char *const texts[][2] = {{"bdlru", "bdlru:blocks=1000"},
                                           {"bdlru:gate=relu,blocks=1k,m=5", "bdlru:blocks=1000,gate=relu"},
                                           {"bdlru:width=0,m=4,blocks=2", "bdlru:blocks=2,m=4"}};
    struct error e = {0};
    for (int i = 0; i < 3; i++) {
        struct label l = read_label(texts[i][0]);
        ck_assert_msg(label_shorten(&l, table, OPT_ALWAYS, &e) == ST_OK, "%s", e.text);
        expect_label(&l, texts[i][1]);
    }
}
END_TEST

START_TEST(what_the_table_does_not_take_is_refused) {
    static const char *const texts[][2] = {
        {"bdlru:gates=relu", "bdlru has no option 'gates'; did you mean 'gate'"},
        {"bdlru:m=65", "m=65 (bdlru): expected a whole number from 1 to 64"},
        {"bdlru:gate=tanh", "gate=tanh (bdlru): expected one of: softmax relu"},
    };
    for (int i = 0; i < 3; i++) {
        struct label l = read_label(texts[i][0]), same = l;
        struct error e = {0};
        expect_error(label_canonical(&l, table, &e), &e, texts[i][1]);
        expect_error(label_normalise(&l, table, &e), &e, texts[i][1]);
        l = same;
        expect_error(label_shorten(&l, table, 0, &e), &e, texts[i][1]);
    }
}
END_TEST

START_TEST(an_object_and_its_label_say_the_same) {
    struct settings s, back;
    struct label l = read_label("bdlru:m=7,rate=0.5,folder=/tmp/a b"), own;
    struct error e = {0};
    ck_assert_int_eq(options_default(table, &s, &e), ST_OK);
    ck_assert_msg(label_apply(&l, table, &s, "model bdlru", &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(s.m, 7);
    ck_assert_double_eq(s.rate, 0.5);
    ck_assert_int_eq(label_of(&own, "bdlru", table, &s, OPT_AUTO, &e), ST_OK);
    expect_label(&own, "bdlru:blocks=1000,m=7,rate=0.5,gate=softmax,folder=/tmp/a b");
    ck_assert_int_eq(options_default(table, &back, &e), ST_OK);
    ck_assert_int_eq(label_apply(&own, table, &back, "model bdlru", &e), ST_OK);
    ck_assert_int_eq(back.m, 7);
    ck_assert_str_eq(back.folder, "/tmp/a b");
    l = read_label("bdlru:n=7");
    expect_error(label_apply(&l, table, &s, "model bdlru", &e), &e, "model bdlru has no option 'n'");
}
END_TEST

START_TEST(labels_are_compared_by_their_values) {
    struct label run = read_label("bdlru:m=4"), l, difference;
    struct error e = {0};
    static const struct {
        const char *text;
        bool included;
    } cases[] = {{"bdlru", true},         {"bdlru:gate=softmax", true}, {"bdlru:rate=1e-3,m=4", true},
                 {"bdlru:m=5", false},    {"bdlru:gate=relu", false},   {"hlru:m=4", false},
                 {"bdlru:width=0", true}, {"bdlru:blocks=1k", true},    {"bdlru:m=4,blocks=1001", false}};
    ck_assert_int_eq(label_canonical(&run, table, &e), ST_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        l = read_label(cases[i].text);
        ck_assert_int_eq(label_normalise(&l, table, &e), ST_OK);
        ck_assert_msg(label_includes(&run, &l) == cases[i].included, "%s", cases[i].text);
    }
    l = read_label("hlru:m=4,gate=relu,rate=2");
    ck_assert_int_eq(label_difference(&l, &run, &difference, &e), ST_OK);
    expect_label(&difference, "bdlru:gate=relu,rate=2");
    ck_assert_int_eq(label_difference(&run, &run, &difference, &e), ST_OK);
    expect_label(&difference, "bdlru");
}
END_TEST

/* --- lists -------------------------------------------------------------------------------------------------------- */

START_TEST(a_list_is_taken_part_by_part) {
    const char *at = "1..4,,0.1";
    struct error e = {0};
    char part[5];
    static const char *const parts[] = {"1..4", "", "0.1"};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(text_part(&at, ",", part, sizeof part, &e), ST_OK);
        ck_assert_str_eq(part, parts[i]);
        if (*at) at++;
    }
    ck_assert_str_eq(at, "");
    at = "12345,6";
    expect_error(text_part(&at, ",", part, sizeof part, &e), &e, "longer than 4 characters");
    ck_assert_str_eq(at, "12345,6");
}
END_TEST

Suite *check_label(void);
Suite *check_label(void) {
    Suite *suite = suite_create("label");
    TCase *tests = tcase_create("label");
    tcase_add_test(tests, a_label_is_read_pair_by_pair);
    tcase_add_test(tests, a_name_alone_is_a_label);
    tcase_add_test(tests, pairs_are_read_without_a_name);
    tcase_add_test(tests, misfits_are_named);
    tcase_add_test(tests, a_value_may_be_a_list_of_whole_numbers);
    tcase_add_test(tests, values_change_in_their_place);
    tcase_add_test(tests, a_label_without_a_name_can_be_built);
    tcase_add_test(tests, nothing_is_cut_off);
    tcase_add_test(tests, a_value_that_could_not_be_read_again_is_refused);
    tcase_add_test(tests, equal_settings_have_one_canonical_form);
    tcase_add_test(tests, the_short_form_holds_what_differs);
    tcase_add_test(tests, what_the_table_does_not_take_is_refused);
    tcase_add_test(tests, an_object_and_its_label_say_the_same);
    tcase_add_test(tests, labels_are_compared_by_their_values);
    tcase_add_test(tests, a_list_is_taken_part_by_part);
    suite_add_tcase(suite, tests);
    return suite;
}
