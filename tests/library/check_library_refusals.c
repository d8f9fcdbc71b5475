/* check_library_refusals.c - what the library (include/lrnn.h) refuses, descriptors of other versions, and calls by
 * several threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/library/library_case.h"
#include "tests/testing.h"

START_TEST(faults_are_refused) {
    struct op_boxes b, kept;
    boxes_make(&b, op_case_of("scan_block"), 3, 7, NULL, NATIVE, LAYOUT_DENSE, false, 23);
    boxes_run(&b, LRNN_FORWARD);
    lrnn_scan_block *d = (lrnn_scan_block *)(void *)b.descriptor;
    memcpy(&kept, &b, sizeof kept);
#define PASS_FAULT(pass, change, status, words)                                                                        \
    do {                                                                                                               \
        change;                                                                                                        \
        boxes_refused(&b, pass, status, words);                                                                        \
        memcpy(b.descriptor, kept.descriptor, sizeof b.descriptor);                                                    \
    } while (0)
#define FAULT(change, status, words) PASS_FAULT(LRNN_FORWARD, change, status, words)
    FAULT(d->call.size = 8, LRNN_BAD_ARGUMENT, "call.size=8, expected sizeof(lrnn_scan_block)");
    FAULT(d->call.size = 1 << 20, LRNN_BAD_ARGUMENT, "call.size=1048576");
    FAULT(d->call.dtype = 7, LRNN_BAD_ARGUMENT, "dtype=7");
    FAULT(d->call.dtype = REAL_IS_DOUBLE ? LRNN_F32 : LRNN_F64, LRNN_UNSUPPORTED,
          REAL_IS_DOUBLE ? "liblrnn.so" : "liblrnn-f64.so");
    FAULT((d->call.device = LRNN_CUDA, d->call.index = 99), LRNN_UNSUPPORTED, "CUDA memory");
    FAULT(d->call.device = 5, LRNN_BAD_ARGUMENT, "device=5");
    FAULT(d->call.threads = -1, LRNN_BAD_ARGUMENT, "threads=-1");
    FAULT(d->call.threads = 4097, LRNN_BAD_ARGUMENT, "threads=4097, expected 0 to 4096");
    FAULT(d->call.reserved[1] = d, LRNN_UNSUPPORTED, "call.reserved is set, by a later version");
    FAULT(d->call.batch = -1, LRNN_BAD_ARGUMENT, "batch=-1");
    FAULT(d->call.length = (int64_t)1 << 40, LRNN_BAD_ARGUMENT, "length=1099511627776");
    FAULT(d->z.data = NULL, LRNN_BAD_ARGUMENT, "z.data is NULL");
    FAULT(d->h.data = NULL, LRNN_BAD_ARGUMENT, "h.data is NULL");
    FAULT(d->v.data = (char *)d->v.data + 1, LRNN_BAD_ARGUMENT, "v.data is not aligned");
    FAULT(d->h.data = d->v.data, LRNN_BAD_ARGUMENT, "h.data is written and overlaps v.data");
    FAULT(d->h.strides[0] = 0, LRNN_BAD_ARGUMENT, "lets elements overlap");
    FAULT(d->h.strides[1] = 1, LRNN_BAD_ARGUMENT, "lets elements overlap");
    FAULT(d->v.strides[0] = INT64_MAX, LRNN_BAD_ARGUMENT, "spans more than memory has");
    int64_t falls[] = {0, 4, 2, 7}, starts[] = {1, 4, 6, 7}, ends[] = {0, 4, 5, 6};
    FAULT(d->call.offsets = falls, LRNN_BAD_ARGUMENT, "offsets[2]=2");
    FAULT(d->call.offsets = starts, LRNN_BAD_ARGUMENT, "offsets[0]=1");
    FAULT(d->call.offsets = ends, LRNN_BAD_ARGUMENT, "offsets end at 6, and length is 7");
    lrnn_status status = lrnn_scan_block_forward(NULL);
    ck_assert(status == LRNN_BAD_ARGUMENT && strstr(lrnn_last_error(), "descriptor is NULL"));
    ck_assert_int_eq(lrnn_scan_block_workspace(d, LRNN_FORWARD, NULL), LRNN_BAD_ARGUMENT);
    ck_assert_int_eq(lrnn_scan_block_workspace(d, (lrnn_pass)3, &(size_t){0}), LRNN_BAD_ARGUMENT);
    d->h.grad = NULL;
    ck_assert_int_eq(lrnn_scan_block_backward(d), LRNN_BAD_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(lrnn_last_error(), "no output has a gradient"));
    memcpy(b.descriptor, kept.descriptor, sizeof b.descriptor);
    /* Strided inputs need copies, and so a workspace. */
    for (int i = 0; i < 3; i++) d->z.strides[i] = (int64_t[]){0, 0, 1}[i];
    FAULT(d->call.workspace = NULL, LRNN_NO_WORKSPACE, "there is none");
    for (int i = 0; i < 3; i++) d->z.strides[i] = (int64_t[]){0, 0, 1}[i];
    FAULT((d->call.workspace = b.workspace.data, d->call.workspace_bytes = 64), LRNN_NO_WORKSPACE, "has 64 bytes");
    boxes_free(&b);
    /* The same of gradients. */
    boxes_make(&b, op_case_of("scan_block"), 3, 7, NULL, NATIVE, LAYOUT_APART, false, 23);
    boxes_run(&b, LRNN_FORWARD);
    boxes_run(&b, LRNN_BACKWARD);
    memcpy(&kept, &b, sizeof kept);
