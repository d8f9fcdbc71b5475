/* check_uea.c - series of the UEA archive's format: files that Python wrote (tests/data/make.py) come out of the tasks
 * value by value, and the reader answers everything else with one sentence. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/data/ts_files.h"
#include "tests/lib/program.h"
#include "tests/tasks/task_examples.h"

/* --- what Python wrote, as tasks give it -------------------------------------------------------------------------- */

static const struct problem {
    const char *task;
    int dimensions, labels, lengths[3], n_lengths;
    const int rank[5]; /* of the labels in make.py's order */
} problems[] = {{"uea", 6, 5, {9}, 1, {0, 1, 2, 3, 4}},
                {"ethanolconcentration", 3, 4, {7}, 1, {3, 1, 2, 0}},
                {"heartbeat", 5, 2, {6}, 1, {1, 0}},
                {"motorimagery", 4, 2, {5, 8, 6}, 3, {0, 1}},
                {"uea:set=selfregulationscp1", 2, 2, {8}, 1, {0, 1}},
                {"selfregulationscp2", 1, 2, {8}, 1, {0, 1}}};

static double value_of(int k, int d, int t) {
    return ((k * 37 + d * 11 + t * 5) % 64 - 20) / 8.0;
}

/* Whether the example is case k. */
static bool is_case(const struct problem *p, int k, const struct example *x) {
    int T = p->lengths[k % p->n_lengths];
    if (x->length != T || x->targets[0] != p->rank[k * 7 / 3 % p->labels]) return false;
    for (int t = 0; t < T; t++)
        for (int d = 0; d < p->dimensions; d++)
            if (fabs((double)x->values[t * p->dimensions + d] - value_of(k, d, t)) > 1e-6) return false;
    return true;
}

/* Case 13 repeats case 2. */
START_TEST(every_case_is_in_one_split_and_repeats_are_left_out) {
    const struct problem *p = &problems[_i];
    struct task_choice c;
    open_task(&c, p->task, 5);
    struct example x = new_example(&c.shape);
    int seen[20] = {0};
    ck_assert_int_eq(c.shape.channels, p->dimensions);
    ck_assert_int_eq(c.shape.vocab_out, p->labels);
    ck_assert_int_eq(c.shape.examples[SPLIT_TRAIN], 13); /* of 19: up to 70 %, up to 85 % */
    ck_assert_int_eq(c.shape.examples[SPLIT_VAL], 3);
    ck_assert_int_eq(c.shape.examples[SPLIT_TEST], 3);
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < c.shape.examples[split]; i++) {
            int found = -1;
            fill_example(&c, (enum split)split, i, -7, &x);
            for (int k = 0; k < 20; k++)
                if (k != 13 && is_case(p, k, &x)) found = k;
            ck_assert_msg(found >= 0, "%s: split %d, example %d is none of its cases", p->task, split, (int)i);
            seen[found]++;
        }
    for (int k = 0; k < 20; k++) ck_assert_int_eq(seen[k], k != 13);
    int most = 0, of_label[20] = {0};
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < c.shape.examples[split]; i++) {
            fill_example(&c, (enum split)split, i, -7, &x);
            most = ++of_label[x.targets[0]] > most ? of_label[x.targets[0]] : most;
        }
    ck_assert_double_eq(c.shape.floor, most / 19.0); /* what the commonest label alone gets */
    free_example(&x);
}
END_TEST

START_TEST(scaled_channels_span_the_range) {
    struct task_choice c;
    open_task(&c, "heartbeat:scale=yes,time=yes", 5);
    struct example x = new_example(&c.shape);
    double least[6], most[6];
    for (int d = 0; d < 6; d++) least[d] = 9, most[d] = -9;
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < c.shape.examples[split]; i++) {
            fill_example(&c, (enum split)split, i, -7, &x);
            for (int k = 0; k < 36; k++) {
                least[k % 6] = fmin(least[k % 6], (double)x.values[k]);
                most[k % 6] = fmax(most[k % 6], (double)x.values[k]);
            }
        }
    ck_assert(least[0] == 0 && fabs(most[0] - 5 / 6.0) < 1e-6);
    for (int d = 1; d < 6; d++) ck_assert(fabs(least[d] + 1) < 1e-6 && fabs(most[d] - 1) < 1e-6);
    free_example(&x);
}
END_TEST

/* --- the reader on text ------------------------------------------------------------------------------------------- */

