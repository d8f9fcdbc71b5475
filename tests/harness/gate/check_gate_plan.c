/* check_gate_plan.c - the gate of a plan: what it says of runs beside what the plan expects and beside its baseline. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/gate/gate.h"
#include "harness/store/files.h"
#include "harness/store/history.h"
#include "harness/store/logs.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"

/* --- plans -------------------------------------------------------------------------------------------------------- */

#define S3    "s3:length=6,n_train=200,n_val=50,n_test=50"
#define SIZES "dim=8\nlayers=1\nmlp=none\nbatch=16\nsteps=40\neval-every=10\n"

static void spill_in_folder(const char *name, const char *text) {
    char path[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", program_folder, name);
    spill(path, text, strlen(text));
}

static char *slurp_in_folder(const char *name) {
    char path[SCRATCH_BYTES + 64];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", program_folder, name);
    return slurp(path, &size);
}

static void expect_file(const char *name, const char *part) {
    char *text = slurp_in_folder(name);
    expect_text(text, part, name);
    free(text);
}

static void write_plan(const char *lines, const char *expected) {
    char text[2048];
    snprintf(text, sizeof text, SIZES "%s%s", lines, expected);
    spill_in_folder("gate.plan", text);
}

/* Sequences of two tokens, whose label is the first one: what any mixer that remembers learns in a few steps. */
static void write_own_data(void) {
    struct printed p;
    struct error e;
    ck_assert_int_eq(printed_begin(&p, "words", &e), ST_OK);
    for (int i = 0; i < 200; i++)
        fprintf(p.f, "{\"input\": [%d, %d, %d, %d], \"label\": %d}\n", i & 1, i >> 1 & 1, i >> 2 & 1, i % 5 & 1, i & 1);
    ck_assert_int_eq(printed_end(&p, ST_OK, "words", &e), ST_OK);
    spill_in_folder("words.jsonl", p.text);
    free(p.text);
}

static void expect_gate(const char *flags, int status, const char *text) {
    char arguments[256];
    snprintf(arguments, sizeof arguments, "gate gate.plan %s", flags);
    expect_status(run(arguments), status, arguments);
    expect_text(status == 1 || status == 2 || status == 5 ? err : out, text, arguments);
}

static int lines_of_history(void) {
    char *text = slurp_in_folder("results/gate.jsonl");
    int n = 0;
    for (const char *c = text; *c; c++) n += *c == '\n';
    free(text);
    return n;
}

/* From data of one's own to files for CI. The first run makes the baseline, the next one has its bits. */
START_TEST(own_data_go_through_the_gate) {
    write_own_data();
    write_plan("tasks=words.jsonl\nmodels=lstm:hidden=8\nlr=0.05\nseeds=5\n",
               "expect acc >= .9\nexpect steps_to_70 <= 40\nexpect test_loss = 1 of baseline\nexpect params >= 1\n");
    expect_gate("", 0, "this run makes the baseline; 5 seeds");
    expect_text(out, "gate.baseline: written, 4 figures", "the first run");
    expect_gate("--junit j.xml --markdown g.md --badge b.svg", 0, "the gate: same");
    expect_text(out, "own:name=words lstm:hidden=8", "the second run");
    ck_assert_int_eq(lines_of_history(), 2);
    expect_file("j.xml", "<property name=\"figure\" value=\"acc\"/><property name=\"sense\" value=\"&gt;=\"/>"
                         "<property name=\"value\" value=\"");
    expect_file("j.xml", "<property name=\"bound\" value=\"0.9\"/>");
    expect_file("g.md", "## Gate: same\n\n4 of 4 comparisons are as they should be.\n");
    expect_file("b.svg", "<title>gate: passing</title>");
    expect_file("results/gate.jsonl", "\"name\":\"gate\",\"verdict\":\"same\"");
    expect_gate("--update", 0, "4 of 4 figures are the same");
}
END_TEST

/* Other runs than those of the baseline are no comparison that could pass. */
START_TEST(a_changed_seed_is_red) {
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=2\n", "expect test_loss <= 1.5 of baseline\n");
    expect_gate("", 0, "the gate: same");
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=2,3\n", "expect test_loss <= 1.5 of baseline\n");
    expect_gate("--badge b.svg", 3,
                "the baseline has the 2 seeds from 1 on, the plan 2 from 2 on; --update takes them");
    expect_file("b.svg", "<title>gate: regressed</title>");
    expect_gate("--update", 0, "The baseline, before and after");
    expect_text(out, "0 of 1 figures are the same", "--update");
    expect_gate("", 0, "the gate: same");
}
END_TEST

/* A gradient that teaches nothing leaves the loss where it was, and no bit as it was. */
START_TEST(runs_that_learn_nothing_are_red) {
    static const char expected[] = "expect test_loss <= 1.05 of baseline\nexpect val_loss = 1 of baseline\n"
                                   "expect steps_to_90 <= 40\n";
    write_own_data();
    write_plan("tasks=words.jsonl\nmodels=lstm:hidden=8\nlr=0.05\nlr-min=1e-10\nseeds=2\n", expected);
    expect_gate("", 0, "the gate: same");
    write_plan("tasks=words.jsonl\nmodels=lstm:hidden=8\nlr=1e-9\nlr-min=1e-10\nseeds=2\n", expected);
    expect_gate("--format csv", 3, "regressed,test_loss,");
    expect_text(out, "regressed,val_loss,", "no bit");
    expect_text(out, "regressed,steps_to_90,inf,,,<=,40,,,,,\"2 of 2 seeds have none; values inf, inf\"", "never");
}
END_TEST

/* A figure that the plan no longer expects is red, since it would pass unseen; a red first run makes no baseline. */
START_TEST(lost_figures_are_red_and_red_runs_make_no_baseline) {
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=1\n", "expect params >= 1e9\n");
    expect_gate("", 3, "regressed");
    ck_assert(!is_in_folder("gate.baseline"));
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=1\n", "expect params >= 1\nexpect acc >= 0\n");
    expect_gate("", 0, "gate.baseline: written, 2 figures");
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=1\n", "expect params >= 1\n");
    expect_gate("", 3, "the baseline has it and the plan no more; --update takes it out if that is meant");
    expect_gate("--update", 0, "1 of 1 figures are the same");
}
END_TEST

START_TEST(an_expectation_is_for_the_cells_that_it_names) {
    write_plan("tasks=" S3 " parity:max_length=4,eval_min_length=4,eval_max_length=6,n_val=8,n_test=8\n"
               "models=lstm:hidden=8 mingru\nlr=0.02\nseeds=1\n",
               "expect params >= 1 for lstm s3\nexpect steps <= 40 for parity\n");
    expect_gate("--format json", 0, "\"name\":\"" S3 " lstm:hidden=8\",\"verdict\":\"same\",\"figure\":\"params\"");
    int rows = 0;
    for (const char *at = out; (at = strstr(at, "\"kind\"")); at++) rows++;
    ck_assert_int_eq(rows, 3);
    expect_text(err, "the gate: same", "--format json");
}
END_TEST

/* A layer of a cell has an MLP beside its mixer. */
START_TEST(an_expectation_names_a_mixer_with_its_options) {
    static const char plan[] = "dim=8\nlayers=1\nbatch=16\nsteps=4\neval-every=2\ntasks=" S3 "\n"
                               "models=lstm:hidden=8 attention\nlr=0.02\nseeds=1\n"
                               "expect params >= 1 for attention\nexpect params >= 1 for lstm:hidden=8\n";
    spill_in_folder("gate.plan", plan);
    expect_gate("--format csv", 0, " attention");
    expect_text(out, " lstm:hidden=8", "its options");
}
END_TEST

START_TEST(a_bad_line_is_named_before_anything_is_trained) {
    static const struct {
        const char *line, *said;
    } cases[] = {
        {"expect acc >= 1.2", "line 11: acc >= 1.2: no acc is below 0 or above 1"},
        {"expect steps_to_90 <= 0", "line 11: steps_to_90 <= 0: no steps_to_90 is below 1 or above inf"},
        {"expect test_acc >= -1", "line 11: test_acc >= -1: no test_acc is below 0 or above 1"},
        {"expect ac >= .9", "line 11: unknown figure 'ac'; did you mean 'acc'?"},
        {"expect steps_to_101 <= 5", "line 11: unknown figure 'steps_to_101'"},
        {"expect task >= 5", "line 11: unknown figure 'task'"},
        {"expect acc > .9", "line 11: '>' is no comparison; expected 'expect FIGURE >= BOUND'"},
        {"expect acc", "line 11: 'acc': expected 'expect FIGURE >= BOUND'"},
        {"expect acc >= nan", "line 11: 'nan' is no number"},
        {"expect", "line 11: expect has no figure and no bound"},
        {"expect acc >= .9 of base", "line 11: 'of base': expected 'of baseline'"},
        {"expect acc >= -1 of baseline", "line 11: -1 of baseline: expected a number above 0"},
        {"expect acc >= .9 now", "line 11: 'now' stands after the bound"},
        {"expect acc >= .9 for", "line 11: 'for' names no task and no model"},
        {"expect acc >= .9 for gru", "line 11: the plan has no cell of 'gru'; one of its cells is s3, lstm"},
        {"expct acc >= .9", "line 11: unknown key 'expct acc >'"},
        {"expect acc >= .9\n for lstm", "line 12: begins with a blank; write what is expected in one line"},
        {"note=none", "gate.plan expects nothing; add a line such as 'expect acc >= .99'"},
        {"measure=speed\nexpect acc >= .9", "gate.plan has measure=speed and trains nothing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_plan("tasks=" S3 "\nmodels=lstm\nlr=0.02\nseeds=1\n", cases[i].line);
        expect_gate("", 2, cases[i].said);
        ck_assert_msg(strchr(err, '\n') == err + strlen(err) - 1, "%s", err);
    }
    write_plan("tasks=" S3 "\nmodels=lstm\nlr=0.02\nseeds=1\n", "expect acc >= .9\n");
    expect_gate("--against /bin/true", 2, "expects no speed of a baseline; add 'expect tokens/s >= .9 of baseline'");
    expect_gate("--accuracy", 2, "gate PLAN has no use for --accuracy");
    ck_assert(!is_in_folder("results") && !is_in_folder("gate.baseline"));
    expect_status(run("gate nothere.plan"), 5, "nothere.plan");
    expect_status(run("bench gate.plan --dry-run --quiet"), 0, "bench passes over what is expected");
}
END_TEST

/* A run's step, served as by the gate, by a program that takes twice its time. */
START_TEST(a_slowed_kernel_is_red) {
    char plan[SCRATCH_BYTES + 16], folder[SCRATCH_BYTES + 16];
    const char *own = REAL_IS_DOUBLE ? named_program("LRNN_F64", "./lrnn-f64") : named_program("LRNN", "./lrnn");
    struct error e = {0};
    struct gate_result *r = calloc(1, sizeof *r);
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=1\n", "expect tokens/s >= .9 of baseline\n");
    snprintf(plan, sizeof plan, "%s/gate.plan", program_folder);
    struct plan_gate q = {.plan = plan, .out = folder, .quiet = true};
    q.compare = (struct compare_request){.a = own, .b = own, .pairs = 12, .load = 1, .seed = 1};
    for (int slow = 0; slow < 2; slow++) {
        snprintf(folder, sizeof folder, "%s/out%d", program_folder, slow);
        q.compare.delay = slow;
        ck_assert_msg(gate_plan(&q, r, &e) == ST_OK, "%s", e.text);
        const struct gate_row *row = &r->rows[slow];
        ck_assert_int_eq(r->n, slow + 1);
        ck_assert_msg(row->speed.measured && row->low <= row->value && row->value <= row->high, "%s", row->detail);
        if (slow) ck_assert_msg(row->verdict == VERDICT_REGRESSED && row->value < 0.8, "%g", row->value);
        if (!slow) ck_assert_msg(row->verdict != VERDICT_REGRESSED && row->made.value[0] > 0, "%g", row->value);
    }
    q.compare.a = "/bin/true"; /* an old program that serves no run */
    snprintf(folder, sizeof folder, "%s/out2", program_folder);
    ck_assert_msg(gate_plan(&q, r, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(!r->rows[2].compared && strstr(r->rows[2].detail, "/bin/true does not serve"), "%s",
                  r->rows[2].detail);
    free(r);
}
END_TEST

/* Without another program the baseline's own speed stands beside sittings of this one, on the same machine alone. */
START_TEST(a_speed_is_compared_with_that_of_this_machine) {
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=1\n",
               "expect tokens/s >= .01 of baseline\nexpect tokens/s >= 1\n");
    expect_gate("--load 1 --seconds 0", 0, "this run makes the baseline; 5 sittings");
    expect_gate("--load 1 --seconds 0", 0, "the gate: same");
    struct error e;
    struct baseline *b = calloc(1, sizeof *b);
    char path[SCRATCH_BYTES + 16];
    snprintf(path, sizeof path, "%s/gate.baseline", program_folder);
    ck_assert_int_eq(baseline_read(b, path, &e), ST_OK);
    ck_assert_int_eq(b->n_figures, 1);
    snprintf(b->machine_id, sizeof b->machine_id, "0123456789abcdef");
    ck_assert_int_eq(baseline_write(b, path, &e), ST_OK);
    expect_gate("--load 1 --seconds 0", 4, "the baseline is of machine 0123456789abcdef");
    expect_gate("--load 1 --seconds 0 --force", 0, "Chosen by who asked: --force");
    snprintf(b->real, sizeof b->real, "fp16");
    ck_assert_int_eq(baseline_write(b, path, &e), ST_OK);
    expect_gate("--load 1 --seconds 0", 2, "is of fp16, this program computes in ");
    free(b);
}
END_TEST

/* --- the history -------------------------------------------------------------------------------------------------- */

#define LINE                                                                                                           \
    "{\"gate\":1,\"date\":\"d\",\"commit\":\"c\",\"machine\":\"m\",\"name\":\"%d\",\"verdict\":\"same\",\"figures\":[" \
    "]}"

/* Each line is whole. One that a writer left without its end, one of a later version and one that is none stay as they
 * are, and the last is named. */
START_TEST(many_writers_lose_no_line_of_the_history) {
    enum { WRITERS = 8, LINES = 20 };
    char path[SCRATCH_BYTES + 16], line[256];
    struct history h;
    struct error e = {0};
    struct printed broken;
    static const char before[] = "{\"gate\":2,\"new\":true}\nno line\n{\"gate\":1,\"date\":\"torn";
    snprintf(path, sizeof path, "%s/gate.jsonl", program_folder);
    spill(path, before, strlen(before));
    pid_t writers[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        writers[w] = fork();
        if (writers[w]) continue;
        enum status status = ST_OK;
        for (int i = 0; i < LINES && status == ST_OK; i++) {
            snprintf(line, sizeof line, LINE, w * LINES + i);
            status = line_append(path, line, &e);
        }
        _exit(status != ST_OK);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        waitpid(writers[w], &status, 0);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_int_eq(printed_begin(&broken, path, &e), ST_OK);
    ck_assert_msg(history_read(&h, path, broken.f, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(printed_end(&broken, ST_OK, path, &e), ST_OK);
    ck_assert_int_eq(h.n, WRITERS * LINES);
    ck_assert_int_eq(h.later, 1);
    ck_assert_ptr_nonnull(strstr(broken.text, "gate.jsonl line 2: "));
    ck_assert_ptr_nonnull(strstr(broken.text, "gate.jsonl line 3: "));
    ck_assert_ptr_null(strstr(broken.text, "line 4: "));
    bool seen[WRITERS * LINES] = {false};
    for (int i = 0; i < h.n; i++) seen[atoi(json_string_value(json_object_get(h.lines[i], "name")))] = true;
    for (int i = 0; i < h.n; i++) ck_assert_msg(seen[i], "line %d is lost", i);
    char *text = slurp_in_folder("gate.jsonl");
    ck_assert_int_eq(strncmp(text, before, strlen(before)), 0);
    free(text);
    free(broken.text);
    history_free(&h);
    ck_assert_int_eq(history_read(&h, "/nowhere/gate.jsonl", NULL, &e), ST_OK); /* an empty history */
    ck_assert_int_eq(h.n, 0);
    history_free(&h);
}
END_TEST

START_TEST(a_history_that_cannot_be_written_is_an_error) {
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=1\n", "expect params >= 1e9\n");
    expect_gate("--history /dev/null/gate.jsonl", 1, "/dev/null/gate.jsonl: Not a directory");
    expect_gate("--history .", 1, "cannot write the history .: Is a directory");
    ck_assert_msg(!is_in_folder("results"), "it is told before anything is trained");
    expect_gate("--history /dev/full --badge b.svg", 3, "the gate: regressed"); /* found out only by writing */
    expect_text(err, "/dev/full", "the history");
    expect_file("b.svg", "<title>gate: regressed</title>");
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=1\n", "expect params >= 1\n");
    expect_gate("--history /dev/full", 1, "/dev/full");
    expect_text(out, "the gate: same", "a good verdict that is not kept");
}
END_TEST

/* Each file that a gate replaces fails once, after the training. */
START_TEST(a_file_that_cannot_be_written_hides_no_verdict) {
    static const char *const files[] = {"gate.baseline", "gate.xml", "gate.md", "gate.svg"};
    bool failed[4] = {false};
    int more = 1;
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=1\n", "expect params >= 1e9\n");
    for (int nth = 1; more; nth++) {
        char words[2048];
        snprintf(words, sizeof words,
                 "LRNN_FAIL=rename:%d LD_PRELOAD=%s %s gate gate.plan --update --junit gate.xml "
                 "--markdown gate.md --badge gate.svg",
                 nth, named_program("LRNN_FAULTS", "build/faults.so"), named_program("LRNN", "./lrnn"));
        int status = run_program(program_folder, "env", words);
        more = 0;
        for (int i = 0; i < 4; i++) {
            if (!strstr(err, files[i])) continue;
            failed[i] = true;
            expect_status(status, 3, words);
            expect_text(out, "the gate: regressed", words);
        }
        more = *err || nth < 4;
        ck_assert_int_lt(nth, 40);
    }
    for (int i = 0; i < 4; i++) ck_assert_msg(failed[i], "%s never failed", files[i]);
}
END_TEST

/* A name is bytes, a line of the history is UTF-8. */
START_TEST(a_plan_of_any_name_has_a_line_in_the_history) {
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=1\n", "expect params >= 1\n");
    ck_assert_int_eq(rename("gate.plan", "n\xff.plan"), 0);
    expect_status(run("gate n\xff.plan"), 0, "a name that is no UTF-8");
    expect_file("results/gate.jsonl", "\"name\":\"n?\"");
}
END_TEST

/* --- the baseline ------------------------------------------------------------------------------------------------- */

START_TEST(a_damaged_baseline_is_replaced_by_update) {
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=1\n", "expect params >= 1\n");
    spill_in_folder("gate.baseline", "no baseline");
    expect_gate("", 5, "`lrnn gate PLAN --update` that of a plan");
    expect_gate("--update", 0, "gate.baseline: written, 1 figures");
    expect_gate("", 0, "the gate: same");
    expect_gate("--baseline a%s%n%d.b", 0, "a%s%n%d.b: written, 1 figures"); /* a name, and no format */
}
END_TEST

/* Speeds beside busy neighbours would let slow programs pass from then on. */
START_TEST(a_busy_machine_makes_no_baseline) {
    pid_t busy[64];
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (cores > 64) cores = 64;
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=1\n", "expect tokens/s >= .9 of baseline\n");
    for (int i = 0; i < cores; i++) {
        busy[i] = fork();
        if (busy[i] == 0)
            for (volatile int spin = 0;; spin = !spin) continue;
    }
    int first = run("gate gate.plan --load 0.01"), update = run("gate gate.plan --load 0.01 --update");
    for (int i = 0; i < cores; i++) {
        kill(busy[i], SIGKILL);
        waitpid(busy[i], NULL, 0);
    }
    expect_status(first, 4, "the first run");
    expect_status(update, 4, "--update");
    expect_text(out, "gate.baseline: not written, since the speed of " S3, "--update");
    ck_assert(!is_in_folder("gate.baseline"));
}
END_TEST

/* Whoever reads the verdict sees by which flags it was made easier. */
START_TEST(flags_that_ease_a_verdict_are_disclosed) {
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=1\n", "expect params >= 1\n");
    expect_gate("--force --load 1 --pairs 3", 0, "Chosen by who asked: --force --load 1 --pairs 3");
}
END_TEST

/* Two gates that begin in one second. */
START_TEST(gates_share_no_folder) {
    char plan[SCRATCH_BYTES + 16], folder[SCRATCH_BYTES + 16];
    struct error e = {0};
    struct gate_result *r = calloc(1, sizeof *r);
    write_plan("tasks=" S3 "\nmodels=lstm:hidden=8\nlr=0.02\nseeds=1\n", "expect params >= 1\n");
    snprintf(plan, sizeof plan, "%s/gate.plan", program_folder);
    snprintf(folder, sizeof folder, "%s/gate", program_folder);
    const struct plan_gate q = {.plan = plan, .out = folder, .quiet = true, .compare = {.a = "", .b = ""}};
    for (int i = 0; i < 3; i++) ck_assert_msg(gate_plan(&q, r, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(records_in("gate"), 1);
    ck_assert_int_eq(records_in("gate-2"), 1);
    ck_assert_int_eq(records_in("gate-3"), 1);
    free(r);
}
END_TEST

Suite *check_gate_plan(void);
Suite *check_gate_plan(void) {
    const TTest *const tests[] = {own_data_go_through_the_gate,
                                  a_changed_seed_is_red,
                                  runs_that_learn_nothing_are_red,
                                  lost_figures_are_red_and_red_runs_make_no_baseline,
                                  an_expectation_is_for_the_cells_that_it_names,
                                  an_expectation_names_a_mixer_with_its_options,
                                  a_bad_line_is_named_before_anything_is_trained,
                                  a_slowed_kernel_is_red,
                                  a_speed_is_compared_with_that_of_this_machine,
                                  many_writers_lose_no_line_of_the_history,
                                  a_history_that_cannot_be_written_is_an_error,
                                  a_file_that_cannot_be_written_hides_no_verdict,
                                  a_plan_of_any_name_has_a_line_in_the_history,
                                  a_damaged_baseline_is_replaced_by_update,
                                  a_busy_machine_makes_no_baseline,
                                  flags_that_ease_a_verdict_are_disclosed,
                                  gates_share_no_folder};
    Suite *suite = suite_create("gate_plan");
    TCase *c = tcase_create("gate_plan");
    tcase_add_checked_fixture(c, start_kernels, NULL);
    tcase_add_checked_fixture(c, program_begin_inside, program_end);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tcase_add_test(c, tests[i]);
    suite_add_tcase(suite, c);
    return suite;
}
