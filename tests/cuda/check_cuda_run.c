/* check_cuda_run.c - whole runs on a device, or on the host (cuda_host.h): the CPU's training within a stated bound,
 * the same bits from run to run whether steps are walked or replayed, case files, records, and everything that can go
 * wrong. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/graph_walk.h"
#include "harness/run/checkpoint.h"
#include "harness/run/trainer.h"
#include "harness/run/verify.h"
#include "tests/cuda/cuda_cases.h"
#include "tests/cuda/cuda_mixers.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"

/* On the host a step takes a thousand times as long as on a device. */
#ifdef LRNN_CUDA_HOST
#define ON_HOST     true
#define TRACE_STEPS 10
#else
#define ON_HOST     false
#define TRACE_STEPS 50
#endif

/* Relative tolerance of the loss after any of these steps: the two devices add in different orders, and training
 * amplifies rounding. On the host 2e-6 is seen in float, 4e-15 in double. */
#define TRACE_BOUND (REAL_IS_DOUBLE ? 1e-11 : 1e-4)

static const char *const models[] = {"bdlru:m=3,blocks=5",     "bdlru:m=8,blocks=3,gate=sigmoid",
                                     "bdlru:m=2,selective=no", "hlru:m=2,channels=7,layout=observer",
                                     "hlru:m=4,channels=8",    "lru:state=6"};
#define N_MODELS  (int)(sizeof models / sizeof *models)
#define N_RESUMED 1 /* what is resumed does not depend on the model */

static void begin(void) {
    start_kernels();
    program_begin();
}

static struct setup *device_run(const char *model, const char *mlp, const char *flag, const char *value) {
    struct setup *s = smaller_run(program_folder, mlp, model, flag, value);
    snprintf(s->spec.config.device, sizeof s->spec.config.device, "cuda");
    s->spec.config.quiet = true;
    return s;
}

static void open_trainer(struct trainer *t, const struct setup *s) {
    struct error e = {ST_OK, ""};
    ck_assert_msg(trainer_create(t, s, &e) == ST_OK, "%s", e.text);
}

static void open_trained(struct trainer *t, const struct setup *s) {
    open_trainer(t, s);
    for (int i = 0; i < 4; i++) trainer_step(t);
}

static void settle(struct trainer *t) {
    struct error e = {ST_OK, ""};
    ck_assert_msg(trainer_sync(t, &e) == ST_OK, "%s", e.text);
}

/* --- training ----------------------------------------------------------------------------------------------------- */

static void expect_training_of_the_cpu(const char *model, const char *mlp) {
    struct setup *there = device_run(model, mlp, "dropout", "0.1");
    struct setup *here = smaller_run(program_folder, mlp, model, "dropout", "0.1");
    struct trainer a, b;
    open_trainer(&a, there);
    open_trainer(&b, here);
    for (int step = 0; step < TRACE_STEPS; step++) {
        trainer_step(&a);
        trainer_step(&b);
        settle(&a);
        double bound = TRACE_BOUND * fmax(1, fabs(b.state.loss));
        ck_assert_msg(fabs(a.state.loss - b.state.loss) <= bound, "%s: loss of step %d is %.9g, on the CPU %.9g", model,
                      step, a.state.loss, b.state.loss);
    }
    struct scores sa, sb;
    trainer_evaluate(&a, SPLIT_VAL, &sa);
    trainer_evaluate(&b, SPLIT_VAL, &sb);
    expect_near(sa.loss, sb.loss, 10 * TRACE_BOUND, "validation loss");
    ck_assert_int_eq(sa.sequences, sb.sequences);
    trainer_free(&a);
    trainer_free(&b);
    small_run_free(there);
    small_run_free(here);
}

START_TEST(training_is_that_of_the_cpu) {
    expect_training_of_the_cpu(models[_i], _i % 2 ? "gelu" : "swiglu");
}
END_TEST

/* The block as the host sees it, copied. */
static real *block_of(const struct trainer *t, real *block) {
    return copy_reals(params_fetch(&t->params, block), t->params.floats);
}

