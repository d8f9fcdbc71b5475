/* check_limit.c - a time for training becomes a number of steps, once, and that is what the run is. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "harness/perf/speed.h"
#include "harness/run/signals.h"
#include "harness/store/logs.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"

static struct setup *small(const char *flag, const char *value) {
    return small_run(own_folder, "swiglu", "lru:state=4", flag, value);
}

static enum status apply(struct setup *s, double limit_s, struct error *e) {
    struct plan plan = {.setups = &s, .n = 1};
    return limits_apply(&plan, limit_s, 1, 1, true, e);
}

static void write_decision(const struct setup *s, double seconds, int64_t steps) {
    struct limit_row row = {.seconds = seconds, .steps = steps, .time_ns = 1, .threads = 1};
    struct error e = {0};
    snprintf(row.run_id, sizeof row.run_id, "%s", s->id.run_id);
    ck_assert_msg(limit_append(own_folder, &row, &e) == ST_OK, "%s", e.text);
}

START_TEST(what_was_decided_first_stays) {
    struct setup *limited = small("budget", "1h"), *same = small("stop-after", "7"), *whole = small(NULL, NULL);
    struct limit_row row;
    struct error e = {0};
    write_decision(limited, 3600, 7);
    write_decision(limited, 3600, 9);
    write_decision(limited, 60, 11); /* of another time */
    write_decision(whole, 3600, 13); /* of another run */
    ck_assert(limit_find(own_folder, limited->id.run_id, 3600, &row) && row.steps == 7);
    ck_assert(!limit_find(own_folder, limited->id.run_id, 61, &row));
    ck_assert_msg(apply(limited, 0, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(limited->shapes.steps, 7);
    ck_assert_int_eq(limited->shapes.schedule_steps, 30);
    ck_assert_str_eq(limited->id.run_id, same->id.run_id);
    ck_assert_str_eq(limited->id.text, same->id.text);
    ck_assert_str_ne(limited->id.run_id, whole->id.run_id);
    small_run_free(limited);
    small_run_free(same);
    small_run_free(whole);
}
END_TEST

START_TEST(time_enough_is_no_limit) {
    struct setup *limited = small("budget", "1h"), *whole = small(NULL, NULL), *cut = small("stop-after", "1000");
    struct limit_row row;
    struct error e = {0};
    char asked[RUN_ID_HEX];
    memcpy(asked, limited->id.run_id, sizeof asked);
    ck_assert_msg(apply(limited, 0, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(limited->shapes.steps, 30);
    ck_assert_str_eq(limited->id.run_id, whole->id.run_id);
    ck_assert_str_eq(cut->id.run_id, whole->id.run_id);
    ck_assert(limit_find(own_folder, asked, 3600, &row));
    ck_assert_int_eq(row.steps, 30);
    ck_assert_double_gt(row.time_ns, 0);
    small_run_free(limited);
    small_run_free(whole);
    small_run_free(cut);
}
END_TEST

START_TEST(the_smaller_of_limit_and_budget_counts) {
    struct setup *a = small("budget", "1h"), *b = small("budget", "2s");
    struct error e = {0};
    write_decision(a, 5, 6);
    write_decision(b, 2, 4);
    ck_assert_msg(apply(a, 5, &e) == ST_OK && apply(b, 5, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(a->shapes.steps, 6);
    ck_assert_int_eq(b->shapes.steps, 4);
    small_run_free(a);
    small_run_free(b);
}
END_TEST

/* Four runs on two processes: half of the limit each. With more processes than runs none has more than the limit. */
START_TEST(a_limit_is_shared_by_runs_and_processes) {
    static const struct {
        int runs, jobs;
        double seconds; /* of 6 */
    } shares[] = {{4, 2, 3}, {4, 1, 1.5}, {3, 2, 4}, {2, 2, 6}, {1, 8, 6}};
    struct error e = {0};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        struct setup *all[4];
        char seed[8];
        for (int j = 0; j < shares[i].runs; j++) {
            snprintf(seed, sizeof seed, "%zu%d", i + 1, j); /* of this row of the table alone */
            all[j] = small("seed", seed);
            write_decision(all[j], shares[i].seconds, 7 + j);
        }
        struct plan plan = {.setups = all, .n = shares[i].runs};
        ck_assert_msg(limits_apply(&plan, 6, shares[i].jobs, 1, true, &e) == ST_OK, "%s", e.text);
        for (int j = 0; j < shares[i].runs; j++) {
            ck_assert_int_eq(all[j]->shapes.steps, 7 + j);
            small_run_free(all[j]);
        }
    }
}
END_TEST

/* The steps are those that fit the time, by the time of one measured step. */
START_TEST(steps_are_the_time_by_that_of_a_step) {
    struct setup *s = small("epochs", "100000000");
    struct limit_row row;
    struct error e = {0};
    char asked[RUN_ID_HEX];
    memcpy(asked, s->id.run_id, sizeof asked);
    ck_assert_msg(apply(s, 7, &e) == ST_OK, "%s", e.text);
    ck_assert(limit_find(own_folder, asked, 7, &row));
    ck_assert_int_eq(row.steps, (int64_t)(7 / (1e-9 * row.time_ns)));
    ck_assert_int_eq(s->shapes.steps, row.steps);
    small_run_free(s);
}
END_TEST

/* Timed by itself each would have steps of its own, and a table per row for each. */
START_TEST(seeds_and_rates_of_a_row_go_equally_far) {
    struct setup *all[] = {small("seed", "1"), small("seed", "2"), small("lr", "0.5"), small("dim", "8")};
    struct plan plan = {.setups = all, .n = 3};
    struct limit_row row;
    struct error e = {0};
    char id[RUN_ID_HEX];
    memcpy(id, all[2]->id.run_id, sizeof id);
    write_decision(all[0], 5, 6);
    write_decision(all[3], 5, 9);
    ck_assert_msg(limits_apply(&plan, 5, 3, 1, true, &e) == ST_OK, "%s", e.text);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(all[i]->shapes.steps, 6);
    ck_assert(limit_find(own_folder, id, 5, &row));
    ck_assert_int_eq(row.steps, 6);
    ck_assert_double_eq(row.time_ns, 1);
    ck_assert_msg(apply(all[3], 5, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(all[3]->shapes.steps, 9);
    for (int i = 0; i < 4; i++) small_run_free(all[i]);
}
END_TEST

START_TEST(a_signal_ends_the_timing) {
    struct setup *s = small("seed", "1");
    struct error e = {0};
    signals_raise_stop();
    ck_assert_int_eq(apply(s, 5, &e), 128 + SIGTERM);
    ck_assert_msg(strstr(e.text, "the same command goes on") != NULL, "%s", e.text);
    small_run_free(s);
}
END_TEST

START_TEST(a_time_without_a_step_is_refused) {
    struct setup *s = small("budget", "0.000001s");
    struct limit_row row;
    struct error e = {0};
    ck_assert_int_eq(apply(s, 0, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "are over before the first") != NULL, "%s", e.text);
    ck_assert(!limit_find(own_folder, s->id.run_id, 1e-6, &row));
    small_run_free(s);
}
END_TEST

/* The whole way: a time, its steps in limits.csv, the record, and the same command once more. */
START_TEST(train_turns_a_budget_into_steps) {
    char line[SCRATCH_BYTES + 256];
    snprintf(line, sizeof line,
             "train s3:n_train=4000,n_val=40,n_test=40,length=6 lru:state=4 --dim 8 --epochs 100000 --budget 0.3s "
             "--keep-weights no --quiet --json --out %s/records",
             program_folder);
    char *first;
    expect_status(run(line), 0, line);
    first = strdup(out);
    json_t *result = parse_line(first);
    ck_assert_int_gt(whole(result, "steps"), 0);
    json_decref(result);
    expect_status(run(line), 0, line);
    ck_assert_str_eq(first, out);
    free(first);
}
END_TEST

Suite *check_limit(void);
Suite *check_limit(void) {
    Suite *suite = suite_create("limit");
    TCase *c = tcase_create("limit");
    tcase_add_checked_fixture(c, own_folder_begin, own_folder_end);
    tcase_add_test(c, what_was_decided_first_stays);
    tcase_add_test(c, time_enough_is_no_limit);
    tcase_add_test(c, the_smaller_of_limit_and_budget_counts);
    tcase_add_test(c, a_limit_is_shared_by_runs_and_processes);
    tcase_add_test(c, steps_are_the_time_by_that_of_a_step);
    tcase_add_test(c, seeds_and_rates_of_a_row_go_equally_far);
    tcase_add_test(c, a_signal_ends_the_timing);
    tcase_add_test(c, a_time_without_a_step_is_refused);
    suite_add_tcase(suite, c);
    c = tcase_create("program");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_add_test(c, train_turns_a_budget_into_steps);
    suite_add_tcase(suite, c);
    return suite;
}
