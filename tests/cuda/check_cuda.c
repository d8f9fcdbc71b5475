/* check_cuda.c - every CUDA kernel against its reference: at all sizes that the tests walk, on a device or on the host
 * (cuda_host.h). On the host also with the fibers of each block, and the blocks, in other orders: a kernel that misses
 * a barrier computes something else then. On a device a second run stands for that. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_plan.h"
#include "core/graph_walk.h"
#include "kernels/gated/gated.h"
#include "kernels/matrix/state.h"
#include "kernels/plstm/plstm.h"
#include "kernels/train/train.h"
#include "tests/cuda/cuda_cases.h"
#include "tests/kernels/train/predictions.h"
#include "tests/lib/op_apart.h"

#ifdef LRNN_CUDA_HOST
enum { N_ORDERS = 4, ORDER_WARPS = 3 }; /* cuda_host.h */
void cuda_host_set_order(int order);
size_t cuda_host_most_shared(void);
#else
#define N_ORDERS 2
static void cuda_host_set_order(int order) {
    (void)order;
}
#endif

/* One more place, under a setting of the host's (cuda_host.h). */
static void open_place_of(struct place *p, const char *variable, const char *value) {
    struct error e = {0};
    setenv(variable, value, 1);
    ck_assert_msg(place_open(p, "cuda", &e) == ST_OK, "%s", e.text);
}

/* LRNN_CUDA_KERNELS="name name" tests those alone, for whoever writes them. */
static bool is_tested(const struct kernel *k) {
    const char *names = getenv("LRNN_CUDA_KERNELS"), *at = names ? strstr(names, k->name) : NULL;
    size_t length = strlen(k->name);
    while (at && ((at > names && at[-1] != ' ') || (at[length] && at[length] != ' '))) at = strstr(at + 1, k->name);
    return k->device == DEVICE_CUDA && (!names || at);
}

/* The n-th CUDA kernel, or NULL after the last. */
static const struct kernel *cuda_kernel(int n) {
    for (const struct kernel *const *k = kernel_list(); *k; k++)
        if (is_tested(*k) && n-- == 0) return *k;
    return NULL;
}

static int cuda_kernel_count(void) {
    int n = 0;
    while (cuda_kernel(n)) n++;
    return n;
}

START_TEST(kernels_agree_with_the_reference) {
    for (int fill = FILL_SMALL; fill <= FILL_WHOLE; fill++)
        each_example(cuda_kernel(_i), WALK_EDGES, (enum fill)fill, &own_device, compare_twin);
    each_example(cuda_kernel(_i), WALK_REAL, FILL_NET, &own_device, compare_twin);
}
END_TEST

START_TEST(gradients_accumulate) {
    if (differentiable(cuda_kernel(_i)->op))
        each_example(cuda_kernel(_i), WALK_EDGES, FILL_SMALL, &own_device, compare_accumulated);
}
END_TEST

START_TEST(unwanted_gradients_are_left_out) {
    if (differentiable(cuda_kernel(_i)->op))
        each_example(cuda_kernel(_i), WALK_EDGES, FILL_SMALL, &own_device, compare_unwanted);
}
END_TEST

/* The orders from..to have the bits of order 0. */
static void expect_same_in_orders(const struct trial_op *what, int from, int to) {
    struct op_run first, other;
    ck_assert(run_open(&first, what));
    run_walk(&first);
    for (int order = from; order <= to; order++) {
        ck_assert(run_open(&other, what));
        cuda_host_set_order(order);
        run_walk(&other);
        cuda_host_set_order(0);
        expect_same_outputs(&other, &first, 0);
        if (differentiable(what->op))
            expect_same_gradients(&other, &first, 0, -1);
        else
            expect_same_effects(&other, &first, 0);
        run_close(&other);
    }
    run_close(&first);
}

