/* library_case.h - the ops of the library at small sizes, and their arrays as boxes with guard zones around them. */
#ifndef LRNN_TESTS_LIBRARY_LIBRARY_CASE_H
#define LRNN_TESTS_LIBRARY_LIBRARY_CASE_H

#include <stdbool.h>

#include "core/real.h"
#include "include/lrnn.h"

enum box_role { BOX_IN, BOX_OUT, BOX_FIRST, BOX_LAST };
enum box_axes { BOX_TOKENS, BOX_SEQUENCES, BOX_SHARED };

/* One array of an op: its place in the descriptor, and its shape beside B and T. Values are uniform in low..high. */
struct array_case {
    const char *name; /* NULL ends a list */
    size_t at;
    enum box_role role;
    enum box_axes axes;
    int64_t rows, width; /* rows > 0: one more axis, of a shared array or of each sequence */
    double low, high;
};

#define NATIVE         (REAL_IS_DOUBLE ? LRNN_F64 : LRNN_F32)
#define CASE_ARRAYS    11
#define DESCRIPTOR_MAX 1024
#define CASE_WORKSPACE ((size_t)1 << 20)

struct op_case {
    const char *name;
    size_t size;
    lrnn_status (*workspace)(const void *descriptor, lrnn_pass pass, size_t *bytes);
    lrnn_status (*forward)(const void *descriptor);
    lrnn_status (*backward)(const void *descriptor);
    void (*sizes)(void *descriptor); /* fills the op's own sizes */
    int64_t batch, length;
    bool unequal; /* takes offsets */
    struct array_case arrays[CASE_ARRAYS];
};
extern const struct op_case op_cases[];
int op_case_count(void);
const struct op_case *op_case_of(const char *name); /* the first of its name, or NULL */

/* An array of the caller in memory that ends in guard zones. */
struct box {
    void *memory; /* guards included; freed by boxes_free */
    void *data;
    size_t bytes;
    int rank, dtype;
    int64_t dims[3], strides[3];
};

/* An op's descriptor and boxes, for `batch` sequences, equal to the case's (offsets NULL) or of unequal length. */
struct op_boxes {
    const struct op_case *op;
    _Alignas(16) char descriptor[DESCRIPTOR_MAX];
    struct box value[CASE_ARRAYS], gradient[CASE_ARRAYS];
    struct box workspace;
};

enum box_layout { LAYOUT_DENSE, LAYOUT_APART };

/* Makes boxes; inputs and gradients of outputs have the same values for the same seed at any layout and dtype (rounded
 * to it). Elements of other boxes are NaN. `states`: with the first and last state where the op has them. */
void boxes_make(struct op_boxes *b, const struct op_case *op, int64_t batch, int64_t length, const int64_t *offsets,
                int dtype, enum box_layout layout, bool states, uint64_t seed);
void boxes_free(struct op_boxes *b);
void boxes_leave_out(struct op_boxes *b, int i);       /* array i becomes absent */
void boxes_forget(struct op_boxes *b, int i);          /* its addresses become NULL */
void boxes_forget_gradient(struct op_boxes *b, int i); /* the gradient of array i is not wanted */
lrnn_call *boxes_call(struct op_boxes *b);
lrnn_array *boxes_array(struct op_boxes *b, int i); /* array i in the descriptor */

/* Compares all that a pass writes: values of outputs, gradients of inputs. They agree within tolerance * (1 + |b|). */
void boxes_compare(const struct op_boxes *a, const struct op_boxes *b, lrnn_pass pass, double tolerance);

/* Runs a pass with exactly the workspace that it asks for; fails the test on an error or a broken guard zone. */
void boxes_run(struct op_boxes *b, lrnn_pass pass);
/* Fails the test unless a pass gives this status and a sentence with these words, and writes nothing. */
void boxes_refused(const struct op_boxes *b, lrnn_pass pass, lrnn_status status, const char *words);
/* Fails the test unless faulty links of dag_scan are refused. put: moves links to where the call's arrays are. */
void boxes_links_refused(struct op_boxes *b, const int32_t *(*put)(void *to, const int32_t *links, size_t bytes),
                         void *to);
void boxes_check_guards(const struct op_boxes *b); /* fails the test on a broken one */

void box_reserve(struct box *x, size_t bytes); /* memory of so many bytes between guard zones */
size_t box_memory_bytes(const struct box *x);  /* guard zones included */

int64_t box_count(const struct box *x);
double box_get(const struct box *x, int64_t i); /* element i in dense order */
void box_put(const struct box *x, int64_t i, double value);
double real_of_dtype(int dtype, double value); /* rounded */

#endif
