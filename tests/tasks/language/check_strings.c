/* check_strings.c - strings of the Chomsky hierarchy, flip-flops, brackets, copies and phone books: each label
 * is found again from the inputs alone, by other means than the task's. $CHECK_EXAMPLES raises the number of
 * examples of a task from 400. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tasks/task_examples.h"

#define MAX_T 2048

/* The inputs of one example and its length; room for the answers of an oracle. */
struct seen {
    const struct task_choice *c;
    const int32_t *input;
    int n;                  /* inputs in use */
    int32_t answers[MAX_T]; /* IGNORED where the oracle expects nothing to be scored */
};

/* Compares every scored position of all splits with what the oracle says. The loss of training may score more: there
 * the oracle's positions alone are compared. */
static void check_labels(const char *text, void (*oracle)(struct seen *s)) {
    int64_t count = examples_to_check(400), wrong = 0, scored = 0;
    static struct seen s;
    struct task_choice c;
    open_task(&c, text, 7);
    struct example x = new_example(&c.shape);
    for (int64_t i = 0; i < count; i++) {
        enum split split = i % 3 == 0 ? SPLIT_TRAIN : i % 3 == 1 ? SPLIT_VAL : SPLIT_TEST;
        int64_t T = task_length(&c.shape, split);
        ck_assert_int_le(T, MAX_T);
        fill_example(&c, split, i / 3 % c.shape.examples[split], -7, &x);
        s.c = &c;
        s.input = x.tokens;
        s.n = x.length;
        for (int64_t t = 0; t < T; t++) s.answers[t] = IGNORED;
        oracle(&s);
        for (int64_t t = 0; t < T; t++) {
            scored += s.answers[t] != IGNORED;
            wrong += s.answers[t] != x.targets[t] && (split != SPLIT_TRAIN || s.answers[t] != IGNORED);
        }
    }
    free_example(&x);
    ck_assert_msg(wrong == 0 && scored >= count, "%s: %lld labels of %lld examples are wrong, %lld are scored", text,
                  (long long)wrong, (long long)count, (long long)scored);
    labels_checked(text, count, scored);
}

/* --- Chomsky hierarchy -------------------------------------------------------------------------------------------- */

/* Symbols before the first query step. */
static int symbols_of(const struct seen *s) {
    int n = 0, query = (int)s->c->shape.vocab_in - 1;
    while (n < s->n && s->input[n] != query) n++;
    return n;
}

static void reversed(struct seen *s) {
    int n = symbols_of(s);
    for (int i = 0; i < n; i++) s->answers[n + (n - 1 - i)] = s->input[i];
}

static void duplicated(struct seen *s) {
    int n = symbols_of(s);
    for (int i = 0; i < n; i++) s->answers[n + i] = s->answers[2 * n + i] = s->input[i];
}

/* s_1 is the first: odd places of a count from 0. */
static void odds_first(struct seen *s) {
    int n = symbols_of(s), odd = n / 2;
    for (int i = 0; i < n; i++) s->answers[n + (i % 2 ? i / 2 : odd + i / 2)] = s->input[i];
}

static int compare_ids(const void *a, const void *b) {
    return *(const int32_t *)a - *(const int32_t *)b;
}

static void sorted(struct seen *s) {
    int n = symbols_of(s);
    memcpy(s->answers + n, s->input, (size_t)n * sizeof *s->input);
    qsort(s->answers + n, (size_t)n, sizeof *s->answers, compare_ids);
}

static void majority(struct seen *s) {
    int n = symbols_of(s), balance = 0;
    for (int i = 0; i < n; i++) balance += s->input[i] ? 1 : -1;
    s->answers[n] = balance > 0;
}

static void missing(struct seen *s) {
    int n = symbols_of(s), half = n / 2, at = 0;
    while (s->input[at] != 2) at++;
    for (int i = 0; i < half; i++) ck_assert(i == at % half || s->input[i] == s->input[half + i]);
    s->answers[n] = s->input[(at + half) % (2 * half)];
}

/* Cancels each pop with the nearest push before it that is left, on a list of the string; pops without one go. */
static void stack(struct seen *s) {
    int n = symbols_of(s), m = n;
    bool gone[MAX_T] = {false};
    for (int i = 0; i < n; i++) {
        int push = i - 1;
        if (s->input[i] != 2) continue;
        gone[i] = true;
        while (push >= 0 && gone[push]) push--;
        if (push >= 0) gone[push] = true;
    }
    for (int i = n - 1; i >= 0; i--)
        if (!gone[i]) s->answers[m++] = s->input[i] % 3; /* 3 and 4 push 0 and 1 */
    s->answers[m] = 2;
}

