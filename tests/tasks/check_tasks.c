/* check_tasks.c - every task of the registry and every alias; names, labels and options. */
#include <math.h>
#include <string.h>

#include "core/label.h"
#include "tests/tasks/task_examples.h"

/* --- every task --------------------------------------------------------------------------------------------------- */

static void for_each_name(void (*check)(const char *name)) {
    for (const struct task *const *t = task_list(); *t; t++) {
        check((*t)->name);
        for (const struct task_alias *a = (*t)->aliases; a && a->name; a++) check(a->name);
    }
}

static void check_declaration(const char *name) {
    struct task_choice c;
    open_task(&c, name, 1);
    ck_assert_uint_le(c.task->inst_bytes, TASK_INST_BYTES);
    ck_assert_int_ge(c.task->version, 1);
    ck_assert(c.task->summary[0] && c.task->suite[0]);
    const struct task_shape *s = &c.shape;
    ck_assert(s->T >= 1 && s->vocab_out >= 1 && (s->vocab_in >= 1 || s->channels >= 1));
    for (int split = 0; split < SPLIT_COUNT; split++) ck_assert_int_ge(s->examples[split], 1);
    ck_assert(0 <= s->chance && s->chance <= s->floor && s->floor < s->solved && s->solved <= 1);
    ck_assert(s->metric >= 0 && s->metric < METRIC_COUNT);
    for (const struct option *o = c.task->options; o->name; o++) ck_assert(o->help && o->help[0]);
    for (const char *line = c.task->about; line && *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
        ck_assert_msg(strcspn(line, "\n") <= 118, "%s: a line of about is too long: %.118s", name, line);
    ck_assert_msg(!c.task->about || strstr(c.task->about, "hance"), "%s: about says nothing of chance", name);
}

START_TEST(declarations_are_complete) {
    for_each_name(check_declaration);
}
END_TEST

static void format_options(const struct task_choice *c, char text[4096]) {
    int n = options_format(c->task->options, c->inst, " ", OPT_FOUND, text, 4096);
    ck_assert(n >= 0 && n < 4096);
}

static void check_unchanged(const char *name) {
    struct task_choice c;
    char asked[4096], opened[4096];
    struct error e;
    ck_assert_msg(task_parse(&c, name, &e) == ST_OK, "%s: %s", name, e.text);
    format_options(&c, asked);
    open_task(&c, name, 1);
    format_options(&c, opened);
    ck_assert_str_eq(opened, asked);
}

/* A run stores the name by which it was called. */
START_TEST(opening_a_task_changes_no_option) {
    for_each_name(check_unchanged);
    check_unchanged("pairs:passage=4");
}
END_TEST

static int times_listed;
static const char *wanted_name;

static void count_name(const char *name) {
    times_listed += strcmp(name, wanted_name) == 0;
}

static void check_unique(const char *name) {
    times_listed = 0;
    wanted_name = name;
    for_each_name(count_name);
    ck_assert_msg(times_listed == 1, "the name %s is taken %d times", name, times_listed);
}

START_TEST(names_are_unique) {
    for_each_name(check_unique);
}
END_TEST

/* Number of examples to look at: a tenth for long examples. */
static int looks(const struct task_shape *s, int usual) {
    return s->T * (s->vocab_in ? 1 : s->channels) > 4096 ? usual / 10 : usual;
}

/* The example's inputs and targets are in range; one assertion a row, because libcheck notes each one in a file. */
static void check_example_ranges(const char *name, const struct task_shape *s, enum split split,
                                 const struct example *x) {
    int64_t scored = 0, scored_padding = 0, T = task_documents(s) * task_length(s, split);
    for (int64_t t = 0; x->tokens && t < T; t++)
        if (x->tokens[t] < 0 || x->tokens[t] >= s->vocab_in) ck_abort_msg("%s: input %d", name, x->tokens[t]);
    for (int64_t t = 0; x->values && t < T * s->channels; t++)
        if (!isfinite((double)x->values[t])) ck_abort_msg("%s: input %g", name, (double)x->values[t]);
    for (int64_t t = 0; t < task_targets(s, split); t++) {
        int32_t y = x->targets[t];
        if (y == IGNORED) continue;
        if (y < 0 || y >= s->vocab_out) ck_abort_msg("%s: target %d", name, y);
        scored++;
        scored_padding += !s->per_sequence && t >= x->length;
    }
    ck_assert_msg(scored > 0, "%s: nothing to score", name);
    ck_assert_msg(scored_padding == 0, "%s scores padding", name);
}

static void check_ranges(const char *name) {
    struct task_choice c;
    open_task(&c, name, 1);
    const struct task_shape *s = &c.shape;
    struct example x = new_example(s);
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int k = 0, n = looks(s, 200); k < n; k++) {
            fill_example(&c, (enum split)split, spread(s, (enum split)split, k, n), -7, &x);
            ck_assert(1 <= x.length && x.length <= task_length(s, (enum split)split));
            ck_assert(x.second <= task_length(s, (enum split)split) && (x.second > 0) == (task_documents(s) > 1));
            check_example_ranges(name, s, (enum split)split, &x);
        }
    free_example(&x);
}

