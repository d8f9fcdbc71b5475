/* check_forced.c - a forced kernel (--kernel) reaches every graph of a run, one that has nothing to compute there is
 * refused, and the record names the kernels that ran. */
#include <stdlib.h>
#include <string.h>

#include "harness/study/study.h"
#include "harness/study/graphs.h"
#include "harness/run/trainer.h"
#include "harness/store/record_files.h"
#include "kernels/kernel.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"

static void begin(void) {
    start_kernels();
    program_begin();
}

static void open_forced(struct trainer *t, struct setup *s) {
    struct error e = {0};
    ck_assert_msg(trainer_create(t, s, &e) == ST_OK, "%s", e.text);
}

START_TEST(the_reference_computes_every_graph) {
    struct setup *s = small_run(program_folder, "swiglu", "bdlru:m=2,blocks=5", "kernel", "reference");
    struct trainer t;
    int calls = 0, updates = 0;
    open_forced(&t, s);
    struct graph_list graphs = trainer_graphs(&t);
    for (int g = 0; g < graphs.n; g++)
        for (int i = 0; i < graphs.list[g]->n_calls; i++) {
            const struct call *c = &graphs.list[g]->calls[i];
            ck_assert_msg(c->kernel->reference, "graph %d: %s", g, c->kernel->name);
            updates += c->op == &op_adamw || c->op == &op_step_begin;
            calls++;
        }
    ck_assert_int_eq(graphs.n, 3);
    ck_assert_int_eq(updates, 2);
    ck_assert_int_gt(calls, 20);
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

static const char *const alone[] = {"adamw_ref", "step_begin_ref", "scan_block_ref", "linear_ref"};

/* Whatever graph its op is in; all other calls keep the kernel that they have unasked. */
START_TEST(a_kernel_is_forced_for_its_op_alone) {
    struct setup *plain = small_run(program_folder, "swiglu", "bdlru:m=2,blocks=5", NULL, NULL);
    struct setup *s = small_run(program_folder, "swiglu", "bdlru:m=2,blocks=5", "kernel", alone[_i]);
    const struct kernel *forced = kernel_find(alone[_i]);
    struct trainer a, b;
    int taken = 0;
    open_forced(&a, plain);
    open_forced(&b, s);
    struct graph_list want = trainer_graphs(&a), got = trainer_graphs(&b);
    for (int g = 0; g < got.n; g++)
        for (int i = 0; i < got.list[g]->n_calls; i++) {
            const struct call *c = &got.list[g]->calls[i], *unasked = &want.list[g]->calls[i];
            ck_assert_ptr_eq(c->kernel, c->op == forced->op ? forced : unasked->kernel);
            taken += c->kernel == forced;
        }
    ck_assert_int_gt(taken, 0);
    trainer_free(&a);
    trainer_free(&b);
    small_run_free(plain);
    small_run_free(s);
}
END_TEST

#define SMALL "s3:n_train=96,n_val=32,n_test=32,length=4 --dim 8 --quiet --threads 1 --epochs 1 "

static const struct {
    const char *flags, *says;
} refused[] = {
    {"lru --kernel scan_block_cpu",
     "model lru does not have; take 'reference', or a kernel of one of its ops: embedding, rmsnorm, activate, "},
    {"lru --kernel adamw_rfe", "unknown kernel 'adamw_rfe'; did you mean 'adamw_ref'?"},
    {"lru --kernel nothing-like-it", "unknown kernel 'nothing-like-it'; `lrnn list kernels` names what there is"},
    {"lru --kernel take_batch_ref", "--kernel take_batch_ref computes op take_batch, which a run of "},
    {"deltaproduct:heads=2,steps=17 --kernel scan_delta_chunk",
     "scan_delta_chunk does not apply: a token has more than 16"},
};
#define N_REFUSED ((int)(sizeof refused / sizeof *refused))

/* Refuses it for a run and for a bench, there before anything runs, so that no row tells of it. */
START_TEST(a_kernel_with_nothing_to_compute_is_refused) {
    const char *flags = strchr(refused[_i].flags, ' ');
    char line[1024];
    snprintf(line, sizeof line, "train " SMALL "%s --out %s", refused[_i].flags, program_folder);
    expect_status(run(line), 2, line);
    expect_text(err, refused[_i].says, line);
    snprintf(line, sizeof line, "bench " SMALL "--no-plots --models '%.*s'%s --out %s",
             (int)(flags - refused[_i].flags), refused[_i].flags, flags, program_folder);
    expect_status(run(line), 2, line);
    expect_text(err, refused[_i].says, line);
    ck_assert_int_eq(scratch_count(program_folder, ".json"), 0);
}
END_TEST

static const struct {
    const char *flags, *has, *lacks;
} recorded[] = {
    {"", " scan_block_cpu ", "_ref"},
    {" --kernel adamw_ref", " adamw_ref, oneDNN ", "adamw_cpu"}, /* LRNN is the float build, here as there */
    {" --kernel reference", " adamw_ref, oneDNN ", "_cpu"},
};

START_TEST(the_record_names_the_kernels_that_ran) {
    char line[1024];
    struct record_set set;
    struct error e;
    snprintf(line, sizeof line, "train " SMALL "bdlru:m=2,blocks=4 --out %s%s", program_folder, recorded[_i].flags);
    expect_status(run(line), 0, line);
    ck_assert_msg(records_load(&set, program_folder, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(set.n, 1);
    expect_text(set.list[0].run.kernel, recorded[_i].has, line);
    ck_assert_msg(!strstr(set.list[0].run.kernel, recorded[_i].lacks), "%s", set.list[0].run.kernel);
    records_free(&set);
}
END_TEST

static const char *const counted[] = {SMALL_TASK, "a5-slice:length=3,n_train=300,n_val=20,n_test=20"};

/* Also where every step learns from strings of another length besides. */
START_TEST(a_plan_counts_the_flops_of_the_graphs_that_run) {
    struct setup *s = small_run_of(counted[_i], program_folder, "swiglu", "bdlru:m=2,blocks=5", NULL, NULL);
    struct trainer t;
    struct error e = {0};
    struct estimate size;
    open_forced(&t, s);
    ck_assert_msg(graphs_estimate(&s->spec, &s->shapes, &size, &e) == ST_OK, "%s", e.text);
    double step = graph_cost(&t.train, PASS_FORWARD).flops + graph_cost(&t.train, PASS_BACKWARD).flops;
    ck_assert_double_eq(size.flops, step * (double)s->shapes.steps);
    ck_assert_uint_eq(size.memory, t.train.plan->bytes);
    ck_assert_int_eq(t.nets.second.input != NULL, _i == 1);
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

START_TEST(names_without_room_are_an_error) {
    struct setup *s = small_run(program_folder, "swiglu", "bdlru:m=2,blocks=5", NULL, NULL);
    struct trainer t;
    struct error e = {0};
    char text[20];
    open_forced(&t, s);
    struct graph_list graphs = trainer_graphs(&t);
    ck_assert_int_eq(graphs_kernels(&graphs, text, sizeof text, &e), ST_FAIL);
    expect_text(e.text, "over 19 characters", "graphs_kernels");
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

Suite *check_forced(void);
Suite *check_forced(void) {
    Suite *suite = suite_create("forced");
    TCase *tests = tcase_create("forced");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, program_end);
    tcase_add_test(tests, the_reference_computes_every_graph);
    tcase_add_loop_test(tests, a_kernel_is_forced_for_its_op_alone, 0, (int)(sizeof alone / sizeof *alone));
    tcase_add_loop_test(tests, a_kernel_with_nothing_to_compute_is_refused, 0, N_REFUSED);
    tcase_add_loop_test(tests, the_record_names_the_kernels_that_ran, 0, (int)(sizeof recorded / sizeof *recorded));
    tcase_add_loop_test(tests, a_plan_counts_the_flops_of_the_graphs_that_run, 0,
                        (int)(sizeof counted / sizeof *counted));
    tcase_add_test(tests, names_without_room_are_an_error);
    suite_add_tcase(suite, tests);
    return suite;
}
