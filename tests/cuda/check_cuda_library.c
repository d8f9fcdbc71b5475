/* check_cuda_library.c - the scans as a library on a device: every op computes there what it computes on the CPU, in
 * the caller's memory, on the caller's stream. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/place_stream.h"
#include "tests/library/library_case.h"
#include "tests/testing.h"

/* Two kernels, each within some ten roundings of sums of ten terms. */
#define TOLERANCE      (256 * (double)REAL_EPSILON)
#define BF16_TOLERANCE (1.0 / 128) /* the two nearest numbers of bf16 differ by this near 1 */

#define MEMORY ((size_t)1 << 20)

/* Boxes whose memory has a copy on the device. It is made in `image` and sent at once. */
struct there {
    struct place place; /* the default stream, as the calls have it, so that copies come after their work */
    struct arena memory;
    char *image;
    struct box kept;
    size_t used;
};

static void open_there(struct there *t) {
    struct error e;
    memset(t, 0, sizeof *t);
    ck_assert_msg(place_open_stream(&t->place, 0, NULL, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(place_reserve(&t->place, &t->memory, MEMORY, &e) == ST_OK, "%s", e.text);
    t->image = calloc(1, MEMORY);
}

static void close_there(struct there *t) {
    free(t->kept.memory);
    free(t->image);
    arena_free(&t->memory);
    place_close(&t->place);
}

/* Returns the place on the device of bytes that it puts into the image. */
static char *put(struct there *t, const void *from, size_t bytes) {
    char *at = t->memory.base + t->used;
    ck_assert_uint_le(t->used + bytes, MEMORY);
    memcpy(t->image + t->used, from, bytes);
    t->used += (bytes + 63) / 64 * 64;
    return at;
}

/* Returns the place on the device of a box's data. */
static void *put_box(struct there *t, const struct box *x) {
    return put(t, x->memory, box_memory_bytes(x)) + ((char *)x->data - (char *)x->memory);
}

/* The links of dag_scan are numbers, which have no box. */
static void put_links(struct there *t, struct op_boxes *b) {
    lrnn_dag_scan *d = (lrnn_dag_scan *)(void *)b->descriptor;
    if (strcmp(b->op->name, "dag_scan") != 0) return;
    b->op->sizes(b->descriptor); /* the host's again */
    size_t bytes = (size_t)(d->call.batch * (2 * d->edges + 3 * d->pairs)) * sizeof *d->links;
    d->links = (const int32_t *)(void *)put(t, d->links, bytes);
}

static void get_box(struct there *t, const struct box *x, const void *data) {
    const char *at = (const char *)data - ((char *)x->data - (char *)x->memory);
    memcpy(x->memory, t->image + (at - t->memory.base), box_memory_bytes(x));
}

/* Moves the arrays to the device and gives the call a workspace there, and `kept` where it has the bytes. */
static void move_there(struct there *t, struct op_boxes *b, lrnn_pass pass) {
    size_t bytes = 0;
    t->used = 0;
    boxes_call(b)->device = LRNN_CUDA;
    for (int i = 0; i < CASE_ARRAYS && b->op->arrays[i].name; i++) {
        if (!b->value[i].memory) continue;
        boxes_array(b, i)->data = put_box(t, &b->value[i]);
        boxes_array(b, i)->grad = put_box(t, &b->gradient[i]);
    }
    put_links(t, b);
    if (t->kept.memory) boxes_call(b)->kept = put_box(t, &t->kept);
    boxes_call(b)->kept_bytes = t->kept.bytes;
    ck_assert_msg(b->op->workspace(b->descriptor, pass, &bytes) == LRNN_OK, "%s", lrnn_last_error());
    free(b->workspace.memory);
    box_reserve(&b->workspace, bytes);
    boxes_call(b)->workspace = put_box(t, &b->workspace);
    boxes_call(b)->workspace_bytes = bytes;
    place_put(&t->place, t->memory.base, t->image, t->used);
}

static void move_back(struct there *t, struct op_boxes *b) {
    place_get(&t->place, t->image, t->memory.base, t->used);
    get_box(t, &b->workspace, boxes_call(b)->workspace);
    if (t->kept.memory) get_box(t, &t->kept, boxes_call(b)->kept);
    for (int i = 0; i < CASE_ARRAYS && b->op->arrays[i].name; i++) {
        if (!b->value[i].memory) continue;
        get_box(t, &b->value[i], boxes_array(b, i)->data);
        get_box(t, &b->gradient[i], boxes_array(b, i)->grad);
    }
}

static void run_there(struct there *t, struct op_boxes *b, lrnn_pass pass) {
    move_there(t, b, pass);
    lrnn_status status = pass == LRNN_FORWARD ? b->op->forward(b->descriptor) : b->op->backward(b->descriptor);
    ck_assert_msg(status == LRNN_OK, "%s", lrnn_last_error());
    move_back(t, b);
    boxes_check_guards(b);
}

static const int64_t lengths[] = {0, 3, 3, 8, 9}; /* 4 sequences, an empty one among them */

enum way { DENSE, APART, HALF, UNEQUAL, NO_SEQUENCE, NO_TOKEN, WAYS };

static void make(struct op_boxes *b, const struct op_case *op, enum way way) {
    bool unequal = way == UNEQUAL;
    boxes_make(b, op,
               unequal              ? 4
               : way == NO_SEQUENCE ? 0
                                    : op->batch,
               unequal           ? 9
               : way == NO_TOKEN ? 0
                                 : op->length,
               unequal ? lengths : NULL, way == HALF ? LRNN_BF16 : NATIVE, way == DENSE ? LAYOUT_DENSE : LAYOUT_APART,
               way != DENSE, 53);
}

static void compare(struct there *t, const struct op_case *op, enum way way) {
    struct op_boxes here, there;
    make(&here, op, way);
    make(&there, op, way);
    for (int pass = LRNN_FORWARD; pass <= LRNN_BACKWARD; pass++) {
        boxes_run(&here, (lrnn_pass)pass);
        run_there(t, &there, (lrnn_pass)pass);
        boxes_compare(&there, &here, (lrnn_pass)pass, way == HALF ? BF16_TOLERANCE : TOLERANCE);
    }
    boxes_free(&here);
    boxes_free(&there);
}

START_TEST(values_are_the_cpus) {
    const struct op_case *op = &op_cases[_i];
    struct there t;
    open_there(&t);
    for (int way = 0; way < WAYS; way++)
        if ((way != HALF || !REAL_IS_DOUBLE) && ((way != UNEQUAL && way != NO_TOKEN) || op->unequal))
            compare(&t, op, (enum way)way);
    close_there(&t);
}
END_TEST

/* Values kept on the device give the gradients that backward computes without them. */
START_TEST(kept_values_change_nothing) {
    const struct op_case *op = &op_cases[_i];
    struct op_boxes plain, keeps;
    struct there t;
    size_t bytes = 0;
    make(&plain, op, APART);
    make(&keeps, op, APART);
    open_there(&t);
    run_there(&t, &plain, LRNN_FORWARD);
    run_there(&t, &plain, LRNN_BACKWARD);
    move_there(&t, &keeps, LRNN_FORWARD);
    ck_assert_msg(op->workspace(keeps.descriptor, LRNN_KEPT, &bytes) == LRNN_OK, "%s", lrnn_last_error());
    if (bytes > 0) box_reserve(&t.kept, bytes);
    run_there(&t, &keeps, LRNN_FORWARD);
    run_there(&t, &keeps, LRNN_BACKWARD);
    boxes_compare(&keeps, &plain, LRNN_BACKWARD, 0);
    boxes_free(&plain);
    boxes_free(&keeps);
    close_there(&t);
}
END_TEST

START_TEST(faults_are_refused) {
    struct op_boxes b;
    struct there t;
    make(&b, op_case_of("scan_block"), APART);
    open_there(&t);
    move_there(&t, &b, LRNN_FORWARD);
    boxes_call(&b)->index = 99;
    boxes_refused(&b, LRNN_FORWARD, LRNN_UNSUPPORTED, "index=99, expected 0 to ");
    boxes_call(&b)->index = -1;
    boxes_refused(&b, LRNN_FORWARD, LRNN_UNSUPPORTED, "index=-1, expected 0 to ");
    boxes_call(&b)->index = 0;
    boxes_call(&b)->stream = (void *)(uintptr_t)2;
    boxes_refused(&b, LRNN_FORWARD, LRNN_UNSUPPORTED, "the stream is cudaStreamPerThread");
    boxes_call(&b)->stream = NULL;
    boxes_call(&b)->workspace_bytes -= 64;
    boxes_refused(&b, LRNN_FORWARD, LRNN_NO_WORKSPACE, "and this pass needs");
#ifdef LRNN_CUDA_HOST
    boxes_call(&b)->workspace_bytes += 64;
    setenv("LRNN_CUDA_HOST_LAZY", "0", 1);
    setenv("LRNN_CUDA_HOST_FAIL", "1", 1);
    boxes_refused(&b, LRNN_FORWARD, LRNN_DEVICE_FAILED, "failed at");
    unsetenv("LRNN_CUDA_HOST_FAIL");
#endif
    boxes_free(&b);
    close_there(&t);
}
END_TEST

static const int32_t *links_there(void *to, const int32_t *links, size_t bytes) {
    struct there *t = to;
    place_put(&t->place, t->memory.base + MEMORY / 2, links, bytes);
    return (const int32_t *)(void *)(t->memory.base + MEMORY / 2);
}

START_TEST(faults_of_links_are_refused) {
    struct op_boxes b;
    struct there t;
    make(&b, op_case_of("dag_scan"), APART);
    open_there(&t);
    move_there(&t, &b, LRNN_FORWARD);
    ck_assert_uint_lt(t.used, MEMORY / 2);
    boxes_links_refused(&b, links_there, &t);
    boxes_free(&b);
    close_there(&t);
}
END_TEST

/* On the host's device the arrays can be reached only while a kernel or a copy runs, and work waits until something
 * asks for it. */
static void begin(void) {
    setenv("LRNN_CUDA_HOST_PROTECT", "1", 1);
    setenv("LRNN_CUDA_HOST_LAZY", "1", 1);
}

Suite *check_cuda_library(void);
Suite *check_cuda_library(void) {
    Suite *suite = suite_create("cuda_library");
    TCase *tests = tcase_create("library");
    tcase_add_checked_fixture(tests, begin, NULL);
    tcase_add_loop_test(tests, values_are_the_cpus, 0, op_case_count());
    tcase_add_loop_test(tests, kept_values_change_nothing, 0, op_case_count());
    tcase_add_test(tests, faults_are_refused);
    tcase_add_test(tests, faults_of_links_are_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
