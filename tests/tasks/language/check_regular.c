/* check_regular.c - the four regular languages in their three encodings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/chi_square.h"
#include "tests/tasks/task_examples.h"

static const char *const names[4] = {"parity", "even-pairs", "cycle-navigation", "modular-arithmetic"};
static const char *const encodings[3] = {"slice", "xlstm", "deepmind"};

enum { PARITY, EVEN_PAIRS, CYCLE, ARITHMETIC, LANGUAGES };
enum { SLICE, XLSTM, DEEPMIND, ENCODINGS };

static int states_of(int language) {
    return language < CYCLE ? 2 : 5;
}

static void open_language(struct task_choice *c, int language, int encoding, const char *options, uint64_t seed) {
    char text[256];
    snprintf(text, sizeof text, "%s:encoding=%s%s%s", names[language], encodings[encoding], *options ? "," : "",
             options);
    open_task(c, text, seed);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

START_TEST(impossible_options_are_refused) {
    check_task_refused("parity:min_length=41", "parity: min_length=41 is more than max_length=40");
    check_task_refused("even-pairs:eval_min_length=257",
                       "even-pairs: eval_min_length=257 is more than eval_max_length=256");
    check_task_refused(
        "cycle-navigation:encoding=xlstm,min_length=1",
        "cycle-navigation: with encoding=xlstm a length counts the answer|min_length must be at least 2, "
        "got 1");
    check_task_refused("modular-arithmetic:encoding=xlstm,min_length=40",
                       "lengths are odd and at least 3, and there is none from min_length=40 to max_length=40");
    check_task_refused("modular-arithmetic:encoding=xlstm,eval_min_length=2,eval_max_length=2",
                       "none from eval_min_length=2 to eval_max_length=2");
    check_task_refused("parity:encoding=onehot",
                       "encoding=onehot (task parity): expected one of: slice xlstm deepmind");
    check_task_refused("parity:min_length=0", "min_length=0 (task parity): expected a whole number from 1 to 65536");
    check_task_refused("parity:eval_max_length=65537",
                       "eval_max_length=65537 (task parity): expected a whole number from 1 to 65536");
    check_task_refused("parity:n_val=0", "n_val=0");
    check_task_refused("parity:length=40", "has no option 'length'");
    check_task_refused("mod-arithmetic", "did you mean 'modular-arithmetic'?");
}
END_TEST

/* --- shapes ------------------------------------------------------------------------------------------------------- */