/* The other orders take turns: a kernel is walked at dozens of sizes, and each order sees every third one. */
static bool compare_an_order(const struct kernel *k, const struct trial_op *what) {
    static int turn;
    (void)k;
    turn = turn % (N_ORDERS - 1) + 1;
    expect_same_in_orders(what, turn, turn);
    return true;
}

START_TEST(bits_do_not_depend_on_the_order_of_threads) {
    each_example(cuda_kernel(_i), WALK_EDGES, FILL_SMALL, &own_device, compare_an_order);
}
END_TEST

START_TEST(sequences_and_heads_do_not_depend_on_others) {
    const struct kernel *k = cuda_kernel(_i);
    const char *why;
    if (sequences_are_apart(k->op, &why))
        ck_assert_int_gt(each_example_apart(k, WALK_REAL, &own_device, compare_alone), 0);
    if (k->op->heads) ck_assert_int_gt(each_example_apart(k, WALK_REAL, &own_device, compare_beside_others), 0);
}
END_TEST

static bool run_once(const struct kernel *k, const struct trial_op *what) {
    struct op_run r;
    (void)k;
    ck_assert(run_open(&r, what));
    run_walk(&r);
    run_close(&r);
    return true;
}

/* One walk of each kernel at each real size: what compute-sanitizer can afford. */
START_TEST(every_kernel_runs) {
    each_example(cuda_kernel(_i), WALK_REAL, FILL_NET, &own_device, run_once);
}
END_TEST

/* --- sums in two stages, with more partial sums than the walks' sizes give ---------------------------------------- */

/* The last block adds the partial sums, so that there is no launch more than where there is one of them; but for the
 * `launches` of a table's gradient, and of a loss over more rows than each block counts by itself. Whole numbers are
 * `exact` in any order. */
static const struct {
    const char *kernel, *sizes;
    bool exact;
    int launches;
} two_stages[] = {
    {"linear_cuda", "length=200", true, 0},
    {"bias_cuda", "length=200", true, 0},
    {"scale_cuda", "length=200", true, 0},
    {"repeat_rows_cuda", "length=200", true, 0},
    {"rmsnorm_cuda", "length=200", true, 0},
    {"layernorm_cuda", "length=200", true, 0},
    {"add_norm_cuda", "length=200", true, 0},
    {"embedding_cuda", "length=200", true, 1},
    {"scan_diag_cuda", "batch=300 variant=1", true, 0}, /* a constant's gradient: summed over chunks of sequences */
    {"scan_diag_chunk_cuda", "batch=300 variant=1", true, 0},
    {"scan_diag_complex_cuda", "batch=300 variant=1", true, 0},
    {"scan_diag_complex_chunk_cuda", "batch=300 variant=1", true, 0},
    {"batch_norm_cuda", "length=201 dim=67", false, 0}, /* a mean and squares about it, chunk by chunk */
    {"batch_norm_cuda", "length=201 dim=1 variant=1", false, 0},
    {"batch_norm_cuda", "batch=17 length=61 dim=33 variant=2", false, 0},
    {"tree_add_cuda", "length=150 blocks=33", true, 0}, /* rows of a table, each cut by the nodes that share it */
    {"tree_add_cuda", "length=201 blocks=5 variant=2", true, 0},
    {"tree_solve_cuda", "length=150 blocks=33", false, 1}, /* a tree of one node has no table, and no launch for it */
    {"tree_solve_cuda", "length=150 blocks=5 variant=4", false, 1},
    {"tree_solve_cuda", "length=201 blocks=3 variant=1", false, 0},
    {"tree_solve_cuda", "batch=300 length=5 blocks=3 variant=3", false, 0},
    {"cross_entropy_cuda", "length=1500 vocab=1 variant=1", false, 1},
    {"cross_entropy_cuda", "length=700 vocab=33 variant=2", false, 0}, /* more partial losses than a block's threads */
    {"step_begin_cuda", "dim=50 out=100", false, 0},
    {"step_begin_cuda", "dim=1000 out=1100", false, 0}, /* likewise */
};
#define N_TWO_STAGES (int)(sizeof two_stages / sizeof *two_stages)

