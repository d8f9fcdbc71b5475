/* check_own.c - own examples: what Python and `lrnn data dump` write comes out value by value, and every other file is
 * refused with one sentence that says where and what to do; a file trained from its lines to its table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tasks/own/own_file.h"
#include "tests/lib/program.h"
#include "tests/tasks/task_examples.h"

/* --- reading ------------------------------------------------------------------------------------------------------ */

static struct own_file read_text(const char *text, const char *name) {
    struct own_file f = {0};
    struct error e = {ST_OK, ""};
    ck_assert_msg(own_file_parse(&f, text, strlen(text), name, &e) == ST_OK, "%s: %s", text, e.text);
    return f;
}

START_TEST(lines_of_tokens_become_examples) {
    struct own_file f = read_text("{\"input\":[3,0,7],\"target\":[1,-100,2],\"split\":\"val\",\"index\":9}\n"
                                  "\n{\"inputs\":[5,6],\"targets\":[4,0],\"mask\":[0,1],\"length\":2}\r\n"
                                  "{\"input\":[1,2,3],\"target\":[0,1,0],\"length\":1,\"split\":\"test\"}",
                                  "A.jsonl");
    ck_assert(f.n == 3 && f.longest == 3 && f.channels == 1 && f.vocab == 8 && f.labels == 3 && !f.per_sequence);
    static const struct {
        int length, split;
        float input[3];
        int target[3];
    } want[3] = {{3, SPLIT_VAL, {3, 0, 7}, {1, IGNORED, 2}}, {2, -1, {5, 6}, {IGNORED, 0}}, {1, SPLIT_TEST, {1}, {0}}};
    for (int i = 0; i < 3; i++) {
        const struct own_example *x = &f.example[i];
        ck_assert(x->length == want[i].length && x->split == want[i].split);
        for (int t = 0; t < x->length; t++)
            ck_assert(f.input[x->input + t] == want[i].input[t] && f.target[x->target + t] == want[i].target[t]);
    }
    own_file_free(&f);
}
END_TEST

START_TEST(lines_of_values_become_examples_with_one_label) {
    struct own_file f =
        read_text("{\"input\":[[1,2],[3,4.5],[5,6]],\"label\":2}\n{\"input\":[[0,-1]],\"label\":0}\n", "A.jsonl");
    ck_assert(f.n == 2 && f.longest == 3 && f.channels == 2 && f.vocab == 0 && f.labels == 3 && f.per_sequence);
    static const float want[] = {1, 2, 3, 4.5F, 5, 6, 0, -1};
    for (int i = 0; i < 8; i++) ck_assert(f.input[i] == want[i]);
    ck_assert(f.example[1].input == 6 && f.example[1].target == 1 && f.target[0] == 2 && f.target[1] == 0);
    own_file_free(&f);
    f = read_text("{\"input\":[0.5,2],\"label\":1}\n", "A.jsonl"); /* a flat list that is no list of tokens */
    ck_assert(f.channels == 1 && f.vocab == 0);
    own_file_free(&f);
}
END_TEST

