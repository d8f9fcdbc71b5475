/* check_kept.c - values that a forward pass of the library keeps for its backward pass (`kept` of include/lrnn.h). */
#include <stdlib.h>
#include <string.h>

#include "tests/library/library_case.h"
#include "tests/testing.h"

#define KEPT_BYTES ((size_t)1 << 18) /* more than any case keeps, or needs as workspace */

/* Runs both passes with values kept between them; returns the bytes that are kept. */
static size_t run_keeping(struct op_boxes *b, void *memory) {
    size_t bytes = 0;
    ck_assert_msg(b->op->workspace(b->descriptor, LRNN_KEPT, &bytes) == LRNN_OK, "%s", lrnn_last_error());
    ck_assert_uint_le(bytes, KEPT_BYTES);
    memset(memory, 0xA5, KEPT_BYTES + 64);
    boxes_call(b)->kept = memory;
    boxes_call(b)->kept_bytes = bytes;
    boxes_run(b, LRNN_FORWARD);
    boxes_run(b, LRNN_BACKWARD);
    for (int i = 0; i < 64; i++) ck_assert_int_eq(((unsigned char *)memory)[bytes + (size_t)i], 0xA5);
    return bytes;
}

static const int64_t lengths[] = {0, 3, 3, 8, 9}; /* where 4 sequences begin, an empty one among them, and the end */

/* The case's sequences, or 4 of unequal length; both of `pair` have the same values. */
static void make_pair(struct op_boxes *pair, const struct op_case *op, bool unequal, int dtype, enum box_layout layout,
                      bool states) {
    for (int i = 0; i < 2; i++)
        boxes_make(&pair[i], op, unequal ? 4 : op->batch, unequal ? 9 : op->length, unequal ? lengths : NULL, dtype,
                   layout, states, 37);
}

/* Whether the gradient of an op needs what its outputs do not show. Gradients of scan_plstm need no outputs. */
static bool lacks_values(const struct op_case *op, bool states) {
    bool lacks = !strcmp(op->name, "scan_outer") || !strcmp(op->name, "scan_lstm") || !strcmp(op->name, "scan_delta");
    for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name && strcmp(op->name, "scan_plstm"); i++)
        lacks = lacks || (states && op->arrays[i].role == BOX_FIRST);
    return lacks;
}

/* Gradients with values kept have the bits of gradients that compute them again, in dense and strided arrays, in bf16,
 * and of unequal lengths. */
START_TEST(kept_values_change_nothing) {
    const struct op_case *op = &op_cases[_i / 2];
    void *memory = aligned_alloc(64, KEPT_BYTES + 64);
    bool states = _i % 2;
    for (int way = 0; way < 4; way++) {
        struct op_boxes pair[2], *keeps = &pair[1];
        if ((way == 2 && REAL_IS_DOUBLE) || (way == 3 && !op->unequal)) continue;
        make_pair(pair, op, way == 3, way == 2 ? LRNN_BF16 : NATIVE, way == 0 ? LAYOUT_DENSE : LAYOUT_APART, states);
        boxes_run(pair, LRNN_FORWARD);
        boxes_run(pair, LRNN_BACKWARD);
        size_t bytes = run_keeping(keeps, memory);
        ck_assert_msg(bytes > 0 || !lacks_values(op, states), "%s keeps nothing", op->name);
        boxes_compare(pair, keeps, LRNN_FORWARD, 0);
        boxes_compare(pair, keeps, LRNN_BACKWARD, 0);
        if (bytes > 0) {
            boxes_call(keeps)->kept_bytes = bytes - 1;
            ck_assert_int_eq(op->backward(keeps->descriptor), LRNN_NO_WORKSPACE);
            boxes_call(keeps)->kept_bytes = bytes;
            memset(memory, 0, 8);
            ck_assert_int_eq(op->backward(keeps->descriptor), LRNN_BAD_ARGUMENT);
            ck_assert_ptr_nonnull(strstr(lrnn_last_error(), "not written by a forward pass"));
        }
        boxes_free(pair);
        boxes_free(keeps);
    }
    free(memory);
}
END_TEST

/* Kept values of another descriptor, even where they are as many, and memory that is another array's. */
START_TEST(faults_of_kept_values_are_refused) {
    struct op_boxes b, given;
    void *memory = aligned_alloc(64, KEPT_BYTES + 64);
    int64_t others[] = {0, 2, 3, 8, 9}; /* the longest is as long */
    boxes_make(&b, op_case_of("scan_outer"), 4, 9, lengths, NATIVE, LAYOUT_APART, true, 43);
    run_keeping(&b, memory);
    lrnn_scan_outer *d = (lrnn_scan_outer *)(void *)b.descriptor;
    memcpy(&given, &b, sizeof given);
#define KEPT_FAULT(change, words)                                                                                      \
    do {                                                                                                               \
        change;                                                                                                        \
        ck_assert_int_eq(b.op->backward(b.descriptor), LRNN_BAD_ARGUMENT);                                             \
        ck_assert_msg(strstr(lrnn_last_error(), words), "expected \"%s\": %s", words, lrnn_last_error());              \
        memcpy(b.descriptor, given.descriptor, sizeof b.descriptor);                                                   \
    } while (0)
    KEPT_FAULT(d->scale *= 2, "not written by a forward pass with this descriptor");
    KEPT_FAULT(d->call.offsets = others, "with this descriptor");
    KEPT_FAULT(d->source = (lrnn_array){0}, "with this descriptor");
    if (!REAL_IS_DOUBLE) KEPT_FAULT(d->call.dtype = LRNN_BF16, "with this descriptor");
    KEPT_FAULT(d->call.kept = d->call.workspace, "kept overlaps the workspace");
    KEPT_FAULT((d->call.workspace = memory, d->call.workspace_bytes = KEPT_BYTES), "kept overlaps the workspace");
    KEPT_FAULT(d->call.kept = b.value[6].memory, "kept overlaps c0 in memory");
    ck_assert_int_eq(b.op->backward(b.descriptor), LRNN_OK);
    boxes_free(&b);
    free(memory);
}
END_TEST

Suite *check_kept(void);
Suite *check_kept(void) {
    Suite *suite = suite_create("kept");
    TCase *tests = tcase_create("kept");
    tcase_add_loop_test(tests, kept_values_change_nothing, 0, 2 * op_case_count());
    tcase_add_test(tests, faults_of_kept_values_are_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