START_TEST(inputs_and_targets_are_in_range) {
    for_each_name(check_ranges);
}
END_TEST

/* Examples of test differ in length exactly where the shape says so. */
static void check_unequal(const char *name) {
    struct task_choice c;
    open_task(&c, name, 1);
    struct example x = new_example(&c.shape);
    int64_t least = INT64_MAX, most = 0;
    for (int k = 0, n = looks(&c.shape, 200); k < n; k++) {
        fill_example(&c, SPLIT_TEST, spread(&c.shape, SPLIT_TEST, k, n), -7, &x);
        if (x.length < least) least = x.length;
        if (x.length > most) most = x.length;
    }
    ck_assert_msg(c.shape.unequal_test == (least < most), "%s: lengths %lld to %lld, said to be %s", name,
                  (long long)least, (long long)most, c.shape.unequal_test ? "unequal" : "equal");
    free_example(&x);
}

START_TEST(a_task_says_whether_its_test_examples_differ_in_length) {
    for_each_name(check_unequal);
    check_unequal("parity:min_length=9,max_length=9");
    check_unequal("parity:eval_min_length=50,eval_max_length=50");
    check_unequal("arrow:size=24,scale=1");
    check_unequal("brackets:min_length=40,max_length=40");
    check_unequal("pairs:min_length=40,max_length=40,passage=8");
    check_unequal("spirals:min_length=20,max_length=20");
    check_unequal("molecules:min_nodes=12,max_nodes=12");
}
END_TEST

static void check_pure(const char *name) {
    struct task_choice c, other;
    open_task(&c, name, 42);
    struct example a = new_example(&c.shape), b = new_example(&c.shape);
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int k = 0, n = looks(&c.shape, 50); k < n; k++) {
            int64_t index = spread(&c.shape, (enum split)split, k, n);
            fill_example(&c, (enum split)split, index, -7, &a);
            fill_example(&c, (enum split)split, spread(&c.shape, (enum split)split, n - 1 - k, n), -9,
                         &b); /* another one between */
            fill_example(&c, (enum split)split, index, -9, &b);
            ck_assert_msg(same_example(&c.shape, (enum split)split, &a, &b), "%s: split %d, example %lld", name, split,
                          (long long)index);
            open_task(&other, name, 42);
            fill_example(&other, (enum split)split, index, -9, &b);
            ck_assert_msg(same_example(&c.shape, (enum split)split, &a, &b), "%s: split %d, example %lld", name, split,
                          (long long)index);
        }
    free_example(&a);
    free_example(&b);
}

START_TEST(an_example_is_a_pure_function_of_seed_split_and_index) {
    for_each_name(check_pure);
}
END_TEST