START_TEST(every_other_file_is_refused_with_line_and_reason) {
    static const char good[] = "{\"input\":[1,2],\"target\":[0,1]}\n";
    static const struct {
        const char *line, *words;
    } cases[] = {
        {"[1,2]", "line 2: expected a JSON object"},
        {"7", "expected a JSON object"},
        {"{\"input\":[1,2],\"target\":[0,1]", "line 2: it is no JSON"},
        {"{\"input\":[1,2],\"input\":[1,2],\"target\":[0,1]}", "it is no JSON: duplicate"},
        {"{\"target\":[0]}", "there is no \"input\""},
        {"{\"input\":[],\"target\":[]}", "there is no \"input\", or it is no list with a position"},
        {"{\"input\":[1,2]}", "there is no \"target\""},
        {"{\"input\":[1,2],\"target\":[0]}", "\"input\" has 2 positions and \"target\" 1; they must be equal"},
        {"{\"input\":[1,2],\"target\":[0,1],\"mask\":[1]}", "\"mask\" 1; they must be equal"},
        {"{\"input\":[1,2],\"target\":[0,1],\"mask\":[1,2]}", "neither 0 nor 1"},
        {"{\"input\":[1,2],\"target\":[0,1],\"length\":3}", "\"length\" is no whole number from 1"},
        {"{\"input\":[1,2],\"target\":[0,-1]}", "the target -1 is neither from 0 to 65535 nor -100"},
        {"{\"input\":[1,2],\"target\":[0,65536]}", "the target 65536 is neither"},
        {"{\"input\":[1,2],\"target\":[0,0.5]}", "the target 0.5 is no whole number; numbers are not predicted"},
        {"{\"input\":[1,2],\"target\":[0,null]}", "a target is null; write -100"},
        {"{\"input\":[1,2],\"target\":[0,\"a\"]}", "\"target\" has something that is no number; names and words need"},
        {"{\"input\":[1,null],\"target\":[0,1]}", "an input is missing or not finite; fill it in"},
        {"{\"input\":[1,1e300],\"target\":[0,1]}", "an input is missing or not finite"},
        {"{\"input\":[\"the\",\"cat\"],\"target\":[0,1]}", "\"input\" has something that is no number"},
        {"{\"input\":[[1],[2,3]],\"target\":[0,1]}", "different numbers of channels"},
        {"{\"input\":[[1,2],[2,3]],\"target\":[0,1]}", "a position has 2 numbers, and 1 in the examples before"},
        {"{\"input\":[1,2],\"target\":1}", "one example has a target a position and another has one label"},
        {"{\"input\":[1,2],\"target\":1,\"mask\":[1,1]}", "the example has one label"},
        {"{\"input\":[1,2],\"target\":[0,1],\"split\":\"all\"}", "none of \"train\", \"val\" and \"test\""},
        {"{\"input\":[1,2],\"target\":[0,1],\"maks\":[0,1]}", "unknown key \"maks\"; did you mean \"mask\"?"},
        {"{\"input\":[1,2],\"target\":[0,1],\"Split\":\"val\"}", "unknown key \"Split\"; did you mean \"split\"?"},
        {"{\"input\":[1,2],\"target\":[0,1],\"edges\":[[0,1]]}", "graphs (\"edges\") are not read"},
        {"{\"input\":[1,2],\"target\":[0,1],\"time\":[0.5,2]}", "times are not read; put them into a channel"},
    };
    struct own_file f;
    struct error e;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[300];
        snprintf(text, sizeof text, "%s%s\n", good, cases[i].line);
        ck_assert_msg(own_file_parse(&f, text, strlen(text), "A.jsonl", &e) == ST_DATA, "%s", text);
        ck_assert_msg(strncmp(e.text, "A.jsonl, line 2: ", 17) == 0 && strstr(e.text, cases[i].words), "%s", e.text);
    }
    ck_assert_int_eq(own_file_parse(&f, "\n", 1, "A.jsonl", &e), ST_DATA);
    ck_assert_str_eq(e.text, "A.jsonl holds no example");
    ck_assert_int_eq(own_file_parse(&f, good, (size_t)10000000000, "A.jsonl", &e), ST_DATA); /* not looked into */
    ck_assert_ptr_nonnull(strstr(e.text, "has 10.0 GB and is read into memory whole; the most is 4.3 GB"));
}
END_TEST

#define ARRAYS "tests/fuzz/corpus/own_npz/"

START_TEST(compressed_arrays_are_the_same_examples) {
    struct own_file f[2];
    struct error e;
    for (int i = 0; i < 2; i++) {
        size_t size;
        char *file = slurp(i ? ARRAYS "compressed.npz" : ARRAYS "tokens.npz", &size);
        ck_assert_msg(own_file_parse(&f[i], file, size, "A.npz", &e) == ST_OK, "%s", e.text);
        free(file);
    }
    ck_assert(f[0].n == f[1].n && f[0].vocab == f[1].vocab && strcmp(f[0].hash, f[1].hash) != 0);
    for (int64_t i = 0; i < f[0].n; i++) {
        const struct own_example *a = &f[0].example[i], *b = &f[1].example[i];
        ck_assert(a->length == b->length && a->input == b->input && a->target == b->target && a->split == b->split);
        for (int t = 0; t < a->length; t++)
            ck_assert(f[0].input[a->input + t] == f[1].input[a->input + t] &&
                      f[0].target[a->target + t] == f[1].target[a->target + t]);
    }
    for (int i = 0; i < 2; i++) own_file_free(&f[i]);
}
END_TEST

