/* check_listops_tsv.c - the reader of the released ListOps files, and the task on them. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/philox.h"
#include "harness/study/study.h"
#include "tasks/language/listops_tsv.h"
#include "tests/tasks/language/listops_meaning.h"
#include "tests/lib/scratch.h"
#include "tests/tasks/task_examples.h"

/* A growing file image. */
struct text {
    char *bytes;
    size_t n, room;
};

static void put(struct text *t, const char *word) {
    size_t n = strlen(word);
    if (t->n + n > t->room) {
        t->room = 2 * (t->room + n);
        char *bytes = realloc(t->bytes, t->room);
        ck_assert_ptr_nonnull(bytes);
        t->bytes = bytes;
    }
    memcpy(t->bytes + t->n, word, n);
    t->n += n;
}

static int32_t argument_count(const int32_t *token) {
    int n = 0;
    for (int level = 1; level > 0;) {
        int32_t next = *++token;
        n += level == 1 && next != CLOSE;
        level += next >= MAX && next <= SM ? 1 : next == CLOSE ? -1 : 0;
    }
    return n;
}

/* Writes an expression like the released files: each operator with its first argument, and then each further argument
 * and the ']' joined to all left of it, gives a pair in parentheses. */
static void put_expression(struct text *t, const int32_t **at) {
    static const char *const operators[] = {"[MAX", "[MED", "[MIN", "[SM"};
    char digit[2] = "0";
    if (**at < MAX) {
        digit[0] = (char)('0' + *(*at)++ - ZERO);
        put(t, digit);
        return;
    }
    for (int n = argument_count(*at); n >= 0; n--) put(t, "( ");
    put(t, operators[*(*at)++ - MAX]);
    while (**at != CLOSE) {
        put(t, " ");
        put_expression(t, at);
        put(t, " )");
    }
    ++*at;
    put(t, " ] )");
}

static void put_example(struct text *t, const struct example *x, const char *line_end) {
    char label[16];
    const int32_t *at = x->tokens;
    put_expression(t, &at);
    snprintf(label, sizeof label, "\t%d", x->targets[0]);
    put(t, label);
    put(t, line_end);
}

/* A file of n examples of a split. */
static struct text file_of(const struct task_choice *c, enum split split, int n, const char *line_end) {
    struct text t = {NULL, 0, 0};
    struct example x = new_example(&c->shape);
    put(&t, "Source\tTarget");
    put(&t, line_end);
    for (int i = 0; i < n; i++) {
        fill_example(c, split, i, -7, &x);
        put_example(&t, &x, line_end);
    }
    free_example(&x);
    return t;
}

/* Parses a heap copy of the exact size, so that a sanitizer sees the first byte read beyond the end. What was on the
 * arena is given back first. */
static enum status parse(struct listops_rows *rows, const char *bytes, size_t size, int64_t max_length,
                         struct error *e) {
    char *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    *e = (struct error){ST_OK, ""};
    arena_release(&task_host, 0);
    enum status status = listops_tsv_parse(rows, copy, size, "FILE", max_length, &task_host, e);
    free(copy);
    return status;
}

static void check_row(const struct listops_row *row, const struct example *x) {
    ck_assert_int_eq(row->length, x->length - 1);
    ck_assert_int_eq(row->label, x->targets[0]);
    int t = 0;
    while (t < row->length && row->tokens[t] == x->tokens[t]) t++;
    ck_assert_int_eq(t, row->length);
}

START_TEST(the_example_of_the_specification_is_written_and_read) {
    struct example x = {
        .tokens = (int32_t[]){MAX, ZERO + 3, ZERO + 5, CLOSE, EOS}, .targets = (int32_t[]){5}, .length = 5};
    struct text t = {NULL, 0, 0};
    static const char wanted[] = "( ( ( [MAX 3 ) 5 ) ] )\t5";
    put_example(&t, &x, "");
    ck_assert_uint_eq(t.n, sizeof wanted - 1);
    ck_assert_mem_eq(t.bytes, wanted, t.n);
    free(t.bytes);
}
END_TEST

