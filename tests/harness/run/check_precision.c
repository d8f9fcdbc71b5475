/* check_precision.c - --precision: factors of products are rounded and nothing else is; the precision is part of what a
 * run is; and whatever instructions oneDNN is held to, a run has the same meaning, and the same bits at any number of
 * threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_plan.h"
#include "core/graph_walk.h"
#include "harness/run/checkpoint.h"
#include "harness/store/record_files.h"
#include "kernels/dense/dense.h"
#include "kernels/lib/round.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"

static void begin(void) {
    start_kernels();
    program_begin();
}

/* --- rounding ----------------------------------------------------------------------------------------------------- */

START_TEST(numbers_are_rounded_to_the_nearest_ties_to_even) {
    static const struct {
        double x, tf32, bf16;
    } cases[] = {
        {0, 0, 0},
        {1, 1, 1},
        {1 + 0x1p-7, 1 + 0x1p-7, 1 + 0x1p-7},
        {1 + 0x1p-8, 1 + 0x1p-8, 1},             /* a tie: down to the even one */
        {1 + 0x3p-8, 1 + 0x3p-8, 1 + 0x1p-6},    /* a tie: up to the even one */
        {1 + 0x1.1p-8, 1 + 0x1p-8, 1 + 0x1p-7},  /* above a tie; in tf32 a tie */
        {-1 - 0x3p-11, -1 - 0x1p-9, -1},         /* a tie in tf32: away from 0 to the even one */
        {0x1.fffffep+127, INFINITY, INFINITY},   /* the largest float */
        {0x1.fep+127, 0x1.fep+127, 0x1.fep+127}, /* the largest in bf16 */
        {INFINITY, INFINITY, INFINITY},
        {-INFINITY, -INFINITY, -INFINITY},
        {0x1p-130, 0x1p-130, 0x1p-130},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        real x = (real)cases[i].x, y;
        uint16_t half;
        ck_assert_msg((double)rounded(PRECISION_TF32, x) == cases[i].tf32, "tf32 of %a", cases[i].x);
        ck_assert_msg((double)rounded(PRECISION_BF16, x) == cases[i].bf16, "bf16 of %a", cases[i].x);
        ck_assert(rounded(PRECISION_FULL, x) == x);
        round_reals(PRECISION_BF16, 1, &x, &y);
        round_to_bf16(1, &x, &half);
        float back;
        uint32_t bits = (uint32_t)half << 16;
        memcpy(&back, &bits, sizeof back);
        ck_assert(y == (real)cases[i].bf16 && (double)back == cases[i].bf16);
    }
    for (int p = PRECISION_FULL; p <= PRECISION_BF16; p++) ck_assert(isnan(rounded((enum precision)p, (real)NAN)));
}
END_TEST

/* --- a rounded product is the product of rounded factors ---------------------------------------------------------- */

#define ROWS 37
#define IN   21
#define OUT  18

struct map {
    struct graph g;
    struct tensor *x, *w, *b, *y;
};

static void fill_rounded(real *to, int64_t n, uint64_t index, enum precision p) {
    struct rng rng = rng_at(3, STREAM_TEST, index);
    for (int64_t i = 0; i < n; i++) to[i] = rounded(p, (real)(2 * rng_uniform(&rng) - 1));
}

/* y = x W^T + b and its gradients in `precision`, of factors that are rounded to `factors` by hand. */
static void map_walk(struct map *m, const char *kernel, enum precision precision, enum precision factors) {
    struct graph_options options = {
        .precision = precision, .training = true, .guards = true, .kernel = kernel, .kernels = kernel_list()};
    struct step_state state = {0};
    struct error e;
    ck_assert_int_eq(graph_create(&m->g, &options, NULL, &e), ST_OK);
    m->x = graph_input(&m->g, "x", 2, (int64_t[]){ROWS, IN}, true);
    m->w = graph_input(&m->g, "w", 2, (int64_t[]){OUT, IN}, true);
    m->b = graph_input(&m->g, "b", 1, (int64_t[]){OUT}, true);
    m->y = linear(&m->g, m->x, m->w, m->b);
    struct tensor *kept[] = {m->x, m->w, m->b};
    for (int i = 0; i < 3; i++) graph_keep(&m->g, kept[i]);
    graph_set_root(&m->g, m->y);
    ck_assert_msg(graph_plan(&m->g, &e) == ST_OK, "%s", e.text);
    fill_rounded(tensor_real(m->x), ROWS * IN, 1, factors);
    fill_rounded(tensor_real(m->w), OUT * IN, 2, factors);
    fill_rounded(tensor_real(m->b), OUT, 3, PRECISION_FULL);
    fill_rounded(m->y->grad, ROWS * OUT, 4, factors);
    graph_forward(&m->g, &state);
    graph_backward(&m->g, &state);
}

