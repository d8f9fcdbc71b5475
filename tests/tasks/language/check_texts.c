/* check_texts.c - released texts: files that Python wrote (tests/data/make.py) come out of the tasks character by
 * character, and the readers answer everything else with one sentence. */
#include <stdlib.h>
#include <string.h>

#include "tasks/data/characters.h"
#include "tasks/data/text_files.h"
#include "tests/lib/program.h"
#include "tests/tasks/task_examples.h"

/* The words of make.py, as code points. */
static int words(int k, int n, uint32_t *code) {
    static const uint32_t word[5][6] = {
        {'f', 'i', 'l', 'm'}, {'n', 'a', 0xef, 'v', 'e'}, {'5', 0x20ac}, {0x1f600}, {'x'}};
    int at = 0;
    for (int i = 0; i < n; i++) {
        if (i) code[at++] = ' ';
        for (const uint32_t *c = word[(k * 3 + i * i) % 5]; *c; c++) code[at++] = *c;
    }
    return at;
}

/* Counts each code point in the training reviews, in another way than by a table. */
static int64_t count_in_training(uint32_t code, const int *reviews, int n) {
    int64_t count = 0;
    uint32_t text[100];
    for (int i = 0; i < n; i++)
        for (int t = words(reviews[i], 2 + reviews[i] % 7, text); t-- > 0;) count += text[t] == code;
    return count;
}

static const uint32_t alphabet[] = {' ', '5', 'a', 'e', 'f', 'i', 'l', 'm', 'n', 'v', 'x', 0xef, 0x20ac, 0x1f600};
#define LETTERS (int)(sizeof alphabet / sizeof *alphabet)

/* The id of a character: one more than 2 and the number of those that come before it. */
static int32_t id_of(uint32_t code, int64_t least, const int *reviews, int n) {
    int64_t own = count_in_training(code, reviews, n);
    int32_t id = 3;
    if (own < least) return 1;
    for (int i = 0; i < LETTERS; i++) {
        int64_t count = count_in_training(alphabet[i], reviews, n);
        id += count > own || (count == own && alphabet[i] < code);
    }
    return id;
}

static const char *const reviewed[] = {"lra-text", "lra-text:length=20,least=60"};

START_TEST(reviews_are_characters_by_frequency) {
    struct task_choice c;
    int reviews[20];
    open_task(&c, reviewed[_i], 1);
    struct example x = new_example(&c.shape);
    for (int i = 0; i < 20; i++) reviews[i] = i < 10 ? i : 90 + i; /* all but for validation count too */
    ck_assert_int_eq(c.shape.examples[SPLIT_TRAIN], 18);
    ck_assert_int_eq(c.shape.examples[SPLIT_VAL], 2);
    ck_assert_int_eq(c.shape.examples[SPLIT_TEST], 8);
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < c.shape.examples[split]; i++) {
            int found = -1;
            fill_example(&c, (enum split)split, i, -7, &x);
            for (int k = 0; k < 200; k++) {
                uint32_t text[100];
                bool test = k % 100 >= 50;
                if (k % 50 >= (test ? 4 : 10) || test != (split == SPLIT_TEST) || x.targets[0] != k / 100) continue;
                int n = words(k, 2 + k % 7, text);
                if (n > c.shape.T - 1) n = (int)c.shape.T - 1;
                bool same = x.length == n + 1 && x.tokens[n] == 2;
                for (int t = 0; t < n && same; t++) same = x.tokens[t] == id_of(text[t], _i ? 60 : 15, reviews, 20);
                if (same) found = k;
            }
            ck_assert_msg(found >= 0, "%s: split %d, example %d is none of its texts", reviewed[_i], split, (int)i);
        }
    free_example(&x);
}
END_TEST

/* It would be asked for in vain, and be another run. */
START_TEST(a_bound_on_rare_characters_is_refused_of_bytes) {
    struct task_choice c;
    check_task_refused("lra-text:level=byte,least=7", "least=7|level=byte");
    check_task_refused("lra-retrieval:level=byte,least=7", "least=7|level=byte");
    open_task(&c, "lra-text:level=byte", 1);
}
END_TEST

START_TEST(bytes_are_themselves_plus_one) {
    static const uint8_t text[] = {'a', 0xc3, 0xaf, 0xff};
    struct characters v;
    struct error e;
    int32_t tokens[8];
    ck_assert_int_eq(characters_make(&v, LEVEL_BYTE, NULL, 1, &task_host, &e), ST_OK);
    ck_assert_int_eq(characters_put(&v, text, 4, 6, 8, tokens), 5);
    static const int32_t want[] = {'a' + 1, 0xc4, 0xb0, 0x100, 257, 0, 0, 0};
    ck_assert(memcmp(tokens, want, sizeof want) == 0);
}
END_TEST

