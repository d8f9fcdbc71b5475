/* check_perf.c - `lrnn perf` as its users meet it: what it prints and whether its numbers fit together. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/op_sizes.h"
#include "harness/perf/measure.h"
#include "harness/perf/speed.h"
#include "harness/run/signals.h"
#include "harness/store/clock.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/logs.h"
#include "kernels/kernel.h"
#include "models/model.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"
#include "tests/testing.h"

START_TEST(perf_op_prints_time_floor_and_ratio) {
    const char *arguments = "perf op scan_block --batch 4 --length 8 --blocks 16 --m 3 --threads 1 --seconds 0.02";
    expect_status(run(arguments), 0, arguments);
    double best, floor, ratio;
    const char *line = strstr(out, "scan_block_cpu fwd+bwd ");
    ck_assert_msg(line && sscanf(line, "scan_block_cpu fwd+bwd %lf %lf %lf ", &best, &floor, &ratio) == 3, "%s", out);
    ck_assert(best > 0 && floor > 0);
    ck_assert_double_eq_tol(ratio, best / floor, 0.1 * ratio); /* few digits are printed of so short a time */
    expect_text(out, "scan_block_ref bwd ", arguments);
    expect_text(out, " GB/s, read and written both counted) and its FLOPs", arguments);
}
END_TEST

/* Every op can be measured at small sizes, each kernel of it in each pass. */
/* Small ones of those that the op has. */
static void sizes_of(const struct op *op, char *flags, size_t size) {
    static const char *const small[][2] = {{"batch", "2"}, {"length", "3"}, {"blocks", "4"},
                                           {"m", "2"},     {"dim", "8"},    {"vocab", "5"}};
    *flags = 0;
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        if (op_reads_size(op, small[i][0]))
            snprintf(flags + strlen(flags), size - strlen(flags), " --%s %s", small[i][0], small[i][1]);
}

START_TEST(perf_op_knows_every_op) {
    for (const struct op *const *o = op_list(); *o; o++) {
        char arguments[256], flags[128];
        sizes_of(*o, flags, sizeof flags);
        snprintf(arguments, sizeof arguments, "perf op %s%s --threads 1 --seconds 0.001 --json", (*o)->name, flags);
        expect_status(run(arguments), 0, arguments);
        char *text = strdup(out), *state = NULL;
        int n = 0;
        for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
            json_t *object = parse_line(line);
            if (!json_object_get(object, "skipped")) {
                ck_assert(number(object, "best_ms") > 0 && number(object, "floor_ms") >= 0);
                ck_assert(number(object, "best_ms") <= number(object, "median_ms"));
                n++;
            }
            json_decref(object);
        }
        free(text);
        ck_assert_msg(n > 0, "lrnn %s measured nothing", arguments);
    }
}
END_TEST

/* Prints a line for each length and kernel, then one for each pair, with the verdict of the printed times. */
START_TEST(perf_crossover_says_which_kernel_is_faster) {
    const char *arguments =
        "perf crossover scan_plstm --m 1 --batch 1 --heads 1 --dk 4 --dv 4 --from 1 --to 4 --seconds 0.001 "
        "--json";
    expect_status(run(arguments), 0, arguments);
    char *state = NULL;
    double best[3][2];
    json_t *head = parse_line(strtok_r(out, "\n", &state));
    ck_assert_str_eq(json_string_value(json_object_get(head, "op")), "scan_plstm");
    ck_assert_uint_eq(strlen(json_string_value(json_object_get(head, "machine"))), 16);
    json_decref(head);
    for (int i = 0; i < 8; i++) {
        json_t *object = parse_line(strtok_r(NULL, "\n", &state));
        int a = i % 2, from = -1;
        ck_assert_str_eq(json_string_value(json_object_get(object, "kernel")),
                         a ? "scan_plstm_cpu" : "scan_plstm_chunk");
        if (i < 6) {
            ck_assert_int_eq(whole(object, "length"), 1 << i / 2);
            best[i / 2][a] = number(object, "best_ms");
            ck_assert(best[i / 2][a] > 0 && number(object, "median_ms") >= best[i / 2][a]);
            ck_assert_int_eq(json_is_true(json_object_get(object, "taken")), a); /* far too small for chunks */
        } else {
            for (int at = 2; at >= 0 && best[at][1 - a] > 1.05 * best[at][a]; at--) from = at;
            const json_t *said = json_object_get(object, "faster_from");
            ck_assert_int_eq(json_is_null(said) ? -1 : json_integer_value(said), from < 0 ? -1 : 1 << from);
        }
        json_decref(object);
    }
    ck_assert_ptr_null(strtok_r(NULL, "\n", &state));
}
END_TEST