#define BACK_FAULT(change, status, words) PASS_FAULT(LRNN_BACKWARD, change, status, words)
    BACK_FAULT(d->z.data = NULL, LRNN_BAD_ARGUMENT, "z.data is NULL");
    BACK_FAULT(d->h.data = NULL, LRNN_BAD_ARGUMENT, "h.data is NULL");
    BACK_FAULT(d->v.grad = (char *)d->v.grad + 1, LRNN_BAD_ARGUMENT, "v.grad is not aligned to its elements");
    BACK_FAULT(d->v.grad = d->v.data, LRNN_BAD_ARGUMENT, "v.grad is written and overlaps v.data");
    BACK_FAULT(d->v.grad = d->h.grad, LRNN_BAD_ARGUMENT, "v.grad is written and overlaps h.grad");
    BACK_FAULT(d->v.grad = d->z.grad, LRNN_BAD_ARGUMENT, "z.grad is written and overlaps v.grad");
    BACK_FAULT(d->z.grad_strides[2] = 0, LRNN_BAD_ARGUMENT, "lets elements overlap");
    BACK_FAULT(d->z.grad_strides[1] = INT64_MIN, LRNN_BAD_ARGUMENT, "spans more than memory has");
    BACK_FAULT(d->call.workspace = (char *)d->call.workspace + 4, LRNN_NO_WORKSPACE, "is not aligned to 64 bytes");
    BACK_FAULT(d->call.workspace_bytes -= 1, LRNN_NO_WORKSPACE, "and this pass needs");
    BACK_FAULT(d->call.workspace = NULL, LRNN_NO_WORKSPACE, "there is none");
    /* The box of v begins at a guard zone of 64 bytes, and so at a place where a workspace may begin. */
    BACK_FAULT(d->call.workspace = b.value[1].memory, LRNN_BAD_ARGUMENT, "the workspace overlaps ");
    boxes_free(&b);
}
END_TEST