/* Overlong forms, surrogates, what lies beyond Unicode and cut sequences are unknown characters of one byte each. */
START_TEST(bytes_that_are_no_utf8_are_unknown) {
    static const uint8_t text[] = {'a', 0xc0, 0x80, 0xed, 0xa0, 0x80, 0xf4, 0x90, 0x80, 0x80, 0xe2, 0x82, 'a', 0xc3};
    struct character_counter counter;
    struct characters v;
    struct error e;
    int32_t tokens[20];
    ck_assert_int_eq(counter_create(&counter, &e), ST_OK);
    counter_add(&counter, text, sizeof text, 12); /* the second a is the thirteenth character */
    ck_assert_int_eq(counter.count['a'], 1);
    counter_add(&counter, text, sizeof text, sizeof text);
    ck_assert_int_eq(counter.count['a'], 3);
    ck_assert_int_eq(characters_make(&v, LEVEL_CHARACTER, &counter, 1, &task_host, &e), ST_OK);
    counter_free(&counter);
    ck_assert_int_eq(v.vocab, 4);
    ck_assert_int_eq(characters_put(&v, text, sizeof text, 19, 20, tokens), 15);
    for (int t = 0; t < 14; t++) ck_assert_int_eq(tokens[t], text[t] == 'a' ? 3 : 1);
}
END_TEST

/* --- pairs -------------------------------------------------------------------------------------------------------- */

static enum status read_text(const void *text, size_t n, struct entry_pack *pack, struct error *e) {
    struct byte_source s = {0};
    *pack = (struct entry_pack){.set = {.kind = PAIRS_KIND, .labels = 2}};
    enum status status = source_open_memory(&s, text, n, "PAIRS", e);
    if (status == ST_OK) status = pairs_read(&s, SPLIT_TRAIN, pack, e);
    source_close(&s);
    return status;
}

START_TEST(pairs_are_read_and_refused_by_line) {
    static const char good[] = "1.0\tid\tP1\tone\t\"two \"\"2\"\r\n0\ta\tb\tc\td\n\n\r\n";
    static const char first[] = "\3\0\0\0\11\0\0\0one\"two \"\"2\"", second[] = "\1\0\0\0\1\0\0\0cd";
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "PAIRS, line 1: expected a pair of texts, found the end of the file"},
        {"1.0\ta\tb\tc\n", "PAIRS, line 1: expected a tab after a field, five fields a line, found the end of"},
        {"1.0\ta\tb\tc\td\te\n", "expected the end of the line after five fields, found a byte 9"},
        {"1.0\ta\tb\tc\td\n1.5\ta\tb\tc\td\n", "PAIRS, line 2: expected the label 0 or 1 and a tab, found '1.5'"},
        {"1.0\ta\tb\t\td\n", "PAIRS, line 1: expected two texts, found an empty one"}};
    struct entry_pack pack;
    struct error e = {ST_OK, ""};
    ck_assert_msg(read_text(good, sizeof good - 1, &pack, &e) == ST_OK, "%s", e.text);
    ck_assert(pack.set.n[SPLIT_TRAIN] == 2 && pack.set.longest == 9);
    ck_assert(pack.row[0].label == 1 && pack.row[0].length == 9 && pack.row[1].label == 0);
    ck_assert(memcmp(pack.payload, first, sizeof first - 1) == 0);
    ck_assert(memcmp(pack.payload + pack.row[1].offset, second, sizeof second - 1) == 0);
    entry_pack_free(&pack);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(read_text(bad[i].text, strlen(bad[i].text), &pack, &e), ST_DATA);
        ck_assert_msg(strstr(e.text, bad[i].says), "'%s' is not '%s'", e.text, bad[i].says);
        entry_pack_free(&pack);
    }
}
END_TEST

/* A line has no other end than its own, so a cut within the last field gives a shorter text; every other cut is
 * refused. The memory ends where the file does, so that a sanitizer sees what is read beyond. */
START_TEST(pairs_cut_anywhere_are_refused) {
    static const char text[] = "1.0\tid\tP1\tone\t\"two\"\n0\ta\tb\t\"c d\"\te\"\n";
    size_t size = sizeof text - 1, line = strcspn(text, "\n"), last = size - 1 - strlen("e\"");
    for (size_t n = 0; n <= size; n++) {
        struct entry_pack pack;
        struct error e = {ST_OK, ""};
        char *bytes = malloc(n ? n : 1);
        memcpy(bytes, text, n);
        enum status status = read_text(bytes, n, &pack, &e);
        int64_t pairs = n > last ? 2 : n > line - strlen("\"two\"") && n <= line + 1 ? 1 : 0;
        ck_assert_msg(status == (pairs ? ST_OK : ST_DATA), "%zu bytes: status %d, '%s'", n, status, e.text);
        if (pairs) ck_assert_int_eq(pack.set.n[SPLIT_TRAIN], pairs);
        if (!pairs) ck_assert_msg(strstr(e.text, ": expected ") && !strncmp(e.text, "PAIRS, line ", 12), "%s", e.text);
        if (!pairs) ck_assert_msg(!strchr(e.text, '\n'), "%s", e.text);
        entry_pack_free(&pack);
        free(bytes);
    }
}
END_TEST