static bool same(const real *a, const real *b, int64_t n) {
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

START_TEST(a_rounded_product_is_that_of_rounded_factors) {
    static const char *const kernels[] = {"linear_ref", "linear_cpu"};
    enum precision p = _i & 1 ? PRECISION_BF16 : PRECISION_TF32;
    const char *kernel = kernels[_i >> 1];
    struct map got, want, full;
    map_walk(&got, kernel, p, PRECISION_FULL);
    map_walk(&want, kernel, PRECISION_FULL, p);
    map_walk(&full, kernel, PRECISION_FULL, PRECISION_FULL);
    ck_assert(same(got.y->data, want.y->data, ROWS * OUT));
    ck_assert(same(got.x->grad, want.x->grad, ROWS * IN));
    ck_assert(same(got.w->grad, want.w->grad, OUT * IN));
    ck_assert(same(got.b->grad, full.b->grad, OUT)); /* a sum, not a product */
    ck_assert(!same(got.y->data, full.y->data, ROWS * OUT));
    ck_assert(!same(got.x->grad, full.x->grad, ROWS * IN));
    ck_assert(!same(got.w->grad, full.w->grad, OUT * IN));
    graph_free(&got.g);
    graph_free(&want.g);
    graph_free(&full.g);
}
END_TEST

#if !REAL_IS_DOUBLE

/* --- part of what a run is ---------------------------------------------------------------------------------------- */

START_TEST(another_precision_is_another_run) {
    struct setup *full = small_run(program_folder, "swiglu", "bdlru:m=2,blocks=5", NULL, NULL);
    struct setup *tf32 = small_run(program_folder, "swiglu", "bdlru:m=2,blocks=5", "precision", "tf32");
    struct setup *bf16 = small_run(program_folder, "swiglu", "bdlru:m=2,blocks=5", "precision", "bf16");
    ck_assert_str_ne(full->run_id, tf32->run_id);
    ck_assert_str_ne(full->run_id, bf16->run_id);
    ck_assert_str_ne(tf32->cell_id, bf16->cell_id);
    ck_assert_ptr_nonnull(strstr(full->identity, "precision=fp32\n"));
    ck_assert_ptr_nonnull(strstr(bf16->identity, "precision=bf16\n"));
    small_run_free(full);
    small_run_free(tf32);
    small_run_free(bf16);
}
END_TEST

/* As if somebody had renamed the file. */
START_TEST(a_checkpoint_of_another_precision_is_refused) {
    struct setup *full = small_run(program_folder, "swiglu", "bdlru:m=2,blocks=5", NULL, NULL);
    struct setup *bf16 = small_run(program_folder, "swiglu", "bdlru:m=2,blocks=5", "precision", "bf16");
    struct run_progress p = {.n_curve = 0, .solved_step = -1};
    struct trainer t;
    struct error e = {0};
    char from[SCRATCH_BYTES + 64], to[SCRATCH_BYTES + 64];
    ck_assert_msg(trainer_create(&t, full, &e) == ST_OK, "%s", e.text);
    trainer_step(&t);
    ck_assert_msg(checkpoint_write(&t, &p, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(checkpoint_admit(bf16, &e), ST_OK); /* there is none of its own */
    snprintf(from, sizeof from, "%s/checkpoints/%s.ckpt", program_folder, full->run_id);
    snprintf(to, sizeof to, "%s/checkpoints/%s.ckpt", program_folder, bf16->run_id);
    ck_assert_int_eq(rename(from, to), 0);
    ck_assert_int_eq(checkpoint_admit(bf16, &e), ST_USAGE);
    ck_assert_ptr_nonnull(strstr(e.text, "was written with --precision fp32 and this run has bf16"));
    trainer_free(&t);
    small_run_free(full);
    small_run_free(bf16);
}
END_TEST

/* --- as users run it ---------------------------------------------------------------------------------------------- */

#define TRAIN "train s3:n_train=150,n_val=20,n_test=20,length=8 bdlru:m=2,blocks=5 --dim 24 --epochs 2 --quiet yes "

static const char *const isas[] = {"AVX2", "AVX512_CORE", "AVX512_CORE_BF16", "AVX512_CORE_AMX"};

/* The losses of the four steps of a run, as text: their bits. */
static char *losses(const char *isa, const char *flags, int threads) {
    char program[1024], line[1024], path[SCRATCH_BYTES + 16];
    size_t size;
    snprintf(program, sizeof program, "ONEDNN_MAX_CPU_ISA=%s %s", isa, named_program("LRNN", "./lrnn"));
    snprintf(path, sizeof path, "%s/steps", program_folder);
    snprintf(line, sizeof line, TRAIN "--force yes --threads %d --out %s --log-steps %s %s", threads, program_folder,
             path, flags);
    expect_status(run_program(program_folder, program, line), 0, line);
    return slurp(path, &size);
}

/* A few steps apart in rounding alone: units in the last place, of which Adam makes a thousandth of a rate at first. */
static void expect_alike(const char *got, const char *want, const char *isa) {
    int lines = 0;
    got = strchr(got, '\n'), want = strchr(want, '\n');
    for (; got && want && got[1] && want[1]; lines++) {
        /* cppcheck-suppress nullPointerRedundantCheck ; the loop's condition */
        double a = strtod(strchr(got, ',') + 1, NULL), b = strtod(strchr(want, ',') + 1, NULL);
        ck_assert_msg(fabs(a - b) <= 1e-4 * fabs(b), "%s: loss %.9g instead of %.9g", isa, a, b);
        got = strchr(got + 1, '\n'), want = strchr(want + 1, '\n');
    }
    ck_assert_int_eq(lines, 4);
}

START_TEST(a_run_means_the_same_on_every_instruction_set) {
    static const char *const flags[] = {"", "--precision tf32", "--precision bf16"};
    char *want = NULL;
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        char *one = losses(isas[i], flags[_i], 1), *three = losses(isas[i], flags[_i], 3);
        ck_assert_msg(!strcmp(one, three), "%s: other bits on three threads", isas[i]);
        if (!want) want = strdup(one);
        expect_alike(one, want, isas[i]);
        free(one);
        free(three);
    }
    free(want);
}
END_TEST

/* By instructions for bf16 or widened, and forced for --precision bf16 alone. */
START_TEST(products_of_halves_mean_the_same) {
    const char *flags = "--precision bf16 --kernel linear_bf16_cpu";
    char line[1024], *want = losses("AVX2", "--precision bf16", 1);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        char *one = losses(isas[i], flags, 1), *three = losses(isas[i], flags, 3);
        ck_assert_msg(!strcmp(one, three), "%s: other bits on three threads", isas[i]);
        expect_alike(one, want, isas[i]);
        free(one);
        free(three);
    }
    free(want);
    snprintf(line, sizeof line, TRAIN "--out %s --kernel linear_bf16_cpu", program_folder);
    expect_status(run(line), 2, line);
    expect_text(err, "its products are in bf16", line);
}
END_TEST

START_TEST(the_record_and_the_doctor_say_it) {
    char program[1024], line[1024];
    struct record_set set;
    struct error e;
    snprintf(line, sizeof line, TRAIN "--precision bf16 --out %s", program_folder);
    expect_status(run(line), 0, line);
    ck_assert_msg(records_load(&set, program_folder, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(set.n, 1);
    ck_assert_str_eq(set.list[0].run.dtype, "bf16");
    expect_text(set.list[0].run.kernel, ", oneDNN ", line);
    records_free(&set);
    snprintf(program, sizeof program, "ONEDNN_MAX_CPU_ISA=SSE41 %s", named_program("LRNN", "./lrnn"));
    run_program(program_folder, program, "doctor");
    expect_text(out, "oneDNN 2.", "doctor");
    expect_text(out, "SSE41", "doctor");
}
END_TEST

#endif

START_TEST(the_double_build_has_its_own_precision_alone) {
    const char *line = "train s3 bdlru --precision bf16", *program = named_program("LRNN_F64", "./lrnn-f64");
    expect_status(run_program(program_folder, program, line), 2, line);
    expect_text(err, "precision=bf16 is not one of: fp64", line);
}
END_TEST

Suite *check_precision(void) {
    Suite *suite = suite_create("precision");
    TCase *c = tcase_create("precision");
    tcase_add_checked_fixture(c, begin, program_end);
    tcase_add_test(c, numbers_are_rounded_to_the_nearest_ties_to_even);
    tcase_add_loop_test(c, a_rounded_product_is_that_of_rounded_factors, 0, 4);
#if !REAL_IS_DOUBLE
    tcase_add_test(c, another_precision_is_another_run);
    tcase_add_test(c, a_checkpoint_of_another_precision_is_refused);
    tcase_add_loop_test(c, a_run_means_the_same_on_every_instruction_set, 0, 3);
    tcase_add_test(c, products_of_halves_mean_the_same);
    tcase_add_test(c, the_record_and_the_doctor_say_it);
#endif
    tcase_add_test(c, the_double_build_has_its_own_precision_alone);
    suite_add_tcase(suite, c);
    return suite;
}