static long launches_so_far(void) {
#ifdef LRNN_CUDA_HOST
    return cuda_host_launches();
#else
    return 0; /* a device does not tell */
#endif
}

/* The scratch of a call that leaves gradients to the end of the walk (kernel->finish). */
static size_t finish_bytes(const struct op_run *r) {
    const struct graph_plan *plan = r->g.plan;
    return plan->finish_buffer < 0 ? 0 : plan->buffers[plan->finish_buffer].used;
}

/* Without partial sums in scratch the test would prove nothing. */
static void expect_partial_sums(const struct kernel *k, const struct trial_op *what, int launches) {
    struct trial_op small = *what;
    struct op_run run_large, run_small;
    char one[64];
    snprintf(one, sizeof one, "batch=1 length=1 dim=1 out=1 variant=%d", (int)what->sizes.variant);
    small.sizes = sizes_at(one);
    ck_assert(run_open(&run_large, what) && run_open(&run_small, &small));
    long before = launches_so_far();
    run_walk(&run_small);
    long between = launches_so_far();
    run_walk(&run_large);
    if (between > before) ck_assert_int_eq(launches_so_far() - between - (between - before), launches);
    bool more = finish_bytes(&run_large) > finish_bytes(&run_small);
    for (enum pass pass = PASS_FORWARD; pass <= PASS_BACKWARD && !more; pass++)
        more = k->workspace(run_large.call, pass) > k->workspace(run_small.call, pass);
    ck_assert(more);
    run_close(&run_large);
    run_close(&run_small);
}

START_TEST(second_stages_add_all_partial_sums) {
    const struct kernel *k = kernel_find(two_stages[_i].kernel);
    struct trial_op what = {.op = k->op,
                            .kernel = k->name,
                            .sizes = sizes_at(two_stages[_i].sizes),
                            .outputs = 1,
                            .guards = true,
                            .place = &own_device};
    expect_same_in_orders(&what, 1, N_ORDERS - 1);
    compare_twin(k, &what);
    if (two_stages[_i].exact) {
        what.fill = FILL_WHOLE;
        compare_twin(k, &what);
    }
    expect_partial_sums(k, &what, two_stages[_i].launches);
}
END_TEST

START_TEST(logits_that_are_not_finite_predict_no_class) {
    expect_no_class("cross_entropy_cuda", &own_device);
}
END_TEST

/* --- scans: in chunks with every m, of which the walks are long for a few alone, and with chunks longer than the
 * least; of all lengths around a turn of the engine ---------------------------------------------------------------- */

/* Three chunks, the last of them short. Less than a turn of stable_gates' and a chain's walks, one, some and a part, in
 * more lanes than a warp has: of chains whose nodes share couplings, and of nodes and samples that have their own. */
static const struct {
    const char *kernel, *sizes;
} numbered[] = {
    {"scan_block_chunk_cuda", "batch=2 length=43 blocks=5 m=%d"},
    {"scan_companion_chunk_cuda", "batch=2 length=43 blocks=5 m=%d"},
    {"scan_companion_chunk_cuda", "batch=2 length=43 blocks=5 m=%d layout=observer"},
    {"stable_gates_cuda", "batch=3 length=%d heads=13 variant=1"},
    {"stable_gates_cuda", "batch=3 length=1%d heads=13 variant=2"},
    {"tree_solve_cuda", "batch=3 length=%d blocks=13 variant=1"},
    {"tree_solve_cuda", "batch=3 length=1%d blocks=13 variant=1"},
    {"tree_solve_cuda", "batch=7 length=1%d blocks=5 variant=6"},
    {"tree_solve_cuda", "batch=7 length=6%d blocks=5 variant=7"},
};
#define N_NUMBERED (int)(sizeof numbered / sizeof *numbered)