/* The directory, at the end of the file, gives the array of inputs another name. */
START_TEST(an_array_of_times_is_refused) {
    struct own_file f;
    struct error e;
    size_t size;
    char *file = slurp(ARRAYS "tokens.npz", &size), *name = NULL;
    for (size_t i = 0; i + 9 <= size; i++)
        if (memcmp(file + i, "input.npy", 9) == 0) name = file + i;
    ck_assert_ptr_nonnull(name);
    memcpy(name, "times", 5);
    ck_assert(own_file_parse(&f, file, size, "A.npz", &e) == ST_DATA);
    ck_assert_msg(strstr(e.text, "A.npz: the array times: times are not read; put them into a channel") != NULL, "%s",
                  e.text);
    free(file);
}
END_TEST

/* Changes of one byte of what numpy.savez and numpy.savez_compressed would write. */
START_TEST(arrays_that_are_not_as_savez_writes_them_are_refused) {
    static const struct {
        const char *at; /* the text before the byte */
        int offset;
        char byte;
        const char *words, *file;
    } cases[] = {
        {"PK\1\2", 10, 8, "is damaged: it does not unpack", ARRAYS "tokens.npz"},
        {"PK\1\2", 10, 12, "is compressed in a way that NumPy does not use", ARRAYS "tokens.npz"},
        {"PK\5\6", 0, 'x', "the directory at its end is missing", ARRAYS "tokens.npz"},
        {"'descr': '<", 0, 'c', "is not of whole numbers, float32 or float64", ARRAYS "tokens.npz"},
        {"'descr': '<", 0, 'O', "holds pickled Python objects, which are never loaded", ARRAYS "tokens.npz"},
        {"'fortran_order': ", 0, 'T', "has its columns first", ARRAYS "tokens.npz"},
        {"'shape': (", 0, '7', "has another number of bytes than its shape says", ARRAYS "tokens.npz"},
        {"NUMP", 0, 'x', "is not NumPy's", ARRAYS "tokens.npz"},
        {"PK\3\4", 70, '!', "is damaged: it does not unpack to what the directory says", ARRAYS "compressed.npz"},
        {"PK\1\2", 16, '!', "is damaged: it does not unpack", ARRAYS "compressed.npz"}, /* the CRC */
        {"PK\1\2", 24, '!', "is damaged: it does not unpack", ARRAYS "compressed.npz"}, /* a smaller size */
        {"PK\1\2", 27, 9, "would unpack from 0.0 MB to 151.0 MB, more than 100 times", ARRAYS "compressed.npz"},
        {"PK\1\2", 22, 9, "is cut off", ARRAYS "compressed.npz"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct own_file f;
        struct error e;
        size_t size, n = strlen(cases[i].at), at = 0;
        char *file = slurp(cases[i].file, &size), *copy = malloc(size);
        memcpy(copy, file, size);
        while (memcmp(copy + at, cases[i].at, n) != 0) at++;
        at += cases[i].offset ? (size_t)cases[i].offset : cases[i].at[0] == 'P' ? 0 : n;
        copy[at] = cases[i].byte;
        ck_assert_msg(own_file_parse(&f, copy, size, "A.npz", &e) == ST_DATA, "%s", cases[i].words);
        ck_assert_msg(strstr(e.text, cases[i].words) != NULL, "%s", e.text);
        free(copy);
        free(file);
    }
}
END_TEST

/* The type is the header's last word, without its size. */
START_TEST(a_header_that_ends_in_its_type_is_refused) {
    static const char keys[] = "{'fortran_order': False, 'shape': (2, 8), 'descr': '<";
    struct own_file f;
    struct error e;
    size_t size, at = 0;
    char *file = slurp(ARRAYS "tokens.npz", &size);
    while (memcmp(file + at, "NUMPY", 5) != 0) at++;
    size_t length = (unsigned char)file[at + 7] + 256 * (size_t)(unsigned char)file[at + 8];
    ck_assert_uint_ge(length, sizeof keys);
    memset(file + at + 9, ' ', length);
    memcpy(file + at + 9 + length - strlen(keys), keys, strlen(keys));
    ck_assert(own_file_parse(&f, file, size, "A.npz", &e) == ST_DATA);
    ck_assert_msg(strstr(e.text, "has a bad header") != NULL, "%s", e.text);
    free(file);
}
END_TEST

/* --- the task ----------------------------------------------------------------------------------------------------- */

/* Runs the program with the test's folder in up to four places. */
static void call(const char *format, int status) {
    char arguments[1024];
    const char *at = program_folder;
    snprintf(arguments, sizeof arguments, format, at, at, at, at);
    expect_status(run(arguments), status, arguments);
}

static void write_file(const char *name, const char *text) {
    char path[SCRATCH_BYTES + 40];
    snprintf(path, sizeof path, "%s/%s", program_folder, name);
    spill(path, text, strlen(text));
}

START_TEST(a_tenth_is_held_out_where_nobody_says_what_is) {
    char text[4000] = "", name[SCRATCH_BYTES + 40];
    struct task_choice c;
    bool seen[50] = {0};
    for (int i = 0; i < 50; i++) snprintf(text + strlen(text), 60, "{\"input\":[%d],\"target\":%d}\n", i, i % 2);
    write_file("fifty.jsonl", text);
    snprintf(name, sizeof name, "%s/fifty.jsonl", program_folder);
    open_task(&c, name, 1);
    ck_assert_str_eq(c.name, "own:name=fifty");
    ck_assert(c.shape.examples[SPLIT_TRAIN] == 41 && c.shape.examples[SPLIT_VAL] == 4 &&
              c.shape.examples[SPLIT_TEST] == 5 && c.shape.vocab_in == 50 && c.shape.vocab_out == 2);
    struct example x = new_example(&c.shape);
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < c.shape.examples[split]; i++) {
            fill_example(&c, (enum split)split, i, -7, &x);
            ck_assert(!seen[x.tokens[0]] && x.targets[0] == x.tokens[0] % 2 && x.length == 1);
            seen[x.tokens[0]] = true;
        }
    free_example(&x);
}
END_TEST