START_TEST(shapes_are_those_of_the_specification) {
    static const struct {
        int language, encoding;
        int64_t T, T_eval, vocab_in, vocab_out;
    } rows[] = {
        {PARITY, SLICE, 40, 256, 3, 3},    {EVEN_PAIRS, SLICE, 40, 256, 3, 3},
        {CYCLE, SLICE, 40, 256, 9, 9},     {ARITHMETIC, SLICE, 40, 256, 10, 10},
        {PARITY, XLSTM, 39, 255, 3, 3},    {EVEN_PAIRS, XLSTM, 39, 255, 3, 3},
        {CYCLE, XLSTM, 39, 255, 9, 9},     {ARITHMETIC, XLSTM, 38, 254, 10, 10},
        {PARITY, DEEPMIND, 41, 257, 3, 2}, {EVEN_PAIRS, DEEPMIND, 41, 257, 3, 2},
        {CYCLE, DEEPMIND, 41, 257, 4, 5},  {ARITHMETIC, DEEPMIND, 40, 256, 10, 5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct task_choice c;
        open_language(&c, rows[i].language, rows[i].encoding, "", 1);
        ck_assert_msg(c.shape.T == rows[i].T && c.shape.T_eval == rows[i].T_eval &&
                          c.shape.vocab_in == rows[i].vocab_in && c.shape.vocab_out == rows[i].vocab_out,
                      "%s: %d in, %d out, length %d", c.name, (int)c.shape.vocab_in, (int)c.shape.vocab_out,
                      (int)c.shape.T);
        ck_assert_int_eq(c.shape.examples[SPLIT_TRAIN], 25600000);
        ck_assert_int_eq(c.shape.examples[SPLIT_VAL], 8192);
        ck_assert_int_eq(c.shape.examples[SPLIT_TEST], 8192);
        ck_assert_double_eq_tol(c.shape.chance, 1.0 / states_of(rows[i].language), 1e-15);
        ck_assert(c.shape.floor == c.shape.chance && c.shape.solved == 0.9995 && !c.shape.per_sequence);
    }
}
END_TEST

START_TEST(each_split_has_its_own_length) {
    struct task_choice c;
    open_task(&c, "modular-arithmetic:min_length=300,max_length=301", 1);
    ck_assert_int_eq(c.shape.T, 302);
    ck_assert_int_eq(c.shape.T_eval, 256);
    open_task(&c, "parity:eval_min_length=1,eval_max_length=2", 1);
    ck_assert_int_eq(c.shape.T, 40);
    ck_assert_int_eq(c.shape.T_eval, 2);
    open_task(&c, "parity:min_length=1,max_length=1,eval_min_length=1,eval_max_length=1", 1);
    ck_assert_int_eq(c.shape.T, 1);
    ck_assert_int_eq(c.shape.T_eval, 1);
}
END_TEST

/* --- what strings mean -------------------------------------------------------------------------------------------- */

/* A symbol as a letter: a b, 0 (stay) + -, or 0..4 + - * =; '?' if the encoding has no such id. */
static char letter(int language, int encoding, int32_t id) {
    static const char *const slice[LANGUAGES] = {"?ab", "?ab", "?0+-?????", "?+-*=01234"};
    static const char *const deepmind[LANGUAGES] = {"ab?", "ab?", "-0+?", "01234+-*??"};
    return (encoding == DEEPMIND ? deepmind : slice)[language][id];
}

/* The value mod 5 of an expression of n letters, followed by '=' or its end: first the products, then their sum. */
static int evaluate(const char *text, int n) {
    int product[256] = {0}, terms = 0, sign[256] = {1}, sum = 0;
    product[0] = text[0] - '0';
    for (int i = 1; i + 1 < n; i += 2) {
        int digit = text[i + 1] - '0';
        if (text[i] == '*') {
            product[terms] = product[terms] * digit % 5;
        } else {
            sign[++terms] = text[i] == '+' ? 1 : -1;
            product[terms] = digit;
        }
    }
    for (int i = 0; i <= terms; i++) sum += sign[i] * product[i];
    return (sum % 5 + 5) % 5;
}

static int count(const char *text, int n, char wanted) {
    int found = 0;
    for (int i = 0; i < n; i++) found += text[i] == wanted;
    return found;
}

static int state_of(int language, const char *text, int n) {
    int unequal = 0;
    switch (language) {
    case PARITY:
        return count(text, n, 'b') % 2;
    case EVEN_PAIRS:
        for (int i = 1; i < n; i++) unequal += text[i] != text[i - 1];
        return unequal % 2 == (text[0] != text[n - 1]) ? unequal % 2 : -1;
    case CYCLE:
        return (count(text, n, '+') + 4 * count(text, n, '-')) % 5;
    default:
        return evaluate(text, n);
    }
}

START_TEST(the_tests_own_arithmetic_is_that_of_the_specification) {
    ck_assert_int_eq(evaluate("1-1-1", 5), 4);
    ck_assert_int_eq(evaluate("1+2*3", 5), 2);
    ck_assert_int_eq(evaluate("0*1+4*3-2", 9), 0);
    ck_assert_int_eq(evaluate("3=", 2), 3);
    ck_assert_int_eq(evaluate("0-4*2*2=", 8), 4);
}
END_TEST

/* Symbols of the example as letters, '=' included; how many. */
static int read_letters(int language, int encoding, const struct example *x, char text[258]) {
    int n = x->length - (encoding == DEEPMIND);
    for (int i = 0; i < n; i++) text[i] = letter(language, encoding, x->tokens[i]);
    text[n] = '\0';
    return n;
}

/* No assertion a position: libcheck notes each one in a file. */
static bool layout_is_right(const struct task_choice *c, enum split split, int language, int encoding,
                            const struct example *x, const char *text, int n) {
    static const int32_t query[LANGUAGES] = {2, 2, 3, 9};
    int32_t pad = encoding == DEEPMIND ? query[language] : 0;
    bool right = !strchr(text, '?');
    int64_t T = task_length(&c->shape, split);
    for (int64_t t = n; t < T; t++) right &= x->tokens[t] == pad;
    for (int64_t t = 0; t < T; t++) right &= (x->targets[t] != IGNORED) == (t == x->length - 1);
    if (language != ARITHMETIC) return right;
    for (int i = 0; i < n; i++) {
        bool is_digit = '0' <= text[i] && text[i] <= '4', is_last = encoding != DEEPMIND && i == n - 1;
        right &= is_digit == (i % 2 == 0) && (text[i] == '=') == is_last;
    }
    return right && n % 2 == (encoding == DEEPMIND);
}

static void check_language(int language, int encoding, const char *options, int64_t count_each) {
    static const int32_t label[LANGUAGES] = {1, 1, 4, 5};
    struct task_choice c;
    char text[258];
    open_language(&c, language, encoding, options, 3);
    struct example x = new_example(&c.shape);
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t k = 0; k < count_each; k++) {
            fill_example(&c, (enum split)split, k % c.shape.examples[split], -7, &x);
            int n = read_letters(language, encoding, &x, text);
            ck_assert_msg(layout_is_right(&c, (enum split)split, language, encoding, &x, text, n), "%s: %s", c.name,
                          text);
            int got = x.targets[x.length - 1] - (encoding == DEEPMIND ? 0 : label[language]);
            ck_assert_msg(got == state_of(language, text, n), "%s: %s gives state %d", c.name, text, got);
        }
    free_example(&x);
    labels_checked(c.name, SPLIT_COUNT * count_each, SPLIT_COUNT * count_each);
}

