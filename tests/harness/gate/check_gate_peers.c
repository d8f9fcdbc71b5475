/* check_gate_peers.c - the programs that a gate starts and asks for times: late ones, ones that a signal ends; and the
 * steps that it asks for. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/gate/compare.h"
#include "harness/run/signals.h"
#include "models/model.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"

static struct compare_request quickly(const char *a, const char *b) {
    return (struct compare_request){.a = a, .b = b, .pairs = 1, .load = 1, .seed = 1};
}

/* A program that says what it is, and whose sitting does as told. */
static const char *scripted(const char *name, const char *sitting) {
    static char paths[2][SCRATCH_BYTES + 16];
    char text[512], *path = paths[*name == 'b'];
    snprintf(path, sizeof *paths, "%s/%s", program_folder, name);
    int n = snprintf(text, sizeof text,
                     "#!/bin/sh\nprintf 'lrnn-gate-1\\tr\\tc\\tf\\tx\\n'\nwhile read -r _; do %s; done\n", sitting);
    spill(path, text, (size_t)n);
    ck_assert_int_eq(chmod(path, 0755), 0);
    return path;
}

/* One that is late has not lost its bench, and a step of a run may take longer than any bench. */
START_TEST(a_late_answer_is_no_regression) {
    const struct gate_bench run = {.name = "run", .config = "run.conf"};
    struct compare_row row = {.bench = gate_benches(), .floor = GATE_FLOOR};
    struct compare_request q = quickly(scripted("a", "echo 0.001 5"), scripted("b", "sleep 1; echo 0.001 5"));
    struct error e = {0};
    q.patience_ms = 500;
    ck_assert_int_eq(compare_builds(&q, &row, 1, &e), ST_FAIL);
    ck_assert_msg(strstr(e.text, "said nothing for 0.5 s") && row.verdict != VERDICT_REGRESSED, "%s", e.text);
    row = (struct compare_row){.bench = &run, .floor = GATE_FLOOR};
    ck_assert_msg(compare_builds(&q, &row, 1, &e) == ST_OK && row.measured, "%s%s", e.text, row.detail);
}
END_TEST

/* Ctrl-C ends the programs too. */
START_TEST(a_signal_is_no_regression) {
    struct compare_row row = {.bench = gate_benches(), .floor = GATE_FLOOR};
    struct compare_request q = quickly(scripted("a", "echo 0.001 5"), scripted("b", "kill -INT $PPID; exit 1"));
    struct error e = {0};
    signals_install();
    ck_assert_int_eq(compare_builds(&q, &row, 1, &e), 128 + SIGINT);
    ck_assert_msg(row.verdict != VERDICT_REGRESSED && strstr(e.text, "stopped while"), "%s", e.text);
}
END_TEST

/* The pipe to a peer then has the number that the peer reads from. */
START_TEST(a_gate_needs_no_standard_input) {
    struct compare_row row = {.bench = gate_benches(), .floor = GATE_FLOOR};
    struct compare_request q = quickly(scripted("a", "echo 0.001 5"), scripted("b", "echo 0.001 5"));
    struct error e = {0};
    int input = dup(STDIN_FILENO);
    ck_assert_int_gt(input, STDERR_FILENO);
    close(STDIN_FILENO);
    enum status status = compare_builds(&q, &row, 1, &e);
    dup2(input, STDIN_FILENO);
    close(input);
    ck_assert_msg(status == ST_OK && row.measured, "%s%s", e.text, row.detail);
}
END_TEST

/* A baseline's floors are those of the program that wrote it. */
START_TEST(a_program_of_another_commit_than_the_baseline_is_refused) {
    struct compare_row row = {.bench = gate_benches(), .floor = GATE_FLOOR};
    struct compare_request q = quickly(scripted("a", "echo 0.001 5"), scripted("b", "echo 0.001 5"));
    struct error e = {0};
    q.commit = "y";
    ck_assert_int_eq(compare_builds(&q, &row, 1, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "is of commit x, the baseline of y; name the program that wrote"), "%s", e.text);
    q.force = true;
    ck_assert_msg(compare_builds(&q, &row, 1, &e) == ST_OK && row.measured, "%s%s", e.text, row.detail);
    q.force = false;
    q.commit = "x";
    ck_assert_msg(compare_builds(&q, &row, 1, &e) == ST_OK && row.measured, "%s%s", e.text, row.detail);
}
END_TEST

/* A slow-down of a mixer that no bench trains would pass the gate. */
START_TEST(every_mixer_has_a_bench_of_its_step) {
    const struct gate_bench *bench;
    struct error e = {0};
    char name[80];
    int mixers = 0;
    for (const struct model *const *m = model_list(); *m; m++) {
        if ((*m)->hidden) continue;
        snprintf(name, sizeof name, "step-%s", (*m)->name);
        ck_assert_msg(gate_bench_find(name, &bench, &e) == ST_OK, "%s", e.text);
        mixers++;
    }
    ck_assert_int_ge(mixers, 30);
}
END_TEST

Suite *check_gate_peers(void);
Suite *check_gate_peers(void) {
    const TTest *const tests[] = {
        a_late_answer_is_no_regression, a_signal_is_no_regression, a_gate_needs_no_standard_input,
        a_program_of_another_commit_than_the_baseline_is_refused, every_mixer_has_a_bench_of_its_step};
    Suite *suite = suite_create("gate_peers");
    TCase *c = tcase_create("gate_peers");
    tcase_add_checked_fixture(c, program_begin_inside, program_end);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tcase_add_test(c, tests[i]);
    suite_add_tcase(suite, c);
    return suite;
}
