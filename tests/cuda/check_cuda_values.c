/* check_cuda_values.c - inputs that are values, on a device: an evaluation batch is a part of its split, which begins
 * wherever the one before has ended, on no boundary that loads of several values could count on. */
#include <math.h>
#include <stdlib.h>

#include "harness/run/trainer.h"
#include "tests/cuda/cuda_cases.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"

#define TASK "shapes:size=13,n_train=70,n_val=100,n_test=70"

static void begin(void) {
    start_kernels();
    program_begin();
}

/* 33 images of 169 pixels of 3 channels: the second batch begins 3 values after a boundary of 16 bytes. */
static double validation_loss(const char *device, enum precision precision) {
    struct setup *s = small_run_of(TASK, program_folder, "gelu", "bdlru:m=2,blocks=4", "batch", "33");
    struct trainer t;
    struct scores scores;
    struct error e = {ST_OK, ""};
    snprintf(s->spec.config.device, sizeof s->spec.config.device, "%s", device);
    s->spec.config.precision = (int)precision;
    s->spec.config.quiet = true;
    ck_assert_msg(trainer_create(&t, s, &e) == ST_OK, "%s", e.text);
    trainer_evaluate(&t, SPLIT_VAL, &scores);
    ck_assert_int_eq(scores.sequences, 100);
    trainer_free(&t);
    small_run_free(s);
    return scores.loss;
}

START_TEST(batches_of_values_begin_anywhere) {
    static const enum precision precisions[] = {PRECISION_FULL, PRECISION_TF32, PRECISION_BF16};
    if (REAL_IS_DOUBLE && precisions[_i] != PRECISION_FULL) return; /* double has no such products */
    double there = validation_loss("cuda", precisions[_i]), here = validation_loss("cpu", PRECISION_FULL);
    ck_assert_msg(fabs(there - here) < (precisions[_i] == PRECISION_FULL ? 1e-4 : 2e-2) * here,
                  "precision %d: validation loss %.9g, on the CPU %.9g", precisions[_i], there, here);
}
END_TEST

/* So many strings of another length that their bytes, counted in an integer, would wrap to 0. */
START_TEST(what_no_memory_holds_is_sent) {
    struct setup *s = small_run_of("a5-slice:length=20,extra_length=11,n_train=300,n_val=20", program_folder, "none",
                                   "lru:state=4", "device", "cuda");
    ck_assert_int_gt(s->spec.task.shape.second.examples, INT32_MAX);
    ck_assert_uint_eq(batches_resident_bytes(s), 0);
    small_run_free(s);
}
END_TEST

/* Copies whole vectors, bytes after them, and memory that begins within one. */
START_TEST(copies_are_whole) {
    static const size_t sizes[][2] = {{1, 0}, {16, 0}, {4096 * 16 + 5, 0}, {40000, 4}};
    static char from[70000], to[70000];
    struct place p;
    struct arena memory = {0};
    struct error e;
    size_t bytes = sizes[_i][0], offset = sizes[_i][1];
    ck_assert_msg(place_open(&p, "cuda", &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(place_reserve(&p, &memory, 2 * sizeof from, &e), ST_OK);
    for (size_t i = 0; i < sizeof from; i++) from[i] = (char)(i % 251 + 1);
    memset(to, 0, sizeof to);
    place_put(&p, memory.base, from, sizeof from);
    place_put(&p, memory.base + sizeof from, to, sizeof to);
    place_copy(&p, memory.base + sizeof from + offset, memory.base + offset, bytes);
    place_get(&p, to, memory.base + sizeof from, sizeof to);
    for (size_t i = 0; i < sizeof to; i++) ck_assert_int_eq(to[i], i >= offset && i < offset + bytes ? from[i] : 0);
    arena_free(&memory);
    place_close(&p);
}
END_TEST

Suite *check_cuda_values(void);
Suite *check_cuda_values(void) {
    Suite *suite = suite_create("cuda_values");
    TCase *tests = tcase_create("values");
    tcase_add_checked_fixture(tests, begin, program_end);
    tcase_add_test(tests, what_no_memory_holds_is_sent);
    tcase_add_loop_test(tests, batches_of_values_begin_anywhere, 0, 3);
    tcase_add_loop_test(tests, copies_are_whole, 0, 4);
    suite_add_tcase(suite, tests);
    return suite;
}
