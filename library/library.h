/* library.h - describes an op of the public interface (include/lrnn.h) by one function, which reads a descriptor, names
 * its arrays, and calls the op in a graph with only this call.
 *
 *   static void scan_diag_record(struct recorder *r, const lrnn_scan_diag *d) { ... }
 *   LIBRARY_OP(scan_diag, last, true)
 * makes the three public functions. `last` is the last field of the first version's descriptor; true: sequences may
 * have unequal lengths.
 *
 * Ops start from a zero state. An initial state is therefore set by lead tokens before the first token, which leave
 * exactly that state. A final state that no output shows is read by tail tokens after the last token. The library makes
 * both, not the caller. */
#ifndef LRNN_LIBRARY_LIBRARY_H
#define LRNN_LIBRARY_LIBRARY_H

#include "core/graph.h"
#include "include/lrnn.h"

enum array_role { ARRAY_IN, ARRAY_OUT, ARRAY_FIRST_STATE, ARRAY_LAST_STATE };
enum array_axes { AXES_TOKENS, AXES_SEQUENCES, AXES_SHARED }; /* (B,T,W); (B,W) or (B,rows,W); without B and T */

/* Values of lead or tail tokens: element e of token t is `on` where e % period / inner % count is `which` or one of the
 * `more` numbers after it, and `off` elsewhere. period 0: e itself. each > 0: `which` is t / each % count. */
struct lead_pattern {
    int64_t inner, count, which, more, each, period;
    real on, off;
};

/* Maps the elements of lead tokens of an input, and of tokens of an output, to elements of a state: element o*I + i of
 * token t is element o*outer + t*step + i of the state; t counts down if `down`. Lead tokens hold the state times
 * `factor` (0: 1), a power of two; the last `idle` ones hold zeros. */
struct state_map {
    int64_t I, outer, step;
    bool down;
    int idle, factor;
};

/* Returns a value of an initial state times the map's factor: a lead token holds it. A gradient of a lead token, times
 * the factor, is the gradient of the initial state. */
LRNN_INLINE real state_scaled(const struct state_map *map, real value) {
    return map->factor ? (real)map->factor * value : value;
}

/* One array of the call. */
struct operand {
    const char *name;
    const lrnn_array *array;
    enum array_role role;
    enum array_axes axes;
    struct tensor *tensor;          /* NULL: a state */
    struct lead_pattern lead, tail; /* of an input; count 0: zeros */
    const char *state;              /* the name of the state that its lead or its last tokens are; NULL: none */
};

#define MAX_OPERANDS 12

struct recorder {
    struct graph *graph;
    const lrnn_call *call;
    const struct place *place; /* NULL: the CPU */
    int64_t *offsets;          /* on a device: the call's offsets in its memory, or NULL */
    enum lrnn_pass pass;
    int64_t B, T;       /* sequences, and the length of the longest */
    int64_t lead, tail; /* tokens before and after each sequence */
    bool kept;          /* the call has an array `kept` */
    /* The op's whole numbers, B rows of `numbers_width` in the arrays' memory, and its check of a row; NULL: none. */
    const int32_t *numbers;
    int64_t numbers_width;
    bool (*numbers_fit)(const struct recorder *r, const int32_t *row, struct error *e);
    struct state_map first, last; /* of all initial states, and of all final states */
    struct operand operands[MAX_OPERANDS];
    int n;
};

/* Returns a size of the descriptor and checks that it is in 1..most. Products of three sizes fit into 64 bits if one is
 * at most LIBRARY_SMALL. */
#define LIBRARY_SMALL ((int64_t)1 << 15)
#define LIBRARY_LARGE ((int64_t)1 << 22)
int64_t library_size(struct recorder *r, const char *name, int64_t value, int64_t most);

/* Returns a choice of the descriptor and checks that it is in 0..count-1. */
int library_choice(struct recorder *r, const char *name, int32_t value, int count);

/* Fails unless the length of the call is `length`, which `what` names. */
void library_length(struct recorder *r, int64_t length, const char *what);