/* The value of an expression by recursive descent: expression = digit | '-' digit | '(' expression [+- expression] ')'.
 */
static int parse(const int32_t **at, int hidden) {
    int32_t symbol = *(*at)++;
    if (symbol < 5) return symbol;
    if (symbol == 9) return hidden;
    if (symbol == 6) return -parse(at, hidden);
    ck_assert_int_eq(symbol, 7);
    int value = parse(at, hidden);
    symbol = *(*at)++;
    if (symbol != 8) {
        int right = parse(at, hidden);
        ck_assert(symbol == 5 || symbol == 6);
        value += symbol == 5 ? right : -right;
        ck_assert_int_eq(*(*at)++, 8);
    }
    return value % 5;
}

static void evaluated(struct seen *s) {
    const int32_t *at = s->input;
    int n = symbols_of(s);
    s->answers[n] = (parse(&at, -1) + 5) % 5;
    ck_assert_ptr_eq(at, s->input + n);
}

static void solved(struct seen *s) {
    int n = symbols_of(s), solutions = 0;
    for (int digit = 0; digit < 5; digit++) {
        const int32_t *at = s->input;
        int value = (parse(&at, digit) + 5) % 5;
        ck_assert(at == s->input + n - 2 && at[0] == 10);
        if (value != at[1]) continue;
        s->answers[n] = digit;
        solutions++;
    }
    ck_assert_int_eq(solutions, 1);
}

/* Two numbers and what `times` says of them; at most 60 symbols. */
static void calculate(struct seen *s, bool times) {
    uint64_t number[2] = {0};
    int n = symbols_of(s), which = 0, bit = 0, m = n;
    for (int i = 0; i < n; i++) {
        if (s->input[i] == 2) {
            which++;
            bit = 0;
        } else {
            number[which] |= (uint64_t)s->input[i] << bit++;
        }
    }
    ck_assert(which == 1 && number[0] && number[1]);
    uint64_t result = times ? number[0] * number[1] : number[0] + number[1];
    for (; result; result >>= 1) s->answers[m++] = result & 1;
    s->answers[m] = 2;
}

static void added(struct seen *s) {
    calculate(s, false);
}

static void multiplied(struct seen *s) {
    calculate(s, true);
}

static const struct {
    const char *name;
    void (*oracle)(struct seen *s);
} languages[] = {{"reverse-string", reversed},
                 {"stack-manipulation", stack},
                 {"modular-arithmetic-brackets", evaluated},
                 {"solve-equation", solved},
                 {"duplicate-string", duplicated},
                 {"missing-duplicate", missing},
                 {"odds-first", odds_first},
                 {"binary-addition", added},
                 {"binary-multiplication", multiplied},
                 {"bucket-sort", sorted},
                 {"majority", majority}};

#define N_LANGUAGES (int)(sizeof languages / sizeof *languages)

START_TEST(answers_of_the_chomsky_hierarchy_are_right) {
    char text[128];
    snprintf(text, sizeof text, "%s:eval_max_length=60", languages[_i].name);
    check_labels(text, languages[_i].oracle);
}
END_TEST

/* Counts the right ones among the answers that the floors are about, over test strings of the default lengths. */
START_TEST(floors_of_the_chomsky_hierarchy_are_what_trivial_answers_reach) {
    struct task_choice c;
    open_task(&c, languages[_i].name, 1);
    struct example x = new_example(&c.shape);
    int64_t label[8] = {0}, scored = 0, by_place = 0, most = 0;
    for (int64_t i = 0; i < 2000; i++) {
        fill_example(&c, SPLIT_TEST, i, -7, &x);
        int64_t first = 0;
        while (x.targets[first] == IGNORED) first++;
        for (int64_t t = first; t < x.length && x.targets[t] != IGNORED; t++) {
            label[x.targets[t]]++;
            by_place += x.targets[t] == 5 * (t - first) / (x.length - first);
            scored++;
        }
    }
    for (int k = 0; k < 8; k++)
        if (label[k] > most) most = label[k];
    if (strcmp(languages[_i].name, "bucket-sort") == 0) most = by_place;
    ck_assert_msg(fabs((double)most / (double)scored - c.shape.floor) < 0.03, "%s: %.4f", c.name,
                  (double)most / (double)scored);
    free_example(&x);
}
END_TEST