START_TEST(labels_are_the_state_at_the_end) {
    for (int language = 0; language < LANGUAGES; language++)
        for (int encoding = 0; encoding < ENCODINGS; encoding++) {
            check_language(language, encoding, "", examples_to_check(1000));
            check_language(language, encoding, "min_length=3,max_length=3,eval_min_length=5,eval_max_length=5", 200);
            if (encoding == XLSTM) continue;
            check_language(language, encoding, "min_length=1,max_length=1,eval_min_length=1,eval_max_length=2", 50);
        }
}
END_TEST

/* Looks for a string in examples of its length and asserts its label. */
static void check_string(int language, const char *wanted, int state) {
    char options[96], text[258];
    struct task_choice c;
    bool found = false;
    snprintf(options, sizeof options, "min_length=%d,max_length=%d,eval_max_length=40", (int)strlen(wanted),
             (int)strlen(wanted));
    open_language(&c, language, DEEPMIND, options, 1);
    struct example x = new_example(&c.shape);
    for (int64_t i = 0; i < 3000000 && !found; i++) {
        c.task->fill(c.inst, SPLIT_TRAIN, i, &x);
        read_letters(language, DEEPMIND, &x, text);
        found = strcmp(text, wanted) == 0;
    }
    ck_assert_msg(found, "%s: %s never comes", names[language], wanted);
    ck_assert_msg(x.targets[strlen(wanted)] == state, "%s: %s is %d", names[language], wanted,
                  x.targets[strlen(wanted)]);
    free_example(&x);
}

START_TEST(strings_of_the_specification_have_its_labels) {
    check_string(ARITHMETIC, "1-1-1", 4);
    check_string(ARITHMETIC, "1+2*3", 2);
    check_string(ARITHMETIC, "0*1+4*3-2", 0);
    check_string(CYCLE, "----", 1);
    check_string(CYCLE, "-0-+-", 3);
    check_string(CYCLE, "+++++", 0);
    check_string(EVEN_PAIRS, "abbaa", 0);
    check_string(EVEN_PAIRS, "abab", 1);
    check_string(PARITY, "abbab", 1);
}
END_TEST

START_TEST(negative_sums_have_labels_that_are_not_negative) {
    struct task_choice c;
    char text[258];
    int negative = 0;
    open_language(&c, CYCLE, SLICE, "", 1);
    struct example x = new_example(&c.shape);
    for (int64_t i = 0; i < 1000; i++) {
        fill_example(&c, SPLIT_VAL, i, -7, &x);
        int n = read_letters(CYCLE, SLICE, &x, text), sum = count(text, n, '+') - count(text, n, '-');
        if (sum >= 0) continue;
        negative++;
        ck_assert_int_eq(x.targets[n - 1] - 4, sum % 5 + (sum % 5 ? 5 : 0));
    }
    ck_assert_int_gt(negative, 300);
    free_example(&x);
}
END_TEST

/* --- distributions ------------------------------------------------------------------------------------------------ */

/* Adds the probability of each state after n symbols, times `weight`. Cycle: a walk on 5 places. Arithmetic: a walk on
 * (sum, product so far with its sign), the last product added at the end. */