static void compare_at(const char *kernel, const char *sizes) {
    const struct kernel *k = kernel_find(kernel);
    struct trial_op what = {
        .op = k->op, .kernel = k->name, .sizes = sizes_at(sizes), .outputs = 1, .guards = true, .place = &own_device};
    compare_twin(k, &what);
    compare_accumulated(k, &what);
}

START_TEST(scans_agree_with_the_reference_from_1_to_8) {
    char sizes[64];
    for (int number = 1; number <= 8; number++) {
        snprintf(sizes, sizeof sizes, numbered[_i].sizes, number);
        compare_at(numbered[_i].kernel, sizes);
    }
}
END_TEST

/* So many channels that chunks are cut at 32 time steps, not 16. */
START_TEST(longer_chunks_agree_with_the_reference) {
    const struct kernel *k = kernel_find("scan_diag_chunk_cuda");
    const char *sizes = "batch=1 length=70 blocks=16000 variant=1";
    struct trial_op what = {
        .op = k->op, .kernel = k->name, .sizes = sizes_at(sizes), .outputs = 1, .guards = true, .place = &own_device};
    struct op_run r;
    ck_assert(run_open(&r, &what));
    size_t lanes = k->workspace(r.call, PASS_FORWARD) / (2 * sizeof(real));
    ck_assert_uint_eq(lanes, 3 * 16000);
    run_close(&r);
    compare_at("scan_diag_chunk_cuda", sizes);
}
END_TEST

#ifdef LRNN_CUDA_HOST

/* --- scans by way of shared memory: one turn, some, more than the ring has ---------------------------------------- */

static const struct {
    const char *kernel, *sizes;
} ringed[] = {
    {"scan_diag_cuda", "batch=3 length=%d blocks=25 variant=1"},
    {"scan_diag_cuda", "batch=3 length=%d blocks=25 variant=0"},
    {"scan_diag_complex_cuda", "batch=3 length=%d blocks=25 variant=1"},
    {"scan_block_cuda", "batch=3 length=%d blocks=13 m=1"},
    {"scan_block_cuda", "batch=3 length=%d blocks=13 m=2"},
    {"scan_block_cuda", "batch=3 length=%d blocks=13 m=5"},
    {"scan_block_cuda", "batch=3 length=%d blocks=13 m=8"},
    {"scan_companion_cuda", "batch=3 length=%d blocks=25 m=1"},
    {"scan_companion_cuda", "batch=3 length=%d blocks=25 m=4"},
    {"scan_companion_cuda", "batch=3 length=%d blocks=25 m=8 layout=observer"},
    {"scan_flow_cuda", "batch=3 length=%d blocks=25 m=3"},
    {"scan_dplr_cuda", "batch=3 length=%d dim=40 m=5"},
    {"scan_hadamard_cuda", "batch=3 length=%d dim=64"},
};
#define SUMS_SHARED 4096 /* bytes: more than sums over rows take, less than a ring */
#define N_RINGED    (int)(sizeof ringed / sizeof *ringed)

/* A device without such copies has the same bits; a walk of one turn needs none. */
START_TEST(rings_change_no_bits) {
    static const int lengths[] = {1, 25, 75, 130};
    struct place old;
    open_place_of(&old, "LRNN_CUDA_HOST_CAPABILITY", "75");
    unsetenv("LRNN_CUDA_HOST_CAPABILITY");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char sizes[96];
        struct op_run ring, plain;
        const struct kernel *k = kernel_find(ringed[_i].kernel);
        snprintf(sizes, sizeof sizes, ringed[_i].sizes, lengths[i]);
        struct trial_op what = {.op = k->op,
                                .kernel = k->name,
                                .sizes = sizes_at(sizes),
                                .outputs = 1,
                                .guards = true,
                                .place = &own_device};
        ck_assert(run_open(&ring, &what));
        cuda_host_most_shared();
        run_walk(&ring);
        ck_assert_int_eq(cuda_host_most_shared() > SUMS_SHARED, lengths[i] > 1);
        what.place = &old;
        ck_assert(run_open(&plain, &what));
        run_walk(&plain);
        ck_assert_uint_lt(cuda_host_most_shared(), SUMS_SHARED);
        expect_same_outputs(&ring, &plain, 0);
        expect_same_gradients(&ring, &plain, 0, -1);
        run_close(&plain);
        run_close(&ring);
    }
    place_close(&old);
}
END_TEST

