/* check_perf_op.c - `lrnn perf op` at several shapes and beside older times, and `lrnn perf compare`. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/status.h"
#include "harness/store/csv.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#define SMALL "--blocks 16 --threads 1 --seconds 0.005 "

/* Runs `arguments`, in which each %s is the test's folder; expects the exit status. */
static void expect(const char *arguments, int status) {
    char text[1024] = "";
    size_t n = 0;
    for (const char *at = arguments; *at && n < sizeof text - SCRATCH_BYTES; at++) {
        if (strncmp(at, "%s", 2) != 0)
            text[n++] = *at;
        else
            n += (size_t)sprintf(text + n, "%s", program_folder), at++;
    }
    text[n] = 0;
    expect_status(run(text), status, text);
}

/* Value of a column in a row of TABLE in the test's folder. */
static double value_of(const struct csv_table *t, int row, const char *column) {
    double value = csv_cell_real(t, row, column);
    ck_assert_msg(isfinite(value), "row %d has no %s", row, column);
    return value;
}

static void write_own(const char *name, const char *text) {
    char path[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", program_folder, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

static struct csv_table read_own(const char *name) {
    struct csv_table t;
    struct error e = {0};
    char path[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", program_folder, name);
    ck_assert_msg(csv_read(&t, path, &e) == ST_OK, "%s", e.text);
    return t;
}

/* A row of perf.csv a kernel, pass and shape, whose FLOPs and bytes grow as the length does. */
START_TEST(a_sweep_of_shapes_is_kept_in_perf_csv) {
    expect("perf op scan_block --sweep 'T=4..19 m=2,3' --batch 2 " SMALL "--to %s/a --plot %s/a", 0);
    expect_text(out, "scan_block batch=2 blocks=16 gate=softmax, 1 thread, fp32, forward and backward\n", "--sweep");
    expect_text(out, "\nlength=16 m=3 scan_block_cpu ", "--sweep");
    ck_assert_msg(!strstr(out, "length=32") && !strstr(out, "scan_block_ref"), "%s", out);
    ck_assert(is_in_folder("a/roofline-scan_block.svg") && is_in_folder("a/roofline-scan_block.png"));
    struct csv_table t = read_own("a/perf.csv");
    ck_assert_int_eq(t.rows, 3 * 2 * 3);
    for (int i = 0; i < t.rows; i++) {
        ck_assert_double_le(value_of(&t, i, "best_ns"), value_of(&t, i, "time_ns"));
        ck_assert_double_gt(value_of(&t, i, "floor_ns"), 0);
    }
    ck_assert_str_eq(csv_cell(&t, 2, "pass"), "fwd+bwd");
    ck_assert_str_eq(csv_cell(&t, 2, "shape"), "batch=2 length=4 blocks=16 m=2 gate=softmax");
    ck_assert_str_eq(csv_cell(&t, 11, "shape"), "batch=2 length=4 blocks=16 m=3 gate=softmax");
    double flops[2] = {value_of(&t, 2, "flops"), value_of(&t, 8, "flops")};
    ck_assert_double_eq_tol(flops[1], 4 * flops[0], 0.01 * flops[1]); /* lengths 4 and 16 */
    csv_free(&t);
}
END_TEST

START_TEST(shapes_of_a_file_are_measured_in_its_order) {
    write_own("shapes", "# two\n\nlength=6 m=2\nT=3\n");
    expect("perf op scan_block --shapes %s/shapes --batch 2 " SMALL, 0);
    const char *first = strstr(out, "\nlength=6 m=2 scan_block_cpu "),
               *second = strstr(out, "\nlength=3 m=5 scan_block_cpu ");
    ck_assert_msg(first && second && first < second, "%s", out);
    static const struct {
        const char *text, *says;
    } wrong[] = {{"length=6\nheads=2\n", "shapes line 2: scan_block has no size heads; it has batch length blocks"},
                 {"length=six\n", "shapes line 1): expected a whole number"},
                 {"lengt=6\n", "did you mean 'length'?"},
                 {"6\n", "shapes line 1: expected sizes as length=64, got '6'"},
                 {"# none\n", "shapes has no shape; expected a line for each"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_own("shapes", wrong[i].text);
        expect("perf op scan_block --shapes %s/shapes " SMALL "--to %s/none", ST_USAGE);
        expect_text(err, wrong[i].says, wrong[i].text);
        ck_assert(!is_in_folder("none"));
    }
}
END_TEST

/* The columns of perf.csv that say what was measured, on another machine, ten times as slow. */
static void write_slower(const char *name) {
    struct csv_table t = read_own("a/perf.csv");
    char path[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", program_folder, name);
    FILE *f = fopen(path, "w");
    fputs("schema,bench,shape,dtype,pass,threads,device,machine_id,time_ns,best_ns\n", f);
    for (int i = 0; i < t.rows; i++)
        fprintf(f, "3,%s,%s,%s,%s,1,cpu,0123456789abcdef,%g,%g\n", csv_cell(&t, i, "bench"), csv_cell(&t, i, "shape"),
                csv_cell(&t, i, "dtype"), csv_cell(&t, i, "pass"), 10 * value_of(&t, i, "time_ns"),
                10 * value_of(&t, i, "best_ns"));
    fputs("3,linear_cpu,batch=1,fp32,fwd,1,cpu,0123456789abcdef,5,5\n", f);
    ck_assert_int_eq(fclose(f), 0);
    csv_free(&t);
}

START_TEST(times_are_compared_with_older_ones) {
    double best, floor, ratio, old, change;
    expect("perf op scan_block --length 4 --batch 2 " SMALL "--kernel scan_block_cpu --to %s/a", 0);
    write_slower("old.csv");
    expect("perf op scan_block --length 4 --batch 2 " SMALL "--against %s/old.csv", 0);
    const char *line = strstr(out, "scan_block_cpu fwd+bwd ");
    ck_assert_msg(
        line && sscanf(line, "scan_block_cpu fwd+bwd %lf %lf %lf %lf %lf", &best, &floor, &ratio, &old, &change) == 5,
        "%s", out);
    ck_assert_double_eq_tol(change, 100 * (best / old - 1), 5); /* four digits of a microsecond or two are printed */
    ck_assert_double_lt(change, -50);
    expect_text(out, "Two machines: ", "--against");
    expect_text(out, "Without a partner in ", "--against");
    expect_text(out, "/old.csv: 3 of 6 times.\n", "--against"); /* those of the reference */
}
END_TEST

START_TEST(two_files_of_times_are_compared_by_pairs) {
    expect("perf op scan_block --length 4 --batch 2 " SMALL "--kernel scan_block_cpu --to %s/a", 0);
    write_slower("old.csv");
    expect("perf compare %s/a %s/old.csv --format csv", 0);
    int n = 0;
    for (const char *line = strstr(out, "\nscan_block_cpu "); line; line = strstr(line + 1, "\nscan_block_cpu "), n++) {
        double a, b, ratio;
        const char *numbers = strchr(strchr(line, ',') + 1, ',') + 1;
        ck_assert_msg(sscanf(numbers, "%lf,%lf,%lf", &a, &b, &ratio) == 3, "%s", line);
        ck_assert_double_eq_tol(b / a, 10, 1e-4);
        ck_assert_double_eq_tol(ratio, 10, 1e-4);
    }
    ck_assert_int_eq(n, 3);
    expect("perf compare %s/a %s/old.csv", 0);
    expect_text(out, ": 3 pairs\n", "perf compare");
    expect_text(out, "Two machines: A was measured on ", "perf compare");
    expect_text(out, ", B on 0123456789abcdef, so that ratios compare the machines, too.\n", "perf compare");
    expect_text(out, "/old.csv: linear_cpu batch=1 fwd.\n", "perf compare");
    expect("perf compare %s/a results/baseline", ST_DATA);
    expect_text(err, "have no row in common; a pair has equal bench, shape", "perf compare");
    expect("perf compare %s/a %s/none", ST_DATA);
    expect("perf compare results/device/micro.csv %s/a", ST_DATA);
    expect("perf compare %s/a", ST_USAGE);
}
END_TEST

START_TEST(a_sweep_says_what_is_wrong_with_it) {
    static const char *const wrong[][2] = {
        {"--sweep T=64..4", "--sweep T=64..4: expected whole numbers from 1 on, the smaller first"},
        {"--sweep T=a..4", "expected whole numbers"},
        {"--sweep T", "expected sizes as T=64..4096 or m=2,4, got 'T'"},
        {"--sweep 'T=,'", "--sweep T: expected sizes as T=64..4096 or T=2,4, got ','"},
        {"--sweep 'H=1,2'", "--sweep: scan_block has no size heads"},
        {"--sweep m=65", "expected a whole number from 1 to 64"},
        {"--sweep 'T=1..1000000 B=1..1000000 m=1..64'", "more than 1000 shapes"},
        {"--sweep T=4 --shapes x", "--shapes and --sweep both say which shapes"},
        {"--sweep T=4 --against nowhere.csv", "nowhere.csv"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments, "perf op scan_block %s", wrong[i][0]);
        expect(arguments, i + 1 < sizeof wrong / sizeof *wrong ? ST_USAGE : ST_DATA);
        expect_text(err, wrong[i][1], arguments);
    }
}
END_TEST

Suite *check_perf_op(void);
Suite *check_perf_op(void) {
    Suite *s = suite_create("perf_op");
    TCase *t = tcase_create("perf_op");
    tcase_add_checked_fixture(t, program_begin, program_end);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_sweep_of_shapes_is_kept_in_perf_csv);
    tcase_add_test(t, shapes_of_a_file_are_measured_in_its_order);
    tcase_add_test(t, times_are_compared_with_older_ones);
    tcase_add_test(t, two_files_of_times_are_compared_by_pairs);
    tcase_add_test(t, a_sweep_says_what_is_wrong_with_it);
    suite_add_tcase(s, t);
    return s;
}
