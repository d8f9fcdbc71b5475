/* check_alloc_count.c - the counter that other suites rely on counts, and only what it should. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "tests/lib/alloc_count.h"
#include "tests/testing.h"

START_TEST(each_kind_of_heap_allocation_is_counted) {
    uint64_t count[6] = {allocations()};
    void *volatile p = malloc(10);
    count[1] = allocations();
    void *volatile more = realloc(p, 100000);
    count[2] = allocations();
    free(more);
    p = calloc(3, 5);
    count[3] = allocations();
    free(p);
    p = aligned_alloc(64, 128);
    count[4] = allocations();
    bool aligned = (uintptr_t)p % 64 == 0;
    free(p);
    void *q = NULL;
    int status = posix_memalign(&q, 4096, 10);
    count[5] = allocations();
    aligned = aligned && (uintptr_t)q % 4096 == 0;
    free(q);
    ck_assert(status == 0 && aligned);
    for (int i = 1; i < 6; i++) ck_assert_uint_eq(count[i], count[0] + (uint64_t)i);
}
END_TEST

START_TEST(allocations_inside_a_library_are_counted) {
    uint64_t before = allocations();
    char *volatile copy = strdup("text");
    uint64_t made = allocations() - before;
    free(copy);
    ck_assert_uint_eq(made, 1);
}
END_TEST

/* Regions of one to three threads; returns how many threads there were in all. */
static int regions(void) {
    int sum = 0;
    for (int i = 0; i < 20; i++) {
#pragma omp parallel num_threads(1 + i % 3) reduction(+ : sum)
        sum += 1;
    }
    return sum;
}

START_TEST(the_openmp_run_time_is_left_out) {
    int threads = regions(); /* the threads themselves are started here */
    uint64_t made = 1;
    for (int i = 0; i < 5 && made > 0; i++) { /* on a busy machine the run-time may set one up later */
        uint64_t before = allocations();
        threads = regions();
        made = allocations() - before;
    }
    ck_assert_int_ge(threads, 20);
    ck_assert_uint_eq(made, 0);
}
END_TEST

START_TEST(work_on_an_arena_is_not_an_allocation) {
    struct arena a = {0};
    struct error e;
    ck_assert_int_eq(arena_reserve(&a, 1 << 20, &e), ST_OK);
    uint64_t before = allocations();
    char *volatile p = NULL;
    for (int i = 0; i < 100; i++) p = arena_alloc(&a, 1000);
    uint64_t made = allocations() - before;
    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq(made, 0);
    arena_free(&a);
}
END_TEST

Suite *check_alloc_count(void) {
    Suite *suite = suite_create("alloc_count");
    TCase *all = tcase_create("all");
    if (ALLOCATIONS_COUNTED) {
        tcase_add_test(all, each_kind_of_heap_allocation_is_counted);
        tcase_add_test(all, allocations_inside_a_library_are_counted);
    }
    tcase_add_test(all, the_openmp_run_time_is_left_out);
    tcase_add_test(all, work_on_an_arena_is_not_an_allocation);
    suite_add_tcase(suite, all);
    return suite;
}