#endif

/* --- matrix states in chunks: several segments, sizes of trainings, heads that share keys ------------------------- */

/* Devices that take either half of tile_product.cuh: on the host LRNN_CUDA_HOST_CAPABILITY names one. */
static const char *const capabilities[] = {"75", "90"};
#define N_CAPABILITIES (int)(sizeof capabilities / sizeof *capabilities)

static const struct {
    const char *kernel, *sizes;
} matrix_states[] = {
    {"scan_outer_chunk_cuda", "batch=1 length=512 heads=4 dk=64 dv=64 variant=0"},
    {"scan_outer_chunk_cuda", "batch=1 length=130 heads=8 dk=64 dv=64 variant=1"},
    {"scan_outer_chunk_cuda", "batch=1 length=600 heads=4 dk=16 dv=24 variant=3"},
    {"scan_outer_chunk_cuda", "batch=2 length=200 heads=2 dk=33 dv=70 variant=2"},
    {"scan_outer_chunk_cuda", "batch=1 length=81 heads=1 dk=128 dv=128 variant=0"},
    {"scan_outer_chunk_cuda", "batch=1 length=100 heads=2 dk=40 dv=65 variant=3"},
    {"scan_outer_chunk_cuda", "batch=1 length=90 heads=2 dk=64 dv=64 variant=0"},
    {"scan_delta_chunk_cuda", "batch=1 length=512 heads=4 dk=64 dv=64 substeps=1 variant=0"},
    {"scan_delta_chunk_cuda", "batch=1 length=130 heads=8 dk=64 dv=64 substeps=2 variant=1"},
    {"scan_delta_chunk_cuda", "batch=2 length=200 heads=2 dk=33 dv=70 substeps=3 variant=0"},
    {"scan_delta_chunk_cuda", "batch=1 length=81 heads=1 dk=128 dv=128 substeps=1 variant=0"},
    {"scan_delta_chunk_cuda", "batch=2 length=100 heads=2 dk=40 dv=57 substeps=1 variant=0"},
    {"scan_delta_chunk_cuda", "batch=2 length=70 heads=2 dk=64 dv=64 substeps=2 variant=0"},
    {"scan_plstm_chunk_cuda", "batch=1 length=200 heads=2 dk=17 dv=19 m=1"},
    {"scan_plstm_chunk_cuda", "batch=2 length=150 heads=3 dk=33 dv=70 m=2"},
    {"scan_plstm_chunk_cuda", "batch=1 length=512 heads=2 dk=16 dv=24 m=3"},
    {"scan_plstm_chunk_cuda", "batch=1 length=130 heads=2 dk=64 dv=64 m=4"},
};
#define MOST_SHARED_OF_STRIPS ((size_t)64 << 10) /* bytes; a block that computes a whole head has more */
#define N_MATRIX_STATES       (int)(sizeof matrix_states / sizeof *matrix_states)

/* The gate that keeps states, and how many states it couples. */
static struct tensor *keeping_gate(const struct call *c, int64_t *states) {
    *states = c->op == &op_scan_plstm ? scan_plstm_attr(c)->J : 1;
    if (c->op == &op_scan_plstm) return c->in[4];
    return c->in[c->op == &op_scan_outer ? (int)OUTER_DECAY : (int)DELTA_DECAY];
}

