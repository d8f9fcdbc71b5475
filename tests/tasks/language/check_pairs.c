/* check_pairs.c - pairs of documents: whether they share a passage is what their label says, released ones come out
 * character by character, and a net reads both. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/chi_square.h"
#include "tests/lib/program.h"
#include "tests/tasks/task_examples.h"

/* The words between the marks 2 and 3; -1: there are none. */
static int64_t find_passage(const int32_t *tokens, int64_t length, const int32_t **at) {
    int64_t from = 0, to;
    while (from < length && tokens[from] != 2) from++;
    for (to = from; to < length && tokens[to] != 3;) to++;
    *at = tokens + from + 1;
    return to < length ? to - from - 1 : -1;
}

static const struct {
    const char *task;
    int64_t passage, differ;
} labelled[] = {{"pairs", 40, 40},
                {"pairs:differ=1,min_length=60,max_length=100", 40, 1},
                {"pairs:passage=5,differ=2,words=3,min_length=7,max_length=7", 5, 2}};

START_TEST(labels_say_whether_passages_are_the_same) {
    struct task_choice c;
    open_task(&c, labelled[_i].task, 3);
    struct example x = new_example(&c.shape);
    int64_t labels[2] = {0}, n = _i ? 2000 : 200;
    for (int64_t i = 0; i < n; i++) {
        const int32_t *a, *b, *second = x.tokens + c.shape.T;
        int64_t differ = 0;
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        labels[x.targets[0]]++;
        bool marked = find_passage(x.tokens, x.length, &a) == labelled[_i].passage &&
                      find_passage(second, x.second, &b) == labelled[_i].passage;
        if (!marked || x.tokens[x.length - 1] != 1 || second[x.second - 1] != 1) ck_abort_msg("pair %d", (int)i);
        for (int64_t k = 0; k < labelled[_i].passage; k++) differ += a[k] != b[k];
        if (differ != (x.targets[0] ? 0 : labelled[_i].differ))
            ck_abort_msg("%s: pair %d of label %d differs in %d words", labelled[_i].task, (int)i, x.targets[0],
                         (int)differ);
    }
    double z = chi_square_z(labels, 2, n);
    ck_assert_msg(z < 3, "%lld of label 0, %lld of label 1", (long long)labels[0], (long long)labels[1]);
    free_example(&x);
}
END_TEST

/* Lengths, places of passages and words are uniform. */
START_TEST(documents_are_drawn_evenly) {
    struct task_choice c;
    open_task(&c, "pairs:min_length=41,max_length=60,passage=10,words=16", 3);
    struct example x = new_example(&c.shape);
    int64_t lengths[20] = {0}, places[30] = {0}, words[16] = {0}, n_words = 0, n = 3000, placed = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t *a;
        fill_example(&c, SPLIT_TRAIN, i, -7, &x);
        lengths[x.second - 1 - 41]++;
        find_passage(x.tokens, x.length, &a);
        if (x.length == 42) places[a - 1 - x.tokens]++, placed++;
        for (int64_t t = 0; t < x.length; t++)
            if (x.tokens[t] > 3) words[x.tokens[t] - 4]++, n_words++;
    }
    ck_assert(fabs(chi_square_z(lengths, 20, n)) < 3 && fabs(chi_square_z(words, 16, n_words)) < 3);
    ck_assert(fabs(chi_square_z(places, 30, placed)) < 3);
    free_example(&x);
}
END_TEST

START_TEST(what_fits_no_document_is_refused) {
    check_task_refused("pairs:min_length=20,max_length=10", "pairs|min_length=20|max_length=10");
    check_task_refused("pairs:min_length=20,passage=19", "pairs|passage=19|min_length=21");
    check_task_refused("pairs:passage=4,differ=5", "pairs|4 words|differ=5");
}
END_TEST

/* --- released pairs ----------------------------------------------------------------------------------------------- */

