/* check_library.c - the scans as a library (include/lrnn.h): every op on any layout, in parts, of unequal lengths. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/library/library_case.h"
#include "tests/testing.h"

#define TOLERANCE (64 * (double)REAL_EPSILON) /* values are near 1, and sums of some ten terms */

static bool near(double a, double b, double tolerance) {
    return fabs(a - b) <= tolerance * (1 + fabs(b));
}

/* --- mathematics -------------------------------------------------------------------------------------------------- */

static const double *field_of(const struct op_boxes *b, const char *name, double *to) {
    for (int i = 0; i < CASE_ARRAYS && b->op->arrays[i].name; i++)
        if (strcmp(b->op->arrays[i].name, name) == 0)
            for (int64_t e = 0; e < box_count(&b->value[i]); e++) to[e] = box_get(&b->value[i], e);
    return to;
}

/* The equations of lrnn.h, written down once more. */
static double gate_before_sum(int32_t gate, double z) {
    return gate == LRNN_SOFTMAX   ? exp(z)
           : gate == LRNN_SIGMOID ? 1 / (1 + exp(-z))
           : gate == LRNN_RELU    ? fmax(z, 0)
                                  : z;
}

static void naive_block(const struct op_boxes *b, double *h) {
    const lrnn_scan_block *d = (const lrnn_scan_block *)(const void *)b->descriptor;
    double z[512], v[512], h0[64];
    field_of(b, "z", z), field_of(b, "v", v), field_of(b, "h0", h0);
    int64_t B = d->call.batch, T = d->call.length, N = d->blocks, m = d->m;
    for (int64_t s = 0; s < B; s++)
        for (int64_t t = 0; t < T; t++)
            for (int64_t k = 0; k < N; k++)
                for (int64_t i = 0; i < m; i++) {
                    const double *row = z + ((s * T + t) * m + i) * (m + 1) * N + k;
                    double sum = 0, total = 0;
                    for (int64_t j = 0; j <= m; j++) {
                        double f = gate_before_sum(d->gate, row[j * N]);
                        double x = j == m ? v[(s * T + t) * m * N + i * N + k]
                                   : t    ? h[(s * T + t - 1) * m * N + j * N + k]
                                          : h0[s * m * N + j * N + k];
                        sum += f * x;
                        total += f;
                    }
                    h[(s * T + t) * m * N + i * N + k] = d->gate == LRNN_NONE ? sum : sum / total;
                }
}

static void naive_companion(const struct op_boxes *b, double *s) {
    const lrnn_scan_companion *d = (const lrnn_scan_companion *)(const void *)b->descriptor;
    double z[512], v[512], s0[64];
    field_of(b, "z", z), field_of(b, "v", v), field_of(b, "s0", s0);
    int64_t T = d->call.length, N = d->channels, m = d->m;
    for (int64_t r = 0; r < d->call.batch * T * N; r++) {
        int64_t token = r / N, k = r % N;
        const double *before = token % T ? s + (token - 1) * m * N + k : s0 + token / T * m * N + k;
        double a[16], total = 0, first = 0, *at = s + token * m * N + k;
        for (int64_t j = 0; j <= m; j++) total += a[j] = gate_before_sum(d->gate, z[(token * (m + 1) + j) * N + k]);
        for (int64_t j = 0; j <= m && d->gate != LRNN_NONE; j++) a[j] /= total;
        for (int64_t j = 0; j < m; j++) first += a[j] * before[j * N];
        for (int64_t i = 0; i < m; i++)
            at[i * N] = d->observer ? a[i] * before[0] + (i + 1 < m ? before[(i + 1) * N] : 0)
                        : i == 0    ? first
                                    : before[(i - 1) * N];
        at[0] += a[m] * v[token * N + k];
    }
}