/* Random decays leave nothing of a state after a segment. Decays near 1 and -1 carry it across many. */
static void hold_states(struct op_run *r) {
    int64_t J;
    struct tensor *gate = keeping_gate(r->call, &J);
    for (int64_t i = 0; gate && i < tensor_count(gate); i++) {
        double x = value_at(gate, i);
        bool keeps = i / J % J == i % J;
        set_value(gate, i, keeps ? (x < 0 ? -1 : 1) * (1 - 0.01 * fabs(x)) : 0.02 * x);
    }
}

START_TEST(chunked_matrix_states_agree_with_the_reference) {
    const struct kernel *k = kernel_find(matrix_states[_i / N_CAPABILITIES].kernel);
    struct trial_op what = {.op = k->op,
                            .kernel = k->name,
                            .sizes = sizes_at(matrix_states[_i / N_CAPABILITIES].sizes),
                            .outputs = 1,
                            .guards = true,
                            .place = &own_device};
    struct op_run got, want;
    struct place there;
    open_place_of(&there, "LRNN_CUDA_HOST_CAPABILITY", capabilities[_i % N_CAPABILITIES]);
    what.place = &there;
    ck_assert(run_open(&got, &what));
    what.kernel = "reference";
    what.place = NULL;
    ck_assert(run_open(&want, &what));
    hold_states(&got);
    hold_states(&want);
#ifdef LRNN_CUDA_HOST
    cuda_host_most_shared();
#endif
    run_walk(&got);
#ifdef LRNN_CUDA_HOST
    const struct op_sizes *z = &what.sizes;
    int most = k->op == &op_scan_outer ? 80 : k->op == &op_scan_delta && z->substeps <= 2 ? 64 : 0;
    bool whole =
        !REAL_IS_DOUBLE && _i % N_CAPABILITIES == 1 && z->dk > 32 && z->dk <= 64 && z->dv > 32 && z->dv <= most;
    ck_assert_int_eq(cuda_host_most_shared() > MOST_SHARED_OF_STRIPS, whole);
    what.kernel = k->name;
    what.place = &there;
    if (whole && z->length <= 100) expect_same_in_orders(&what, 1, ORDER_WARPS);
#endif
    run_walk(&want);
    expect_same_run(&got, &want, k->tolerance);
    run_close(&got);
    run_close(&want);
    place_close(&there);
}
END_TEST

/* Matrix states: by chunks from a segment on, at widths that fill tiles; else, and where shared memory is too small, by
 * strips. Gated scans: in slices if they are long, have few channels, and keep a device's blocks busy. */
START_TEST(kernels_are_taken_where_they_pay) {
    static const struct {
        const struct op *op;
        const char *sizes, *kernel;
    } choices[] = {
        {&op_scan_outer, "length=64 dk=16 dv=16", "scan_outer_chunk_cuda"},
        {&op_scan_outer, "length=63 dk=16 dv=16", "scan_outer_cuda"},
        {&op_scan_outer, "length=64 dk=8 dv=16", "scan_outer_cuda"},
        {&op_scan_outer, "length=64 dk=16 dv=4", "scan_outer_cuda"},
        {&op_scan_outer, "length=64 dk=600 dv=16", "scan_outer_cuda"},
        {&op_scan_delta, "length=64 dk=16 dv=16 substeps=1", "scan_delta_chunk_cuda"},
        {&op_scan_delta, "length=31 dk=16 dv=16 substeps=2", "scan_delta_cuda"},
        {&op_scan_delta, "length=64 dk=16 dv=16 substeps=17", "scan_delta_cuda"},
        {&op_scan_delta, "length=64 dk=600 dv=16 substeps=1", "scan_delta_cuda"},
        {&op_scan_plstm, "length=64 dk=16 dv=16 m=2", "scan_plstm_chunk_cuda"},
        {&op_scan_plstm, "length=63 dk=16 dv=16 m=2", "scan_plstm_cuda"},
        {&op_scan_plstm, "length=64 dk=64 dv=64 m=16", "scan_plstm_cuda"},
        {&op_scan_diag, "batch=128 length=64 blocks=64", "scan_diag_slice_cuda"},
        {&op_scan_diag, "batch=128 length=63 blocks=64", "scan_diag_cuda"},
        {&op_scan_diag, "batch=128 length=64 blocks=256", "scan_diag_cuda"},
        {&op_scan_diag, "batch=4 length=300 blocks=255", "scan_diag_chunk_cuda"},
        {&op_scan_diag, "batch=4 length=300 blocks=256", "scan_diag_slice_cuda"},
        {&op_scan_block, "batch=128 length=64 blocks=64 m=2", "scan_block_slice_cuda"},
        {&op_scan_block, "batch=128 length=64 blocks=64 m=2 gate=none", "scan_block_cuda"},
        {&op_scan_companion, "batch=64 length=64 blocks=256 m=2 layout=observer", "scan_companion_slice_cuda"},
    };
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        struct trial_op what = {
            .op = choices[i].op, .sizes = sizes_at(choices[i].sizes), .outputs = 1, .place = &own_device};
        struct op_run r;
        ck_assert(run_open(&r, &what));
        ck_assert_str_eq(r.call->kernel->name, choices[i].kernel);
        run_close(&r);
    }
}
END_TEST