START_TEST(perf_crossover_prints_a_table) {
    const char *arguments = "perf crossover scan_outer --batch 1 --heads 1 --dk 2 --dv 2 --to 8 --seconds 0.001";
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "scan_outer batch=1 length=4 heads=1 dk=2 dv=2 and longer", arguments);
    expect_text(out, "\n         8 ", arguments);
    expect_text(out, "scan_outer_cpu is ", arguments);
    expect_text(out, "scan_outer_chunk is ", arguments);
}
END_TEST

/* A kernel of another precision is named with its reason and compared with nothing. */
START_TEST(perf_crossover_says_what_was_skipped) {
    const char *arguments = "perf crossover linear --batch 1 --to 8 --dim 8 --seconds 0.001";
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "linear_bf16_cpu was skipped at every length: ", arguments);
    ck_assert_msg(!strstr(out, "inf") && !strstr(out, "faster"), "%s", out);
}
END_TEST

START_TEST(perf_step_counts_matmul_parameters) {
    const char *arguments = "perf step bdlru:m=2,blocks=4 --dim 8 --layers 2 --mlp none --batch 4 --length 5 --vocab 6 "
                            "--threads 1 --steps 2 --json";
    expect_status(run(arguments), 0, arguments);
    json_t *object = parse_line(out);
    int64_t layer = 4 * 2 * 3 * 8 + 4 * 2 * 8 + 8 * 4 * 2; /* gates, v, out */
    ck_assert_int_eq(whole(object, "matmul_params"), 2 * layer + 6 * 8);
    ck_assert_int_eq(whole(object, "params"), 2 * (layer + 4 * 2 * 3 + 8) + 8 + 6 * 8 + (6 * 8 + 6));
    ck_assert(number(object, "step_ms_best") > 0 && number(object, "step_ms_best") <= number(object, "step_ms_med"));
    ck_assert(number(object, "planned_bytes") > 0 && number(object, "gemm_gflop_per_s") > 0);
    double floor_ms = 6.0 * (double)(2 * layer + 6 * 8) * 20 / number(object, "gemm_gflop_per_s") / 1e6;
    ck_assert_double_eq_tol(number(object, "floor_ms"), floor_ms, 1e-3 * floor_ms);
    json_decref(object);
}
END_TEST

