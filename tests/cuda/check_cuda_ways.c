/* check_cuda_ways.c - CUDA kernels against their references at sizes at which they go another way than at most others,
 * in every run: those that walk every 23rd size may miss them. */
#include "tests/lib/op_apart.h"

/* Attention: several tiles of keys, of which the last is not whole, heads wider than a tile, one token. Homogeneous
 * recurrences: more steps than a ring has turns, one step, blocks so large that there is none, more pairs of vectors
 * than are summed at once. Maps: several tiles of the weights, several chunks of rows. Matrix states by chunks: heads
 * as wide as a block has shared memory for. Scans in slices: blocks of 32, 16 and 8 lanes, several rounds, of which the
 * last is not whole, fewer slices than a round has. Matrix states by strips: rows that are no multiple of
 * those loaded at once; graphs of more edges and pairs than a warp lists at once. */
static const struct {
    const char *kernel, *sizes;
} ways[] = {
    {"softmax_attention_cuda", "batch=2 length=75 heads=3 dk=35"},
    {"softmax_attention_cuda", "batch=1 length=9 heads=1 dk=256"},
    {"softmax_attention_cuda", "batch=3 length=1 heads=2 dk=5"},
    {"scan_flow_cuda", "batch=2 length=20 blocks=70 m=4"},
    {"scan_flow_cuda", "batch=2 length=11 blocks=3 m=64"},
    {"scan_flow_cuda", "batch=2 length=1 blocks=3 m=2"},
    {"scan_hadamard_cuda", "batch=2 length=11 dim=2048"},
    {"scan_hadamard_cuda", "batch=2 length=1 dim=64"},
    {"scan_dplr_cuda", "batch=2 length=20 dim=300 m=9"},
    {"scan_dplr_cuda", "batch=2 length=1 dim=33 m=5"},
    {"linear_cuda", "batch=3 length=100 dim=133 out=20"},
    {"linear_cuda", "batch=1 length=9 dim=6 out=140"},
    {"scan_diag_slice_cuda", "batch=3 length=700 blocks=5"},
    {"scan_diag_slice_cuda", "batch=2 length=210 blocks=4224"},
    {"scan_diag_complex_slice_cuda", "batch=3 length=300 blocks=5"},
    {"scan_block_slice_cuda", "batch=3 length=210 blocks=7 m=2"},
    {"scan_companion_slice_cuda", "batch=3 length=210 blocks=7 m=2 layout=companion"},
    {"scan_outer_chunk_cuda", "batch=1 length=70 heads=1 dk=64 dv=64"},
    {"scan_delta_chunk_cuda", "batch=1 length=70 heads=1 dk=64 dv=64"},
    {"scan_plstm_chunk_cuda", "batch=1 length=70 heads=1 dk=40 dv=64 m=2"},
    {"scan_outer_cuda", "batch=2 length=10 heads=2 dk=11 dv=5"},
    {"scan_plstm_cuda", "batch=2 length=10 heads=2 dk=11 dv=5 m=3"},
    {"scan_delta_cuda", "batch=2 length=10 heads=2 dk=11 dv=5 substeps=2"},
    {"dag_scan_cuda", "batch=2 length=40 heads=2 dk=39 dv=34"},
};
#define N_WAYS (int)(sizeof ways / sizeof *ways)

START_TEST(kernels_agree_on_every_way) {
    const struct kernel *k = kernel_find(ways[_i].kernel);
    int compared = 0;
    for (int variant = 0; variant < op_variants(k->op); variant++) {
        char sizes[96];
        snprintf(sizes, sizeof sizes, "%s variant=%d", ways[_i].sizes, variant);
        struct trial_op what = {.op = k->op,
                                .kernel = k->name,
                                .sizes = sizes_at(sizes),
                                .outputs = 1,
                                .guards = true,
                                .place = &own_device};
        if (!kernel_applies(k, &what)) continue; /* as scan_delta_chunk_cuda where a decay has channels */
        ck_assert(compare_twin(k, &what));
        if (strstr(k->name, "slice")) compare_alone(k, &what); /* a block has more slices of fewer sequences */
        compared++;
    }
    ck_assert_int_gt(compared, 0);
}
END_TEST

/* Repeats for CUDA what suite `ops` asks of the CPU's kernels. */
START_TEST(activations_agree_on_huge_inputs) {
    const struct kernel *k = kernel_find("activate_cuda");
    for (int variant = 0; variant < op_variants(k->op); variant++) {
        struct trial_op what = {
            .op = k->op, .kernel = k->name, .sizes = sizes_at("length=8"), .outputs = 1, .place = &own_device};
        what.sizes.variant = variant;
        what.scale = REAL_IS_DOUBLE ? 1e200 : 1e21;
        what.may_overflow = true;
        compare_twin(k, &what);
    }
}
END_TEST

Suite *check_cuda_ways(void);
Suite *check_cuda_ways(void) {
    Suite *suite = suite_create("cuda_ways");
    TCase *tests = tcase_create("ways");
    tcase_add_checked_fixture(tests, own_device_begin, own_device_end);
    tcase_add_loop_test(tests, kernels_agree_on_every_way, 0, N_WAYS);
    tcase_add_test(tests, activations_agree_on_huge_inputs);
    suite_add_tcase(suite, tests);
    return suite;
}