START_TEST(lengths_that_cannot_be_are_refused) {
    check_task_refused("bucket-sort:min_length=41", "bucket-sort: no length is at least min_length=41");
    check_task_refused("majority:eval_min_length=300",
                       "majority: eval_min_length=300 is more than eval_max_length=256");
    check_task_refused("solve-equation:min_length=2", "solve-equation: strings have at least 3 symbols|min_length=2");
    check_task_refused("flip-flop:length=9", "flip-flop: length=9 is no number of pairs");
    check_task_refused("copy:min_length=65", "copy: no length is at least min_length=65");
    check_task_refused("ngram-lookup:min_length=5", "a string of 5 letters cannot hold ngram=3|answer=4");
    check_task_refused("phone-book:names=4", "names=4 give 16 names, too few for entries=20");
    check_task_refused("regbench:min_states=13", "min_states=13 is more than max_states=12");
    check_task_refused("regbench:symbols=11", "symbols=11 are too few for the alphabet of max_states=12");
}
END_TEST

/* --- flip-flops --------------------------------------------------------------------------------------------------- */

/* From each read back to the last write. */
static void last_written(struct seen *s) {
    for (int t = 0; t < s->n; t += 2) {
        if (s->input[t] != 1) continue;
        int back = t;
        while (s->input[back] != 0) back -= 2;
        s->answers[t] = s->input[back + 1];
    }
}

START_TEST(a_read_has_the_bit_that_was_written_last) {
    check_labels("flip-flop:length=64", last_written);
    check_labels("flip-flop-sparse", last_written);
    check_labels("flip-flop-dense:loss=all", last_written);
}
END_TEST

/* Shares of instructions, and the floor: how often the newest bit is the stored one. */
START_TEST(flip_flops_ignore_as_often_as_they_say) {
    static const struct {
        const char *name;
        double ignore;
    } rows[] = {{"flip-flop", 0.8}, {"flip-flop-sparse", 0.98}, {"flip-flop-dense", 0.1}};
    for (size_t k = 0; k < 3; k++) {
        struct task_choice c;
        open_task(&c, rows[k].name, 1);
        struct example x = new_example(&c.shape);
        int64_t count[3] = {0}, reads = 0, right = 0;
        for (int64_t i = 0; i < 1000; i++) {
            fill_example(&c, SPLIT_TEST, i, -7, &x);
            ck_assert(x.tokens[0] == 0 && x.tokens[x.length - 1] == 1 && x.length == 511);
            for (int t = 2; t < x.length; t += 2) {
                if (t < x.length - 1) count[x.tokens[t]]++;
                reads += x.targets[t] != IGNORED;
                right += x.targets[t] == x.tokens[t - 1];
            }
        }
        double share = (double)count[2] / (1000 * 254), error = 4 * sqrt(0.25 / (double)reads);
        ck_assert_double_eq_tol(share, rows[k].ignore, 0.01);
        ck_assert_double_eq_tol((double)count[0], (double)count[1], 4 * sqrt((double)(count[0] + count[1])));
        ck_assert_double_eq_tol((double)right / (double)reads, c.shape.floor, error);
        free_example(&x);
    }
}
END_TEST

/* --- brackets ----------------------------------------------------------------------------------------------------- */

/* From each closing bracket back to the innermost one that is still open. */
static void innermost(struct seen *s) {
    int kinds = (int)s->c->shape.vocab_in / 2;
    for (int t = 0; t < s->n; t++) {
        if (s->input[t] < kinds) continue;
        int closed = 0, back = t;
        for (; back >= 0; back--) {
            if (s->input[back] >= kinds)
                closed++;
            else if (closed-- == 0)
                break;
        }
        s->answers[t] = back < 0 ? kinds : s->input[back];
    }
}

/* Cancels neighbouring pairs until none is left: what remains is open. */
static int deepest(const int32_t *input, int n, int kinds) {
    int most = 0, depth = 0;
    for (int t = 0; t < n; t++) {
        depth += input[t] < kinds ? 1 : -1;
        if (depth > most) most = depth;
        ck_assert_int_ge(depth, 0);
    }
    return most;
}

