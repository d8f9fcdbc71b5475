/* check_gate.c - the gate: what it says of a build beside a baseline, and that it finds a slow-down that is there. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/gate/gate.h"
#include "harness/store/files.h"
#include "tests/lib/not_run.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"

/* --- a build beside a baseline ------------------------------------------------------------------------------------ */

/* The program of this precision. */
static const char *own(void) {
    return REAL_IS_DOUBLE ? named_program("LRNN_F64", "./lrnn-f64") : named_program("LRNN", "./lrnn");
}

static struct baseline kept;
static char baseline_path[SCRATCH_BYTES + 16];

/* One trace with each kernels, of this very build. */
static void make_baseline(void) {
    struct trace t;
    struct error e = {0};
    program_begin_inside();
    snprintf(baseline_path, sizeof baseline_path, "%s/baseline", program_folder);
    baseline_init(&kept);
    ck_assert(trace_at(0, &t));
    for (int k = 0; k < TRACE_KERNELS; k++) {
        struct baseline_trace *to = &kept.traces[kept.n_traces++];
        to->kernels = (enum trace_kernels)k;
        ck_assert_msg(trace_run(&t, trace_kernel_flags[k], &to->row, &e) == ST_OK, "%s", e.text);
    }
}

static void keep(void) {
    struct error e = {0};
    ck_assert_msg(baseline_write(&kept, baseline_path, &e) == ST_OK, "%s", e.text);
}

static int run_gate(const char *more) {
    char arguments[512];
    snprintf(arguments, sizeof arguments, "gate --baseline %s %s", baseline_path, more);
    return run_program(program_folder, own(), arguments);
}

static void expect_gate(const char *more, int status, const char *text) {
    expect_status(run_gate(more), status, more);
    expect_text(status == 1 || status == 2 || status == 5 ? err : out, text, more);
    if (status == 1 || status == 2 || status == 5) /* one sentence */
        ck_assert_msg(strchr(err, '\n') == err + strlen(err) - 1, "%s", err);
}

START_TEST(the_same_build_is_the_same) {
    keep();
    expect_gate("--accuracy --force", 0, "the gate: same");
    expect_text(out, "Chosen by who asked: --force", "gate --force");
    expect_gate("--accuracy", 0, "golden traces             2             0          0             0");
}
END_TEST

START_TEST(a_baseline_reads_back_as_it_was_written) {
    struct baseline *back = calloc(1, sizeof *back);
    struct error e = {0};
    kept.banks[kept.n_banks++] = (struct baseline_bank){"s3 lstm steps=3", "1", 3, 2, {0.1, 1.0 / 3, 1}};
    ck_assert_int_eq(baseline_set_floor(&kept, "linear", 0.5, &e), ST_OK);
    ck_assert_int_eq(baseline_set_floor(&kept, "linear", 1.0 / 7, &e), ST_OK);
    keep();
    ck_assert_msg(baseline_read(back, baseline_path, &e) == ST_OK, "%s", e.text);
    ck_assert_mem_eq(back, &kept, sizeof kept);
    ck_assert_double_eq(baseline_aa_p99(back, "linear"), 1.0 / 7);
    ck_assert(isnan(baseline_aa_p99(back, "scan_block")));
    free(back);
}
END_TEST

/* Another digit: the neighbour in ASCII of one that is a letter may be no digit of hex. */
static char other_digit(char digit) {
    return digit == '0' ? '1' : '0';
}

/* A format for programs has standard output to itself. */
START_TEST(a_format_is_all_there_is_on_standard_output) {
    keep();
    const char *flags = "--accuracy --format json";
    expect_status(run_gate(flags), 0, flags);
    int rows = 0;
    for (char *rest = NULL, *line = strtok_r(out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), rows++)
        json_decref(parse_line(line));
    ck_assert_int_eq(rows, 2);
    ck_assert_str_eq(err, "the gate: same\n");
}
END_TEST

/* Reference kernels have bits; those that a run takes have a bound, which another sum keeps and another gradient does
 * not. */