/* --- the LSTM's clusters ------------------------------------------------------------------------------------------ */

/* Sizes of trainings, and odd ones; in clusters of 8 to 1 blocks, with values as in a net. */
static const char *const lstm_sizes[] = {
    "batch=9 length=16 dim=128", "batch=128 length=3 dim=64", "batch=3 length=130 dim=31", "batch=5 length=19 dim=129",
    "batch=6 length=7 dim=190",  "batch=1 length=1 dim=1",    "batch=17 length=4 dim=256",
};
#define N_LSTM_SIZES (int)(sizeof lstm_sizes / sizeof *lstm_sizes)

#define LSTM_WIDE (REAL_IS_DOUBLE ? "scan_lstm_cuda" : "scan_lstm_tile_cuda")
static const char *const lstm_kernels[] = {"scan_lstm_cluster_cuda", "scan_lstm_tile_cuda"};

static struct trial_op lstm_trial(const char *sizes) {
    return (struct trial_op){.op = &op_scan_lstm,
                             .kernel = lstm_kernels[0],
                             .sizes = sizes_at(sizes),
                             .outputs = 1,
                             .guards = true,
                             .fill = FILL_NET,
                             .place = &own_device};
}

START_TEST(the_lstm_agrees_at_sizes_of_trainings) {
    struct trial_op what = lstm_trial(lstm_sizes[_i]);
    for (int i = 0; i < 2; i++) {
        const struct kernel *k = kernel_find(what.kernel = lstm_kernels[i]);
        if (kernel_applies(k, &what)) compare_twin(k, &what); /* a device without clusters takes the smallest alone */
    }
}
END_TEST

#ifdef LRNN_CUDA_HOST

/* A device of few multiprocessors has the smallest clusters that do, one of many the largest that pay. */
START_TEST(the_size_of_a_cluster_changes_no_bits) {
    struct trial_op what = lstm_trial(lstm_sizes[_i]), other = what;
    struct place small;
    struct op_run many, few;
    open_place_of(&small, "LRNN_CUDA_HOST_CORES", "1");
    other.place = &small;
    ck_assert(run_open(&many, &what) && run_open(&few, &other));
    run_walk(&many);
    run_walk(&few);
    expect_same_outputs(&few, &many, 0);
    expect_same_gradients(&few, &many, 0, -1);
    run_close(&few);
    run_close(&many);
    place_close(&small);
}
END_TEST