static void naive_outer(const struct op_boxes *b, double *o) {
    const lrnn_scan_outer *d = (const lrnn_scan_outer *)(const void *)b->descriptor;
    double q[512], k[512], v[512], decay[512], source[512], C[512];
    field_of(b, "q", q), field_of(b, "k", k), field_of(b, "v", v), field_of(b, "decay", decay);
    field_of(b, "source", source), field_of(b, "c0", C);
    int64_t B = d->call.batch, T = d->call.length, H = d->heads, dk = d->key, dv = d->value;
    for (int64_t s = 0; s < B; s++)
        for (int64_t t = 0; t < T; t++)
            for (int64_t h = 0; h < H; h++)
                for (int64_t j = 0; j < dv; j++) {
                    int64_t token = s * T + t;
                    double sum = 0;
                    for (int64_t i = 0; i < dk; i++) {
                        double *c = &C[((s * H + h) * dk + i) * dv + j];
                        *c = decay[token * H + h] * *c +
                             source[token * H + h] * k[(token * H + h) * dk + i] * v[(token * H + h) * dv + j];
                        sum += *c * q[(token * H + h) * dk + i];
                    }
                    o[(token * H + h) * dv + j] = d->scale * sum;
                }
}

static void naive_delta(const struct op_boxes *b, double *o) {
    const lrnn_scan_delta *d = (const lrnn_scan_delta *)(const void *)b->descriptor;
    double q[512], k[512], v[512], beta[512], decay[512], read[512], erase[512], S[512] = {0};
    field_of(b, "q", q), field_of(b, "k", k), field_of(b, "v", v), field_of(b, "s0", S);
    field_of(b, "beta", beta), field_of(b, "decay", decay), field_of(b, "read", read), field_of(b, "erase", erase);
    int64_t B = d->call.batch, T = d->call.length, H = d->heads, n = d->steps, dk = d->key, dv = d->value;
    for (int64_t r = 0; r < B * T * H * dv; r++) {
        int64_t s = r / (T * H * dv), t = r / (H * dv) % T, h = r / dv % H, j = r % dv, token = s * T + t;
        double *column = &S[(s * H + h) * dk * dv + j], sum = 0; /* elements i * dv */
        for (int64_t i = 0; i < dk && d->decay.data; i++)
            column[i * dv] *= d->channels ? decay[(token * H + h) * dk + i] : decay[token * H + h];
        for (int64_t step = 0; step < n; step++) {
            int64_t head = (token * n + step) * H + h;
            const double *key = &k[head * dk], *by = d->beta.data ? key : &read[head * dk];
            double seen = 0, value = v[head * dv + j];
            for (int64_t i = 0; i < dk && (d->beta.data || d->read.data); i++) seen += column[i * dv] * by[i];
            for (int64_t i = 0; i < dk; i++)
                column[i * dv] += d->beta.data    ? key[i] * d->rate * beta[head] * (value - seen)
                                  : d->erase.data ? key[i] * value - erase[head * dk + i] * d->rate * seen
                                                  : key[i] * (value - d->rate * seen);
        }
        for (int64_t i = 0; i < dk; i++) sum += column[i * dv] * q[(token * H + h) * dk + i];
        o[(token * H + h) * dv + j] = d->scale * sum;
    }
}

static void check_naive(const struct op_case *op, const char *output,
                        void (*naive)(const struct op_boxes *, double *)) {
    struct op_boxes b;
    double expected[512], found[512];
    boxes_make(&b, op, op->batch, op->length, NULL, NATIVE, LAYOUT_APART, true, 3);
    boxes_run(&b, LRNN_FORWARD);
    naive(&b, expected);
    field_of(&b, output, found);
    for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++)
        for (int64_t e = 0; op->arrays[i].role == BOX_OUT && e < box_count(&b.value[i]); e++)
            ck_assert_msg(near(found[e], expected[e], TOLERANCE), "%s %s[%d]: %g, expected %g", op->name, output,
                          (int)e, found[e], expected[e]);
    boxes_free(&b);
}

START_TEST(values_are_those_of_the_equations) {
    for (int i = 0; i < op_case_count(); i++) {
        if (!strcmp(op_cases[i].name, "scan_block")) check_naive(&op_cases[i], "h", naive_block);
        if (!strcmp(op_cases[i].name, "scan_companion")) check_naive(&op_cases[i], "s", naive_companion);
        if (!strcmp(op_cases[i].name, "scan_outer") && op_cases[i].arrays[4].role == BOX_IN)
            check_naive(&op_cases[i], "o", naive_outer);
        if (!strcmp(op_cases[i].name, "scan_delta")) check_naive(&op_cases[i], "o", naive_delta);
    }
}
END_TEST