/* The words of a sentence of the program about the file whose text this is. */
static void expect_refused(const char *text, const char *words) {
    write_file("bad.jsonl", text);
    call("train %s/bad.jsonl lstm:hidden=4 --steps 1 --out %s/r", ST_DATA);
    expect_text(err, words, text);
}

START_TEST(files_that_cannot_be_trained_on_are_refused) {
    expect_refused("{\"input\":[1],\"target\":0}\n{\"input\":[1],\"target\":0}\n{\"input\":[1],\"target\":0}\n",
                   "every target is 0");
    expect_refused("{\"input\":[1],\"target\":1}\n",
                   "bad.jsonl: of 1 examples none is for validation; give some of them \"split\": \"val\"");
    expect_refused("{\"input\":[1],\"target\":1,\"split\":\"test\"}\n{\"input\":[1],\"target\":1,\"split\":\"val\"}\n",
                   "none is for training");
    write_file("v.jsonl", "{\"input\":[0.5],\"target\":1}\n");
    write_file("t.jsonl", "{\"input\":[1],\"target\":1}\n{\"input\":[2],\"target\":0}\n");
    call("train %s/t.jsonl:val=%s/v.jsonl lstm:hidden=4 --steps 1", ST_DATA);
    expect_text(err, "are not of one kind", "two kinds");
    call("train %s/none.jsonl lstm:hidden=4 --steps 1", ST_DATA);
    expect_text(err, "none.jsonl: No such file", "no file");
}
END_TEST

/* A file of 10 GB that takes no disk: it is refused by its size, before a byte of it is read. */
START_TEST(a_file_that_is_too_large_is_refused_with_its_size) {
    for (int i = 0; i < 2; i++) {
        char path[SCRATCH_BYTES + 40], arguments[SCRATCH_BYTES + 80];
        snprintf(path, sizeof path, "%s/large.%s", program_folder, i ? "npz" : "jsonl");
        FILE *f = fopen(path, "w");
        ck_assert(f && ftruncate(fileno(f), 10000000000) == 0 && fclose(f) == 0);
        snprintf(arguments, sizeof arguments, "data check %s", path);
        expect_status(run(arguments), ST_DATA, arguments);
        expect_text(err, "has 10.0 GB and is read into memory whole; the most is 4.3 GB", arguments);
        ck_assert_int_eq(remove(path), 0);
    }
}
END_TEST