/* Sizes and choices that an op does not have, of each op. */
START_TEST(sizes_out_of_range_are_refused) {
#define SIZE(op, field, value, words)                                                                                  \
    { #op, offsetof(lrnn_##op, field), sizeof((lrnn_##op *)0)->field, value, words }
#define MOST "expected 1 to "
    static const struct {
        const char *op;
        size_t at, bytes;
        int64_t value;
        const char *words;
    } faults[] = {
        SIZE(scan_diag, width, 0, "width=0, " MOST),
        SIZE(scan_diag, width, (int64_t)1 << 31, "width=2147483648, " MOST),
        SIZE(scan_diag, constant, 2, "constant=2, expected 0 to 1"),
        SIZE(scan_diag_complex, width, -1, "width=-1, " MOST),
        SIZE(scan_diag_complex, constant, -1, "constant=-1, expected 0 to 1"),
        SIZE(scan_block, blocks, 0, "blocks=0, " MOST),
        SIZE(scan_block, m, 0, "m=0, " MOST "32768"),
        SIZE(scan_block, m, 32769, "m=32769, " MOST "32768"),
        SIZE(scan_block, m, INT64_MAX, "m=9223372036854775807, " MOST),
        SIZE(scan_block, gate, 4, "gate=4, expected 0 to 3"),
        SIZE(scan_companion, channels, 0, "channels=0, " MOST),
        SIZE(scan_companion, m, 0, "m=0, " MOST "32768"),
        SIZE(scan_companion, gate, -1, "gate=-1, expected 0 to 3"),
        SIZE(scan_companion, observer, 2, "observer=2, expected 0 to 1"),
        SIZE(scan_lstm, width, 0, "width=0, " MOST),
        SIZE(scan_outer, heads, 0, "heads=0, " MOST "32768"),
        SIZE(scan_outer, groups, 0, "groups=0, " MOST "32768"),
        SIZE(scan_outer, key, 0, "key=0, " MOST),
        SIZE(scan_outer, value, 0, "value=0, " MOST),
        SIZE(scan_delta, heads, 0, "heads=0, " MOST "32768"),
        SIZE(scan_delta, steps, 0, "steps=0, " MOST "64"),
        SIZE(scan_delta, steps, 65, "steps=65, " MOST "64"),
        SIZE(scan_delta, channels, 2, "channels=2, expected 0 to 1"),
        SIZE(scan_plstm, states, 0, "states=0, " MOST "16"),
        SIZE(scan_plstm, states, 17, "states=17, " MOST "16"),
        SIZE(scan_plstm, value, 0, "value=0, " MOST),
        SIZE(grid_scan, rows, 0, "rows=0, " MOST),
        SIZE(grid_scan, rows, 3, "length=6, expected rows*columns, 9"),
        SIZE(grid_scan, heads, 32769, "heads=32769, " MOST "32768"),
        SIZE(dag_scan, edges, 0, "edges=0, " MOST),
        SIZE(dag_scan, pairs, 0, "pairs=0, " MOST),
        SIZE(dag_scan, reversed, 2, "reversed=2, expected 0 to 1"),
        SIZE(dag_scan, tree, -1, "tree=-1, expected 0 to 1"),
        SIZE(scan_flow, blocks, 0, "blocks=0, " MOST),
        SIZE(scan_flow, m, 0, "m=0, " MOST "32768"),
        SIZE(scan_dplr, width, 0, "width=0, " MOST),
        SIZE(scan_dplr, rank, 0, "rank=0, " MOST "32768"),
        SIZE(scan_hadamard, width, 0, "width=0, " MOST),
        SIZE(scan_hadamard, width, 3, "power of two"),
        SIZE(tree_solve, arity, 0, "arity=0, " MOST),
        SIZE(tree_solve, levels, 0, "levels=0, " MOST),
        SIZE(tree_solve, levels, 40, "a tree of these arity and levels has 2^31 nodes or more"),
        SIZE(tree_solve, levels, 2, "length=7, expected the tree's nodes, 3"),
        SIZE(tree_solve, width, 0, "width=0, " MOST),
        SIZE(tree_solve, form, 3, "form=3, expected 0 to 2"),
    };
    for (int i = 0; i < op_case_count(); i++) { /* each op is in the list */
        bool listed = false;
        for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
            listed = listed || strcmp(faults[k].op, op_cases[i].name) == 0;
        ck_assert_msg(listed, "%s has no size out of range here", op_cases[i].name);
    }
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const struct op_case *op = op_case_of(faults[i].op);
        struct op_boxes b;
        boxes_make(&b, op, op->batch, op->length, NULL, NATIVE, LAYOUT_APART, false, 25);
        boxes_run(&b, LRNN_FORWARD);
        int32_t half = (int32_t)faults[i].value;
        memcpy(b.descriptor + faults[i].at, faults[i].bytes == sizeof half ? (void *)&half : (void *)&faults[i].value,
               faults[i].bytes);
        boxes_refused(&b, LRNN_FORWARD, LRNN_BAD_ARGUMENT, faults[i].words);
        boxes_refused(&b, LRNN_BACKWARD, LRNN_BAD_ARGUMENT, faults[i].words);
        boxes_free(&b);
    }
}
END_TEST