static enum status read_text(const void *text, size_t n, struct entry_pack *pack, struct error *e) {
    struct byte_source s = {0};
    char sha[SHA256_HEX];
    *pack = (struct entry_pack){.set = {.kind = TS_KIND}};
    enum status status = source_open_memory(&s, text, n, "CASES", e);
    if (status == ST_OK) status = ts_read(&s, SPLIT_TRAIN, pack, e);
    if (status == ST_OK) status = source_end(&s, sha, e);
    source_close(&s);
    return status;
}

#define HEAD "@classLabel true a b\n@data\n"

START_TEST(what_is_no_case_is_named_by_line) {
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "CASES, line 1: expected a line of the header, which begins with @, found the end of the file"},
        {"1,2:a\n", "CASES, line 1: expected a line of the header, which begins with @, found '1,2:a'"},
        {"@data\n1:a\n", "expected @classLabel before @data, found '1:a'"},
        {"@classLabel false\n@data\n1\n", "expected cases with labels, @classLabel true, found the end of the line"},
        {"@classLabel true\n", "expected names of labels, found the end of the line"},
        {"@classLabel true a a\n", "expected names of labels, each once, found the end of the line"},
        {"@classLabel perhaps\n", "CASES, line 1: expected true or false, found 'perhaps'"},
        {"@timeStamps true\n", "expected values without time stamps, @timeStamps false, found the end of the line"},
        {"@dimensions 0\n", "expected a number of dimensions from 1 to 4096, found '0'"},
        {"@seriesLength x\n", "expected a number of points from 1 to 16777216, found 'x'"},
        {HEAD, "CASES, line 3: expected a case, found the end of the file"},
        {HEAD "1,2", "CASES, line 3: expected ',' or ':' after a value, found the end of the file"},
        {HEAD "1,,2:a\n", "CASES, line 3: expected a finite number, found ',2:a'"},
        {HEAD "1,x:a\n", "expected a finite number, found 'x:a'"},
        {HEAD "1,1e39:a\n", "CASES, line 3: expected a number of at most 3.4e38, found 1e+39"},
        {"@dimensions 2\n" HEAD "1,2:a\n", "line 4: expected a finite number, in dimension 2 of 2, found 'a'"},
        {"@dimensions 2\n" HEAD "1:2:3:a\n", "line 4: expected a label after 2 dimensions, found another dimension"},
        {"@targetLabel true\n@data\n1:2\n", "classes, not numbers, as targets: sort them into classes"},
        {HEAD "1,?:a\n", "expected a value (missing ones are not read: fill them in), found '?:a'"},
        {HEAD "1,NaN:a\n", "expected a value (missing ones are not read: fill them in), found 'NaN:a'"},
        {HEAD "1,2:3:a\n", "expected a dimension of 2 values, not 1, found ':a'"},
        {HEAD "1,2:c\n", "CASES, line 3: expected a label of the header's list, found 'c'"},
        {HEAD "1,2:\n", "expected a label of the header's list, found ''"},
        {HEAD "1,2:a b\n", "expected the end of the line, found 'b'"},
        {HEAD "1:2:a\n1:a\n", "CASES, line 4: expected a finite number, in dimension 2 of 2, found 'a'"},
        {"@seriesLength 3\n" HEAD "1,2:a\n", "CASES, line 4: expected a dimension of 3 values, not 2, found ':a'"},
    };
    struct entry_pack pack;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error e = {ST_OK, ""};
        ck_assert_int_eq(read_text(bad[i].text, strlen(bad[i].text), &pack, &e), ST_DATA);
        ck_assert_msg(strstr(e.text, bad[i].says), "'%s' is not '%s'", e.text, bad[i].says);
        entry_pack_free(&pack);
    }
}
END_TEST

/* Labels are numbered by their sorted names, so both files of a problem have to have the same ones. */
START_TEST(files_of_a_problem_have_the_same_labels) {
    static const char *const second[] = {"@classLabel true b a\n@data\n1:a\n", "@classLabel true b c\n@data\n1:b\n"};
    for (int i = 0; i < 2; i++) {
        struct entry_pack pack;
        struct byte_source s = {0};
        struct error e = {ST_OK, ""};
        ck_assert_msg(read_text(HEAD "1:b\n", strlen(HEAD "1:b\n"), &pack, &e) == ST_OK, "%s", e.text);
        ck_assert_int_eq(source_open_memory(&s, second[i], strlen(second[i]), "SECOND", &e), ST_OK);
        ck_assert_int_eq(ts_read(&s, SPLIT_TEST, &pack, &e), i == 0 ? ST_OK : ST_DATA);
        if (i) ck_assert_str_eq(e.text, "SECOND: its 2 labels have other names than in the file before");
        source_close(&s);
        entry_pack_free(&pack);
    }
}
END_TEST