/* Its ops are the step's, in the order of what is lost, and together they take no longer than the step. */
START_TEST(perf_step_says_where_the_time_goes) {
    const char *arguments = "perf step bdlru:m=2,blocks=4 --dim 8 --layers 2 --batch 4 --length 5 --vocab 6 "
                            "--threads 1 --steps 3 --profile --json";
    expect_status(run(arguments), 0, arguments);
    json_t *object = parse_line(out), *op;
    double all = 0, last = INFINITY;
    size_t i;
    int known = 0;
    json_array_foreach(json_object_get(object, "profile"), i, op) {
        const char *name = json_string_value(json_object_get(op, "op"));
        double both = number(op, "forward_ms") + number(op, "backward_ms"), lost = number(op, "lost_ms");
        double above = both - number(op, "floor_ms"), rounding = 1e-4 * (both + number(op, "floor_ms"));
        ck_assert(both > 0 && number(op, "floor_ms") > 0 && lost <= last);
        ck_assert(lost >= 0 && lost >= above - rounding && lost <= both);
        if (!strcmp(name, "scan_block") || !strcmp(name, "rmsnorm")) known++;
        if (!strcmp(name, "scan_block")) ck_assert_int_eq(whole(op, "calls"), 2);
        if (!strcmp(name, "adamw")) ck_assert(whole(op, "calls") == 1 && number(op, "backward_ms") == 0);
        if (!strcmp(name, "linear")) ck_assert_int_eq(whole(op, "calls"), 2 * (3 + 3) + 1);
        all += both;
        last = lost;
    }
    ck_assert_int_eq(known, 2);
    ck_assert_double_le(all, number(object, "step_ms_best"));
    json_decref(object);
    arguments = "perf step lru:state=4 --dim 8 --batch 4 --length 5 --vocab 6 --threads 1 --steps 2 --profile";
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "scan_diag_complex", arguments);
    expect_text(out, "between the calls", arguments);
}
END_TEST

/* The number of steps is limited to the samples that are kept. */
START_TEST(perf_step_keeps_every_step) {
    const char *arguments = "perf step lru:state=4 --dim 8 --batch 4 --length 5 --vocab 6 --threads 1 --steps 2049";
    expect_status(run(arguments), 2, arguments);
    expect_text(err, "2048", arguments);
}
END_TEST

START_TEST(perf_data_prints_a_rate) {
    const char *arguments = "perf data s3 --seconds 0.05 --json";
    expect_status(run(arguments), 0, arguments);
    json_t *object = parse_line(out);
    ck_assert(number(object, "tok_per_s_med") > 0 &&
              number(object, "tok_per_s_best") >= number(object, "tok_per_s_med"));
    json_decref(object);
}
END_TEST

/* Reads texts, images, packed files and folders of small ones; writes nothing. */
START_TEST(perf_data_reads_released_files) {
    static const struct {
        const char *name;
        int files;
    } sets[] = {{"mutag", 5}, {"cifar10", 6}, {"ethanolconcentration", 2}, {"imdb", 28}, {"pathfinder32", 14}};
    ck_assert_int_eq(setenv("LRNN_CACHE", program_folder, 1), 0);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        char arguments[200];
        snprintf(arguments, sizeof arguments, "perf data %s --files tests/data/%s --seconds 0.02 --json", sets[i].name,
                 sets[i].name);
        expect_status(run(arguments), 0, arguments);
        json_t *object = parse_line(out);
        ck_assert_int_eq((int)number(object, "files"), sets[i].files);
        ck_assert(number(object, "bytes") > 0 && number(object, "mb_per_s_med") > 0);
        ck_assert(number(object, "mb_per_s_best") >= number(object, "mb_per_s_med"));
        json_decref(object);
    }
    ck_assert_int_eq(scratch_count(program_folder, ".records") + scratch_count(program_folder, ".images"), 0);
    expect_status(run("perf data mutag --files tests/data/nci1 --seconds 0.01"), 5, "another folder");
    expect_text(err, "cannot find MUTAG_A.txt in tests/data/nci1", "another folder");
    expect_status(run("perf data mutga --files tests/data/mutag --seconds 0.01"), 2, "no data set");
}
END_TEST