/* Sizes that fit alone but not together, and arrays of forms that do not go together. */
START_TEST(forms_that_do_not_agree_are_refused) {
    struct op_boxes b;
    boxes_make(&b, op_case_of("scan_outer"), 2, 7, NULL, NATIVE, LAYOUT_DENSE, true, 27);
    ((lrnn_scan_outer *)(void *)b.descriptor)->groups = 1;
    boxes_refused(&b, LRNN_FORWARD, LRNN_BAD_ARGUMENT, "c0 or last is given and heads=2 share keys in groups=1");
    ((lrnn_scan_outer *)(void *)b.descriptor)->groups = 2;
    ((lrnn_scan_outer *)(void *)b.descriptor)->scale = 0;
    boxes_refused(&b, LRNN_FORWARD, LRNN_BAD_ARGUMENT, "scale=0 leaves nothing to read `last` by");
    boxes_free(&b);
    boxes_make(&b, op_case_of("scan_outer") + 1, 2, 7, NULL, NATIVE, LAYOUT_DENSE, false, 27);
    ((lrnn_scan_outer *)(void *)b.descriptor)->groups = 3;
    boxes_refused(&b, LRNN_FORWARD, LRNN_BAD_ARGUMENT, "heads=4 is not a multiple of groups=3");
    boxes_free(&b);
    boxes_make(&b, op_case_of("scan_delta"), 2, 7, NULL, NATIVE, LAYOUT_DENSE, true, 27);
    lrnn_scan_delta *d = (lrnn_scan_delta *)(void *)b.descriptor, given = *d;
    d->steps = 2;
    boxes_refused(&b, LRNN_FORWARD, LRNN_BAD_ARGUMENT, "s0 or last is given with steps=2");
    *d = given, d->read = d->k;
    boxes_refused(&b, LRNN_FORWARD, LRNN_BAD_ARGUMENT, "beta is given with read or erase");
    *d = given, d->beta = (lrnn_array){0}, d->erase = d->k;
    boxes_refused(&b, LRNN_FORWARD, LRNN_BAD_ARGUMENT, "erase is given without read");
    *d = given, d->rate = 0;
    boxes_refused(&b, LRNN_FORWARD, LRNN_BAD_ARGUMENT, "rate=0 leaves nothing to set s0 by");
    *d = given, d->decay.data = NULL;
    boxes_refused(&b, LRNN_BACKWARD, LRNN_BAD_ARGUMENT, "decay.grad is wanted of an array that is absent");
    boxes_free(&b);
    boxes_make(&b, op_case_of("tree_solve"), 2, 7, NULL, NATIVE, LAYOUT_DENSE, false, 27);
    ((lrnn_tree_solve *)(void *)b.descriptor)->form = LRNN_FREE;
    boxes_refused(&b, LRNN_FORWARD, LRNN_BAD_ARGUMENT, "down_re.data is NULL");
    boxes_free(&b);
}
END_TEST

/* Arrays that a pass only reads may be one: q and k of attention. */
START_TEST(arrays_that_are_read_may_overlap) {
    const struct op_case *op = op_case_of("scan_outer"); /* its arrays 0 and 1 are q and k */
    struct op_boxes apart, one;
    boxes_make(&apart, op, op->batch, op->length, NULL, NATIVE, LAYOUT_DENSE, true, 29);
    boxes_make(&one, op, op->batch, op->length, NULL, NATIVE, LAYOUT_DENSE, true, 29);
    for (int64_t e = 0; e < box_count(&apart.value[0]); e++) box_put(&apart.value[1], e, box_get(&apart.value[0], e));
    boxes_array(&one, 1)->data = boxes_array(&one, 0)->data;
    for (int pass = LRNN_FORWARD; pass <= LRNN_BACKWARD; pass++) {
        boxes_run(&apart, (lrnn_pass)pass);
        boxes_run(&one, (lrnn_pass)pass);
        boxes_compare(&one, &apart, (lrnn_pass)pass, 0);
    }
    boxes_free(&apart);
    boxes_free(&one);
}
END_TEST

static const int32_t *in_place(void *to, const int32_t *links, size_t bytes) {
    (void)to, (void)bytes;
    return links;
}

/* Links to nodes or edges that are not there, on which kernels would have nothing to compute. */
START_TEST(faults_of_links_are_refused) {
    struct op_boxes b;
    boxes_make(&b, op_case_of("dag_scan"), 3, 5, NULL, NATIVE, LAYOUT_APART, false, 31);
    boxes_run(&b, LRNN_FORWARD);
    boxes_links_refused(&b, in_place, NULL);
    boxes_check_guards(&b);
    boxes_free(&b);
}
END_TEST

/* States that are two arrays, of which one is missing. */
START_TEST(half_a_state_is_refused) {
    struct op_boxes b;
    boxes_make(&b, op_case_of("scan_diag_complex"), 2, 5, NULL, NATIVE, LAYOUT_DENSE, true, 33);
    boxes_leave_out(&b, 7);
    boxes_refused(&b, LRNN_FORWARD, LRNN_BAD_ARGUMENT, "h0_re and h0_im are one state; give both or none");
    boxes_free(&b);
    const struct op_case *op = op_case_of("scan_lstm") + 1;
    boxes_make(&b, op, 2, 5, NULL, NATIVE, LAYOUT_DENSE, true, 33);
    boxes_leave_out(&b, 3);
    boxes_refused(&b, LRNN_FORWARD, LRNN_BAD_ARGUMENT, "h0 and c0 are one state; give both or none");
    boxes_free(&b);
}
END_TEST

