/* check_record_json.c - records as text where memory runs out, and where they are long. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "harness/store/record_json.h"
#include "harness/store/schema.h"
#include "tests/harness/store/record_samples.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

static struct error problem;

static void ck_ok(enum status status) {
    ck_assert_msg(status == ST_OK, "status %d: %s", status, problem.text);
}

static int left; /* requests for memory until one is refused */

static void *scarce(size_t size) {
    return left-- > 0 ? malloc(size) : NULL;
}

/* A whole record must never pass for a damaged one because memory ran out, nor half of one be written. */
START_TEST(no_memory_is_an_error_and_not_damage) {
    struct run_record r, got;
    struct curve_point curve[2];
    struct eval_point evals[1];
    struct arena arena = {0};
    char *whole, *text;
    size_t whole_size, size;
    int refused[2] = {0, 0};
    sample_fill(&r, curve, evals, 1);
    ck_ok(arena_reserve(&arena, 1 << 20, &problem));
    ck_ok(record_format(&r, &whole, &whole_size, &problem));
    json_set_alloc_funcs(scarce, free);
    for (enum status status = ST_FAIL; status != ST_OK; refused[0]++) {
        left = refused[0];
        status = record_format(&r, &text, &size, &problem);
        ck_assert_int_eq(status, status == ST_OK ? ST_OK : ST_FAIL);
        if (status == ST_OK) ck_assert_str_eq(text, whole);
        free(text);
    }
    for (enum status status = ST_FAIL; status != ST_OK; refused[1]++) {
        size_t mark = arena_mark(&arena);
        left = refused[1];
        status = record_parse(whole, whole_size, "whole", r.run.run_id, &got, &arena, &problem);
        ck_assert_msg(status == ST_OK || status == ST_FAIL || status == ST_MEMORY, "request %d: %s", refused[1],
                      problem.text);
        if (status == ST_OK) expect_same_record(&r, &got);
        arena_release(&arena, mark);
    }
    json_set_alloc_funcs(malloc, free);
    ck_assert_int_gt(refused[0], 100); /* one a text of the run; its numbers are printed without the library */
    ck_assert_int_gt(refused[1], 200);
    free(whole);
    arena_free(&arena);
}
END_TEST

/* The room for its points is that which the file's size asks for, not one that should do for any. */
START_TEST(a_record_is_opened_however_long_its_curve_is) {
    enum { POINTS = 20000 };
    static const struct curve_point none = {.tokens = -1,
                                            .wall_s = NAN,
                                            .split = 1,
                                            .loss = NAN,
                                            .acc = NAN,
                                            .macro_acc = NAN,
                                            .seq_acc = NAN,
                                            .last_acc = NAN,
                                            .lr = NAN,
                                            .grad_norm = NAN,
                                            .tok_per_s = NAN};
    struct run_record r;
    struct open_record *open;
    struct curve_point *curve = calloc(POINTS, sizeof *curve);
    char folder[SCRATCH_BYTES], path[PATH_BYTES], *text;
    size_t size;
    record_init(&r);
    sample_id(1, r.run.run_id);
    r.curve = curve;
    r.n_curve = POINTS;
    for (int i = 0; i < POINTS; i++) {
        curve[i] = none;
        curve[i].step = i;
    }
    ck_ok(record_format(&r, &text, &size, &problem));
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/long.json", folder);
    spill(path, text, size);
    ck_ok(record_open(path, &open, &problem));
    ck_assert_uint_ge(open->arena.size, record_arena_bytes(size));
    ck_assert_uint_lt(open->arena.size, record_arena_bytes(size) + (1 << 20));
    ck_assert_int_eq(open->record.n_curve, POINTS);
    ck_assert_int_eq(open->record.curve[POINTS - 1].step, POINTS - 1);
    record_close(open);
    spill(path, text, size / 2);
    ck_assert_int_eq(record_open(path, &open, &problem), ST_DATA);
    ck_assert_ptr_null(open);
    record_close(open);
    free(text);
    free(curve);
    scratch_remove(folder);
}
END_TEST

/* Puts `other` where `text` first has `old`, of the same length, and the checksum right again. */
static void replace(char *text, const char *old, const char *other) {
    char *at = strstr(text, old), *body = strchr(text, '\n') + 1, sum[RUN_ID_HEX];
    ck_assert_msg(at && strlen(old) == strlen(other), "%s", old);
    memcpy(at, other, strlen(other));
    record_hash(body, sum);
    memcpy(strstr(text, ": \"") + 3, sum, sizeof sum - 1);
}

/* Whole by its checksum, and not what this program writes: refused, not read as something else. */
START_TEST(a_list_that_is_no_table_is_refused) {
    static const struct {
        const char *old, *other, *said;
    } cases[] = {{"\"step\"", "\"stop\"", "point 0 of curves has no step or no split"},
                 {"\"split\"", "\"splat\"", "point 0 of curves has no step or no split"},
                 {"[10,1600,", "[ 101600,", "point 0 of curves has 13 values, expected one for each of 14 columns"},
                 {"\"points\"", "\"pounds\"", "has no list of points for curves"},
                 {"\"evals\"", "\"evil!\"", "has no list of points for evals"},
                 {"[10,1600,", "[10,\"1\",,", "not a record"},
                 {"[10,1600,", "[10,true,", "the value of tokens in curves is not one this program can read"}};
    struct run_record r, got;
    struct curve_point curve[2];
    struct eval_point evals[1];
    struct arena arena = {0};
    char *text;
    size_t size;
    sample_fill(&r, curve, evals, 1);
    ck_ok(arena_reserve(&arena, 1 << 20, &problem));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_ok(record_format(&r, &text, &size, &problem));
        replace(text, cases[i].old, cases[i].other);
        enum status status = record_parse(text, size, "FILE", r.run.run_id, &got, &arena, &problem);
        ck_assert_msg(status == ST_USAGE || status == ST_FAIL, "case %zu", i);
        ck_assert_msg(strstr(problem.text, cases[i].said) != NULL, "%s", problem.text);
        free(text);
    }
    arena_free(&arena);
}
END_TEST

Suite *check_record_json(void);
Suite *check_record_json(void) {
    Suite *s = suite_create("record_json");
    TCase *c = tcase_create("record_json");
    tcase_add_test(c, no_memory_is_an_error_and_not_damage);
    tcase_add_test(c, a_record_is_opened_however_long_its_curve_is);
    tcase_add_test(c, a_list_that_is_no_table_is_refused);
    suite_add_tcase(s, c);
    return s;
}