/* Rows of packed and plain files, and the table of the page that they make. */
START_TEST(perf_data_keeps_what_reading_files_takes) {
    static const char *const sets[] = {"mnist --files tests/data/mnist", "mutag --files tests/data/mutag",
                                       "listops --files %s/listops"};
    char text[400], path[300];
    ck_assert_int_eq(setenv("LRNN_CACHE", program_folder, 1), 0);
    snprintf(path, sizeof path, "%s/listops", program_folder);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    for (int i = 0; i < 3; i++) {
        static const char *const splits[] = {"train", "val", "test"};
        snprintf(text, sizeof text, "%s/basic_%s.tsv", path, splits[i]);
        FILE *f = fopen(text, "w");
        ck_assert(f && fputs("Source\tTarget\n( ( ( [MAX 3 ) 5 ) ] )\t5\n", f) >= 0 && fclose(f) == 0);
    }
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        size_t n = (size_t)snprintf(text, sizeof text, "perf data ");
        n += (size_t)snprintf(text + n, sizeof text - n, sets[i], program_folder); /* NOLINT: a literal */
        snprintf(text + n, sizeof text - n, " --seconds 0.01 --out %s/p", program_folder);
        expect_status(run(text), 0, text);
        ck_assert_int_eq(i == 0, strstr(out, "decompression alone: ") != NULL);
    }
    snprintf(text, sizeof text, "-f tools/readers_table.awk %s/p/perf.csv", program_folder);
    expect_status(run_program(program_folder, "awk", text), 0, text);
    expect_text(out, "| files | number | MB | MB/s |", text);
    expect_text(out, "| `mnist`, gzip | 4 | ", text);
    expect_text(out, "| `mutag` | 5 | ", text);
    expect_text(out, "| `listops` | 3 | ", text);
    expect_text(out, " on machine ", text);
    snprintf(text, sizeof text, "perf data listops --files %s --seconds 0.01", program_folder);
    expect_status(run(text), 5, text);
    expect_text(err, "basic_train.tsv: No such file or directory", text);
}
END_TEST

/* Rows of tasks with and without a comma in their text, of another split, and the table that they make: of a task
 * measured twice the later number. Without a row it says so. */
START_TEST(perf_data_keeps_how_fast_examples_are_drawn) {
    static const char *const tasks[] = {"digits", "pathfinder:size=16", "arrow:size=48,patch=8", "s3 --split test",
                                        "digits"};
    char text[400];
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        snprintf(text, sizeof text, "perf data %s --seconds 0.01 --out %s/p", tasks[i], program_folder);
        expect_status(run(text), 0, text);
        expect_text(out, " examples/s median", text);
    }
    snprintf(text, sizeof text, "-f tools/examples_table.awk %s/p/perf.csv", program_folder);
    expect_status(run_program(program_folder, "awk", text), 0, text);
    double examples, tokens;
    const char *line = strstr(out, "| `pathfinder:size=16` | ");
    ck_assert_msg(line && sscanf(line, "| `pathfinder:size=16` | %lf%*[! |] %lfM", &examples, &tokens) == 2, "%s", out);
    ck_assert_msg(fabs(tokens * 1e6 / examples - 256) < 3, "%s", out); /* three digits of the tokens are shown */
    expect_text(out, "| `arrow:size=48,patch=8` | ", text);
    expect_text(out, "| `s3`, test | ", text);
    expect_text(out, "- Median over rounds of 64 examples", text);
    line = strstr(out, "| `digits` |");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_null(strstr(line + 1, "| `digits` |"));
    expect_status(run_program(program_folder, "awk", "-f tools/examples_table.awk tests/harness/store/short-perf.csv"),
                  0, "no row");
    expect_text(out, "- Nothing has been measured yet.\n", "no row");
}
END_TEST

/* Every row is of as many tokens as its shape says, "MODEL B2 T64 D16 params...". */
static void expect_tokens_of_layers(void) {
    char path[SCRATCH_BYTES + 16];
    struct csv_table t;
    struct error e = {0};
    snprintf(path, sizeof path, "%s/p/perf.csv", program_folder);
    ck_assert_msg(csv_read(&t, path, &e) == ST_OK, "%s", e.text);
    ck_assert_int_gt(t.rows, 0);
    for (int i = 0; i < t.rows; i++) {
        const char *shape = csv_cell(&t, i, "shape"), *B = strstr(shape, " B2 T");
        ck_assert_msg(B != NULL, "%s", shape);
        double want = 2 * strtod(B + 5, NULL);
        expect_near(csv_cell_real(&t, i, "tok_per_s") * csv_cell_real(&t, i, "time_ns") * 1e-9, want, 1e-9 * want,
                    shape);
    }
    csv_free(&t);
}