/* Imports from the command line a folder that ends within the last text of the first pair. */
START_TEST(a_folder_with_a_pair_cut_off_is_not_imported) {
    char path[100], arguments[200];
    size_t size;
    snprintf(arguments, sizeof arguments, "cp tests/data/aan/*.tsv %s", program_folder);
    ck_assert_int_eq(system(arguments), 0);
    snprintf(path, sizeof path, "%s/new_aan_pairs.eval.tsv", program_folder);
    snprintf(arguments, sizeof arguments, "data import aan %s", program_folder);
    char *bytes = slurp(path, &size);
    size_t last = strcspn(bytes, "\"");
    for (size_t n = 0; n <= last; n++) {
        spill(path, bytes, n);
        expect_status(run(arguments), 5, arguments);
        expect_text(err, "new_aan_pairs.eval.tsv, line 1: expected ", arguments);
        ck_assert_ptr_eq(strchr(err, '\n'), err + strlen(err) - 1);
    }
    ck_assert_int_eq(scratch_count(program_folder, ".records"), 0);
    free(bytes);
    free_output();
}
END_TEST

/* Two steps, the record in the test's folder. */
static void train(const char *task) {
    char arguments[200];
    snprintf(arguments, sizeof arguments, "train %s:length=32 lru:state=4 --dim 4 --steps 2 --batch 4 --out %s/r", task,
             program_folder);
    expect_status(run(arguments), 0, arguments);
}

START_TEST(texts_are_imported_whole_or_not_at_all) {
    expect_status(run("data show lra-text"), 5, "data show lra-text");
    expect_text(err, "`lrnn data import imdb FOLDER` makes it", "data show lra-text");
    expect_status(run("data import imdb tests/data/aan"), 5, "another folder");
    expect_text(err, "cannot read the folder tests/data/aan/train/neg: No such file or directory", "another folder");
    expect_status(run("data import imdb tests/data/imdb"), 0, "data import");
    expect_text(out, "20 training, 0 validation and 8 test texts of at most 45, width 0, 2 labels", "data import");
    train("lra-text");
    expect_status(run("data import aan tests/data/imdb"), 5, "no pairs");
    expect_text(err, "cannot find new_aan_pairs.train.tsv in tests/data/imdb", "no pairs");
    expect_status(run("data import aan tests/data/aan"), 0, "data import");
    expect_text(out, "9 training, 3 validation and 4 test pairs of at most", "data import");
    train("lra-retrieval");
    ck_assert_int_eq(scratch_count(program_folder, ".records"), 2);
    free_output();
}
END_TEST

/* Files that a system leaves beside the reviews are none of them, and both counts are said. */
START_TEST(files_that_are_no_reviews_are_counted) {
    char text[300];
    snprintf(
        text, sizeof text,
        "cp -r tests/data/imdb/aclImdb %s && cd %s/aclImdb/train && touch pos/._0_7.txt pos/urls.txt neg/.DS_Store",
        program_folder, program_folder);
    ck_assert_int_eq(system(text), 0);
    snprintf(text, sizeof text, "data import imdb %s", program_folder);
    expect_status(run(text), 0, text);
    expect_text(out, "20 training, 0 validation and 8 test texts", text);
    expect_text(out, "passed over 3 files whose names are none of the released set", text);
    expect_text(out, "the released files hold 50000 examples, these 28", text);
    free_output();
}
END_TEST

Suite *check_texts(void) {
    Suite *suite = suite_create("texts");
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, reserve_task_host, free_task_host);
    tcase_add_checked_fixture(files, import_data, drop_data);
    tcase_add_loop_test(files, reviews_are_characters_by_frequency, 0, (int)(sizeof reviewed / sizeof *reviewed));
    tcase_add_test(files, a_bound_on_rare_characters_is_refused_of_bytes);
    tcase_add_test(files, bytes_are_themselves_plus_one);
    tcase_add_test(files, bytes_that_are_no_utf8_are_unknown);
    suite_add_tcase(suite, files);
    TCase *reader = tcase_create("reader");
    tcase_add_test(reader, pairs_are_read_and_refused_by_line);
    tcase_add_test(reader, pairs_cut_anywhere_are_refused);
    suite_add_tcase(suite, reader);
    TCase *command = tcase_create("command line");
    tcase_add_checked_fixture(command, program_begin_without_data, program_end);
    tcase_set_timeout(command, 60);
    tcase_add_test(command, texts_are_imported_whole_or_not_at_all);
    tcase_add_test(command, a_folder_with_a_pair_cut_off_is_not_imported);
    tcase_add_test(command, files_that_are_no_reviews_are_counted);
    suite_add_tcase(suite, command);
    return suite;
}