START_TEST(brackets_close_the_innermost_open_one) {
    check_labels("dyck", innermost);
    check_labels("dyck:kinds=2,depth=3", innermost);
    check_labels("dyck:kinds=128,depth=16", innermost);
}
END_TEST

START_TEST(brackets_nest_as_deep_as_they_may_and_the_floor_is_that_none_is_open) {
    struct task_choice c;
    open_task(&c, "dyck:eval_length=1000", 1);
    struct example x = new_example(&c.shape);
    int64_t none = 0, scored = 0;
    int most = 0;
    for (int64_t i = 0; i < 200; i++) {
        fill_example(&c, SPLIT_TEST, i, -7, &x);
        int depth = deepest(x.tokens, x.length, 8);
        if (depth > most) most = depth;
        for (int t = 0; t < x.length; t++) {
            scored += x.targets[t] != IGNORED;
            none += x.targets[t] == 8;
        }
    }
    ck_assert_int_eq(most, 5);
    ck_assert_double_eq_tol((double)none / (double)scored, c.shape.floor, 0.01);
    free_example(&x);
}
END_TEST

/* --- copies ------------------------------------------------------------------------------------------------------- */

static void copied(struct seen *s) {
    int n = 0, separator = (int)s->c->shape.vocab_in - 2;
    while (s->input[n] != separator) n++;
    for (int i = 0; i < n; i++) s->answers[n + i] = s->input[i];
}

/* After the string: looks the n-gram of 3 up, left to right. */
static void looked_up(struct seen *s) {
    int n = 0, separator = (int)s->c->shape.vocab_in - 2, at = 0;
    while (s->input[n] != separator) n++;
    const int32_t *key = s->input + n + 1;
    while (s->input[at] != key[0] || s->input[at + 1] != key[1] || s->input[at + 2] != key[2]) at++;
    for (int i = 0; i < 4; i++) s->answers[n + 3 + i] = s->input[at + 3 + i];
}

static void looked_up_before(struct seen *s) {
    int at = 4, n = 4, separator = (int)s->c->shape.vocab_in - 2;
    while (s->input[n] != separator) n++;
    while (memcmp(s->input + at, s->input, 3 * sizeof *s->input) != 0) at++;
    for (int i = 0; i < 4; i++) s->answers[n + i] = s->input[at + 3 + i];
}

START_TEST(copies_and_looked_up_letters_are_those_of_the_string) {
    check_labels("copy", copied);
    check_labels("copy:letters=2,min_length=1,eval_length=300", copied);
    check_labels("ngram-lookup", looked_up);
    check_labels("ngram-lookup:letters=2", looked_up);
    check_labels("ngram-prefix", looked_up_before);
}
END_TEST

/* The answer of the one entry with the name that is asked for. */
static void phoned(struct seen *s) {
    int question = 0, found = 0;
    while (s->input[question] != 11) question++;
    for (int i = 0; i + 1 < question; i++) {
        if (s->input[i] != s->input[question + 1] || s->input[i + 1] != s->input[question + 2]) continue;
        for (int d = 0; s->input[i + 2 + d] < 10; d++) s->answers[question + 2 + d] = s->input[i + 2 + d];
        found++;
    }
    ck_assert_int_eq(found, 1);
}

START_TEST(the_number_is_that_of_the_name) {
    check_labels("phone-book", phoned);
    check_labels("phone-book:entries=64,names=8,digits=7", phoned);
}
END_TEST

/* --- keys and values ---------------------------------------------------------------------------------------------- */

/* Asks of a string: each place past the entries, which are `width` ids each, whose ids are a key gets the value of the
 * last entry with that key. Fillers are 0, which is no key. */
static void recalled(struct seen *s, int entries, int width) {
    int slot = entries * width, keys = width - 1;
    for (int t = slot; t + keys <= s->n; t += width)
        for (int i = entries - 1; i >= 0 && s->input[t]; i--) {
            if (memcmp(s->input + i * width, s->input + t, (size_t)keys * sizeof *s->input) != 0) continue;
            s->answers[t + keys - 1] = s->input[i * width + keys];
            break;
        }
}

static void recalled_8_and_4(struct seen *s) {
    recalled(s, 12, 2);
}

static void recalled_16_pairs(struct seen *s) {
    recalled(s, 16, 3);
}