/* Lines of another end, blanks, comments, exponents, long numbers and keys that nobody knows are all one file. */
START_TEST(a_file_is_read_however_it_is_written) {
    static const char text[] = "\xef\xbb\xbf# made by hand\r\n% for Weka\r\n  @ProblemName x\r\n@Dimensions 2\r\n"
                               "@UNKNOWN what ever\r\n\t@ClassLabel TRUE b a\r\n@Data\r\n\r\n"
                               "1, 2.5,-3e-1:0.10000000149011612,1E2,+4 : b\r\n% between\r\n  7:8:a\n\n \n";
    static const float first[] = {1, 0.1f, 2.5f, 100, -0.3f, 4}, second[] = {7, 8};
    struct entry_pack pack;
    struct error e = {ST_OK, ""};
    ck_assert_msg(read_text(text, sizeof text - 1, &pack, &e) == ST_OK, "%s", e.text);
    ck_assert(pack.set.n[SPLIT_TRAIN] == 2 && pack.set.width == 2 && pack.set.labels == 2 && pack.set.longest == 3);
    ck_assert(pack.row[0].label == 1 && pack.row[0].length == 3 && pack.row[1].label == 0 && pack.row[1].length == 1);
    ck_assert(memcmp(pack.payload, first, sizeof first) == 0);
    ck_assert(memcmp(pack.payload + pack.row[1].offset, second, sizeof second) == 0);
    entry_pack_free(&pack);
}
END_TEST

/* A file that ends within a case is refused; one that ends after a case is a shorter file. */
START_TEST(a_file_cut_anywhere_is_refused_or_shorter) {
    static const char text[] = "@dimensions 2\n" HEAD "1,2:3,4:a\n5,6:7,8:b\n";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        struct entry_pack pack;
        struct error e = {ST_OK, ""};
        char *bytes = malloc(n + 1);
        memcpy(bytes, text, n);
        enum status status = read_text(bytes, n, &pack, &e);
        size_t one = strlen("@dimensions 2\n" HEAD "1,2:3,4:a"), two = sizeof text - 2;
        bool whole = n == one || n == one + 1 || n == two;
        if (status != (whole ? ST_OK : ST_DATA) || (!whole && !strstr(e.text, "CASES, line ")))
            ck_abort_msg("%zu bytes: %d, '%s'", n, status, e.text);
        entry_pack_free(&pack);
        free(bytes);
    }
}
END_TEST

/* --- files of entries --------------------------------------------------------------------------------------------- */

START_TEST(records_are_whole_or_refused) {
    size_t size;
    char path[CACHE_PATH];
    struct entry_set set;
    struct error e = {ST_OK, ""};
    ck_assert_int_eq(cache_path("motorimagery", "records", path, &e), ST_OK);
    uint8_t *bytes = (uint8_t *)slurp(path, &size);
    ck_assert_msg(entry_set_parse(&set, bytes, size, "SET", TS_KIND, &e) == ST_OK, "%s", e.text);
    ck_assert(set.n[SPLIT_TRAIN] == 12 && set.n[SPLIT_TEST] == 8 && set.width == 4 && set.longest == 8);
    for (size_t n = 0; n < size; n += n < 400 ? 1 : 77) {
        ck_assert_int_eq(entry_set_parse(&set, bytes, n, "SET", TS_KIND, &e), ST_DATA);
        ck_assert(strncmp(e.text, "SET", 3) == 0);
    }
    for (size_t at = 0; at < 80; at++) { /* every byte of the header and of the table counts */
        bytes[at] ^= 0x11;
        ck_assert_int_eq(entry_set_parse(&set, bytes, size, "SET", TS_KIND, &e), ST_DATA);
        bytes[at] ^= 0x11;
    }
    ck_assert_int_eq(entry_set_parse(&set, bytes, size, "SET", "texts", &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "SET: expected entries of kind 'texts', found 'series'"), "%s", e.text);
    free(bytes);
}
END_TEST