START_TEST(perf_layers_has_a_row_for_every_mixer) {
    char arguments[256], table[256];
    snprintf(arguments, sizeof arguments, "perf layers --dim 16 --batch 2 --seconds 0 --out %s/p", program_folder);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "one layer, forward and backward, D = 16, batch 2", arguments);
    for (const struct model *const *m = model_list(); *m; m++) {
        char row[80];
        double speed[3];
        snprintf(row, sizeof row, "| %s | ", (*m)->name);
        const char *line = strstr(out, row);
        ck_assert_msg((line != NULL) == !(*m)->hidden, "%s: %s", row, out);
        if (!line) continue;
        line = strchr(line + strlen(row), '|');
        for (int i = 0; i < 3; i++, line = strchr(line + 1, '|'))
            ck_assert_msg(sscanf(line, "| %lfk", &speed[i]) == 1 && speed[i] > 0, "%s", line);
    }
    expect_tokens_of_layers();
    snprintf(table, sizeof table, "-f tools/layers_table.awk %s/p/perf.csv", program_folder);
    expect_status(run_program(program_folder, "awk", table), 0, table);
    expect_text(out, "| mixer | parameters | T = 64 | T = 512 | T = 2048 |", table);
    expect_text(out, "| bdlru | ", table);
    expect_text(out, "- D = 16, batch 2, default options", table);
    expect_text(out, " on machine ", table);
}
END_TEST

/* Tokens a second are the tokens of a step over its time: 128 sequences of 8 tokens. */
START_TEST(the_speed_of_a_run_is_that_of_its_tokens) {
    struct setup *s = small_run(program_folder, "swiglu", "lru:state=4", NULL, NULL);
    for (int quiet = 0; quiet < 2; quiet++) {
        struct perf_row row;
        struct error e = {0};
        ck_assert_msg(speed_measure(s, 1, 0.1 * quiet, &row, &e) == ST_OK, "%s", e.text);
        double tokens = row.tok_per_s * row.time_ns * 1e-9;
        ck_assert_double_eq_tol(tokens, 128 * 8, 1e-9 * 128 * 8);
    }
    small_run_free(s);
}
END_TEST

static int rows_of_speed(const char *folder) {
    char path[PATH_BYTES];
    struct csv_table t;
    struct error e;
    snprintf(path, sizeof path, "%s/perf.csv", folder);
    ck_assert_int_eq(csv_read(&t, path, &e), ST_OK);
    int rows = t.rows;
    csv_free(&t);
    return rows;
}

/* Expects, for a plan of one cell and a call without force, the number of rows and of cells left to measure. */
static void expect_measured(struct setup *s, int rows, int to_do) {
    struct setup *both[] = {s, s}; /* another seed of the cell is no other speed */
    struct plan plan = {.setups = both, .n = 2};
    struct error e;
    double least, most;
    ck_assert_int_eq(speed_expect(&plan, 1, 0.1, 1e9, &least, &most), to_do);
    ck_assert((least > 0) == (to_do > 0) && most >= least);
    ck_assert_int_eq(speed_measure_plan(&plan, 1, 0, true, &e), ST_OK);
    ck_assert_int_eq(rows_of_speed(s->spec.config.out), rows);
}

/* A measurement counts for this build, whether or not its files were committed, and as noisy: a rough measurement is
 * never quiet. */