/* Entries end where the next id is no new key: a filler, or one that has been shown. */
static void recalled_mixed(struct seen *s) {
    int entries = 0;
    bool seen[8192] = {false};
    while (s->input[2 * entries] && !seen[s->input[2 * entries]]) seen[s->input[2 * entries++]] = true;
    recalled(s, entries, 2);
}

START_TEST(values_are_those_of_the_last_entry_with_the_key) {
    check_labels("mqar-forgetting", recalled_8_and_4);
    check_labels("mqar-compositional:length=256,pairs=16,vocab=300", recalled_16_pairs);
    check_labels("mqar-256", recalled_mixed);
    check_labels("mqar:pairs=16,min_length=4,filler=zero", recalled_mixed);
    check_labels("mqar-mixed", recalled_mixed);
}
END_TEST

START_TEST(a_mixture_has_the_lengths_and_pairs_of_zoology) {
    static const int64_t length[2][7] = {{64, 128, 256, 256, 256}, {64, 64, 64, 128, 256, 512, 1024}};
    static const int pairs[2][7] = {{4, 8, 16, 32, 64}, {4, 8, 16, 32, 64, 128, 256}};
    static const int64_t begin[2][8] = {{0, 100000, 120000, 140000, 160000, 180000},
                                        {0, 1000, 2000, 3000, 4000, 5000, 6000, 7000}};
    struct task_choice c;
    open_task(&c, "mqar-mixed", 1);
    ck_assert(c.shape.T == 256 && c.shape.T_eval == 1024);
    struct example x = new_example(&c.shape);
    for (int test = 0; test < 2; test++)
        for (int part = 0; part < (test ? 7 : 5); part++)
            for (int end = 0; end < 2; end++) {
                int64_t index = end ? begin[test][part + 1] - 1 : begin[test][part];
                int scored = 0;
                fill_example(&c, test ? SPLIT_TEST : SPLIT_TRAIN, index, -7, &x);
                for (int t = 0; t < x.length; t++) scored += x.targets[t] != IGNORED;
                ck_assert_int_eq(x.length, length[test][part]);
                ck_assert_int_eq(scored, pairs[test][part]);
            }
    free_example(&x);
}
END_TEST

/* Neither id of a key tells its value: each is in as many entries as the grid has on a side. */
START_TEST(keys_of_two_ids_are_a_whole_grid) {
    struct task_choice c;
    open_task(&c, "mqar-compositional:length=256,pairs=16", 1);
    struct example x = new_example(&c.shape);
    for (int64_t k = 0; k < 200; k++) {
        fill_example(&c, SPLIT_TRAIN, k, -7, &x);
        for (int i = 0; i < 16; i++) {
            int first = 0, second = 0, value = 0;
            for (int j = 0; j < 16; j++) {
                first += x.tokens[3 * j] == x.tokens[3 * i];
                second += x.tokens[3 * j + 1] == x.tokens[3 * i + 1];
                value += x.tokens[3 * j + 2] == x.tokens[3 * i + 2];
            }
            ck_assert(first == 4 && second == 4 && value == 1);
        }
    }
    free_example(&x);
}
END_TEST

Suite *check_strings(void) {
    Suite *suite = suite_create("strings");
    TCase *tests = tcase_create("strings");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_loop_test(tests, answers_of_the_chomsky_hierarchy_are_right, 0, N_LANGUAGES);
    tcase_add_loop_test(tests, floors_of_the_chomsky_hierarchy_are_what_trivial_answers_reach, 0, N_LANGUAGES);
    tcase_add_test(tests, lengths_that_cannot_be_are_refused);
    tcase_add_test(tests, a_read_has_the_bit_that_was_written_last);
    tcase_add_test(tests, flip_flops_ignore_as_often_as_they_say);
    tcase_add_test(tests, brackets_close_the_innermost_open_one);
    tcase_add_test(tests, brackets_nest_as_deep_as_they_may_and_the_floor_is_that_none_is_open);
    tcase_add_test(tests, copies_and_looked_up_letters_are_those_of_the_string);
    tcase_add_test(tests, the_number_is_that_of_the_name);
    tcase_add_test(tests, values_are_those_of_the_last_entry_with_the_key);
    tcase_add_test(tests, a_mixture_has_the_lengths_and_pairs_of_zoology);
    tcase_add_test(tests, keys_of_two_ids_are_a_whole_grid);
    suite_add_tcase(suite, tests);
    return suite;
}