/* sum of gradient * value over outputs and the last state */
static double objective(struct op_boxes *b) {
    double sum = 0;
    boxes_run(b, LRNN_FORWARD);
    for (int i = 0; i < CASE_ARRAYS && b->op->arrays[i].name; i++)
        if (b->value[i].memory && (b->op->arrays[i].role == BOX_OUT || b->op->arrays[i].role == BOX_LAST))
            for (int64_t e = 0; e < box_count(&b->value[i]); e++)
                sum += box_get(&b->value[i], e) * box_get(&b->gradient[i], e);
    return sum;
}

/* Central differences err by h^2 and by rounding over h. In double h = 1e-4 leaves 1e-8 of a number near 1. In float h
 * = 1e-2 leaves 1e-4 of the one and 1e-5 of the other for each term, and a sum has some hundred: the bound finds a
 * missing factor there, and the double build finds the rest. */
START_TEST(gradients_are_differences) {
    const struct op_case *op = &op_cases[_i / 2];
    struct op_boxes b;
    boxes_make(&b, op, op->batch, op->length, NULL, NATIVE, LAYOUT_DENSE, true, 5);
    for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++) /* with the first state, and with the last one alone */
        if (op->arrays[i].role == BOX_FIRST && _i % 2) boxes_leave_out(&b, i);
    boxes_run(&b, LRNN_FORWARD);
    boxes_run(&b, LRNN_BACKWARD);
    double h = REAL_IS_DOUBLE ? 1e-4 : 1e-2, tolerance = REAL_IS_DOUBLE ? 1e-6 : 2e-2;
    for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++) {
        struct box *x = &b.value[i];
        if ((op->arrays[i].role != BOX_IN && op->arrays[i].role != BOX_FIRST) || !x->memory) continue;
        for (int64_t e = 0; e < box_count(x); e += 1 + box_count(x) / 12) {
            double middle = box_get(x, e);
            box_put(x, e, middle + h);
            double up = objective(&b);
            box_put(x, e, middle - h);
            double down = objective(&b);
            box_put(x, e, middle);
            double expected = (up - down) / (2 * h);
            ck_assert_msg(near(box_get(&b.gradient[i], e), expected, tolerance), "%s d%s[%d]: %g, expected %g",
                          op->name, op->arrays[i].name, (int)e, box_get(&b.gradient[i], e), expected);
        }
    }
    boxes_free(&b);
}
END_TEST

/* --- layouts ------------------------------------------------------------------------------------------------------ */

START_TEST(strides_change_nothing) {
    const struct op_case *op = &op_cases[_i];
    struct op_boxes dense, apart;
    for (int states = 0; states < 2; states++) {
        boxes_make(&dense, op, op->batch, op->length, NULL, NATIVE, LAYOUT_DENSE, states, 7);
        boxes_make(&apart, op, op->batch, op->length, NULL, NATIVE, LAYOUT_APART, states, 7);
        for (int pass = LRNN_FORWARD; pass <= LRNN_BACKWARD; pass++) {
            boxes_run(&dense, (lrnn_pass)pass);
            boxes_run(&apart, (lrnn_pass)pass);
            boxes_compare(&dense, &apart, (lrnn_pass)pass, 0);
        }
        boxes_free(&dense);
        boxes_free(&apart);
    }
}
END_TEST

START_TEST(threads_change_nothing) {
    const struct op_case *op = &op_cases[_i];
    struct op_boxes one, three;
    boxes_make(&one, op, op->batch, op->length, NULL, NATIVE, LAYOUT_DENSE, true, 9);
    boxes_make(&three, op, op->batch, op->length, NULL, NATIVE, LAYOUT_DENSE, true, 9);
    boxes_call(&one)->threads = 1;
    boxes_call(&three)->threads = 3;
    for (int pass = LRNN_FORWARD; pass <= LRNN_BACKWARD; pass++) {
        boxes_run(&one, (lrnn_pass)pass);
        boxes_run(&three, (lrnn_pass)pass);
        boxes_compare(&one, &three, (lrnn_pass)pass, 0);
    }
    boxes_free(&one);
    boxes_free(&three);
}
END_TEST