START_TEST(a_speed_is_measured_once_for_a_build) {
    struct setup *s = small_run(program_folder, "swiglu", "lru:state=4", NULL, NULL);
    struct perf_row row;
    struct error e;
    char path[SCRATCH_BYTES + 16];
    s->estimate.flops = 1e6;
    expect_measured(s, 1, 1);
    expect_measured(s, 1, 0);
    s->spec.config.force = true;
    expect_measured(s, 2, 1);
    s->spec.config.force = false;
    ck_assert(perf_latest(program_folder, s->id.cell_id, NULL, &row));
    ck_assert_int_ne(row.quiet, 1);
    ck_assert_uint_eq(strlen(row.source_id), 16);
    ck_assert_str_eq(row.device, "cpu");
    struct perf_row other = row;
    snprintf(other.machine_id, sizeof other.machine_id, "another"); /* which shares the folder */
    ck_assert_int_eq(perf_append(program_folder, &other, &e), ST_OK);
    expect_measured(s, 3, 0);
    snprintf(path, sizeof path, "%s/perf.csv", program_folder);
    ck_assert_int_eq(unlink(path), 0);
    row.source_id[0] = row.source_id[0] == '0' ? '1' : '0';
    ck_assert_int_eq(perf_append(program_folder, &row, &e), ST_OK);
    ck_assert_int_eq(perf_append(program_folder, &other, &e), ST_OK);
    expect_measured(s, 3, 1);
    expect_measured(s, 3, 0);
    small_run_free(s);
}
END_TEST

static struct task late; /* a task whose examples take their time unless a thread makes them */
static void (*fill_at_once)(const void *inst, enum split split, int64_t index, struct example *x);

static void fill_late(const void *inst, enum split split, int64_t index, struct example *x) {
    if (syscall(SYS_gettid) == getpid()) usleep(1000);
    fill_at_once(inst, split, index, x);
}

/* A speed is measured as a run trains: with batches made ahead. */
START_TEST(a_speed_is_with_batches_made_ahead) {
    struct setup *s = small_run(program_folder, "swiglu", "lru:state=4", NULL, NULL);
    struct perf_row row;
    late = *s->spec.task.task;
    fill_at_once = late.fill;
    late.fill = fill_late;
    s->spec.task.task = &late;
    s->estimate.flops = 1e6;
    expect_measured(s, 1, 1);
    ck_assert(perf_latest(program_folder, s->id.cell_id, NULL, &row));
    ck_assert_double_lt(row.time_ns, 1e8); /* 128 examples of a millisecond */
    ck_assert_uint_eq(strlen(row.env_epoch), 16);
    small_run_free(s);
}
END_TEST

/* Rates of one row do the same work, another width does not: 2 sittings for 3 cells, and none for a rate more. */
START_TEST(a_speed_is_that_of_every_rate) {
    struct setup *rates[] = {small_run(program_folder, "swiglu", "lru:state=4", "lr", "0.001"),
                             small_run(program_folder, "swiglu", "lru:state=4", "lr", "0.002"),
                             small_run(program_folder, "swiglu", "lru:state=8", "lr", "0.002"),
                             small_run(program_folder, "swiglu", "lru:state=4", "lr", "0.0005")};
    struct plan plan = {.setups = rates, .n = 3};
    struct perf_row rows[4];
    struct error e;
    double least, most;
    for (int i = 0; i < 4; i++) rates[i]->estimate.flops = 1e6;
    ck_assert_int_eq(speed_expect(&plan, 1, 0.1, 1e9, &least, &most), 2);
    ck_assert_int_eq(speed_measure_plan(&plan, 1, 0, true, &e), ST_OK);
    ck_assert_int_eq(rows_of_speed(program_folder), 3);
    plan = (struct plan){.setups = &rates[1], .n = 3};
    ck_assert_int_eq(speed_expect(&plan, 1, 0.1, 1e9, &least, &most), 0);
    ck_assert_int_eq(speed_measure_plan(&plan, 1, 0, true, &e), ST_OK);
    ck_assert_int_eq(rows_of_speed(program_folder), 4);
    for (int i = 0; i < 4; i++) ck_assert(perf_latest(program_folder, rates[i]->id.cell_id, NULL, &rows[i]));
    ck_assert_str_eq(rows[0].sitting, rows[1].sitting);
    ck_assert_str_eq(rows[0].sitting, rows[3].sitting);
    ck_assert_double_eq(rows[0].tok_per_s, rows[3].tok_per_s);
    ck_assert_str_ne(rows[0].shape, rows[2].shape);
    for (int i = 0; i < 3; i++) rates[1 + i]->spec.config.force = true; /* anew, once for both rates */
    ck_assert_int_eq(speed_expect(&plan, 1, 0.1, 1e9, &least, &most), 2);
    ck_assert_int_eq(speed_measure_plan(&plan, 1, 0, true, &e), ST_OK);
    ck_assert_int_eq(rows_of_speed(program_folder), 7);
    ck_assert(perf_latest(program_folder, rates[1]->id.cell_id, NULL, &rows[1]));
    ck_assert(perf_latest(program_folder, rates[3]->id.cell_id, NULL, &rows[3]));
    ck_assert_double_eq(rows[1].tok_per_s, rows[3].tok_per_s);
    ck_assert_double_ne(rows[1].tok_per_s, rows[0].tok_per_s);
    for (int i = 0; i < 4; i++) small_run_free(rates[i]);
}
END_TEST

