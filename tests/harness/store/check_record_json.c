/* check_record_json.c - records as text where memory runs out. */
#include <jansson.h>
#include <stdlib.h>

#include "harness/store/record_json.h"
#include "tests/harness/store/record_samples.h"
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
    ck_assert_int_gt(refused[0], 200); /* at least one a field */
    ck_assert_int_gt(refused[1], 200);
    free(whole);
    arena_free(&arena);
}
END_TEST

Suite *check_record_json(void);
Suite *check_record_json(void) {
    Suite *s = suite_create("record_json");
    TCase *c = tcase_create("record_json");
    tcase_add_test(c, no_memory_is_an_error_and_not_damage);
    suite_add_tcase(s, c);
    return s;
}