static void check_seeds(const char *name) {
    struct task_choice c, other;
    open_task(&c, name, 1);
    struct example a = new_example(&c.shape), b = new_example(&c.shape);
    const int n = looks(&c.shape, 100);
    const uint64_t seeds[] = {2, 1 + (UINT64_C(1) << 32)};
    for (int seed = 0; seed < 2; seed++) {
        open_task(&other, name, seeds[seed]);
        int same[SPLIT_COUNT] = {0};
        for (int split = 0; split < SPLIT_COUNT; split++)
            for (int k = 0; k < n; k++) {
                fill_example(&c, (enum split)split, spread(&c.shape, (enum split)split, k, n), -7, &a);
                fill_example(&other, (enum split)split, spread(&c.shape, (enum split)split, k, n), -7, &b);
                same[split] += same_example(&c.shape, (enum split)split, &a, &b);
            }
        if (c.task->divided_by_seed) continue;                    /* which series are held out is the seed's choice */
        if (c.task->data || option_find(c.task->options, "fold")) /* a set that is cut into folds is a fixed one */
            ck_assert_msg(same[SPLIT_TRAIN] == n, "%s: examples of a fixed set depend on the seed", name);
        else
            ck_assert_msg(same[SPLIT_TRAIN] < n / 2, "%s: %d of %d training examples do not depend on the seed", name,
                          same[SPLIT_TRAIN], n);
        ck_assert_msg(same[SPLIT_VAL] == n && same[SPLIT_TEST] == n, "%s: held-out examples depend on the seed", name);
    }
    free_example(&a);
    free_example(&b);
}

START_TEST(the_seed_changes_training_and_nothing_else) {
    for_each_name(check_seeds);
}
END_TEST

/* --- names and options ------------------------------------------------------------------------------------------- */

static void check_label(const char *text, const char *label) {
    struct task_choice c;
    struct error e = {ST_OK, ""};
    ck_assert_msg(task_parse(&c, text, &e) == ST_OK, "%s: %s", text, e.text);
    ck_assert_str_eq(c.name, label);
    ck_assert_ptr_eq(c.name, c.label);
    struct task_choice again;
    ck_assert_int_eq(task_parse(&again, label, &e), ST_OK);
    ck_assert_msg(memcmp(c.inst, again.inst, c.task->inst_bytes) == 0, "%s does not read back as %s", label, text);
}

START_TEST(labels_are_alias_names_or_what_differs) {
    check_label("s5", "s5");
    check_label("s5:length=8", "s5:length=8");
    check_label("s5:length=16", "s5");
    check_label("s5:n_train=3k,group=s4", "s4-3k");
    check_label("s3:n_train=250", "s3-250");
    check_label("word-problem:group=s5,length=16,n_train=100000", "s5");
    check_label("word-problem:n_train=100k,group=s5", "s5");
    check_label("word-problem:split=80-20,group=z60", "word-problem:group=z60,split=80-20");
    check_label("word-problem", "s3");
    check_label("a5:n_test=10,length=20", "a5:length=20,n_test=10");
    check_label("template:vocab=3", "template:vocab=3");
    check_label("template", "template");
}
END_TEST

/* The test set of each of several lengths is the one that the task has when its own length is that one. */
static void check_test_lengths(const char *name, const char *lengths, int n_lengths, const char *const *alone) {
    struct task_choice c, plain, one;
    char text[200];
    snprintf(text, sizeof text, "%s,test_length=%s", name, lengths);
    open_task(&c, text, 3);
    open_task(&plain, name, 3);
    ck_assert_int_eq(c.n_tested, n_lengths);
    ck_assert(c.shape.T == plain.shape.T);
    ck_assert(c.shape.unequal_test == (n_lengths > 1));
    ck_assert_int_eq(c.shape.examples[SPLIT_TEST], n_lengths * plain.shape.examples[SPLIT_TEST]);
    struct example x = new_example(&c.shape), y = new_example(&c.shape);
    fill_example(&c, SPLIT_TRAIN, 3, -7, &x);
    fill_example(&plain, SPLIT_TRAIN, 3, -7, &y);
    ck_assert_msg(same_example(&plain.shape, SPLIT_TRAIN, &x, &y), "%s: training differs", text);
    for (int k = 0; k < n_lengths; k++) {
        open_task(&one, alone[k], 3);
        int64_t T = task_length(&one.shape, SPLIT_TEST), all = task_length(&c.shape, SPLIT_TEST), padding = 0;
        for (int64_t i = 0; i < 5; i++) {
            fill_example(&c, SPLIT_TEST, k * one.shape.examples[SPLIT_TEST] + i, -7, &x);
            fill_example(&one, SPLIT_TEST, i, -7, &y);
            ck_assert_msg(same_example(&one.shape, SPLIT_TEST, &x, &y), "%s: example %d of %s", text, (int)i, alone[k]);
            for (int64_t t = T; t < all; t++) padding += x.tokens[t] == 0 && x.targets[t] == IGNORED;
        }
        ck_assert_int_eq(padding, 5 * (all - T));
    }
    fill_example(&c, SPLIT_VAL, 1, -7, &x); /* as long as in training, in the room of the longest */
    fill_example(&plain, SPLIT_VAL, 1, -7, &y);
    ck_assert_int_eq(x.length, y.length);
    ck_assert(memcmp(x.tokens, y.tokens, (size_t)x.length * sizeof *x.tokens) == 0);
    free_example(&x);
    free_example(&y);
}