static void add_state_shares(int language, int n, double weight, double share[5]) {
    static const int moves[3] = {0, 1, 4};
    if (language < CYCLE) {
        for (int s = 0; s < 2; s++) share[s] += weight / 2;
        return;
    }
    double p[25] = {0}, next[25];
    p[language == CYCLE ? 0 : 1] = 1;
    int steps = language == CYCLE ? n : (n + 1) / 2;
    for (int i = 0; i < steps; i++, memcpy(p, next, sizeof p)) {
        memset(next, 0, sizeof next);
        for (int state = 0; state < 25; state++)
            for (int draw = 0; draw < 15; draw++) { /* digit and operator, or a move */
                int sum = state / 5, term = state % 5 * (draw % 5) % 5;
                if (language == CYCLE) {
                    next[(state + moves[draw % 3]) % 5] += p[state] / 15;
                } else if (i == steps - 1) {
                    next[(sum + term) % 5] += p[state] / 15;
                } else if (draw / 5 == 0) {
                    next[sum * 5 + term] += p[state] / 15;
                } else {
                    next[(sum + term) % 5 * 5 + (draw / 5 == 1 ? 1 : 4)] += p[state] / 15;
                }
            }
    }
    for (int s = 0; s < 5; s++) share[s] += weight * p[s];
}

/* Symbols for a number that is drawn, by the words of the specification; 0 if it is not drawn. */
static int symbols_for(int language, int encoding, int number) {
    if (encoding == XLSTM) return language == ARITHMETIC && number % 2 == 0 ? 0 : number - 1;
    if (language != ARITHMETIC) return number;
    if (encoding == SLICE) return number % 2 ? number + 1 : number;
    return number % 2 ? number : number - 1;
}

/* Counts lengths and states of `draws` examples and compares them with what they should be. */
static void check_distribution(int language, int encoding, enum split split, int min, int max, int64_t draws) {
    struct task_choice c;
    char options[128];
    int64_t lengths[257] = {0}, states[5] = {0};
    double length_share[257] = {0}, state_share[5] = {0};
    int numbers = 0, base = encoding == DEEPMIND ? 0 : language < CYCLE ? 1 : language == CYCLE ? 4 : 5;
    for (int number = min; number <= max; number++) numbers += symbols_for(language, encoding, number) > 0;
    for (int number = min; number <= max; number++) {
        int n = symbols_for(language, encoding, number);
        if (n == 0) continue;
        length_share[n] += 1.0 / numbers;
        add_state_shares(language, n, 1.0 / numbers, state_share);
    }
    snprintf(options, sizeof options, "n_val=1000000,n_test=1000000");
    open_language(&c, language, encoding, options, 11);
    struct example x = new_example(&c.shape);
    for (int64_t i = 0; i < draws; i++) {
        c.task->fill(c.inst, split, i, &x);
        lengths[x.length - (encoding == DEEPMIND)]++;
        states[x.targets[x.length - 1] - base]++;
    }
    double z = chi_square_shares_z(lengths, length_share, 257, draws);
    ck_assert_msg(fabs(z) < 3, "%s, split %d: lengths are %.1f sigma off", c.name, split, z);
    for (int s = 0; s < states_of(language); s++) {
        double p = state_share[s], sigma = sqrt(p * (1 - p) * (double)draws);
        ck_assert_msg(fabs((double)states[s] - p * (double)draws) < 3 * sigma,
                      "%s, split %d: state %d comes %d times, expected %.0f +- %.0f", c.name, split, s, (int)states[s],
                      p * (double)draws, sigma);
    }
    free_example(&x);
}

START_TEST(lengths_and_states_are_distributed_as_computed) {
    for (int language = 0; language < LANGUAGES; language++)
        for (int encoding = 0; encoding < ENCODINGS; encoding++) {
            check_distribution(language, encoding, SPLIT_TRAIN, 3, 40, 40000);
            check_distribution(language, encoding, SPLIT_VAL, 40, 256, 20000);
            check_distribution(language, encoding, SPLIT_TEST, 40, 256, 20000);
        }
}
END_TEST

/* On strings of the evaluation no state is commoner than the declared floor says. */
START_TEST(the_floor_is_what_a_constant_answer_scores) {
    for (int language = 0; language < LANGUAGES; language++) {
        double share[5] = {0}, most = 0;
        for (int number = 40; number <= 256; number++)
            add_state_shares(language, symbols_for(language, SLICE, number), 1.0 / 217, share);
        for (int s = 0; s < 5; s++) most = fmax(most, share[s]);
        ck_assert_double_eq_tol(most, 1.0 / states_of(language), 1e-6);
    }
}
END_TEST