START_TEST(other_numbers_are_a_regression) {
    char junit[SCRATCH_BYTES + 16], flags[SCRATCH_BYTES + 64];
    size_t size;
    snprintf(junit, sizeof junit, "%s/junit.xml", program_folder);
    snprintf(flags, sizeof flags, "--accuracy --junit %s", junit);
    char *digit = kept.traces[0].row.weights, first = *digit;
    *digit = other_digit(first);
    keep();
    expect_gate(flags, 3, "the gate: regressed");
    expect_text(out, "other numbers under the same numerics version", flags);
    char *xml = slurp(junit, &size);
    expect_text(xml, "tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\"", flags);
    expect_text(xml, "<failure message=\"regressed: losses ", flags);
    free(xml);
    *digit = first;
    kept.traces[1].row.weights[0] = other_digit(kept.traces[1].row.weights[0]);
    keep();
    expect_gate("--accuracy", 0, "the gate: same");
    kept.traces[1].row.loss[1] *= 1 + 4 * trace_tuned_bounds[REAL_IS_DOUBLE][1];
    keep();
    expect_gate("--accuracy", 3, "the gate: regressed");
}
END_TEST

/* A bank as a build of the same numbers would have left it, of whose seeds the gate runs the first five. */
static struct baseline_bank *add_bank(int cell) {
    struct baseline_bank *bank = &kept.banks[kept.n_banks++];
    struct error e = {0};
    int solved = 0;
    seeds_name(cell, bank->name);
    ck_assert_msg(seeds_numerics(bank->name, bank->numerics, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(seeds_run(cell, 1, GATE_SEEDS, bank->metric, &solved, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(solved, GATE_SEEDS);
    for (int i = GATE_SEEDS; i < GATE_BANK; i++) bank->metric[i] = 1;
    bank->n = bank->solved = GATE_BANK;
    return bank;
}

/* Seeds that all solve the task are the same until the baseline's had more than a point more of the metric. The tables
 * of a file are Markdown. */
START_TEST(seeds_that_lose_a_point_are_a_regression) {
    char markdown[SCRATCH_BYTES + 16], flags[SCRATCH_BYTES + 64], wanted[TRACE_TEXT + 64];
    size_t size;
    struct baseline_bank *bank = add_bank(1);
    snprintf(markdown, sizeof markdown, "%s/gate.md", program_folder);
    snprintf(flags, sizeof flags, "--accuracy --markdown %s", markdown);
    kept.n_traces = 0;
    keep();
    expect_gate(flags, 0, "cells with many seeds     1             0          0             0");
    snprintf(wanted, sizeof wanted, "%s: same; 5 of 5 seeds solved, mean metric +0.0000", bank->name);
    expect_text(out, wanted, flags);
    for (int i = 0; i < GATE_SEEDS; i++) bank->metric[i] += 0.03 + 0.001 * i;
    keep();
    expect_gate(flags, 3, "the gate: regressed");
    snprintf(wanted, sizeof wanted, "%s: regressed; 5 of 5 seeds solved, mean metric -0.0320", bank->name);
    expect_text(out, wanted, flags);
    char *text = slurp(markdown, &size);
    expect_text(text, "| cells with many seeds | 0 | 0 | 1 | 0 |", flags);
    expect_text(text, ": regressed; 5 of 5 seeds solved, mean metric -0.0320", flags);
    free(text);
}
END_TEST

/* The rule is one of banks whose runs all solved the task, and of cells that this program has. */
START_TEST(a_bank_that_the_rule_is_not_made_for_is_not_compared) {
    kept.banks[kept.n_banks++] = (struct baseline_bank){.n = GATE_BANK, .solved = GATE_BANK - 1};
    seeds_name(0, kept.banks[0].name);
    struct error e = {0};
    ck_assert_msg(seeds_numerics(kept.banks[0].name, kept.banks[0].numerics, &e) == ST_OK, "%s", e.text);
    kept.n_traces = 0;
    keep();
    expect_gate("--accuracy", 1, "the bank has 19 of 20 runs that solved it: the rule asks for 20 of 20");
    kept.banks[0].n = kept.banks[0].solved = 2 * GATE_SEEDS - 1;
    keep();
    expect_gate("--accuracy", 1, "the bank has 9 of 9 runs that solved it");
    snprintf(kept.banks[0].name, TRACE_TEXT, "s3 gone steps=1");
    snprintf(kept.banks[0].numerics, NUMERICS_TEXT, "1");
    kept.banks[0].n = kept.banks[0].solved = GATE_BANK;
    keep();
    expect_gate("--accuracy --force", 1, "this program has no such cell");
}
END_TEST

/* Writes what --write writes, but with one trace and banks of two seeds. */
START_TEST(what_a_build_makes_is_written_and_read_back) {
    struct baseline *made = calloc(1, sizeof *made), *back = calloc(1, sizeof *back);
    struct error e = {0};
    baseline_init(made);
    ck_assert_msg(gate_measure(made, 1, 2, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(baseline_write(made, baseline_path, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(baseline_read(back, baseline_path, &e) == ST_OK, "%s", e.text);
    ck_assert_mem_eq(back, made, sizeof *made);
    ck_assert_int_eq(back->n_traces, TRACE_KERNELS);
    for (int k = 0; k < TRACE_KERNELS; k++) {
        ck_assert_int_eq(back->traces[k].kernels, k);
        ck_assert(trace_same_bits(&back->traces[k].row, &kept.traces[k].row));
    }
    ck_assert_int_eq(back->n_banks, seeds_count());
    for (int i = 0; i < back->n_banks; i++) {
        double metric;
        int solved = 0;
        ck_assert_int_eq(seeds_find(back->banks[i].name), i);
        ck_assert_int_eq(back->banks[i].n, 2);
        ck_assert_int_eq(back->banks[i].solved, 2);
        ck_assert_msg(seeds_run(i, 2, 1, &metric, &solved, &e) == ST_OK, "%s", e.text);
        ck_assert(metric == back->banks[i].metric[1] && metric > 0.9 && metric <= 1);
    }
    free(made);
    free(back);
}
END_TEST

START_TEST(a_trace_that_cannot_be_compared_is_no_comparison) {
    kept.n_traces = 1;
    snprintf(kept.traces[0].row.name, TRACE_TEXT, "s3 gone");
    keep();
    expect_gate("--accuracy", 1, "the gate compared nothing: this program has no such trace");
}
END_TEST

START_TEST(an_empty_baseline_fails) {
    kept.n_traces = 0;
    keep();
    expect_gate("--accuracy", 1, "the gate compared nothing; the baseline is empty");
}
END_TEST

START_TEST(a_baseline_of_another_machine_is_refused) {
    snprintf(kept.machine_id, sizeof kept.machine_id, "0123456789abcdef");
    keep();
    expect_gate("--accuracy", 2, "is of machine 0123456789abcdef, this is ");
    expect_gate("--accuracy --force", 0, "the gate: same");
}
END_TEST

START_TEST(a_baseline_of_another_system_is_refused) {
    snprintf(kept.env_epoch, sizeof kept.env_epoch, "0123456789abcdef");
    keep();
    expect_gate("--accuracy", 2, "of this machine with another system or library (epoch 0123456789abcdef");
}
END_TEST

START_TEST(a_baseline_of_other_numerics_is_refused) {
    snprintf(kept.traces[0].row.numerics, NUMERICS_TEXT, "0");
    snprintf(kept.commit, sizeof kept.commit, "0123456789abcdef");
    keep();
    expect_gate("--accuracy", 2, ", of commit 0123456789ab, is of other numerics: ");
    expect_gate("--accuracy --force --history undecided.jsonl", 4, "the gate: inconclusive");
    char path[SCRATCH_BYTES + 32];
    size_t size;
    snprintf(path, sizeof path, "%s/undecided.jsonl", program_folder);
    char *line = slurp(path, &size);
    expect_text(line, "\"value\":1,\"judged\":1,\"sense\":\">=\",\"bound\":2,\"verdict\":\"inconclusive\"", path);
    free(line);
}
END_TEST

START_TEST(a_baseline_of_another_precision_is_refused) {
    snprintf(kept.real, sizeof kept.real, "fp16");
    keep();
    expect_gate("--accuracy --force", 2, "is of fp16 with ");
}
END_TEST

/* Cut off anywhere, or one bit other. */
START_TEST(a_damaged_baseline_is_named) {
    struct baseline *back = calloc(1, sizeof *back);
    struct error e;
    size_t size;
    keep();
    char *bytes = slurp(baseline_path, &size);
    for (size_t n = 0; n < size; n++) {
        spill(baseline_path, bytes, n);
        if (baseline_read(back, baseline_path, &e) != ST_DATA) ck_abort_msg("cut off after %zu bytes", n);
    }
    for (size_t i = 0; i < 8 * size; i++) {
        bytes[i / 8] ^= (char)(1 << i % 8);
        spill(baseline_path, bytes, size);
        if (baseline_read(back, baseline_path, &e) != ST_DATA) ck_abort_msg("bit %zu is another", i);
        bytes[i / 8] ^= (char)(1 << i % 8);
    }
    bytes[size / 2] ^= 1;
    spill(baseline_path, bytes, size);
    expect_gate("--accuracy", 5, "was cut off or edited: what it holds has the hash ");
    spill(baseline_path, bytes, 20);
    expect_gate("--accuracy", 5, "is no baseline of a gate, or is cut off in its first line");
    unlink(baseline_path);
    expect_gate("--accuracy", 5, "baseline");
    free(bytes);
    free(back);
}
END_TEST

START_TEST(words_that_are_missing_are_named) {
    expect_status(run("gate"), 2, "gate");
    expect_text(err, "gate needs a plan, or --baseline FILE", "gate");
    expect_gate("--throughput", 2, "--throughput needs --against PROGRAM");
    keep();
    expect_gate("--throughput --against /nowhere/lrnn", 5, "/nowhere/lrnn is no program that can be started");
    expect_gate("--throughput --against /bin/true --benches linear", 1,
                "/bin/true does not serve the bench linear as lrnn-gate-1");
    expect_gate("--throughput --against /bin/true --benches linaer", 2, "did you mean 'linear'?");
    expect_gate("--throughput --against /bin/true --seconds 6", 2, "seconds");
    char flags[256];
    snprintf(kept.commit, sizeof kept.commit, "0123456789abcdef");
    keep();
    snprintf(flags, sizeof flags, "--throughput --against %s --benches linear --pairs 1", own());
    expect_gate(flags, 2, ", the baseline of 0123456789abcdef; name the program that wrote");
    const char *other = REAL_IS_DOUBLE ? named_program("LRNN", "./lrnn") : named_program("LRNN_F64", "./lrnn-f64");
    if (access(other, X_OK) != 0) { /* `make test` builds both */
        not_run("gate", "the refusal of another precision", "lrnn or lrnn-f64 is missing");
        return;
    }
    snprintf(flags, sizeof flags, "--throughput --against %s --benches linear", other);
    expect_gate(flags, 2, "; the gate compares builds of one precision");
}
END_TEST

/* --- throughput --------------------------------------------------------------------------------------------------- */

static struct compare_request quickly(void) {
    return (struct compare_request){.a = own(), .b = own(), .pairs = 12, .load = 1, .seed = 1};
}

/* The delay is spent, by spinning in the process that is measured: twice the time is found on any machine. */
START_TEST(a_delay_that_is_there_is_found) {
    struct compare_row row = {.floor = GATE_FLOOR};
    struct compare_request q = quickly();
    struct error e = {0};
    q.delay = 1;
    ck_assert_int_eq(gate_bench_find("scan_block", &row.bench, &e), ST_OK);
    ck_assert_msg(compare_builds(&q, &row, 1, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(row.verdict == VERDICT_REGRESSED && row.pairs.median > 0.3, "%s: %g", verdict_names[row.verdict],
                  row.pairs.median);
    ck_assert_int_eq(row.pairs.n, 24); /* a regression has been measured twice */
    ck_assert_double_gt(row.b, row.a);
}
END_TEST

START_TEST(every_bench_can_be_served) {
    for (const struct gate_bench *b = gate_benches(); b->name; b++) {
        struct compare_row row = {.bench = b, .floor = GATE_FLOOR};
        struct compare_request q = quickly();
        struct error e = {0};
        q.pairs = 1;
        ck_assert_msg(compare_builds(&q, &row, 1, &e) == ST_OK, "%s", e.text);
        ck_assert_msg(row.measured && row.a > 0 && row.b > 0, "%s: %s", b->name, row.detail);
        ck_assert_int_eq(row.verdict, VERDICT_INCONCLUSIVE); /* two pairs say nothing */
        ck_assert_int_eq(row.pairs.n, 2);
    }
}
END_TEST

/* A program that serves nothing: as the baseline it has no such bench, as the build under test it has lost it. */
START_TEST(a_bench_that_a_build_has_lost_is_a_regression) {
    struct compare_row row = {.bench = gate_benches(), .floor = GATE_FLOOR};
    struct compare_request q = quickly();
    struct error e = {0};
    q.a = "/bin/true";
    ck_assert_msg(compare_builds(&q, &row, 1, &e) == ST_OK, "%s", e.text);
    ck_assert(!row.measured && row.verdict == VERDICT_SAME);
    q = quickly();
    q.b = "/bin/true";
    ck_assert_msg(compare_builds(&q, &row, 1, &e) == ST_OK, "%s", e.text);
    ck_assert(!row.measured && row.verdict == VERDICT_REGRESSED);
    ck_assert_msg(strstr(row.detail, "/bin/true does not serve the bench scan_block") != NULL, "%s", row.detail);
}
END_TEST

/* A program that says what it is and dies in the first sitting of `linear`. */
static const char *mortal(void) {
    static char path[SCRATCH_BYTES + 16];
    char text[PATH_BYTES], path_of_own[PATH_BYTES];
    ck_assert_ptr_nonnull(realpath(own(), path_of_own));
    snprintf(path, sizeof path, "%s/mortal", program_folder);
    int n = snprintf(
        text, sizeof text,
        "#!/bin/sh\ncase $2 in\n*=linear) '%.1500s' \"$@\" | head -n 1 ;;\n*) exec '%.1500s' \"$@\" ;;\nesac\n",
        path_of_own, path_of_own);
    spill(path, text, (size_t)n);
    ck_assert_int_eq(chmod(path, 0755), 0);
    return path;
}

/* Such a row has no times, and counts. */
START_TEST(a_build_that_dies_in_a_bench_is_a_regression) {
    struct gate_result *r = calloc(1, sizeof *r);
    struct compare_request q = quickly();
    struct error e = {0};
    enum verdict worst;
    char *text = NULL;
    size_t size = 0;
    q.pairs = 1;
    q.b = mortal();
    ck_assert_msg(gate_throughput(&kept, &q, "linear scan_block", r, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(r->n, 2);
    ck_assert(!r->rows[0].speed.measured && r->rows[1].speed.measured);
    ck_assert_int_eq(gate_worst(r, &worst, &e), ST_OK);
    ck_assert_int_eq(worst, VERDICT_REGRESSED);
    FILE *f = open_memstream(&text, &size);
    ck_assert_int_eq(gate_print(r, &format_md, f, &e), ST_OK);
    fclose(f);
    ck_assert_msg(strstr(text, "regressed") && strstr(text, "in the middle of a bench") && !strstr(text, "nan"), "%s",
                  text);
    free(text);
    free(r);
}
END_TEST

/* An error in the baseline's program ends the gate, and verdicts up to then are told all the same. */
START_TEST(verdicts_are_told_beside_an_error) {
    char flags[4 * SCRATCH_BYTES], junit[SCRATCH_BYTES + 16];
    size_t size;
    snprintf(junit, sizeof junit, "%s/junit.xml", program_folder);
    snprintf(flags, sizeof flags, "--against %s --benches 'scan_block linear' --pairs 1 --junit %s", mortal(), junit);
    kept.traces[0].row.weights[0] = kept.traces[0].row.weights[0] == '0' ? '1' : '0';
    keep();
    expect_gate(flags, 1, "ended in the middle of a bench");
    expect_text(out, "golden traces             1             0          1             0", flags);
    char *xml = slurp(junit, &size);
    expect_text(xml, "<testsuite name=\"lrnn gate (--benches 'scan_block linear' --pairs 1)\"", "gate --junit");
    expect_text(xml, "tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\"", flags);
    free(xml);
    unlink(junit);
    snprintf(flags, sizeof flags, "--against /nowhere/lrnn --junit %s", junit); /* known before anything is trained */
    expect_gate(flags, 5, "/nowhere/lrnn is no program that can be started");
    ck_assert_str_eq(out, "");
    ck_assert_int_ne(access(junit, F_OK), 0);
}
END_TEST

/* A reader of the file needs no other one: the figure and its bound stand in the message. */
START_TEST(a_failure_says_the_figure_and_its_bound) {
    char path[SCRATCH_BYTES + 16];
    size_t size;
    struct error e = {0};
    struct gate_result *r = calloc(1, sizeof *r);
    snprintf(path, sizeof path, "%s/junit.xml", program_folder);
    r->n = 1;
    r->rows[0] = (struct gate_row){.kind = "throughput",
                                   .name = "linear",
                                   .verdict = VERDICT_REGRESSED,
                                   .compared = true,
                                   .figure = "change of time in percent",
                                   .value = 8,
                                   .low = 7,
                                   .high = 9,
                                   .sense = SENSE_MOST,
                                   .bound = 3};
    ck_assert_msg(gate_junit(r, path, &e) == ST_OK, "%s", e.text);
    char *xml = slurp(path, &size);
    expect_text(xml, "<failure message=\"regressed: change of time in percent 8, interval 7 to 9, bound &lt;= 3\"/>",
                path);
    expect_text(xml, "<property name=\"value\" value=\"8\"/><property name=\"low\" value=\"7\"/>", path);
    free(xml);
    FILE *f = open_memstream(&xml, &size);
    ck_assert_msg(gate_print(r, &format_json, f, &e) == ST_OK, "%s", e.text);
    fclose(f);
    json_t *row = parse_line(xml);
    ck_assert_double_eq_tol(number(row, "value"), 8, 1e-9);
    ck_assert_double_eq_tol(number(row, "low"), 7, 1e-9);
    ck_assert_double_eq_tol(number(row, "bound"), 3, 1e-9);
    ck_assert_str_eq(json_string_value(json_object_get(row, "verdict")), "regressed");
    json_decref(row);
    free(xml);
    free(r);
}
END_TEST

/* Keeps as many processes busy as there are cores. */
START_TEST(a_busy_machine_is_inconclusive) {
    char flags[256];
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    pid_t busy[64];
    if (cores > 64) cores = 64;
    keep();
    for (int i = 0; i < cores; i++) {
        busy[i] = fork();
        if (busy[i] == 0)
            for (volatile int spin = 0;; spin = !spin) continue;
    }
    snprintf(flags, sizeof flags, "--throughput --against %s --benches linear --pairs 3 --load 0.01", own());
    int status = run_gate(flags);
    for (int i = 0; i < cores; i++) {
        kill(busy[i], SIGKILL);
        waitpid(busy[i], NULL, 0);
    }
    expect_status(status, 4, flags);
    expect_text(out, "the machine was busy: other processes used ", flags);
    expect_text(out, "more than 1 %", flags);
    expect_text(out, "No evaluation is timed, nor are ", flags);
}
END_TEST

START_TEST(the_self_test_counts_verdicts_and_keeps_the_floors) {
    struct error e = {0};
    keep();
    expect_gate(
        "--self-test --benches 'linear scan_block' --sittings 2 --power 1 --delays '5 300' --pairs 2 --seconds 0 "
        "--format csv",
        0, "benches,delay_percent,gates,regressed,inconclusive,improved,same,red_percent,");
    expect_text(out, "\nlinear scan_block,0,2,0,2,0,0,0,0,", "two pairs decide nothing");
    expect_text(out, "\nlinear scan_block,5,1,0,1,0,0,", "self-test");
    expect_text(out, "\nlinear scan_block,300,1,0,1,0,0,", "self-test");
    ck_assert_msg(baseline_read(&kept, baseline_path, &e) == ST_OK, "%s", e.text);
    ck_assert(baseline_aa_p99(&kept, "linear") >= 0 && baseline_aa_p99(&kept, "scan_block") >= 0);
    expect_gate("--self-test --delays '5 0'", 2, "--delays '5 0': expected at most 8 numbers above 0, in percent");
}
END_TEST

/* The floor is this machine's. */
START_TEST(a_floor_goes_into_no_baseline_of_another_machine) {
    size_t before, after;
    snprintf(kept.machine_id, sizeof kept.machine_id, "0123456789abcdef");
    keep();
    char *was = slurp(baseline_path, &before);
    expect_gate("--self-test --benches linear --sittings 1 --power 0 --pairs 1 --seconds 0", 2,
                "is of machine 0123456789abcdef, this is ");
    char *is = slurp(baseline_path, &after);
    ck_assert_str_eq(is, was);
    free(was);
    free(is);
}
END_TEST

/* Beside another program there is no A/A, and its floor would blind the gate. */
START_TEST(what_a_gate_does_not_read_is_refused) {
    char flags[SCRATCH_BYTES + 64];
    keep();
    snprintf(flags, sizeof flags, "--self-test --against %s --sittings 1 --power 0 --pairs 1 --seconds 0", own());
    expect_gate(flags, 2, "gate --self-test has no use for --against; it takes self-test baseline benches pairs ");
    expect_gate("--self-test --junit x.xml", 2, "gate --self-test has no use for --junit");
    expect_gate("--accuracy --against /bin/true", 2, "gate --accuracy has no use for --against");
    expect_gate("--accuracy --pairs 3", 2, "gate --accuracy has no use for --pairs");
    expect_gate("--throughput --against /bin/true --delay 1", 2, "gate has no use for --delay");
    expect_gate("--serve linear", 2, "gate --serve has no use for --baseline; it takes serve seconds delay");
    expect_gate("--write x", 2, "gate --write has no use for --baseline; it takes write");
}
END_TEST

/* Minutes of training and measuring would be lost. */
START_TEST(what_cannot_be_written_is_told_before_anything_is_measured) {
    char flags[2 * SCRATCH_BYTES + 64];
    keep();
    expect_status(run_program(program_folder, own(), "gate --write /nowhere/baseline"), 1, "--write");
    expect_text(err, "cannot write /nowhere/baseline: No such file or directory", "--write");
    snprintf(flags, sizeof flags, "gate --write %s", program_folder);
    expect_status(run_program(program_folder, own(), flags), 1, flags);
    expect_text(err, ": Is a directory", flags);
    expect_gate("--accuracy --junit /nowhere/j.xml", 1, "cannot write /nowhere/j.xml: No such file or directory");
    ck_assert_str_eq(out, "");
    expect_gate("--accuracy --markdown /nowhere/g.md", 1, "cannot write /nowhere/g.md: No such file or directory");
    ck_assert_str_eq(out, "");
}
END_TEST

Suite *check_gate(void);
Suite *check_gate(void) {
    const TTest *const builds[] = {the_same_build_is_the_same,
                                   a_baseline_reads_back_as_it_was_written,
                                   a_format_is_all_there_is_on_standard_output,
                                   other_numbers_are_a_regression,
                                   seeds_that_lose_a_point_are_a_regression,
                                   a_bank_that_the_rule_is_not_made_for_is_not_compared,
                                   what_a_build_makes_is_written_and_read_back,
                                   a_trace_that_cannot_be_compared_is_no_comparison,
                                   an_empty_baseline_fails,
                                   a_baseline_of_another_machine_is_refused,
                                   a_baseline_of_another_system_is_refused,
                                   a_baseline_of_other_numerics_is_refused,
                                   a_baseline_of_another_precision_is_refused,
                                   a_damaged_baseline_is_named,
                                   words_that_are_missing_are_named,
                                   a_delay_that_is_there_is_found,
                                   every_bench_can_be_served,
                                   a_bench_that_a_build_has_lost_is_a_regression,
                                   a_build_that_dies_in_a_bench_is_a_regression,
                                   a_failure_says_the_figure_and_its_bound,
                                   verdicts_are_told_beside_an_error,
                                   a_busy_machine_is_inconclusive,
                                   the_self_test_counts_verdicts_and_keeps_the_floors,
                                   a_floor_goes_into_no_baseline_of_another_machine,
                                   what_a_gate_does_not_read_is_refused,
                                   what_cannot_be_written_is_told_before_anything_is_measured};
    Suite *suite = suite_create("gate");
    TCase *gate = tcase_create("gate");
    tcase_add_checked_fixture(gate, start_kernels, NULL);
    tcase_add_checked_fixture(gate, make_baseline, program_end);
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) tcase_add_test(gate, builds[i]);
    suite_add_tcase(suite, gate);
    return suite;
}