START_TEST(one_training_is_tested_at_several_lengths) {
    check_test_lengths("s5:n_test=20", "8,16,40", 3,
                       (const char *const[]){"s5:n_test=20,length=8", "s5:n_test=20", "s5:n_test=20,length=40"});
    check_test_lengths("mqar:length=32,n_test=20", "32,64", 2,
                       (const char *const[]){"mqar:length=32,n_test=20", "mqar:length=64,n_test=20"});
    check_test_lengths(
        "selective-copying:length=64,n_test=20", "64,128", 2,
        (const char *const[]){"selective-copying:length=64,n_test=20", "selective-copying:length=128,n_test=20"});
    check_test_lengths("in-context-recall:length=32,n_test=20", "16", 1,
                       (const char *const[]){"in-context-recall:length=16,n_test=20"});
    check_test_lengths("fuzzy-recall:length=32,n_test=20", "64", 1,
                       (const char *const[]){"fuzzy-recall:length=64,n_test=20"});
    check_test_lengths("parity:n_test=20,eval_max_length=50", "64,128", 2,
                       (const char *const[]){"parity:n_test=20,eval_min_length=64,eval_max_length=64",
                                             "parity:n_test=20,eval_min_length=128,eval_max_length=128"});
    check_test_lengths("word-problem:group=q8,generators=two,length=20,n_test=20", "20,40", 2,
                       (const char *const[]){"word-problem:group=q8,generators=two,length=20,n_test=20",
                                             "word-problem:group=q8,generators=two,length=40,n_test=20"});
    check_test_lengths("binary-addition:n_test=20,eval_max_length=50", "50,100", 2,
                       (const char *const[]){"binary-addition:n_test=20,eval_min_length=50,eval_max_length=50",
                                             "binary-addition:n_test=20,eval_min_length=100,eval_max_length=100"});
    check_test_lengths(
        "flip-flop-sparse:length=32,n_test=20", "32,128", 2,
        (const char *const[]){"flip-flop-sparse:length=32,n_test=20", "flip-flop-sparse:length=128,n_test=20"});
    check_test_lengths("dyck:n_test=20", "84,180", 2,
                       (const char *const[]){"dyck:n_test=20,eval_length=84", "dyck:n_test=20"});
    check_test_lengths("regbench:length=64,n_test=20", "64,96", 2,
                       (const char *const[]){"regbench:length=64,n_test=20", "regbench:length=96,n_test=20"});
    check_test_lengths("ngram-lookup:n_test=20", "64,128", 2,
                       (const char *const[]){"ngram-lookup:n_test=20,eval_length=64", "ngram-lookup:n_test=20"});
    check_test_lengths("compression:n_test=20", "16,32,64", 3,
                       (const char *const[]){"compression:n_test=20,length=16", "compression:n_test=20",
                                             "compression:n_test=20,length=64"});
    check_test_lengths("memorization:n_test=20", "32,128", 2,
                       (const char *const[]){"memorization:n_test=20", "memorization:n_test=20,length=128"});
    check_test_lengths("phone-book:n_test=20,entries=4", "4,9", 2, /* books of that many entries */
                       (const char *const[]){"phone-book:n_test=20,entries=4", "phone-book:n_test=20,entries=9"});
    check_label("s5:test_length=8,16", "s5:test_length=8,16");
    check_task_refused("s5:test_length=16,8", "test_length=16,8|ascend");
    check_task_refused("s5:test_length=8,8", "test_length=8,8|ascend");
    check_task_refused("s5:test_length=0,8", "ascend");
    check_task_refused("s5:test_length=11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27", "at most 16");
    check_task_refused("s3:n_train=100,test_length=4", "length 4 has only 1296 sequences");
    check_task_refused("s5:test_length=5000", "task word-problem with test_length=5000|4096");
    check_task_refused("memorization:test_length=33", "memorization: length=33 is not made of whole pairs");
    check_task_refused("phone-book:names=4,entries=4,test_length=4,17",
                       "names=4 give 16 names, too few for entries=17");
    check_task_refused("listops:test_length=8", "test_length");
}
END_TEST