/* Goes the way of somebody who has a file: look at it, train on it, compare, report, plot. The same examples as the
 * task's own give the same run to the last bit, from lines and from arrays. */
START_TEST(lines_are_trained_on_from_end_to_end) {
    const char *const task = "s3:length=6,n_train=300,n_val=40,n_test=40";
    char *numbers[3], text[400];
    for (int i = 0; i < SPLIT_COUNT; i++)
        for (int k = 0; k < 2; k++) {
            static const char *const splits[] = {"train", "val", "test"};
            snprintf(text, sizeof text, "data dump %s %%s/%s.%s --split %s", task, splits[i], k ? "npz" : "jsonl",
                     splits[i]);
            call(text, 0);
        }
    call("data check %s/train.jsonl:val=%s/val.jsonl,test=%s/test.jsonl", 0);
    expect_text(out, "tokens 0 to 5, a target a position out of 6 labels", "check");
    expect_text(out, "300 examples of length 6 to 6, 1800 targets scored, 0 inputs twice", "check");
    expect_text(out, "40 examples of length 6 to 6, 240 targets scored, 0 inputs that training has as well", "check");
    expect_text(out, "chance     0.1667", "check");
    call("data check %s/train.jsonl:test=%s/train.jsonl", 0);
    expect_text(out, "0 inputs twice", "check");
    expect_text(out, "270 inputs that training has as well", "a test set that is the training set");
    static const char *const trains[] = {"%s/train.jsonl:val=%s/val.jsonl,test=%s/test.jsonl",
                                         "%s/train.npz:val=%s/val.npz,test=%s/test.npz"};
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text,
                 "bench %s --models lstm:hidden=8 --epochs 2 --lr 0.01 --dim 16 --no-speed --no-plots --out %%s/r%d",
                 i < 2 ? trains[i] : task, i);
        call(text, 0);
        snprintf(text, sizeof text, "report --out %%s/r%d --format csv --columns estimate", i);
        call(text, 0);
        numbers[i] = strdup(strchr(out, '\n') ? strchr(out, '\n') : out);
    }
    ck_assert_str_eq(numbers[0], numbers[2]);
    ck_assert_str_eq(numbers[1], numbers[2]);
    for (int i = 0; i < 3; i++) free(numbers[i]);
    call("report --out %s/r0", 0);
    expect_text(out, "own:name=train", "report");
    call("report --out %s/r0 --what position", 0);
    call("plot accuracy --out %s/r0", 0);
    write_file("train.jsonl", "{\"input\":[1,2],\"target\":[1,0]}\n{\"input\":[2,1],\"target\":[0,0]}\n");
    call("bench %s/train.jsonl:val=%s/val.jsonl,test=%s/test.jsonl --models lstm:hidden=8 --epochs 2 --lr 0.01 "
         "--dim 16 --no-speed --no-plots --out %s/r0",
         0); /* other content of that name is another run */
}
END_TEST

Suite *check_own(void);
Suite *check_own(void) {
    Suite *suite = suite_create("own");
    TCase *tests = tcase_create("own");
    tcase_add_checked_fixture(tests, tasks_begin, tasks_end);
    tcase_add_checked_fixture(tests, program_begin, program_end);
    tcase_add_test(tests, lines_of_tokens_become_examples);
    tcase_add_test(tests, lines_of_values_become_examples_with_one_label);
    tcase_add_test(tests, every_other_file_is_refused_with_line_and_reason);
    tcase_add_test(tests, compressed_arrays_are_the_same_examples);
    tcase_add_test(tests, arrays_that_are_not_as_savez_writes_them_are_refused);
    tcase_add_test(tests, a_header_that_ends_in_its_type_is_refused);
    tcase_add_test(tests, an_array_of_times_is_refused);
    tcase_add_test(tests, a_tenth_is_held_out_where_nobody_says_what_is);
    tcase_add_test(tests, files_that_cannot_be_trained_on_are_refused);
    tcase_add_test(tests, a_file_that_is_too_large_is_refused_with_its_size);
    tcase_add_test(tests, lines_are_trained_on_from_end_to_end);
    suite_add_tcase(suite, tests);
    return suite;
}