/* bf16 arrays are the float arrays, read and written in 16 bits. */
START_TEST(bf16_is_float_rounded) {
    const struct op_case *op = &op_cases[_i];
    struct op_boxes half, full;
    boxes_make(&half, op, op->batch, op->length, NULL, LRNN_BF16, LAYOUT_APART, true, 11);
    boxes_make(&full, op, op->batch, op->length, NULL, LRNN_F32, LAYOUT_DENSE, true, 11);
    if (REAL_IS_DOUBLE) {
        ck_assert_int_eq(op->forward(half.descriptor), LRNN_UNSUPPORTED);
        ck_assert_str_ne(lrnn_last_error(), "");
    }
    for (int pass = LRNN_FORWARD; pass <= LRNN_BACKWARD && !REAL_IS_DOUBLE; pass++) {
        for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++)
            for (int64_t e = 0; e < box_count(&half.value[i]); e++) {
                box_put(&full.value[i], e, box_get(&half.value[i], e));
                if (op->arrays[i].role == BOX_OUT || op->arrays[i].role == BOX_LAST)
                    box_put(&full.gradient[i], e, box_get(&half.gradient[i], e));
            }
        boxes_run(&half, (lrnn_pass)pass);
        boxes_run(&full, (lrnn_pass)pass);
        for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++) {
            struct box *boxes = pass == LRNN_FORWARD ? full.value : full.gradient;
            for (int64_t e = 0; e < box_count(&boxes[i]); e++)
                box_put(&boxes[i], e, real_of_dtype(LRNN_BF16, box_get(&boxes[i], e)));
        }
        boxes_compare(&half, &full, (lrnn_pass)pass, 0);
    }
    boxes_free(&half);
    boxes_free(&full);
}
END_TEST

/* Row `from` of the axis before the last of array x, as many as y has, into y or back. */
static void move_rows(const struct box *x, int64_t from, const struct box *y, bool back) {
    int64_t width = x->dims[x->rank - 1];
    for (int64_t e = 0; e < box_count(y); e++) {
        if (back)
            box_put(x, from * width + e, box_get(y, e));
        else
            box_put(y, e, box_get(x, from * width + e));
    }
}

/* Sequences of unequal length, an empty one among them, give what each gives alone. */
START_TEST(unequal_lengths_are_separate_calls) {
    const struct op_case *op = &op_cases[_i];
    static const int64_t offsets[] = {0, 3, 3, 8, 9};
    struct op_boxes all, one, sum;
    boxes_make(&all, op, 4, 9, offsets, NATIVE, LAYOUT_APART, true, 13);
    if (!op->unequal) {
        ck_assert_int_eq(op->forward(all.descriptor), LRNN_UNSUPPORTED);
        boxes_free(&all);
        return;
    }
    boxes_run(&all, LRNN_FORWARD);
    boxes_run(&all, LRNN_BACKWARD);
    boxes_make(&sum, op, 4, 9, offsets, NATIVE, LAYOUT_DENSE, true, 13);
    for (int64_t b = 0; b < 4; b++) {
        boxes_make(&one, op, 1, offsets[b + 1] - offsets[b], NULL, NATIVE, LAYOUT_DENSE, true, 13);
        for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++) {
            const struct array_case *a = &op->arrays[i];
            int64_t from = a->axes == BOX_TOKENS ? offsets[b] : a->axes == BOX_SEQUENCES ? b : 0;
            move_rows(&all.value[i], from, &one.value[i], false);
            if (a->role == BOX_OUT || a->role == BOX_LAST) move_rows(&all.gradient[i], from, &one.gradient[i], false);
        }
        boxes_run(&one, LRNN_FORWARD);
        boxes_run(&one, LRNN_BACKWARD);
        for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++) {
            const struct array_case *a = &op->arrays[i];
            int64_t from = a->axes == BOX_TOKENS ? offsets[b] : a->axes == BOX_SEQUENCES ? b : 0;
            if (a->axes == BOX_SHARED) {
                for (int64_t e = 0; e < box_count(&one.gradient[i]); e++)
                    box_put(&sum.gradient[i], e, (b ? box_get(&sum.gradient[i], e) : 0) + box_get(&one.gradient[i], e));
                continue;
            }
            move_rows(&sum.value[i], from, &one.value[i], true);
            move_rows(&sum.gradient[i], from, &one.gradient[i], true);
        }
        boxes_free(&one);
    }
    boxes_compare(&all, &sum, LRNN_FORWARD, TOLERANCE);
    boxes_compare(&all, &sum, LRNN_BACKWARD, TOLERANCE);
    boxes_free(&all);
    boxes_free(&sum);
}
END_TEST