/* Without clusters one block has to hold all recurrent weights. The widest nets and batches go step by step. */
START_TEST(the_lstm_takes_what_the_device_has) {
    static const struct {
        const char *capability, *sizes, *kernel;
    } known[] = {
        {"90", "dim=128", "scan_lstm_cluster_cuda"},
        {"90", "batch=256 dim=129", LSTM_WIDE},
        {"90", "dim=256", LSTM_WIDE},
        {"90", "batch=257 dim=129", "scan_lstm_cuda"},
        {"90", "dim=257", "scan_lstm_cuda"},
        {"89", "dim=30", "scan_lstm_cluster_cuda"},
        {"75", "dim=64", "scan_lstm_cuda"},
        {"75", "dim=25", "scan_lstm_cluster_cuda"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct trial_op what = lstm_trial(known[i].sizes);
        struct place there;
        struct op_run r;
        open_place_of(&there, "LRNN_CUDA_HOST_CAPABILITY", known[i].capability);
        what.kernel = NULL;
        what.place = &there;
        ck_assert(run_open(&r, &what));
        ck_assert_str_eq(r.call->kernel->name, known[i].kernel);
        run_walk(&r);
        run_close(&r);
        place_close(&there);
    }
}
END_TEST

#endif

int cuda_cases(void) {
    return 6 * cuda_kernel_count() + N_TWO_STAGES + N_NUMBERED + N_CAPABILITIES * N_MATRIX_STATES + N_LSTM_SIZES + 5 +
           cuda_run_cases() + cuda_population_cases();
}

static Suite *kernel_suite(const char *name, const TTest *const *tests, int n_tests) {
    Suite *suite = suite_create(name);
    TCase *kernels = tcase_create(name);
    int n = cuda_kernel_count();
    tcase_add_checked_fixture(kernels, own_device_begin, own_device_end);
    for (int i = 0; i < n_tests; i++) tcase_add_loop_test(kernels, tests[i], 0, n);
    suite_add_tcase(suite, kernels);
    return suite;
}

Suite *check_cuda(void);
Suite *check_cuda(void) {
    const TTest *const tests[] = {kernels_agree_with_the_reference, gradients_accumulate};
    Suite *suite = kernel_suite("cuda", tests, 2);
    TCase *larger = tcase_create("larger");
    tcase_add_checked_fixture(larger, own_device_begin, own_device_end);
    tcase_add_test(larger, logits_that_are_not_finite_predict_no_class);
    tcase_add_loop_test(larger, second_stages_add_all_partial_sums, 0, N_TWO_STAGES);
    tcase_add_loop_test(larger, scans_agree_with_the_reference_from_1_to_8, 0, N_NUMBERED);
    tcase_add_test(larger, longer_chunks_agree_with_the_reference);
    tcase_add_loop_test(larger, chunked_matrix_states_agree_with_the_reference, 0, N_CAPABILITIES * N_MATRIX_STATES);
    tcase_add_test(larger, kernels_are_taken_where_they_pay);
    tcase_add_loop_test(larger, the_lstm_agrees_at_sizes_of_trainings, 0, N_LSTM_SIZES);
#ifdef LRNN_CUDA_HOST
    tcase_add_loop_test(larger, rings_change_no_bits, 0, N_RINGED);
    tcase_add_loop_test(larger, the_size_of_a_cluster_changes_no_bits, 0, N_LSTM_SIZES);
    tcase_add_test(larger, the_lstm_takes_what_the_device_has);
#endif
    suite_add_tcase(suite, larger);
    return suite;
}

Suite *check_cuda_order(void);
Suite *check_cuda_order(void) {
    const TTest *const tests[] = {bits_do_not_depend_on_the_order_of_threads, unwanted_gradients_are_left_out,
                                  sequences_and_heads_do_not_depend_on_others};
    return kernel_suite("cuda_order", tests, 3);
}

Suite *check_cuda_short(void);
Suite *check_cuda_short(void) {
    const TTest *const tests[] = {every_kernel_runs};
    return kernel_suite("cuda_short", tests, 1);
}