/* Within seconds, however long the sitting is: a row is written at its end, so nothing is lost. */
START_TEST(a_signal_ends_a_measurement) {
    struct setup *s = small_run(program_folder, "swiglu", "lru:state=4", NULL, NULL);
    struct perf_row row;
    struct error e = {0};
    signals_install();
    double began = time_now_s();
    pid_t pid = fork();
    if (pid == 0) {
        usleep(300000);
        kill(getppid(), SIGINT);
        _exit(0);
    }
    ck_assert_int_eq(speed_measure(s, 1, 60, &row, &e), 128 + SIGINT);
    ck_assert_msg(strstr(e.text, "stopped while the speed of lru") != NULL, "%s", e.text);
    ck_assert_double_lt(time_now_s() - began, 5);
    waitpid(pid, NULL, 0);
    small_run_free(s);
}
END_TEST

/* --- sittings ----------------------------------------------------------------------------------------------------- */

static enum status nap(void *context, struct error *e) {
    (void)e;
    ++*(int *)context;
    usleep(1000);
    return ST_OK;
}

/* Short samples fill the time, long ones are five; the warm-up is short, or never ends and takes all of the time
 * again. */
START_TEST(a_sitting_takes_as_long_as_expected) {
    double least, most;
    sitting_expect(1e-5, 1, &least, &most);
    ck_assert_double_eq_tol(least, 3 * 0.02 + 1, 1e-9);
    ck_assert_double_eq_tol(most, 2 * (5 + 1), 1e-9);
    sitting_expect(0.1, 1, &least, &most);
    ck_assert_double_eq_tol(least, 3 * 1 + 3, 1e-9);
    sitting_expect(10, 1, &least, &most);
    ck_assert_double_eq_tol(least, 3 * 10 + 50, 1e-9);
    ck_assert_double_eq_tol(most, 2 * (30 + 50), 1e-9);
}
END_TEST

/* Keeps as many processes busy as there are cores. */
START_TEST(a_sitting_knows_that_it_was_not_alone) {
    struct sitting s;
    struct error e;
    int calls = 0, cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    pid_t busy[64];
    if (cores > 64) cores = 64;
    for (int i = 0; i < cores; i++) {
        busy[i] = fork();
        if (busy[i] == 0)
            for (volatile int spin = 0;; spin = !spin) continue;
    }
    ck_assert_int_eq(sitting_run(&s, nap, &calls, 0.3, &e), ST_OK);
    for (int i = 0; i < cores; i++) {
        kill(busy[i], SIGKILL);
        waitpid(busy[i], NULL, 0);
    }
    ck_assert_double_gt(s.foreign, SITTING_FOREIGN);
    ck_assert(!sitting_is_quiet(&s));
    ck_assert_int_ge(s.samples, 30);
    ck_assert_int_gt(calls, s.samples); /* the warm-up */
    ck_assert(s.median >= 0.001 && s.p95 >= s.median && s.mad >= 0);
}
END_TEST