/* Cuts a sequence in two: the last state of the first part begins the second, and gradients come back the same way. */
START_TEST(parts_make_the_whole) {
    const struct op_case *op = &op_cases[_i];
    struct op_boxes whole, part[2];
    int64_t cut[] = {0, 3, op->length};
    int first[2], last[2], firsts = 0, lasts = 0;
    for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++) {
        if (op->arrays[i].role == BOX_FIRST) first[firsts++] = i;
        if (op->arrays[i].role == BOX_LAST) last[lasts++] = i;
    }
    ck_assert_int_le(firsts, lasts);
    if (firsts == 0) return;
    boxes_make(&whole, op, 1, op->length, NULL, NATIVE, LAYOUT_DENSE, true, 17);
    boxes_run(&whole, LRNN_FORWARD);
    boxes_run(&whole, LRNN_BACKWARD);
    for (int p = 0; p < 2; p++) {
        boxes_make(&part[p], op, 1, cut[p + 1] - cut[p], NULL, NATIVE, LAYOUT_DENSE, true, 17);
        for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++) {
            bool tokens = op->arrays[i].axes == BOX_TOKENS;
            move_rows(&whole.value[i], tokens ? cut[p] : 0, &part[p].value[i], false);
            if (op->arrays[i].role == BOX_OUT || op->arrays[i].role == BOX_LAST)
                move_rows(&whole.gradient[i], tokens ? cut[p] : 0, &part[p].gradient[i], false);
        }
        for (int i = 0; i < firsts && p; i++) move_rows(&part[0].value[last[i]], 0, &part[1].value[first[i]], false);
        boxes_run(&part[p], LRNN_FORWARD);
    }
    boxes_run(&part[1], LRNN_BACKWARD);
    for (int i = 0; i < firsts; i++) move_rows(&part[1].gradient[first[i]], 0, &part[0].gradient[last[i]], false);
    boxes_run(&part[0], LRNN_BACKWARD);
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++) {
            const struct array_case *a = &op->arrays[i];
            if (a->axes == BOX_SHARED || (a->axes != BOX_TOKENS && a->role == (p ? BOX_FIRST : BOX_LAST))) continue;
            const struct box *x = a->role == BOX_OUT || a->role == BOX_LAST ? whole.value : whole.gradient;
            const struct box *y = a->role == BOX_OUT || a->role == BOX_LAST ? part[p].value : part[p].gradient;
            int64_t from = a->axes == BOX_TOKENS ? cut[p] * a->width : 0;
            for (int64_t e = 0; e < box_count(&y[i]); e++)
                ck_assert_msg(near(box_get(&y[i], e), box_get(&x[i], from + e), TOLERANCE),
                              "%s part %d %s[%d]: %g, expected %g", op->name, p, a->name, (int)e, box_get(&y[i], e),
                              box_get(&x[i], from + e));
        }
    boxes_free(&whole);
    boxes_free(&part[0]);
    boxes_free(&part[1]);
}
END_TEST