/* Inputs: (B,T,width), (B,width), (B,rows,width), and arrays that all sequences share. NULL where `optional` and
 * absent. */
struct tensor *library_tokens(struct recorder *r, const char *name, const lrnn_array *a, int64_t width);
struct tensor *library_optional(struct recorder *r, const char *name, const lrnn_array *a, int64_t width);
struct tensor *library_optional_state(struct recorder *r, const char *name, const lrnn_array *a, int64_t width);
struct tensor *library_sequences(struct recorder *r, const char *name, const lrnn_array *a, int64_t width);
struct tensor *library_rows(struct recorder *r, const char *name, const lrnn_array *a, int64_t rows, int64_t width);
struct tensor *library_shared(struct recorder *r, const char *name, const lrnn_array *a, int rank, const int64_t *dims);

/* Whole numbers (B,width), dense, in the arrays' memory; an op has them once. A forward pass, and on the CPU a backward
 * pass, is refused if `fit` returns false for a row; it says why. */
struct tensor *library_numbers(struct recorder *r, const char *name, const int32_t *numbers, int64_t width,
                               bool (*fit)(const struct recorder *r, const int32_t *row, struct error *e));

void library_output(struct recorder *r, const char *name, const lrnn_array *a, struct tensor *t);

/* Declare the states before the first and after the last token, each (B,width). Call them before any input. If the
 * caller gives such an array, sequences get `lead` more tokens whose outputs are the initial state, and `tail` more
 * tokens that read the final state; tail 0: the last token of an output shows it. */
void library_first_state(struct recorder *r, const char *name, const lrnn_array *a, int64_t width, int64_t lead,
                         struct state_map map);
void library_last_state(struct recorder *r, const char *name, const lrnn_array *a, int64_t width, int64_t tail,
                        struct state_map map);

/* Describe the newest input or output. library_lead, library_tail: values of these tokens; by default zeros.
 * library_shows_state: the lead tokens of the input are the named initial state; the tail tokens of the output, or its
 * last token, are the named final state. */
void library_lead(struct recorder *r, struct lead_pattern pattern);
void library_tail(struct recorder *r, struct lead_pattern pattern);
void library_shows_state(struct recorder *r, const char *state);

struct library_op {
    const char *name;
    size_t size, first_size; /* bytes of the descriptor, in this and in the first version */
    void (*record)(struct recorder *r, const void *descriptor);
    bool varying; /* takes sequences of unequal length */
};

lrnn_status library_workspace(const struct library_op *op, const lrnn_call *d, lrnn_pass pass, size_t *bytes);
lrnn_status library_run(const struct library_op *op, const lrnn_call *d, lrnn_pass pass);

#define LIBRARY_OP(op, last_field, unequal)                                                                            \
    static void op##_record_any(struct recorder *r, const void *d) {                                                   \
        op##_record(r, (const lrnn_##op *)d);                                                                          \
    }                                                                                                                  \
    static const struct library_op op##_row = {#op, sizeof(lrnn_##op),                                                 \
                                               offsetof(lrnn_##op, last_field) + sizeof((lrnn_##op *)0)->last_field,   \
                                               op##_record_any, unequal};                                              \
    lrnn_status lrnn_##op##_workspace(const lrnn_##op *d, lrnn_pass pass, size_t *bytes) {                             \
        return library_workspace(&op##_row, (const lrnn_call *)(const void *)d, pass, bytes);                          \
    }                                                                                                                  \
    lrnn_status lrnn_##op##_forward(const lrnn_##op *d) {                                                              \
        return library_run(&op##_row, (const lrnn_call *)(const void *)d, LRNN_FORWARD);                               \
    }                                                                                                                  \
    lrnn_status lrnn_##op##_backward(const lrnn_##op *d) {                                                             \
        return library_run(&op##_row, (const lrnn_call *)(const void *)d, LRNN_BACKWARD);                              \
    }

#endif
