/* record.c - what an op tells of its call: sizes, arrays and states. See library.h. */
#include <inttypes.h>

#include "library/library.h"

int64_t library_size(struct recorder *r, const char *name, int64_t value, int64_t most) {
    if (value >= 1 && value <= most) return value;
    graph_fail(r->graph, ST_USAGE, "%s=%" PRId64 ", expected 1 to %" PRId64, name, value, most);
    return 1;
}

int library_choice(struct recorder *r, const char *name, int32_t value, int count) {
    if (value >= 0 && value < count) return value;
    graph_fail(r->graph, ST_USAGE, "%s=%d, expected 0 to %d", name, (int)value, count - 1);
    return 0;
}

void library_length(struct recorder *r, int64_t length, const char *what) {
    if (r->call->length != length && r->call->batch > 0)
        graph_fail(r->graph, ST_USAGE, "length=%" PRId64 ", expected %s, %" PRId64, r->call->length, what, length);
    r->T = length;
}

static struct operand *add(struct recorder *r, const char *name, const lrnn_array *a, enum array_role role,
                           enum array_axes axes, struct tensor *t) {
    struct operand *o = &r->operands[r->n++];
    *o = (struct operand){.name = name, .array = a, .role = role, .axes = axes, .tensor = t};
    return o;
}

static struct tensor *add_input(struct recorder *r, const char *name, const lrnn_array *a, enum array_axes axes,
                                int rank, const int64_t *dims) {
    bool wanted = r->pass == LRNN_BACKWARD && a->grad;
    return add(r, name, a, ARRAY_IN, axes, graph_input(r->graph, name, rank, dims, wanted))->tensor;
}

struct tensor *library_tokens(struct recorder *r, const char *name, const lrnn_array *a, int64_t width) {
    return add_input(r, name, a, AXES_TOKENS, 3, (int64_t[]){r->B, r->lead + r->T + r->tail, width});
}

/* Adds an input that is absent. */
static struct tensor *add_absent(struct recorder *r, const char *name, const lrnn_array *a, enum array_axes axes) {
    if (a->grad) graph_fail(r->graph, ST_USAGE, "%s.grad is wanted of an array that is absent", name);
    add(r, name, a, ARRAY_IN, axes, NULL);
    return NULL;
}

struct tensor *library_optional(struct recorder *r, const char *name, const lrnn_array *a, int64_t width) {
    return a->data ? library_tokens(r, name, a, width) : add_absent(r, name, a, AXES_TOKENS);
}

struct tensor *library_optional_state(struct recorder *r, const char *name, const lrnn_array *a, int64_t width) {
    return a->data ? library_sequences(r, name, a, width) : add_absent(r, name, a, AXES_SEQUENCES);
}

struct tensor *library_sequences(struct recorder *r, const char *name, const lrnn_array *a, int64_t width) {
    return add_input(r, name, a, AXES_SEQUENCES, 2, (int64_t[]){r->B, width});
}

struct tensor *library_shared(struct recorder *r, const char *name, const lrnn_array *a, int rank,
                              const int64_t *dims) {
    return add_input(r, name, a, AXES_SHARED, rank, dims);
}

struct tensor *library_rows(struct recorder *r, const char *name, const lrnn_array *a, int64_t rows, int64_t width) {
    return add_input(r, name, a, AXES_SEQUENCES, 3, (int64_t[]){r->B, rows, width});
}

struct tensor *library_numbers(struct recorder *r, const char *name, const int32_t *numbers, int64_t width,
                               bool (*fit)(const struct recorder *r, const int32_t *row, struct error *e)) {
    struct tensor *t = graph_input_ids(r->graph, name, 2, (int64_t[]){r->B, width}, INT32_MAX, true);
    if (r->call->batch > 0 && (!numbers || (uintptr_t)numbers % sizeof *numbers))
        graph_fail(r->graph, ST_USAGE, "%s is NULL or not aligned to its elements of 4 bytes", name);
    if (t) t->data = (void *)(uintptr_t)numbers;
    r->numbers = numbers;
    r->numbers_width = width;
    r->numbers_fit = fit;
    return t;
}

void library_output(struct recorder *r, const char *name, const lrnn_array *a, struct tensor *t) {
    add(r, name, a, ARRAY_OUT, AXES_TOKENS, t);
}

static void add_state(struct recorder *r, const char *name, const lrnn_array *a, enum array_role role, int64_t width) {
    add(r, name, a, role, AXES_SEQUENCES, graph_input(r->graph, name, 2, (int64_t[]){r->B, width}, false));
}

void library_first_state(struct recorder *r, const char *name, const lrnn_array *a, int64_t width, int64_t lead,
                         struct state_map map) {
    if (a->grad && !a->data && r->pass == LRNN_BACKWARD)
        graph_fail(r->graph, ST_USAGE, "%s.grad is wanted of a state that is absent; give %s.data", name, name);
    if (!a->data) return;
    add_state(r, name, a, ARRAY_FIRST_STATE, width);
    r->lead = lead;
    r->first = map;
}

void library_last_state(struct recorder *r, const char *name, const lrnn_array *a, int64_t width, int64_t tail,
                        struct state_map map) {
    /* With kept values a backward pass must have the lead and tail tokens of its forward pass. */
    bool wanted = r->pass == LRNN_FORWARD ? a->data != NULL : a->grad || (r->kept && a->data);
    if (!wanted) return;
    add_state(r, name, a, ARRAY_LAST_STATE, width);
    r->tail = tail;
    r->last = map;
}

void library_lead(struct recorder *r, struct lead_pattern pattern) {
    r->operands[r->n - 1].lead = pattern;
}

void library_tail(struct recorder *r, struct lead_pattern pattern) {
    r->operands[r->n - 1].tail = pattern;
}

void library_shows_state(struct recorder *r, const char *state) {
    r->operands[r->n - 1].state = state;
}