/* No sequence, or no token: the states pass through, and gradients of shared arrays are zero. */
START_TEST(empty_shapes_work) {
    const struct op_case *op = &op_cases[_i];
    struct op_boxes b;
    boxes_make(&b, op, 0, op->length, NULL, NATIVE, LAYOUT_DENSE, true, 19);
    boxes_run(&b, LRNN_FORWARD);
    boxes_run(&b, LRNN_BACKWARD);
    for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++)
        if (box_count(&b.value[i]) == 0) boxes_forget(&b, i);
    boxes_run(&b, LRNN_FORWARD);
    boxes_run(&b, LRNN_BACKWARD);
    for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++)
        for (int64_t e = 0; e < box_count(&b.gradient[i]) && op->arrays[i].axes == BOX_SHARED; e++)
            ck_assert_double_eq(box_get(&b.gradient[i], e), 0);
    boxes_free(&b);
    if (!op->unequal) return;
    boxes_make(&b, op, 2, 0, NULL, NATIVE, LAYOUT_DENSE, true, 19);
    boxes_run(&b, LRNN_FORWARD);
    boxes_run(&b, LRNN_BACKWARD);
    int first[2], firsts = 0, lasts = 0;
    for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++) {
        if (op->arrays[i].role == BOX_FIRST) first[firsts++] = i;
        if (op->arrays[i].role != BOX_LAST || !firsts) continue;
        const struct box *before = &b.value[first[lasts]], *gradient = &b.gradient[first[lasts]];
        for (int64_t e = 0; e < box_count(&b.value[i]); e++) {
            ck_assert(near(box_get(&b.value[i], e), box_get(before, e), TOLERANCE));
            ck_assert(near(box_get(gradient, e), box_get(&b.gradient[i], e), TOLERANCE));
        }
        lasts++;
    }
    boxes_free(&b);
}
END_TEST

/* The gradient of the first state is the same where no other gradient is wanted. */
START_TEST(first_state_alone_has_its_gradient) {
    const struct op_case *op = &op_cases[_i];
    struct op_boxes all, alone;
    boxes_make(&all, op, op->batch, op->length, NULL, NATIVE, LAYOUT_DENSE, true, 41);
    boxes_make(&alone, op, op->batch, op->length, NULL, NATIVE, LAYOUT_DENSE, true, 41);
    boxes_run(&all, LRNN_FORWARD);
    boxes_run(&all, LRNN_BACKWARD);
    boxes_run(&alone, LRNN_FORWARD);
    int first = -1;
    for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++) {
        if (op->arrays[i].role == BOX_FIRST) first = i;
        if (op->arrays[i].role == BOX_IN) boxes_forget_gradient(&alone, i);
    }
    if (first >= 0) boxes_run(&alone, LRNN_BACKWARD);
    for (int64_t e = 0; first >= 0 && e < box_count(&all.gradient[first]); e++)
        ck_assert_double_eq(box_get(&alone.gradient[first], e), box_get(&all.gradient[first], e));
    boxes_free(&all);
    boxes_free(&alone);
}
END_TEST

/* Each op that the library lists has a case here. */
START_TEST(ops_are_listed) {
    char names[1024], *rest = NULL;
    snprintf(names, sizeof names, "%s", lrnn_ops());
    for (char *name = strtok_r(names, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest))
        ck_assert_msg(op_case_of(name) != NULL, "%s has no case in library_case.c", name);
    for (int i = 0; i < op_case_count(); i++) ck_assert_ptr_nonnull(strstr(lrnn_ops(), op_cases[i].name));
    ck_assert_ptr_nonnull(strchr(lrnn_version(), '.'));
}
END_TEST

Suite *check_library(void);
Suite *check_library(void) {
    Suite *suite = suite_create("library");
    TCase *tests = tcase_create("library");
    int n = op_case_count();
    tcase_add_test(tests, values_are_those_of_the_equations);
    tcase_add_loop_test(tests, gradients_are_differences, 0, 2 * n);
    tcase_add_loop_test(tests, strides_change_nothing, 0, n);
    tcase_add_loop_test(tests, threads_change_nothing, 0, n);
    tcase_add_loop_test(tests, bf16_is_float_rounded, 0, n);
    tcase_add_loop_test(tests, unequal_lengths_are_separate_calls, 0, n);
    tcase_add_loop_test(tests, parts_make_the_whole, 0, n);
    tcase_add_loop_test(tests, empty_shapes_work, 0, n);
    tcase_add_loop_test(tests, first_state_alone_has_its_gradient, 0, n);
    tcase_add_test(tests, ops_are_listed);
    suite_add_tcase(suite, tests);
    return suite;
}