/* Pair k of make.py: its texts as bytes, ids that stand for bytes. */
static bool is_pair(int k, const struct task_shape *s, const struct example *x) {
    static const char *const word[5] = {"film", "na\xc3\xafve", "5\xe2\x82\xac", "\xf0\x9f\x98\x80", "x"};
    if (x->targets[0] != k * 5 / 3 % 2) return false;
    for (int j = 0; j < 2; j++) {
        bool quoted = k % 3 == 0 && k % 2 == j;
        char text[200] = "";
        if (quoted) strcat(text, "\"");
        for (int i = 0; i < 3 + (k + j) % 4; i++) {
            if (i) strcat(text, " ");
            strcat(text, word[((7 * k + j) * 3 + i * i) % 5]);
        }
        if (quoted) strcat(text, " \"\"said\"");
        const int32_t *ids = x->tokens + j * s->T;
        int32_t length = j ? x->second : x->length;
        if (length != (int32_t)strlen(text) + 1 || ids[length - 1] != 257) return false;
        for (int32_t t = 0; t + 1 < length; t++)
            if (ids[t] != (uint8_t)text[t] + 1) return false;
    }
    return true;
}

START_TEST(released_pairs_are_those_of_their_files) {
    static const int first[] = {0, 9, 12}, count[] = {9, 3, 4};
    struct task_choice c;
    open_task(&c, "lra-retrieval:level=byte,length=100", 1);
    struct example x = new_example(&c.shape);
    for (int split = 0; split < SPLIT_COUNT; split++) {
        ck_assert_int_eq(c.shape.examples[split], count[split]);
        for (int i = 0; i < count[split]; i++) {
            fill_example(&c, (enum split)split, i, -7, &x);
            ck_assert_msg(is_pair(first[split] + i, &c.shape, &x), "split %d, pair %d", split, i);
        }
    }
    free_example(&x);
}
END_TEST

/* --- a net that reads both ---------------------------------------------------------------------------------------- */

/* An easy one is learnt, so both documents reach the label; order of making, threads and evaluation are as ever. */
START_TEST(pairs_are_learnt) {
    expect_status(run("data show pairs:min_length=4,max_length=6,passage=2"), 0, "data show");
    expect_text(out, "\"second\":[", "data show");
    expect_status(run("info pairs"), 0, "info pairs");
    expect_text(out, "documents  2 per example", "info pairs");
    expect_status(
        run("train pairs:min_length=3,max_length=4,passage=1,words=3,n_val=300,n_test=300 lstm:hidden=24 --dim "
            "24 --steps 400 --batch 50 --lr 0.01 --eval-every 100 --threads 1"),
        0, "train");
    expect_text(out, "(target)", "train");
    free_output();
}
END_TEST

START_TEST(lengths_are_those_of_both_documents) {
    struct task_choice c;
    char text[200];
    int64_t i = 0;
    reserve_task_host();
    open_task(&c, "pairs:min_length=4,max_length=6,passage=2", 3);
    struct example x = new_example(&c.shape);
    do fill_example(&c, SPLIT_TRAIN, i++, -7, &x);
    while (x.second <= x.length);
    snprintf(text, sizeof text, "data stats %s --seed 3 --first %d --count 1", c.name, (int)i - 1);
    expect_status(run(text), 0, text);
    snprintf(text, sizeof text, "lengths    %d to %d, mean %.1f\n", x.length, x.second, (x.length + x.second) / 2.0);
    expect_text(out, text, "data stats");
    snprintf(text, sizeof text, "data stats %s --seed 3 --first %d --count 1 --json", c.name, (int)i - 1);
    expect_status(run(text), 0, text);
    snprintf(text, sizeof text, "\"length_min\":%d,\"length_max\":%d,\"length_mean\":%.6g,", x.length, x.second,
             (x.length + x.second) / 2.0);
    expect_text(out, text, "data stats --json");
    free_example(&x);
    free_task_host();
    free_output();
}
END_TEST

Suite *check_pairs(void) {
    Suite *suite = suite_create("pairs");
    TCase *tests = tcase_create("pairs"), *command = tcase_create("command line");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_checked_fixture(tests, import_data, drop_data);
    tcase_add_loop_test(tests, labels_say_whether_passages_are_the_same, 0, (int)(sizeof labelled / sizeof *labelled));
    tcase_add_test(tests, documents_are_drawn_evenly);
    tcase_add_test(tests, what_fits_no_document_is_refused);
    tcase_add_test(tests, released_pairs_are_those_of_their_files);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(command, program_begin, program_end);
    tcase_set_timeout(command, 120);
    tcase_add_test(command, pairs_are_learnt);
    tcase_add_test(command, lengths_are_those_of_both_documents);
    suite_add_tcase(suite, command);
    return suite;
}