static void expect_same_trainers(struct trainer *a, struct trainer *b) {
    settle(a);
    settle(b);
    real *blocks[2][3] = {{a->params.value, a->params.moment1, a->params.moment2},
                          {b->params.value, b->params.moment1, b->params.moment2}};
    for (int i = 0; i < 3; i++) {
        real *x = block_of(a, blocks[0][i]), *y = block_of(b, blocks[1][i]);
        expect_same_bits(x, y, a->params.floats, "a block of the parameters");
        free(x);
        free(y);
    }
    ck_assert_int_eq(a->state.step, b->state.step);
    ck_assert(a->state.loss == b->state.loss && a->state.loss_sum == b->state.loss_sum);
}

/* The second trainer's first step after the checkpoint is walked where the other one replays. */
START_TEST(resumed_equals_uninterrupted) {
    struct setup *s = device_run(models[_i], "swiglu", "dropout", "0.1");
    struct trainer whole, first, second;
    struct error e = {ST_OK, ""};
    struct run_progress p = {.curve = calloc(64, sizeof *p.curve), .curve_capacity = 64, .solved_step = -1};
    bool found;
    open_trained(&whole, s);
    open_trained(&first, s);
    open_trainer(&second, s);
    for (int i = 4; i < 9; i++) trainer_step(&whole);
    settle(&first);
    ck_assert_msg(checkpoint_write(&first, &p, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(checkpoint_read(&second, &p, &found, &e) == ST_OK && found, "%s", e.text);
    expect_same_trainers(&first, &second);
    for (int i = 4; i < 9; i++) trainer_step(&second);
    expect_same_trainers(&whole, &second);
    ck_assert_ptr_nonnull(whole.capture);
    trainer_free(&whole);
    trainer_free(&first);
    trainer_free(&second);
    free(p.curve);
    small_run_free(s);
}
END_TEST

/* Batches that a device takes out of its own data are those that the feeder would have sent: epochs that end within a
 * batch, strings of another length, one label per sequence. */
static void expect_batch(const struct graph *g, const struct net *net, const struct batch *want, int64_t step) {
    const struct {
        const struct tensor *got;
        const void *want;
    } arrays[] = {{net->input, batch_row(want, 0)}, {net->targets, want->targets}, {net->lengths, want->lengths}};
    for (int i = 0; i < 3; i++) {
        if (!arrays[i].got) continue;
        size_t bytes = tensor_bytes(arrays[i].got);
        char *got = malloc(bytes);
        ck_assert_ptr_nonnull(got);
        graph_get(g, arrays[i].got, got);
        ck_assert_msg(!memcmp(got, arrays[i].want, bytes), "array %d of step %lld differs from the host's", i,
                      (long long)step);
        free(got);
    }
}

START_TEST(batches_out_of_the_device_are_the_feeders) {
    static const char *const tasks[] = {SMALL_TASK, "a5-slice:length=3,n_train=300,n_val=20",
                                        "listops:min_length=4,max_length=12,n_train=130,n_val=20,n_test=20",
                                        "shapes:size=12,n_train=130,n_val=20,n_test=20"};
    struct setup *s = small_run_of(tasks[_i], program_folder, "gelu", "bdlru:m=2,blocks=4", "device", "cuda");
    struct trainer t;
    struct feeder feeder = {0};
    struct error e = {ST_OK, ""};
    open_trainer(&t, s);
    ck_assert_ptr_eq(t.batches.way, &way_resident);
    ck_assert_msg(feeder_start(&feeder, &s->spec, &s->shapes, &e) == ST_OK, "%s", e.text);
    for (int step = 0; step < 8; step++) {
        t.state.step = step;
        trainer_set_state(&t);
        batches_take(&t.batches, t.live);
        const struct step_batches *want = feeder_take(&feeder, step);
        expect_batch(&t.train, &t.nets.main, &want->main, step);
        if (want->second.B) expect_batch(&t.train, &t.nets.second, &want->second, step);
    }
    feeder_stop(&feeder);
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

START_TEST(evaluation_examples_lie_on_the_device) {
    static const char *const tasks[] = {
        "parity:max_length=9,eval_min_length=10,eval_max_length=20,n_train=130,n_val=300,n_test=130",
        "listops:min_length=4,max_length=12,n_train=130,n_val=300,n_test=20",
        "shapes:size=12,n_train=130,n_val=300,n_test=20"};
    struct setup *s = small_run_of(tasks[_i], program_folder, "gelu", "bdlru:m=2,blocks=4", "device", "cuda");
    struct trainer t;
    open_trainer(&t, s);
    for (int64_t first = 0; first < 300; first += s->spec.config.batch) {
        struct batch want;
        split_store_select(&t.val, first, &t.eval_net, &want);
        expect_batch(&t.eval, &t.eval_net, &want, first);
    }
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

/* A run too short to see all examples has its batches sent: the same bits as the first steps of a longer one. */
START_TEST(sent_batches_give_the_same_bits) {
    struct setup *s[] = {device_run(models[0], "swiglu", NULL, NULL), device_run(models[0], "swiglu", "steps", "2")};
    struct trainer whole, sent;
    open_trainer(&whole, s[0]);
    open_trainer(&sent, s[1]);
    ck_assert(whole.batches.way == &way_resident && sent.batches.way == &way_sent);
    for (int i = 0; i < 2; i++) {
        trainer_step(&whole);
        trainer_step(&sent);
    }
    expect_same_trainers(&whole, &sent);
    trainer_free(&whole);
    trainer_free(&sent);
    for (int i = 0; i < 2; i++) small_run_free(s[i]);
}
END_TEST

/* A kernel of the graph that takes batches is one of the run's, if the run has that graph. */
START_TEST(a_forced_kernel_reaches_the_resident_data) {
    struct setup *whole = device_run(models[0], "swiglu", "kernel", "take_batch_cuda");
    struct setup *sent = device_run(models[0], "swiglu", "kernel", "take_batch_cuda");
    struct trainer a, b;
    struct error e = {ST_OK, ""};
    struct estimate size;
    open_trainer(&a, whole);
    struct graph_list graphs = trainer_graphs(&a);
    ck_assert_int_eq(graphs.n, 4);
    ck_assert_str_eq(graphs.list[3]->calls[0].kernel->name, "take_batch_cuda");
    ck_assert_msg(graphs_estimate(&whole->spec, &whole->shapes, &size, &e) == ST_OK && size.flops > 0, "%s", e.text);
    sent->shapes.steps = 2;
    ck_assert_int_eq(trainer_create(&b, sent, &e), ST_USAGE);
    expect_text(e.text, "--kernel take_batch_cuda computes op take_batch, which a run of ",
                "a run whose batches are sent");
    ck_assert_int_eq(graphs_estimate(&sent->spec, &sent->shapes, &size, &e), ST_USAGE);
    trainer_free(&a);
    trainer_free(&b);
    small_run_free(whole);
    small_run_free(sent);
}
END_TEST

START_TEST(divergence_freezes_the_step_it_happens_in) {
    struct setup *s = device_run("bdlru:m=2,blocks=3", "swiglu", "lr", "1e6");
    struct trainer t;
    open_trainer(&t, s);
    real *value = params_fetch(&t.params, t.params.value);
    value[params_find(&t.params, "embedding")->offset] = (real)NAN;
    value[params_find(&t.params, "embedding")->offset + 1] = (real)INFINITY;
    params_store(&t.params, t.params.value);
    for (int i = 0; i < 5; i++) trainer_step(&t);
    settle(&t);
    ck_assert_int_eq(t.state.frozen, 1);
    ck_assert_int_eq(t.state.frozen_step, 0);
    ck_assert_int_eq(t.state.step, 5);
    ck_assert_str_eq(trainer_find_nonfinite(&t, 0), "embedding");
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

/* --- cases -------------------------------------------------------------------------------------------------------- */

START_TEST(case_files_are_met) {
    char line[128];
    snprintf(line, sizeof line, "verify --device cuda tests/cases/*-%s-*.safetensors", mixers[_i]);
    expect_status(run(line), 0, line);
    ck_assert_msg(strstr(out, " pass\n") && !strstr(out, "skipped"), "%s:\n%.2000s", line, out);
}
END_TEST

/* --- the program -------------------------------------------------------------------------------------------------- */

#define SMALL "s3:n_train=96,n_val=32,n_test=32,length=4 --dim 8 --quiet --threads 1 "

static const char *in_folder(const char *text) {
    static char line[1024];
    snprintf(line, sizeof line, "%s --out %s/results", text, program_folder);
    return line;
}

static char *rows_of_runs(void) {
    char path[SCRATCH_BYTES + 64], line[SCRATCH_BYTES + 64];
    size_t size;
    snprintf(line, sizeof line, "report --to %s/tables", program_folder);
    expect_status(run(in_folder(line)), 0, line);
    snprintf(path, sizeof path, "%s/tables/runs.csv", program_folder);
    return slurp(path, &size);
}

START_TEST(a_run_is_recorded_with_its_device) {
    const char *const devices[] = {"cuda", "cuda", "cuda:0", "cpu"};
    for (int i = 0; i < 4; i++) { /* another device of a kind is the same run, another kind another run */
        char line[256];
        snprintf(line, sizeof line, "train " SMALL " bdlru:m=2,blocks=4 --epochs 2 --batch 32 --device %s", devices[i]);
        expect_status(run(in_folder(line)), 0, line);
    }
    char *rows = rows_of_runs();
    int lines = 0;
    for (const char *c = rows; *c; c++) lines += *c == '\n';
    ck_assert_msg(lines == 3 && strstr(rows, ",cuda,") && strstr(rows, ",cpu,") && strstr(rows, "CUDA driver"), "%s",
                  rows);
    free(rows);
}
END_TEST

START_TEST(speed_is_measured_and_written) {
    const char *line = in_folder("perf device --small --seconds 0");
    expect_status(run(line), 0, line);
    static const char *const wanted[] = {"copy,copy_kernel", "scan_block_cuda", "scan_diag", "step,walked",
                                         "step,replayed"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) expect_text(out, wanted[i], line);
    char path[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/results", program_folder);
    ck_assert_int_eq(scratch_count(path, ".csv"), 1);
    expect_status(run("perf device --device cpu"), 2, "perf device --device cpu");
}
END_TEST

/* Launches of a step of BD-LRU. Of 256 rows, so that sums over rows are made of two chunks. */
static int launches_in(const char *precision) {
    char line[128], model[32];
    int calls, launches;
    snprintf(line, sizeof line, "perf launches bdlru:m=5,blocks=4 --dim 16 --batch 4 --length 64 --precision %s",
             precision);
    expect_status(run(line), 0, line);
    const char *row = strstr(out, "| bdlru");
    ck_assert_msg(row && sscanf(row, "| %31s | %d | %d |", model, &calls, &launches) == 3, "%s", out);
    ck_assert_int_eq(calls, 31);
    expect_text(out, precision, line);
    return launches;
}

/* Exactly as many as docs/gpu.md says of BD-LRU: one more is a step that is slower, one less is to be written there.
 * On a device cuBLAS may cut a product in two launches, or have none that adds a bias. */
START_TEST(launches_of_a_step_are_counted) {
    static const struct {
        const char *precision;
        int launches;
    } known[] = {{REAL_NAME, REAL_IS_DOUBLE ? 41 : 31}, {"tf32", 32}, {"bf16", 32}};
    for (int i = 0; i < (REAL_IS_DOUBLE ? 1 : 3); i++) {
        int launches = launches_in(known[i].precision);
        bool as_known = ON_HOST ? launches == known[i].launches : launches >= known[i].launches;
        ck_assert_msg(as_known, "%d launches in %s, not %d", launches, known[i].precision, known[i].launches);
    }
    expect_status(run("perf launches xlstm:heads=2 --dim 16 --batch 4 --length 8"), 0, "xlstm");
    expect_text(out, "| xlstm:heads=2, 2 layers |", "perf launches");
    expect_status(run("perf launches bdlur"), 2, "perf launches bdlur");
    expect_text(err, "unknown model 'bdlur'", "perf launches bdlur");
}
END_TEST

START_TEST(a_kernel_of_the_cpu_is_not_forced_on_a_device) {
    static const char other[] =
        "--kernel scan_block_ref computes op scan_block on a CPU and the run is on --device cuda";
    static const char *const refused[][2] = {
        {"train " SMALL " bdlru --kernel reference", "--kernel reference: the references run on the CPU alone"},
        {"train " SMALL " bdlru --kernel scan_block_ref", other},
        {"bench " SMALL "--models bdlru --kernel scan_block_ref", other}};
    char line[512];
    snprintf(line, sizeof line, "%s --device cuda", refused[_i][0]);
    expect_status(run(in_folder(line)), 2, line);
    expect_text(err, refused[_i][1], line);
}
END_TEST

START_TEST(a_device_that_does_not_exist_is_said) {
    static const char *const commands[] = {"train ", "bench "};
    for (int i = 0; i < 2; i++) {
        char line[512];
        snprintf(line, sizeof line, "%s" SMALL " %s --device cuda:77", commands[i], i ? "" : "bdlru");
        expect_status(run(in_folder(line)), 6, line);
        expect_text(err, "cuda:77: this machine has", line);
    }
}
END_TEST

#ifdef LRNN_CUDA_HOST

START_TEST(what_a_device_lacks_is_said) {
    static const struct {
        const char *variable, *value, *text;
    } lacks[] = {{"LRNN_CUDA_HOST_DEVICES", "0", "--device cuda: no device"},
                 {"LRNN_CUDA_HOST_CAPABILITY", "70", "of compute capability 7.0; the kernels need 7.5 or newer"},
                 {"LRNN_CUDA_HOST_MEMORY", "80000000", "MB of device memory"}};
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
        const char *line = in_folder("train " SMALL " bdlru --batch 20000 --device cuda");
        setenv(lacks[i].variable, lacks[i].value, 1);
        expect_status(run(line), 6, line);
        expect_text(err, lacks[i].text, line);
        unsetenv(lacks[i].variable);
    }
}
END_TEST

/* A device that died since the latest checkpoint gives nothing that could replace it. */
START_TEST(a_dead_device_leaves_the_checkpoint_alone) {
    struct setup *s = device_run(models[0], "swiglu", NULL, NULL);
    struct trainer t;
    struct error e = {ST_OK, ""};
    struct run_progress p = {.curve = calloc(64, sizeof *p.curve), .curve_capacity = 64, .solved_step = -1};
    char path[SCRATCH_BYTES + 128];
    size_t size[2];
    snprintf(path, sizeof path, "%s/checkpoints/%s.ckpt", program_folder, s->id.run_id);
    open_trainer(&t, s);
    trainer_step(&t);
    settle(&t);
    ck_assert_msg(checkpoint_write(&t, &p, &e) == ST_OK, "%s", e.text);
    char *before = slurp(path, &size[0]);
    setenv("LRNN_CUDA_HOST_FAIL", "1", 1);
    trainer_step(&t);
    ck_assert_int_eq(checkpoint_write(&t, &p, &e), ST_DEVICE);
    ck_assert_msg(strstr(e.text, "illegal memory access") != NULL, "%s", e.text);
    unsetenv("LRNN_CUDA_HOST_FAIL");
    char *after = slurp(path, &size[1]);
    ck_assert(size[0] == size[1] && !memcmp(before, after, size[0]));
    free(before);
    free(after);
    free(p.curve);
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

/* Waiting for each kernel, or walking because one wants to or has to, changes no bit; nothing is captured then. */
START_TEST(walked_steps_give_the_same_bits) {
    static const char *const reasons[][2] = {
        {"LRNN_CUDA_SYNC", "1"}, {"LRNN_CUDA_GRAPH", "0"}, {"LRNN_CUDA_HOST_NO_GRAPH", "1"}};
    struct setup *s = device_run(models[0], "swiglu", "dropout", "0.1");
    struct trainer a, b;
    setenv("LRNN_CUDA_OVERLAP", "0", 1); /* in branches */
    open_trained(&a, s);
    setenv(reasons[_i][0], reasons[_i][1], 1);
    open_trained(&b, s);
    ck_assert(a.capture && !b.capture);
    ck_assert(!*place_capture_failure(&b.place) == (_i < 2));
    expect_same_trainers(&a, &b);
    trainer_free(&a);
    trainer_free(&b);
    small_run_free(s);
}
END_TEST

/* Steps with launches that overlap or branch equal steps with launches in a row. */
START_TEST(launches_in_any_order_give_the_same_bits) {
    struct setup *s = device_run(models[0], "swiglu", "precision", _i / 2 ? "tf32" : REAL_NAME);
    struct trainer a, b;
    setenv("LRNN_CUDA_OVERLAP", "0", 1);
    setenv("LRNN_CUDA_BRANCHES", "0", 1);
    open_trained(&a, s);
    unsetenv(_i % 2 ? "LRNN_CUDA_BRANCHES" : "LRNN_CUDA_OVERLAP");
    open_trained(&b, s);
    ck_assert(a.capture && b.capture);
    expect_same_trainers(&a, &b);
    trainer_free(&a);
    trainer_free(&b);
    small_run_free(s);
}
END_TEST

/* A device that does nothing before somebody waits for it: what the host overwrites or reads too early differs. Its
 * memory is out of the host's reach meanwhile. */
START_TEST(lazy_steps_give_the_same_bits) {
    struct setup *s = device_run(models[0], "swiglu", _i % 2 ? "steps" : NULL, "4");
    struct trainer a, b;
    struct scores sa, sb;
    if (_i / 2) setenv("LRNN_CUDA_OVERLAP", "0", 1); /* then in branches */
    open_trained(&a, s);
    trainer_evaluate(&a, SPLIT_VAL, &sa);
    setenv("LRNN_CUDA_HOST_LAZY", "1", 1);
    setenv("LRNN_CUDA_HOST_PROTECT", "1", 1);
    open_trained(&b, s);
    trainer_evaluate(&b, SPLIT_VAL, &sb);
    ck_assert(sa.loss == sb.loss);
    expect_same_trainers(&a, &b);
    trainer_free(&a);
    trainer_free(&b);
    small_run_free(s);
}
END_TEST

/* If cuBLAS has no product that adds a bias or sums its gradient, launches of our own do it. */
START_TEST(biases_are_added_without_epilogues) {
    setenv("LRNN_CUDA_HOST_NO_EPILOGUES", ((const char *[]){"1", "2", "3"})[_i - 1], 1);
    ck_assert_int_eq(launches_in(REAL_NAME), REAL_IS_DOUBLE ? 41 : 33);
    if (!REAL_IS_DOUBLE) ck_assert_int_eq(launches_in("tf32"), 34);
    expect_training_of_the_cpu(models[1], "gelu");
}
END_TEST

/* A capture that is invalid before its branches part does nothing: neither on the stream it began on nor beside it. */
START_TEST(a_capture_that_is_lost_has_done_nothing) {
    struct setup *s = device_run(models[0], "swiglu", NULL, NULL);
    struct trainer t;
    long launches[3];
    setenv("LRNN_CUDA_OVERLAP", "0", 1); /* what overlaps has no branches */
    open_trainer(&t, s);
    setenv("LRNN_CUDA_HOST_NO_GRAPH", "3", 1);
    for (int i = 0; i < 3; i++) {
        trainer_step(&t); /* walked; walked after captures that fail; walked */
        ck_assert(!t.capture && place_wait(&t.place, NULL) == ST_OK);
        launches[i] = cuda_host_launches();
    }
    ck_assert_int_eq(launches[1] - launches[0], launches[2] - launches[1]);
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

/* If a graph takes neither launches that overlap nor branches, the step is captured without them. */
START_TEST(a_capture_that_fails_is_said_and_the_run_goes_on) {
    static const char *const said[] = {"", ", so every step launches its kernels again",
                                       " with overlapping launches and is captured without them"};
    const char *line = in_folder("train " SMALL " bdlru:m=2,blocks=4 --epochs 2 --batch 32 --device cuda");
    char wanted[128], *rows;
    snprintf(wanted, sizeof wanted, "cuda: the step cannot be captured%s, which is slower: ", said[_i]);
    setenv("LRNN_CUDA_HOST_NO_GRAPH", _i == 1 ? "1" : "2", 1);
    expect_status(run(line), 0, line);
    expect_text(err, wanted, line);
    expect_text(err, "cudaGraphInstantiate", line);
    ck_assert_ptr_null(strstr(strstr(err, "cannot be") + 1, "cannot be"));
    expect_text(rows = rows_of_runs(), _i == 1 ? ",1,0\n" : ",0,0\n", "runs.csv"); /* walked, beside */
    free(rows);
}
END_TEST

/* The first run needs more than there is; the second does not. */
START_TEST(running_out_of_memory_is_a_row) {
    const char *line = in_folder("bench " SMALL " --device cuda --profile smoke --models 'bdlru:m=8,blocks=2000 "
                                 "bdlru:m=1,blocks=4' --epochs 1 --no-plots --no-speed");
    setenv("LRNN_CUDA_HOST_MEMORY", "130000000", 1);
    expect_status(run(line), 0, line);
    char *rows = rows_of_runs();
    ck_assert_msg(strstr(rows, ",oom,") && strstr(rows, ",ok,"), "%s", rows);
    free(rows);
}
END_TEST

/* A kernel fails in the middle of the first run; the second has a process, and a device, of its own. In a population
 * the run would be done again alone (check_cuda_population.c), which this kernel lets pass. */
START_TEST(a_kernel_failure_is_a_row_and_the_sweep_goes_on) {
    char once[SCRATCH_BYTES + 16];
    snprintf(once, sizeof once, "%s/once", program_folder);
    spill(once, "", 0);
    setenv("LRNN_CUDA_HOST_FAIL", "200", 1);
    setenv("LRNN_CUDA_HOST_FAIL_ONCE", once, 1);
    const char *line =
        in_folder("bench " SMALL " --device cuda --population 1 --profile smoke --models 'bdlru:m=3,blocks=4 "
                  "bdlru:m=1,blocks=4' --epochs 3 --no-plots --no-speed");
    expect_status(run(line), 0, line);
    char *rows = rows_of_runs();
    ck_assert_msg(strstr(rows, ",error,") && strstr(rows, ",ok,"), "%s", rows);
    ck_assert_msg(strstr(rows, "illegal memory access") && strstr(rows, ".cu:"), "%s", rows);
    free(rows);
}
END_TEST

#endif

int cuda_run_cases(void) {
    return N_MODELS + N_RESUMED + 4 + 3 + 8 + N_MIXERS;
}

Suite *check_cuda_run(void);
Suite *check_cuda_run(void) {
    Suite *suite = suite_create("cuda_run");
    TCase *tests = tcase_create("runs");
    tcase_add_checked_fixture(tests, begin, program_end);
    tcase_add_loop_test(tests, training_is_that_of_the_cpu, 0, N_MODELS);
    tcase_add_loop_test(tests, resumed_equals_uninterrupted, 0, N_RESUMED);
    tcase_add_loop_test(tests, batches_out_of_the_device_are_the_feeders, 0, 4);
    tcase_add_loop_test(tests, evaluation_examples_lie_on_the_device, 0, 3);
    tcase_add_test(tests, sent_batches_give_the_same_bits);
    tcase_add_test(tests, a_forced_kernel_reaches_the_resident_data);
    tcase_add_test(tests, divergence_freezes_the_step_it_happens_in);
    tcase_add_loop_test(tests, case_files_are_met, 0, N_MIXERS);
    tcase_add_test(tests, a_run_is_recorded_with_its_device);
    tcase_add_test(tests, speed_is_measured_and_written);
    tcase_add_test(tests, launches_of_a_step_are_counted);
    tcase_add_loop_test(tests, a_kernel_of_the_cpu_is_not_forced_on_a_device, 0, 3);
    tcase_add_test(tests, a_device_that_does_not_exist_is_said);
#ifdef LRNN_CUDA_HOST
    tcase_add_test(tests, what_a_device_lacks_is_said);
    tcase_add_test(tests, a_dead_device_leaves_the_checkpoint_alone);
    tcase_add_loop_test(tests, walked_steps_give_the_same_bits, 0, 3);
    tcase_add_loop_test(tests, launches_in_any_order_give_the_same_bits, 0, REAL_IS_DOUBLE ? 2 : 4);
    tcase_add_loop_test(tests, lazy_steps_give_the_same_bits, 0, 4);
    tcase_add_loop_test(tests, biases_are_added_without_epilogues, 1, 4);
    tcase_add_test(tests, a_capture_that_is_lost_has_done_nothing);
    tcase_add_loop_test(tests, a_capture_that_fails_is_said_and_the_run_goes_on, 1, 3);
    tcase_add_test(tests, running_out_of_memory_is_a_row);
    tcase_add_test(tests, a_kernel_failure_is_a_row_and_the_sweep_goes_on);
#endif
    suite_add_tcase(suite, tests);
    return suite;
}