static void check_round_trip(const char *task, int n, const char *line_end) {
    struct task_choice c;
    struct listops_rows rows;
    struct error e;
    open_task(&c, task, 3);
    struct text t = file_of(&c, SPLIT_TEST, n, line_end);
    struct example x = new_example(&c.shape);
    ck_assert_msg(parse(&rows, t.bytes, t.n, c.shape.T, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(rows.n, n);
    for (int i = 0; i < n; i++) {
        fill_example(&c, SPLIT_TEST, i, -7, &x);
        check_row(rows.row[i], &x);
    }
    free(t.bytes);
    free_example(&x);
}

START_TEST(what_is_written_is_read_back) {
    check_round_trip("listops", 200, "\r\n");
    check_round_trip("listops", 200, "\n");
    check_round_trip("listops:min_length=0,max_length=30", 2000, "\n");
}
END_TEST

START_TEST(parentheses_and_blanks_carry_no_meaning) {
    static const char text[] = "Source\tTarget\n"
                               "[MED 1 2 ]\t1\n"
                               "  ( [MED   1 ( 2 )   ] )  \t1\r\n"
                               "7\t7\n"
                               "[SM [MAX 1 9 ] [MIN 4 2 8 ] 7 ]\t8\n";
    struct listops_rows rows;
    struct error e;
    ck_assert_msg(parse(&rows, text, sizeof text - 1, 100, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(rows.n, 4);
    static const uint8_t med[] = {MED, ZERO + 1, ZERO + 2, CLOSE};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(rows.row[i]->length, 4);
        ck_assert_mem_eq(rows.row[i]->tokens, med, 4);
        ck_assert_int_eq(rows.row[i]->label, 1);
    }
    ck_assert_int_eq(rows.row[2]->length, 1);
    ck_assert_int_eq(rows.row[3]->label, 8);
}
END_TEST

#define H      "Source\tTarget\n"
#define HEADER "line 1: expected the header 'Source<TAB>Target', found "

static const struct malformed {
    const char *text, *message;
} malformed[] = {
    {"", HEADER "the end of the file"},
    {"\n", HEADER "the end of the line"},
    {"\t", HEADER "a tab"},
    {"Source,Target\n", HEADER "'Source,Target'"},
    {"Source\tLabel\n", HEADER "'Label'"},
    {"Source Target\n", HEADER "'Source'"},
    {"Sour", HEADER "'Sour' and the end of the file"},
    {"\xef\xbb\xbfSource\tTarget\n", HEADER "'\?\?\?Source'"},
    {"Source\tTarget", "line 1: expected the end of the line, found the end of the file"},
    {"Source\tTarget\tName\n", "line 1: expected the end of the line, found a tab"},
    {H, "line 2: expected an expression, found the end of the file"},
    {H "\n", "line 2: expected an expression, found the end of the line"},
    {H "\t3\n", "line 2: expected an expression, found a tab"},
    {H "( )\t3\n", "line 2: expected an expression, found a tab"},
    {H "3\n", "line 2: expected a tab and the label, found the end of the line"},
    {H "3\r\n", "line 2: expected a tab and the label, found a carriage return"},
    {H "3", "line 2: expected a tab and the label, found the end of the file"},
    {H "3\t", "line 2: expected a label from 0 to 9, found the end of the file"},
    {H "3\t\n", "line 2: expected a label from 0 to 9, found the end of the line"},
    {H "3\t3", "line 2: expected the end of the line, found the end of the file"},
    {H "3\t3\r", "line 2: expected a line feed after the carriage return, found the end of the file"},
    {H "3\t3\r3\t3\n", "line 2: expected a line feed after the carriage return, found '3'"},
    {H "3\t3 \n", "line 2: expected the end of the line, found a blank"},
    {H "3\t3\t3\n", "line 2: expected the end of the line, found a tab"},
    {H "3\t 3\n", "line 2: expected a label from 0 to 9, found a blank"},
    {H "3\t12\n", "line 2: expected a label from 0 to 9, found '12'"},
    {H "3\t-1\n", "line 2: expected a label from 0 to 9, found '-1'"},
    {H "3\tx\n", "line 2: expected a label from 0 to 9, found 'x'"},
    {H "3\t:\n", "line 2: expected a label from 0 to 9, found ':'"},
    {H "3\t4\n", "line 2: expected the value of the expression, 3, as its label, found 4"},
    {H "[MED 1 2 ]\t2\n", "line 2: expected the value of the expression, 1, as its label, found 2"},
    {H "[MAX 3 5 ]\t5\n7 8\t7\n", "line 3: expected a tab after the complete expression, found '8'"},
    {H "[MAX 3 5 ] ]\t5\n", "line 2: expected a tab after the complete expression, found ']'"},
    {H "[MAX 3 5\t5\n", "line 2: expected ']' for each operator, found a tab"},
    {H "[MAX 3 [MIN 5 ]\t5\n", "line 2: expected ']' for each operator, found a tab"},
    {H "[MAX 3\n5 ]\t5\n", "line 2: expected ']' for each operator, found the end of the line"},
    {H "[MAX 3\r5 ]\t5\n", "line 2: expected ']' for each operator, found a carriage return"},
    {H "]\t5\n", "line 2: expected an expression, found ']'"},
    {H "[MAX ]\t0\n", "line 2: expected an argument of the operator, found ']'"},
    {H "( 3\t3\n", "line 2: expected ')' for each '(', found a tab"},
    {H "3 )\t3\n", "line 2: expected '(' before it, found ')'"},
    {H ") 3 (\t3\n", "line 2: expected '(' before it, found ')'"},
    {H "[AVG 3 5 ]\t4\n", "expected a digit or one of ( ) ] [MAX [MED [MIN [SM, found '[AVG'"},
    {H "[MAX3 5 ]\t5\n", "found '[MAX3'"},
    {H "[max 5 ]\t5\n", "found '[max'"},
    {H "[M", "found '[M' and the end of the file"},
    {H "[MAXIMUM_OF_ALL_OF_THESE 3 ]\t3\n", "found '[MAXIMUM_OF_ALL_..'"},
    {H "[MAXIMUM_OF_ALL_\t3\n", "found '[MAXIMUM_OF_ALL_'"},
    {H "10\t1\n", "found '10'"},
    {H "\x01\x7f\xff\t1\n", "found '\?\?\?'"},
    {H "3(\t3\n", "found '3('"},
    {H "/\t3\n", "found '/'"},
};

static void check_message(const struct error *e, const char *message) {
    ck_assert_int_eq(e->status, ST_DATA);
    ck_assert_msg(strncmp(e->text, "FILE, line ", 11) == 0 && !strchr(e->text, '\n'), "%s", e->text);
    ck_assert_msg(strstr(e->text, message) != NULL, "expected \"%s\" in \"%s\"", message, e->text);
}

START_TEST(malformed_files_are_refused_with_the_reason) {
    const struct malformed *m = &malformed[_i];
    struct listops_rows rows;
    struct error e;
    ck_assert_int_eq(parse(&rows, m->text, strlen(m->text), 2000, &e), ST_DATA);
    check_message(&e, m->message);
}
END_TEST

START_TEST(zero_bytes_are_refused) {
    struct listops_rows rows;
    struct error e;
    static const char text[] = H "[M\0AX 5 ]\t5\n";
    ck_assert_int_eq(parse(&rows, text, sizeof text - 1, 2000, &e), ST_DATA);
    check_message(&e, "found '[M?AX'");
}
END_TEST

/* Whole lines are a smaller file; nothing else is a file. */
START_TEST(every_truncation_within_a_line_is_refused) {
    static const char text[] = "Source\tTarget\r\n( ( ( [MAX 3 ) 5 ) ] )\t5\r\n[SM 7 [MIN 4 9 ] ]\t1\n8\t8\r\n";
    struct listops_rows rows;
    struct error e;
    int64_t lines = 0;
    for (size_t size = 0; size < sizeof text; size++) {
        bool whole = size > 0 && text[size - 1] == '\n';
        lines += whole;
        enum status status = parse(&rows, text, size, 100, &e);
        if (whole && lines > 1) {
            ck_assert_msg(status == ST_OK && rows.n == lines - 1, "%zu bytes: %s", size, e.text);
        } else {
            ck_assert_msg(status == ST_DATA, "%zu bytes were accepted", size);
            check_message(&e, "found ");
        }
    }
    ck_assert_int_eq(lines, 4);
}
END_TEST

/* 10 000 files with one to four flipped bits: refused with one sentence, or read as expressions of that value. */
START_TEST(flipped_bits_never_crash) {
    struct task_choice c;
    open_task(&c, "listops:min_length=5,max_length=60", 1);
    struct text t = file_of(&c, SPLIT_VAL, 12, "\r\n");
    struct rng r = rng_at(1, STREAM_TEST, 0);
    char *copy = malloc(t.n);
    int refused = 0;
    for (int n = 0; n < 10000; n++) {
        memcpy(copy, t.bytes, t.n);
        for (uint64_t flips = 1 + rng_below(&r, 4); flips > 0; flips--)
            copy[rng_below(&r, t.n)] ^= (char)(1u << rng_below(&r, 8));
        struct listops_rows rows;
        struct error e;
        if (parse(&rows, copy, t.n, 60, &e) == ST_DATA) {
            refused++;
            check_message(&e, "found ");
            continue;
        }
        ck_assert_int_eq(e.status, ST_OK);
        for (int64_t i = 0; i < rows.n; i++) { /* the reader lets no unknown id and no open operator pass */
            int32_t tokens[60] = {0};
            const int32_t *at = tokens;
            struct seen seen = {0, 0, 1000};
            for (int k = 0; k < rows.row[i]->length; k++) tokens[k] = rows.row[i]->tokens[k];
            ck_assert_int_eq(value_of(&at, 1, &seen), rows.row[i]->label);
            ck_assert_int_eq(at - tokens, rows.row[i]->length);
        }
    }
    ck_assert_int_gt(refused, 8000);
    free(copy);
    free(t.bytes);
}
END_TEST

START_TEST(limits_are_kept) {
    struct listops_rows rows;
    struct error e;
    static const char five[] = H "[MAX 3 5 7 ]\t7\n";
    ck_assert_int_eq(parse(&rows, five, sizeof five - 1, 6, &e), ST_OK);
    ck_assert_int_eq(parse(&rows, five, sizeof five - 1, 5, &e), ST_DATA);
    check_message(&e, "line 2: expected an expression of fewer than 5 tokens, found a longer one; raise max_length");
    for (int depth = 64; depth <= 65; depth++) {
        struct text t = {NULL, 0, 0};
        put(&t, H);
        for (int i = 0; i < depth; i++) put(&t, "[SM ");
        put(&t, "4");
        for (int i = 0; i < depth; i++) put(&t, " ]");
        put(&t, "\t4\n");
        ck_assert_int_eq(parse(&rows, t.bytes, t.n, 2000, &e), depth == 64 ? ST_OK : ST_DATA);
        if (depth == 65) check_message(&e, "line 2: expected at most 64 nested operators, found one more");
        free(t.bytes);
    }
}
END_TEST

START_TEST(parentheses_blanks_and_words_take_no_memory) {
    static const char *const fillers[] = {"( ", " ", ") ", "x"};
    for (int i = 0; i < 4; i++) {
        struct text t = {NULL, 0, 0};
        struct listops_rows rows;
        struct error e;
        put(&t, H);
        for (int k = 0; k < 1000000; k++) put(&t, fillers[i]);
        ck_assert_int_eq(parse(&rows, t.bytes, t.n, 2000, &e), ST_DATA);
        check_message(&e, i == 2 ? "'(' before it" : i == 3 ? "xxxxxxxxxxxxxxxx..' and the end" : "an expression");
        ck_assert_uint_lt(task_host.used, 10000);
        free(t.bytes);
    }
}
END_TEST

/* Every allocation in turn fails; then an arena that is too small. */
START_TEST(a_full_arena_ends_reading) {
    struct task_choice c;
    struct listops_rows rows;
    struct error e;
    open_task(&c, "listops:min_length=5,max_length=60", 1);
    struct text t = file_of(&c, SPLIT_VAL, 10, "\n");
    for (int n = 1; n <= 12; n++) { /* the buffer, ten rows, their index */
        task_host.fail_after = n;
        ck_assert_int_eq(parse(&rows, t.bytes, t.n, 60, &e), ST_MEMORY);
        ck_assert_ptr_nonnull(strstr(e.text, "no room for more; the 128 MB for tables of a task are full"));
    }
    task_host.fail_after = 13;
    ck_assert_int_eq(parse(&rows, t.bytes, t.n, 60, &e), ST_OK);
    free(t.bytes);
}
END_TEST

/* --- the task on files -------------------------------------------------------------------------------------------- */

static char folder[SCRATCH_BYTES];

static void enter_folder(void) {
    reserve_task_host();
    scratch_make(folder);
}

static void leave_folder(void) {
    scratch_remove(folder);
    free_task_host();
}

static void write_split(const struct task_choice *c, enum split split, int n) {
    static const char *const files[SPLIT_COUNT] = {"basic_train.tsv", "basic_val.tsv", "basic_test.tsv"};
    char path[128];
    struct text t = file_of(c, split, n, "\r\n");
    snprintf(path, sizeof path, "%s/%s", folder, files[split]);
    spill(path, t.bytes, t.n);
    free(t.bytes);
}

static void check_file_refused(const char *options, enum status status, const char *message) {
    char text[256];
    struct task_choice c;
    struct error e = {ST_OK, ""};
    snprintf(text, sizeof text, "listops:file=%s%s", folder, options);
    ck_assert_int_eq(task_parse(&c, text, &e), ST_OK);
    ck_assert_int_eq(task_open(&c, 1, &task_host, &e), status);
    ck_assert_msg(strstr(e.text, message) && strstr(e.text, folder) && !strchr(e.text, '\n'), "%s", e.text);
}

/* They would be part of what a run is called, and mean nothing. */
START_TEST(options_of_drawn_expressions_are_refused_with_files) {
    static const char *const given[] = {"min_length=1500", "depth=5", "arity=3"};
    char text[256], want[64];
    struct task_choice c;
    struct error e = {ST_OK, ""};
    snprintf(text, sizeof text, "listops:file=%s,%s", folder, given[_i]);
    snprintf(want, sizeof want, "listops: %s is of generated expressions", given[_i]);
    ck_assert_int_eq(task_parse(&c, text, &e), ST_OK);
    ck_assert_int_eq(task_open(&c, 1, &task_host, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, want) != NULL, "%s", e.text);
}
END_TEST

START_TEST(files_give_their_expressions) {
    struct task_choice generated, released;
    char text[128];
    int n[SPLIT_COUNT] = {120, 30, 20};
    open_task(&generated, "listops", 5);
    for (int split = 0; split < SPLIT_COUNT; split++) write_split(&generated, (enum split)split, n[split]);
    snprintf(text, sizeof text, "listops:file=%s", folder);
    open_task(&released, text, 99);
    ck_assert_int_eq(released.shape.T, 2000);
    struct example x = new_example(&generated.shape), y = new_example(&generated.shape);
    for (int split = 0; split < SPLIT_COUNT; split++) {
        ck_assert_int_eq(released.shape.examples[split], n[split]);
        for (int i = 0; i < n[split]; i++) {
            fill_example(&generated, (enum split)split, i, -7, &x);
            fill_example(&released, (enum split)split, i, -9, &y);
            ck_assert(same_example(&generated.shape, (enum split)split, &x, &y));
        }
    }
    free_example(&x);
    free_example(&y);
    snprintf(text, sizeof text, "listops:file=%s,n_train=100,n_val=30,n_test=1", folder);
    open_task(&released, text, 1);
    ck_assert(released.shape.examples[SPLIT_TRAIN] == 100 && released.shape.examples[SPLIT_TEST] == 1);
    check_file_refused(",n_val=31", ST_USAGE, "n_val=31, but ");
    check_file_refused(",n_val=31", ST_USAGE, "basic_val.tsv holds only 30 expressions");
    check_file_refused(",max_length=600", ST_DATA, "basic_train.tsv, line ");
    check_file_refused(",max_length=600", ST_DATA, "fewer than 600 tokens");
}
END_TEST

/* A run of the files has one id and one name, by whatever path. */
static void expect_same_run_at(const char *path) {
    char text[2][256];
    struct setup *of[2];
    struct config config;
    struct error e = {ST_OK, ""};
    snprintf(text[0], sizeof text[0], "listops:max_length=600,file=%s", path);
    snprintf(text[1], sizeof text[1], "listops:max_length=600,file=%s/.", path);
    ck_assert_int_eq(config_default(&config, &e), ST_OK);
    for (int i = 0; i < 2; i++) {
        of[i] = setup_make(&config, text[i], "lstm:hidden=4", &e);
        ck_assert_msg(of[i] != NULL, "%s", e.text);
        ck_assert_str_eq(of[i]->spec.task.name, "listops:max_length=600");
        ck_assert_str_eq(of[i]->spec.task.asked, text[i]);
    }
    ck_assert_str_eq(of[0]->id.text, of[1]->id.text);
    ck_assert_str_eq(of[0]->id.run_id, of[1]->id.run_id);
    ck_assert_ptr_null(strstr(of[0]->id.text, path));
    for (int i = 0; i < 2; i++) {
        setup_free(of[i]);
    }
}

/* Another path to the same bytes is the same task, one byte changed is another, and what was asked for is held to
 * it. */
START_TEST(files_are_known_by_their_content) {
    struct task_choice c, again;
    struct error e = {ST_OK, ""};
    char text[256], content[33], path[SCRATCH_BYTES + 32];
    open_task(&c, "listops:max_length=600", 5);
    for (int split = 0; split < SPLIT_COUNT; split++) write_split(&c, (enum split)split, 3);
    for (int way = 0; way < 2; way++) {
        snprintf(text, sizeof text, "listops:file=%s%s", folder, way ? "/../" : "");
        if (way) snprintf(text + strlen(text), sizeof text - strlen(text), "%s", strrchr(folder, '/') + 1);
        open_task(&again, text, 1);
        const char *found = option_find(again.task->options, "content")->offset + (const char *)again.inst;
        ck_assert_uint_eq(strlen(found), 32);
        if (way) ck_assert_str_eq(found, content);
        snprintf(content, sizeof content, "%s", found);
    }
    expect_same_run_at(folder);
    snprintf(text, sizeof text, "listops:content=%s", content);
    ck_assert_int_eq(task_parse(&c, text, &e), ST_OK);
    ck_assert_int_eq(task_open(&c, 1, &task_host, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "file=FOLDER") != NULL, "%s", e.text);
    snprintf(path, sizeof path, "%s/basic_val.tsv", folder);
    spill(path, H "3\t3\r\n", sizeof H + 4);
    snprintf(text, sizeof text, ",content=%s", content);
    check_file_refused(text, ST_DATA, "they are other files");
    snprintf(text, sizeof text, "listops:file=%s", folder);
    open_task(&again, text, 1);
    ck_assert_str_ne(option_find(again.task->options, "content")->offset + (const char *)again.inst, content);
}
END_TEST

START_TEST(missing_and_odd_files_are_refused) {
    struct task_choice c;
    char path[128];
    open_task(&c, "listops:max_length=600", 5);
    check_file_refused("/none", ST_DATA, "basic_train.tsv: No such file or directory");
    check_file_refused("", ST_DATA, "basic_train.tsv: No such file or directory");
    write_split(&c, SPLIT_TRAIN, 3);
    write_split(&c, SPLIT_VAL, 3);
    check_file_refused("", ST_DATA, "basic_test.tsv: No such file or directory");
    snprintf(path, sizeof path, "%s/basic_test.tsv", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    check_file_refused("", ST_DATA, "basic_test.tsv: it is not a regular file");
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    check_file_refused("", ST_DATA, "basic_test.tsv: it is not a regular file");
    ck_assert_int_eq(unlink(path), 0);
    spill(path, "", 0);
    check_file_refused("", ST_DATA, "basic_test.tsv, line 1: expected the header");
    spill(path, H, sizeof H - 1);
    check_file_refused("", ST_DATA, "basic_test.tsv, line 2: expected an expression");
    spill(path, H "3\t3", sizeof H + 2);
    check_file_refused("", ST_DATA, "basic_test.tsv, line 2: expected the end of the line, found the end of the file");
    struct listops_rows rows; /* a file whose first byte cannot be read */
    struct error e = {ST_OK, ""};
    ck_assert_int_eq(listops_tsv_read(&rows, "/proc/self/mem", 2000, &task_host, NULL, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "/proc/self/mem") && strstr(e.text, "cannot "), "%s", e.text);
}
END_TEST

Suite *check_listops_tsv(void);
Suite *check_listops_tsv(void) {
    Suite *suite = suite_create("listops_tsv");
    TCase *tests = tcase_create("reader"), *files = tcase_create("files");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_test(tests, the_example_of_the_specification_is_written_and_read);
    tcase_add_test(tests, what_is_written_is_read_back);
    tcase_add_test(tests, parentheses_and_blanks_carry_no_meaning);
    tcase_add_loop_test(tests, malformed_files_are_refused_with_the_reason, 0,
                        (int)(sizeof malformed / sizeof *malformed));
    tcase_add_test(tests, zero_bytes_are_refused);
    tcase_add_test(tests, every_truncation_within_a_line_is_refused);
    tcase_add_test(tests, flipped_bits_never_crash);
    tcase_add_test(tests, limits_are_kept);
    tcase_add_test(tests, parentheses_blanks_and_words_take_no_memory);
    tcase_add_test(tests, a_full_arena_ends_reading);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(files, enter_folder, leave_folder);
    tcase_add_loop_test(files, options_of_drawn_expressions_are_refused_with_files, 0, 3);
    tcase_add_test(files, files_give_their_expressions);
    tcase_add_test(files, files_are_known_by_their_content);
    tcase_add_test(files, missing_and_odd_files_are_refused);
    suite_add_tcase(suite, files);
    return suite;
}