/* A descriptor of a later version: more bytes, which this version takes while they are zero. */
START_TEST(descriptors_may_grow) {
    struct op_boxes b;
    boxes_make(&b, op_case_of("scan_block"), 2, 5, NULL, NATIVE, LAYOUT_DENSE, false, 31);
    boxes_call(&b)->size = sizeof(lrnn_scan_block) + 64;
    boxes_run(&b, LRNN_FORWARD);
    b.descriptor[sizeof(lrnn_scan_block) + 8] = 1;
    boxes_refused(&b, LRNN_FORWARD, LRNN_UNSUPPORTED, "later version");
    boxes_free(&b);
}
END_TEST

/* A descriptor of version 0.1, after whose end the fields of later versions would read what is not theirs. */
START_TEST(descriptors_may_be_old) {
#define OLD(op, field)                                                                                                 \
    { #op, offsetof(lrnn_##op, field) + sizeof((lrnn_##op *)0)->field }
    static const struct {
        const char *op;
        size_t size;
    } first[] = {OLD(scan_lstm, h), OLD(scan_diag_complex, h_im), OLD(scan_plstm, y)};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        const struct op_case *op = op_case_of(first[i].op);
        struct op_boxes whole, old;
        boxes_make(&whole, op, op->batch, op->length, NULL, NATIVE, LAYOUT_DENSE, false, 35);
        boxes_make(&old, op, op->batch, op->length, NULL, NATIVE, LAYOUT_DENSE, false, 35);
        boxes_call(&old)->size = first[i].size;
        memset(old.descriptor + first[i].size, 0xFF, sizeof old.descriptor - first[i].size);
        for (int pass = LRNN_FORWARD; pass <= LRNN_BACKWARD; pass++) {
            boxes_run(&whole, (lrnn_pass)pass);
            boxes_run(&old, (lrnn_pass)pass);
            boxes_compare(&old, &whole, (lrnn_pass)pass, 0);
        }
        boxes_call(&old)->size--;
        boxes_refused(&old, LRNN_FORWARD, LRNN_BAD_ARGUMENT, "expected sizeof(lrnn_");
        boxes_free(&whole);
        boxes_free(&old);
    }
}
END_TEST

/* --- several threads ---------------------------------------------------------------------------------------------- */

#define CALLERS 4

/* Runs all ops, and between them a call that is refused with this caller's number. */
static void *call_all(void *number) {
    int own = *(int *)number;
    char words[64];
    snprintf(words, sizeof words, "threads=-%d, expected", own);
    for (int i = 0; i < op_case_count(); i++) {
        const struct op_case *op = &op_cases[i];
        struct op_boxes b, again;
        uint64_t seed = 50 + (uint64_t)own;
        boxes_make(&b, op, op->batch, op->length, NULL, NATIVE, LAYOUT_APART, true, seed);
        boxes_make(&again, op, op->batch, op->length, NULL, NATIVE, LAYOUT_APART, true, seed);
        boxes_call(&b)->threads = -own;
        boxes_refused(&b, LRNN_FORWARD, LRNN_BAD_ARGUMENT, words);
        boxes_call(&b)->threads = own;
        for (int pass = LRNN_FORWARD; pass <= LRNN_BACKWARD; pass++) {
            boxes_run(&b, (lrnn_pass)pass);
            boxes_run(&again, (lrnn_pass)pass);
            boxes_compare(&b, &again, (lrnn_pass)pass, 0);
        }
        boxes_free(&b);
        boxes_free(&again);
    }
    return NULL;
}

/* Threads that call at once get their own results and their own sentences. */
START_TEST(threads_may_call_at_once) {
    pthread_t callers[CALLERS];
    int numbers[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        numbers[i] = i + 1;
        ck_assert_int_eq(pthread_create(&callers[i], NULL, call_all, &numbers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) ck_assert_int_eq(pthread_join(callers[i], NULL), 0);
    ck_assert_str_eq(lrnn_last_error(), ""); /* this thread made no call */
}
END_TEST

Suite *check_library_refusals(void);
Suite *check_library_refusals(void) {
    Suite *suite = suite_create("library_refusals");
    TCase *tests = tcase_create("library_refusals");
    tcase_add_test(tests, faults_are_refused);
    tcase_add_test(tests, sizes_out_of_range_are_refused);
    tcase_add_test(tests, forms_that_do_not_agree_are_refused);
    tcase_add_test(tests, arrays_that_are_read_may_overlap);
    tcase_add_test(tests, faults_of_links_are_refused);
    tcase_add_test(tests, half_a_state_is_refused);
    tcase_add_test(tests, descriptors_may_grow);
    tcase_add_test(tests, descriptors_may_be_old);
    tcase_add_test(tests, threads_may_call_at_once);
    suite_add_tcase(suite, tests);
    return suite;
}