/* From the archive's files to a run, and what is asked for when they are not there. */
START_TEST(series_are_imported_and_trained_on) {
    expect_status(run("data show heartbeat"), 5, "data show heartbeat");
    expect_text(err, "`lrnn data import heartbeat FOLDER` makes it", "data show heartbeat");
    expect_status(run("data import heartbeat tests/data/motorimagery"), 5, "another folder");
    expect_text(err, "cannot find Heartbeat_TRAIN.ts in tests/data/motorimagery", "another folder");
    expect_status(run("data import heartbeat tests/data/heartbeat"), 0, "data import");
    expect_text(out, "12 training, 0 validation and 8 test series of at most 6, width 5, 2 labels", "data import");
    expect_status(run("data stats heartbeat"), 0, "data stats");
    expect_text(out, "lengths    6 to 6", "data stats");
    expect_status(run("train heartbeat:increments=yes slice:interval=2,depth=2 --dim 4 --steps 2 --batch 4"), 0,
                  "train");
    free_output();
}
END_TEST

/* The known files under another name: an archive's set that the program has never heard of. */
START_TEST(sets_beyond_the_known_ones_go_under_their_own_names) {
    static const char *const files[][2] = {{"heartbeat/Heartbeat_TRAIN.ts", "Beats_TRAIN.ts"},
                                           {"heartbeat/Heartbeat_TEST.ts", "Beats_TEST.ts"},
                                           {"mutag/MUTAG_A.txt", "MINE_A.txt"},
                                           {"mutag/MUTAG_graph_indicator.txt", "MINE_graph_indicator.txt"},
                                           {"mutag/MUTAG_graph_labels.txt", "MINE_graph_labels.txt"}};
    char text[300];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char from[100];
        size_t size;
        snprintf(from, sizeof from, "tests/data/%s", files[i][0]);
        char *bytes = slurp(from, &size);
        snprintf(text, sizeof text, "%s/%s", program_folder, files[i][1]);
        spill(text, bytes, size);
        free(bytes);
    }
    expect_status(run("data stats uea:set=Beats"), 5, "not imported");
    expect_text(err, "`lrnn data import uea:Beats FOLDER` makes it", "not imported");
    snprintf(text, sizeof text, "data import uea:Beats %s", program_folder);
    expect_status(run(text), 0, text);
    expect_text(out, "12 training, 0 validation and 8 test series of at most 6, width 5, 2 labels", text);
    expect_status(run("train uea:set=Beats lstm:hidden=4 --dim 4 --steps 2 --batch 4"), 0, "train");
    snprintf(text, sizeof text, "data import tud:MINE %s", program_folder); /* without labels of nodes or edges */
    expect_status(run(text), 0, text);
    expect_text(out, "test graphs of at most 6, width 1, 2 labels", text);
    expect_status(run("data verify tud:MINE"), 0, "verify");
    expect_status(run("data stats tud:set=MINE"), 0, "stats");
    expect_status(run("data import uea:../x /tmp"), 2, "no name");
    expect_text(err, "unknown data set 'uea:../x'", "no name");
}
END_TEST

Suite *check_uea(void) {
    Suite *suite = suite_create("uea");
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, reserve_task_host, free_task_host);
    tcase_add_checked_fixture(files, import_data, drop_data);
    tcase_add_loop_test(files, every_case_is_in_one_split_and_repeats_are_left_out, 0,
                        (int)(sizeof problems / sizeof *problems));
    tcase_add_test(files, scaled_channels_span_the_range);
    tcase_add_test(files, records_are_whole_or_refused);
    suite_add_tcase(suite, files);
    TCase *reader = tcase_create("reader");
    tcase_add_test(reader, what_is_no_case_is_named_by_line);
    tcase_add_test(reader, files_of_a_problem_have_the_same_labels);
    tcase_add_test(reader, a_file_is_read_however_it_is_written);
    tcase_add_test(reader, a_file_cut_anywhere_is_refused_or_shorter);
    suite_add_tcase(suite, reader);
    TCase *command = tcase_create("command line");
    tcase_add_checked_fixture(command, program_begin_without_data, program_end);
    tcase_set_timeout(command, 60);
    tcase_add_test(command, series_are_imported_and_trained_on);
    tcase_add_test(command, sets_beyond_the_known_ones_go_under_their_own_names);
    suite_add_tcase(suite, command);
    return suite;
}