/* Neighbouring symbols of the same kind, at the beginning and at the end of the string, are independent and uniform. */
START_TEST(symbols_are_uniform_and_independent) {
    for (int language = 0; language < LANGUAGES; language++) {
        int step = language == ARITHMETIC ? 2 : 1, kinds = language < CYCLE ? 2 : language == CYCLE ? 3 : 5;
        int64_t first[25] = {0}, last[25] = {0}, operators[9] = {0};
        struct task_choice c;
        open_language(&c, language, DEEPMIND, "min_length=21,max_length=39", 2);
        struct example x = new_example(&c.shape);
        for (int64_t i = 0; i < 20000; i++) {
            c.task->fill(c.inst, SPLIT_TRAIN, i, &x);
            const int32_t *end = x.tokens + x.length - 2;
            first[x.tokens[0] * kinds + x.tokens[step]]++;
            last[end[-step] * kinds + end[0]]++;
            if (language == ARITHMETIC) operators[(x.tokens[1] - 5) * 3 + x.tokens[3] - 5]++;
        }
        ck_assert_double_lt(fabs(chi_square_z(first, kinds * kinds, 20000)), 3);
        ck_assert_double_lt(fabs(chi_square_z(last, kinds * kinds, 20000)), 3);
        if (language == ARITHMETIC) ck_assert_double_lt(fabs(chi_square_z(operators, 9, 20000)), 3);
        free_example(&x);
    }
}
END_TEST

/* Even where seed and lengths are the same. */
START_TEST(splits_have_different_strings) {
    static char seen[600][257];
    for (int language = 0; language < LANGUAGES; language++) {
        struct task_choice c;
        int n = 0;
        open_language(&c, language, SLICE, "min_length=60,max_length=256,eval_min_length=60", 0);
        struct example x = new_example(&c.shape);
        for (int split = 0; split < SPLIT_COUNT; split++)
            for (int i = 0; i < 200; i++, n++) {
                fill_example(&c, (enum split)split, i, -7, &x);
                read_letters(language, SLICE, &x, seen[n]);
                for (int other = 0; other < n; other++)
                    if (strcmp(seen[other], seen[n]) == 0) ck_abort_msg("%s: twice %s", names[language], seen[n]);
            }
        free_example(&x);
    }
}
END_TEST

/* Committed results were measured on these strings: whoever changes them raises the tasks' version, and then these. */
START_TEST(the_strings_are_those_of_version_1) {
    static const struct {
        int language;
        const char *train, *val;
    } rows[LANGUAGES] = {
        {PARITY, "baaaababaabaabbbaababaabbaba", "abbaaabbaababbaababaaabbbaaaabbbbbbbabaaa"},
        {EVEN_PAIRS, "baaaababaabaabbbaababaabbaba", "abbaaabbaababbaababaaabbbaaaabbbbbbbabaaa"},
        {CYCLE, "-0++0-+-+0++0+-+00-0-0+-++-0", "+--00+-+00++--+0+0-000---0000+--+++++-000"},
        {ARITHMETIC, "4+2-0*1*2+2-0-4-0+4+4+1*2-4=", "2*3+0-4-0+2-3*1+2+4+1+3*4+1+0-4*3-2-2*0+1="},
    };
    for (int i = 0; i < LANGUAGES; i++) {
        struct task_choice c;
        char text[258];
        open_language(&c, rows[i].language, SLICE, "", 1);
        ck_assert_int_eq(c.task->version, 1);
        struct example x = new_example(&c.shape);
        fill_example(&c, SPLIT_TRAIN, 123456, -7, &x);
        read_letters(i, SLICE, &x, text);
        ck_assert_str_eq(text, rows[i].train);
        fill_example(&c, SPLIT_VAL, 38, -7, &x);
        read_letters(i, SLICE, &x, text);
        ck_assert_str_eq(text, rows[i].val);
        free_example(&x);
    }
}
END_TEST

Suite *check_regular(void) {
    Suite *suite = suite_create("regular");
    TCase *tests = tcase_create("regular");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_test(tests, impossible_options_are_refused);
    tcase_add_test(tests, shapes_are_those_of_the_specification);
    tcase_add_test(tests, each_split_has_its_own_length);
    tcase_add_test(tests, the_tests_own_arithmetic_is_that_of_the_specification);
    tcase_add_test(tests, labels_are_the_state_at_the_end);
    tcase_add_test(tests, strings_of_the_specification_have_its_labels);
    tcase_add_test(tests, negative_sums_have_labels_that_are_not_negative);
    tcase_add_test(tests, lengths_and_states_are_distributed_as_computed);
    tcase_add_test(tests, the_floor_is_what_a_constant_answer_scores);
    tcase_add_test(tests, symbols_are_uniform_and_independent);
    tcase_add_test(tests, splits_have_different_strings);
    tcase_add_test(tests, the_strings_are_those_of_version_1);
    suite_add_tcase(suite, tests);
    return suite;
}