START_TEST(quiet_means_warm_alone_and_steady) {
    const struct sitting quiet = {30, 3, 1.0, 0.1, 1.3, 0.03};
    ck_assert(sitting_is_quiet(&quiet));
    struct sitting others[] = {quiet, quiet, quiet, quiet};
    others[0].warm_up = -1;
    others[1].foreign = 0.031;
    others[2].p95 = 1.31;
    others[3].foreign = NAN; /* nobody knows */
    for (int i = 0; i < 4; i++) {
        ck_assert(!sitting_is_quiet(&others[i]));
        ck_assert(sitting_is_better(&quiet, &others[i]) && !sitting_is_better(&others[i], &quiet));
    }
    struct sitting louder = others[1];
    louder.foreign = 0.5;
    ck_assert(sitting_is_better(&others[1], &louder) && !sitting_is_better(&louder, &others[1]));
    struct perf_row row = {.threads = 1};
    sitting_fill(&others[1], 640, &row);
    ck_assert(row.quiet == 0 && row.foreign == 0.031 && row.warm_up == 3 && row.tok_per_s == 640);
}
END_TEST

static enum status refuse(void *context, struct error *e) {
    (void)context;
    return fail(e, ST_DEVICE, "the device is gone");
}

START_TEST(a_sitting_ends_with_the_error_of_what_it_measures) {
    struct sitting s;
    struct error e;
    ck_assert_int_eq(sitting_run(&s, refuse, NULL, 0.1, &e), ST_DEVICE);
    ck_assert_str_eq(e.text, "the device is gone");
}
END_TEST

Suite *check_perf(void);
Suite *check_perf(void) {
    Suite *s = suite_create("perf");
    TCase *t = tcase_create("perf");
    tcase_add_checked_fixture(t, program_begin, program_end);
    tcase_add_test(t, perf_op_prints_time_floor_and_ratio);
    tcase_add_test(t, perf_op_knows_every_op);
    tcase_add_test(t, perf_step_counts_matmul_parameters);
    tcase_add_test(t, perf_crossover_says_which_kernel_is_faster);
    tcase_add_test(t, perf_crossover_prints_a_table);
    tcase_add_test(t, perf_crossover_says_what_was_skipped);
    tcase_add_test(t, perf_step_says_where_the_time_goes);
    tcase_add_test(t, perf_step_keeps_every_step);
    tcase_add_test(t, perf_data_prints_a_rate);
    tcase_add_test(t, perf_data_reads_released_files);
    tcase_add_test(t, perf_data_keeps_what_reading_files_takes);
    tcase_add_test(t, perf_data_keeps_how_fast_examples_are_drawn);
    tcase_add_test(t, perf_layers_has_a_row_for_every_mixer);
    tcase_add_test(t, the_speed_of_a_run_is_that_of_its_tokens);
    tcase_add_test(t, a_speed_is_measured_once_for_a_build);
    tcase_add_test(t, a_speed_is_with_batches_made_ahead);
    tcase_add_test(t, a_speed_is_that_of_every_rate);
    tcase_add_test(t, a_signal_ends_a_measurement);
    tcase_add_test(t, a_sitting_takes_as_long_as_expected);
    tcase_add_test(t, a_sitting_knows_that_it_was_not_alone);
    tcase_add_test(t, quiet_means_warm_alone_and_steady);
    tcase_add_test(t, a_sitting_ends_with_the_error_of_what_it_measures);
    suite_add_tcase(s, t);
    return s;
}