START_TEST(a_task_is_renamed_to_what_another_label_calls_it) {
    static const struct {
        const char *label, *named, *result;
    } cases[] = {{"word-problem:group=s3,n_train=9", "s3:n_train=9", "s3:n_train=9"},
                 {"word-problem:group=s3,length=16,n_train=250", "s3-250", "s3-250"},
                 {"listops:file=/data,content=00,n_val=9", "listops:n_val=9", "listops:n_val=9,file=/data,content=00"},
                 {"listops:file=/data,n_val=9", "listops", "listops:file=/data,n_val=9"},
                 {"word-problem:group=s3,n_train=9", "s3:n_train=8", "word-problem:group=s3,n_train=9"},
                 {"word-problem:group=s3", "parity", "word-problem:group=s3"},
                 {"word-problem:group=s3", "no-such", "word-problem:group=s3"},
                 {"", "s3", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char label[LABEL_TEXT];
        struct error e;
        snprintf(label, sizeof label, "%s", cases[i].label);
        ck_assert_int_eq(task_rename(label, cases[i].named, &e), ST_OK);
        ck_assert_str_eq(label, cases[i].result);
    }
}
END_TEST

START_TEST(unknown_names_are_answered_with_the_nearest) {
    check_task_refused("sg5", "unknown task 'sg5'; did you mean 's5'?|lrnn list tasks");
    check_task_refused("word-problm:group=s5", "did you mean 'word-problem'?");
    check_task_refused("s4-3K", "did you mean 's4-3k'?");
    check_task_refused("xylophone-recital", "unknown task 'xylophone-recital'|lrnn list tasks");
    check_task_refused("", "unknown task ''");
    check_task_refused("s5:lenght=8", "s5|lenght|did you mean 'length'?");
    check_task_refused("s5:length=0", "length");
    check_task_refused("s5:length=5000", "length|4096");
    check_task_refused("s5:length=8x", "length=8x");
    check_task_refused("s5:split=70-30", "split");
}
END_TEST

START_TEST(hidden_tasks_are_found_and_not_offered) {
    struct task_choice c;
    struct error e;
    ck_assert_int_eq(task_parse(&c, "template", &e), ST_OK);
    ck_assert_int_eq(task_parse(&c, "templat", &e), ST_USAGE);
    ck_assert_ptr_null(strstr(e.text, "'template'"));
}
END_TEST

Suite *check_tasks(void) {
    Suite *suite = suite_create("tasks");
    TCase *tests = tcase_create("tasks");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_checked_fixture(tests, import_data, drop_data);
    tcase_add_test(tests, declarations_are_complete);
    tcase_add_test(tests, opening_a_task_changes_no_option);
    tcase_add_test(tests, names_are_unique);
    tcase_add_test(tests, inputs_and_targets_are_in_range);
    tcase_add_test(tests, a_task_says_whether_its_test_examples_differ_in_length);
    tcase_add_test(tests, an_example_is_a_pure_function_of_seed_split_and_index);
    tcase_add_test(tests, the_seed_changes_training_and_nothing_else);
    tcase_add_test(tests, labels_are_alias_names_or_what_differs);
    tcase_add_test(tests, one_training_is_tested_at_several_lengths);
    tcase_add_test(tests, a_task_is_renamed_to_what_another_label_calls_it);
    tcase_add_test(tests, unknown_names_are_answered_with_the_nearest);
    tcase_add_test(tests, hidden_tasks_are_found_and_not_offered);
    suite_add_tcase(suite, tests);
    return suite;
}
