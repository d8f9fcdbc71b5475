/* check_paper_verdict.c - the verdict of each cell of a plan's table, and which cells have none. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/rows/paper_cells.h"
#include "tests/lib/own_plan.h"
#include "tests/testing.h"

/* --- the verdict -------------------------------------------------------------------------------------------------- */

struct judged {
    double ours, published;
    int done, planned, settings, n; /* n: of the paper */
    bool any_cut_off;
    enum paper_verdict verdict;
};

static void check_verdicts(enum report_protocol protocol, struct interval interval, const struct judged *list, int n) {
    for (int i = 0; i < n; i++) {
        const struct judged *j = &list[i];
        const struct paper_cell cell = {.done = j->done,
                                        .planned = j->planned,
                                        .settings = j->settings,
                                        .ours = j->ours,
                                        .interval = interval,
                                        .published = {.value = j->published, .spread = NAN, .kind = "", .n = j->n},
                                        .any_cut_off = j->any_cut_off};
        enum paper_verdict verdict = paper_judge(&cell, protocol);
        ck_assert_msg(verdict == j->verdict, "case %d: %s, expected %s", i + 1, paper_verdict_names[verdict],
                      paper_verdict_names[j->verdict]);
    }
}

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static const struct interval none = {NAN, NAN, NAN, INTERVAL_NONE};

/* A best grows with every run, up to 1: what it is not above yet it may be, unless that is too near to 1. */
START_TEST(a_best_of_fewer_runs_is_judged_where_more_could_not_change_it) {
    static const struct judged cases[] = {
        {0.50, 0.50, 15, 15, 1, 15, false, PAPER_WITHIN},   {0.50, 0.50, 14, 15, 1, 15, false, PAPER_UNFINISHED},
        {0.50, 0.50, 4, 4, 1, 15, false, PAPER_UNFINISHED}, {0.50, 0.50, 4, 4, 1, 0, false, PAPER_WITHIN},
        {0.30, 0.50, 15, 15, 1, 15, false, PAPER_BELOW},    {0.30, 0.50, 4, 4, 1, 15, false, PAPER_UNFINISHED},
        {0.70, 0.50, 1, 15, 1, 15, false, PAPER_ABOVE},     {1.00, 1.00, 1, 15, 1, 15, false, PAPER_WITHIN},
        {0.97, 0.98, 1, 15, 1, 15, false, PAPER_WITHIN},    {0.97, 0.97, 1, 15, 1, 15, false, PAPER_UNFINISHED},
    };
    check_verdicts(PROTOCOL_BEST_OF_GRID, none, cases, COUNT(cases));
}
END_TEST

/* The paper counts the runs of one setting, we count all runs. */
START_TEST(a_mean_over_settings_has_as_many_runs_of_each_as_the_papers) {
    static const struct judged cases[] = {
        {0.30, 0.50, 60, 60, 4, 15, false, PAPER_BELOW},  {0.30, 0.50, 16, 16, 4, 15, false, PAPER_UNFINISHED},
        {0.50, 0.50, 60, 60, 4, 15, false, PAPER_WITHIN}, {0.50, 0.50, 56, 56, 4, 15, false, PAPER_UNFINISHED},
        {0.70, 0.50, 16, 60, 4, 15, false, PAPER_ABOVE},
    };
    check_verdicts(PROTOCOL_BEST_OF_GRID, none, cases, COUNT(cases));
}
END_TEST

START_TEST(what_longer_runs_could_change_is_cut_off) {
    static const struct judged cases[] = {
        {0.30, 0.50, 15, 15, 1, 15, true, PAPER_CUT_OFF},
        {0.50, 0.50, 15, 15, 1, 15, true, PAPER_CUT_OFF},
        {0.70, 0.50, 15, 15, 1, 15, true, PAPER_ABOVE},
        {1.00, 1.00, 15, 15, 1, 15, true, PAPER_WITHIN},
    };
    check_verdicts(PROTOCOL_BEST_OF_GRID, none, cases, COUNT(cases));
    check_verdicts(PROTOCOL_VAL_MEAN, none, cases, COUNT(cases));
}
END_TEST

/* A mean may fall as well; and of fewer runs than the paper's it is one all the same. */
START_TEST(a_mean_is_judged_when_all_its_runs_are_done) {
    static const struct judged cases[] = {
        {0.50, 0.50, 5, 5, 1, 15, false, PAPER_WITHIN},    {0.50, 0.50, 4, 5, 1, 5, false, PAPER_UNFINISHED},
        {0.50, 0.95, 5, 5, 1, 15, false, PAPER_BELOW},     {0.50, 0.20, 5, 5, 1, 5, false, PAPER_ABOVE},
        {0.50, 0.20, 4, 5, 1, 5, false, PAPER_UNFINISHED}, {1.00, 1.00, 4, 5, 1, 5, false, PAPER_UNFINISHED},
        {0.50, 0.85, 5, 5, 1, 5, true, PAPER_CUT_OFF},
    };
    check_verdicts(PROTOCOL_VAL_MEAN, (struct interval){0.3, 0.9, 0.95, INTERVAL_T}, cases, COUNT(cases));
}
END_TEST

/* A paper that prints 1.00 may have had .995. */
START_TEST(what_the_papers_rounding_hides_is_no_difference) {
    static const struct {
        double low, high, published, rounding;
        enum paper_verdict verdict;
    } cases[] = {
        {0.99809, 0.9993, 1, 0.005, PAPER_WITHIN}, {0.99809, 0.9993, 1, 0.0005, PAPER_BELOW},
        {0.98, 0.994, 1, 0.005, PAPER_BELOW},      {0.3551, 0.38, 0.35, 0.005, PAPER_ABOVE},
        {0.3549, 0.38, 0.35, 0.005, PAPER_WITHIN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct paper_cell cell = {.done = 5,
                                  .planned = 5,
                                  .settings = 1,
                                  .ours = (cases[i].low + cases[i].high) / 2,
                                  .interval = {cases[i].low, cases[i].high, 0.95, INTERVAL_T},
                                  .published = PUBLISHED_NONE};
        cell.published.value = cases[i].published;
        cell.published.rounding = cases[i].rounding;
        enum paper_verdict verdict = paper_judge(&cell, PROTOCOL_VAL_MEAN);
        ck_assert_msg(verdict == cases[i].verdict, "case %zu: %s", i + 1, paper_verdict_names[verdict]);
        cell.interval = none; /* where our margin is wider than that */
        cell.ours = cases[i].published - PAPER_MARGIN - 0.9 * cases[i].rounding;
        ck_assert_int_eq(paper_judge(&cell, PROTOCOL_VAL_MEAN), PAPER_WITHIN);
    }
}
END_TEST

/* --- of whose runs ------------------------------------------------------------------------------------------------ */

/* A precision is no setting of a paper's: such runs have verdicts, in a table of their own. */
START_TEST(runs_of_another_precision_are_judged) {
    begin_plan(own_plan);
    expect("sweep %s/own.plan --precision bf16 --out %s/r --quiet", 0);
    expect(REPORT, 0);
    expect_text(out, "these are of its latest sweep there, with precision=bf16.", "report");
    expect(REPORT " --format csv", 0);
    expect_text(out, ",precision=bf16\n", "report");
    expect(REPORT " --where precision=bf16 --format csv", 0);
    expect_text(out, ",4,4,0,14,14,14,below,0,0,", "report");
    expect_text(out, ",4,4,0,14,14,14,above,0,0,", "report");
    expect(REPORT " --where 'precision=bf16 batch=64' --format csv", 0);
    expect_text(out, ",0,4,0,,,8,not run,0,1,", "report"); /* another batch is another setting */
}
END_TEST

/* A published spread that reaches our number makes it within; a standard deviation is one of values, not of their mean.
 * A best of four runs is not below a best of more. */
START_TEST(a_published_spread_is_printed_and_counts) {
    static const struct {
        const char *spread, *printed, *verdict;
    } cases[] = {{"0.999,ci90,15", "0.999 +- 0.999", ",within,"},
                 {"0.01,ci90,4", "0.999 +- 0.01", ",below,"},
                 {"0.01,ci90,5", "0.999 +- 0.01", ",unfinished,"},
                 {"0.9,sd,2", "0.999 +- 0.9", ",within,"},
                 {"0.9,sd,400", "0.999 +- 0.9", ",unfinished,"},
                 {"0.999,unknown,4", "0.999 +- 0.999", ",below,"},
                 {",none,4", "0.999 ", ",below,"},
                 {",none,", "0.999 ", ",below,"}};
    begin_plan(own_plan);
    expect("sweep %s/own.plan --quiet --out %s/r", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "paper,arxiv,table,row,task,model,metric,value,spread,spread_kind,n\n"
                 "P,1234.5678,Table 9,LRU!,s4,lru,acc,0.999,%s\n",
                 cases[i].spread);
        write_text("r/published.csv", text);
        expect(REPORT, 0);
        expect_text(out, cases[i].printed, cases[i].spread);
        expect(REPORT " --format csv", 0);
        expect_text(out, cases[i].verdict, cases[i].spread);
    }
}
END_TEST

START_TEST(runs_that_were_cut_off_are_not_below) {
    char text[1024];
    snprintf(text, sizeof text, "%sstop-after=3\n", own_plan);
    begin_plan(text);
    expect("sweep %s/own.plan --quiet --out %s/r", 0);
    expect_text(out, "* cut off: a limit of steps or time ended the run", "sweep");
    expect(REPORT " --format csv", 0);
    expect_text(out, ",3,3,14,cut off,1,0,", "report");
    expect_text(out, ",3,3,14,above,1,0,", "report");
}
END_TEST

START_TEST(another_profile_or_flag_is_another_setting) {
    begin_plan(own_plan);
    expect("sweep %s/own.plan --quiet --dim 8 --seeds 1 --lr 0.01 --out %s/r", 0);
    expect_text(out, "~ / 0.999", "sweep");
    expect_text(out, "~ the paper's setting differs, so there is no diff: dim=8 (16 there).", "sweep");
    begin_plan(own_plan); /* how often it is validated is none */
    expect("sweep %s/own.plan --quiet --eval-every 3 --seeds 1 --lr 0.01 --out %s/r", 0);
    ck_assert_msg(strstr(out, "~") == NULL, "%s", out);
    expect_text(out, "above", "sweep");
}
END_TEST

START_TEST(what_a_plan_says_to_be_another_setting_has_no_verdict) {
    char text[1024];
    snprintf(text, sizeof text, "%sdiffers.lru:state=4=narrower\n  than theirs\ndiffers.plstm=not there\n", own_plan);
    begin_plan(text);
    expect("sweep %s/own.plan --quiet --seeds 1 --lr 0.01 --out %s/r", 0);
    expect_text(out, "~ / 0.001", "sweep");
    ck_assert_msg(is_once("~ Not the paper's setting, lru:state=4: narrower than theirs.\n"), "%s", out);
    ck_assert_ptr_null(strstr(out, "not there")); /* it has no such row */
    ck_assert_ptr_null(strstr(out, "above"));
    expect(REPORT " --format csv", 0);
    expect_text(out, ",run_ids,differs,", "csv");
    expect_text(out, ",narrower than theirs,", "csv");
    expect(REPORT " --format html", 0);
    ck_assert_msg(is_once("narrower than theirs"), "%s", out);
    snprintf(text, sizeof text, "%sdiffers.lru=narrower\ndiffers.lstm=narrower\n", own_plan);
    begin_plan(text);
    expect(REPORT, 0);
    ck_assert_msg(is_once("~ Not the paper's setting, lru, lstm: narrower.\n"), "%s", out);
    ck_assert_msg(is_once("narrower"), "%s", out);
    snprintf(text, sizeof text, "%sdiffers=narrower\n", own_plan);
    begin_plan(text);
    expect(REPORT, 0);
    ck_assert_msg(is_once("~ Not the paper's setting: narrower.\n"), "%s", out);
}
END_TEST

/* Not of a row whose text begins with it, nor of models that the table does not have. */
START_TEST(a_difference_is_told_of_the_rows_that_have_it) {
    static const struct {
        const char *lines, *note, *cell;
    } cases[] = {
        {"differs.lru=narrower than theirs\ndiffers.lstm=narrower\n", ", lru: narrower than theirs.\n",
         ",narrower than theirs,"},
        {"differs.lru=narrower\ndiffers.lstm=narrower\n", ", lru: narrower.\n", ",narrower,"},
        {"differs.lstm=narrower\ndiffers.lru=narrower\ndiffers.lru:state=4=narrower\n",
         ", lru, lru:state=4: narrower.\n", ",narrower,"},
        {"differs.lru=narrower\ndiffers=narrower than theirs\n", " setting: narrower than theirs.\n",
         ",narrower; narrower than theirs,"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", own_plan, cases[i].lines);
        begin_plan(text);
        expect(REPORT " --where models=lru:state=4", 0);
        ck_assert_msg(is_once(cases[i].note), "%s", out);
        ck_assert_ptr_null(strstr(out, "lstm"));
        expect(REPORT " --where models=lru:state=4 --format csv", 0);
        expect_text(out, cases[i].cell, cases[i].lines);
    }
}
END_TEST

/* A cell has a bit for each. */
START_TEST(more_differences_than_a_cell_has_room_for_are_refused) {
    char text[4096];
    for (int more = 0; more < 2; more++) {
        size_t used = (size_t)snprintf(text, sizeof text, "%s", own_plan);
        for (int k = 1; k <= PAPER_MOST_DIFFERENCES + more; k++)
            used += (size_t)snprintf(text + used, sizeof text - used, "differs.lru:state=%d=%d\n", k, k);
        begin_plan(text);
        expect(REPORT, more ? ST_USAGE : 0);
        if (!more) ck_assert_msg(is_once("~ Not the paper's setting, lru:state=4: 4.\n"), "%s", out);
        expect("sweep %s/own.plan --dry-run --out %s/n", more ? ST_USAGE : 0);
        if (more) expect_text(err, "own: it says more than 64 differences from the paper's setting", "sweep");
    }
}
END_TEST

/* Whether all cells of own.plan, without a run, are marked as another setting. */
static bool are_others(const char *flags) {
    char arguments[512];
    snprintf(arguments, sizeof arguments, REPORT " --format csv %s", "%s", "%s", flags);
    expect(arguments, 0);
    bool others = strstr(out, ",not run,0,1,"), own = strstr(out, ",not run,0,0,");
    ck_assert_msg(others != own, "%s: %s", flags, out);
    return others;
}

/* However a change is asked for, and whatever profile it is of. */
START_TEST(every_way_to_change_a_setting_is_seen) {
    char flags[256];
    begin_plan(own_plan);
    ck_assert(!are_others(""));
    ck_assert(are_others("--where dim=8"));
    ck_assert(are_others("--where dim=8,16"));
    ck_assert(are_others("--where models=lru:state=5"));
    ck_assert(are_others("--task s3:n_train=200,n_val=20,n_test=20,length=5"));
    ck_assert(!are_others("--task s3")); /* it names the plan's */
    ck_assert(!are_others("--task s3:n_train=200,n_val=20,n_test=20,length=4"));
    write_text("c.conf", "dim=8\n");
    snprintf(flags, sizeof flags, "--where c=%s/c.conf", program_folder);
    ck_assert(are_others(flags));
    write_text("c.conf", "threads=2\n");
    ck_assert(!are_others(flags));
}
END_TEST

/* A plan with other runs than the program's own has for the paper's table, whatever it is based on. */
START_TEST(a_plan_of_ones_own_is_compared_with_the_programs) {
    static const struct {
        const char *lines;
        bool others;
    } cases[] = {{"", false},
                 {"dim=16\n", true},
                 {"model.gate=none\n", true},
                 {"epochs=2\n", true},
                 {"dropout=.1\n", true},
                 {"protocol=val-mean\n", true},
                 {"precision=bf16\n", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512], path[512];
        snprintf(text, sizeof text, "base=hlru-table2\ntasks=s3\nmodels=bdlru:m=5\n%s", cases[i].lines);
        begin_plan(text);
        snprintf(path, sizeof path, "%s/r/published.csv", program_folder);
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_msg(are_others("") == cases[i].others, "%s: %s", cases[i].lines, out);
    }
}
END_TEST

/* Flags that say where and how numbers are computed, and for how long. */
START_TEST(how_a_run_is_computed_is_no_setting_of_a_papers) {
    static const char *const flags[] = {"device=cuda",  "kernel=reference", "precision=tf32", "budget=1m",
                                        "stop-after=3", "eval-every=3",     "seeds=7",        "lr=0.5"};
    char text[64];
    begin_plan(own_plan);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        snprintf(text, sizeof text, "--where %s", flags[i]);
        ck_assert_msg(!are_others(text), "%s", text);
    }
}
END_TEST

/* The paper's number is a mean over the task and its changes. */
START_TEST(a_cell_without_all_its_settings_is_of_another_one) {
    char text[512];
    static const char tasks[] = "title=T\npaper=0\nsource=F\nprofile=smoke\ntasks=hlru-recall\nmodels=lstm:hidden=4\n"
                                "seeds=1\nlr=0.1\n";
    snprintf(text, sizeof text, "%svariants=yes\n", tasks);
    begin_plan(text);
    ck_assert(!are_others(""));
    ck_assert(are_others("--where variants=no"));
    begin_plan(tasks);
    ck_assert(!are_others("--where variants=no"));
    ck_assert(are_others("--where variants=yes"));
    snprintf(text, sizeof text, "%stask.vocab=16,32\n", tasks);
    begin_plan(text);
    ck_assert(are_others("--where grid=task.vocab=16"));
    snprintf(text, sizeof text, "%stask.n_train=64,256\n", tasks); /* of other numbers of steps */
    begin_plan(text);
    ck_assert(!are_others(""));
    ck_assert(are_others("--where grid=task.n_train=64"));
    snprintf(text, sizeof text, "%ssteps=4,8\nrows=model steps\n", tasks);
    begin_plan(text);
    ck_assert(!are_others("--where steps=4"));
    snprintf(text, sizeof text, "%stask.vocab=16,32\ncolumns=task.vocab\n", tasks);
    begin_plan(text); /* there each is a cell of its own */
    ck_assert(!are_others("--where grid=task.vocab=16"));
    ck_assert(are_others("--where grid=task.vocab=8"));
}
END_TEST

Suite *check_paper_verdict(void) {
    Suite *suite = suite_create("paper_verdict");
    TCase *c = tcase_create("paper_verdict");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, a_best_of_fewer_runs_is_judged_where_more_could_not_change_it);
    tcase_add_test(c, a_mean_over_settings_has_as_many_runs_of_each_as_the_papers);
    tcase_add_test(c, what_longer_runs_could_change_is_cut_off);
    tcase_add_test(c, a_mean_is_judged_when_all_its_runs_are_done);
    tcase_add_test(c, what_the_papers_rounding_hides_is_no_difference);
    tcase_add_test(c, runs_of_another_precision_are_judged);
    tcase_add_test(c, a_published_spread_is_printed_and_counts);
    tcase_add_test(c, runs_that_were_cut_off_are_not_below);
    tcase_add_test(c, another_profile_or_flag_is_another_setting);
    tcase_add_test(c, what_a_plan_says_to_be_another_setting_has_no_verdict);
    tcase_add_test(c, a_difference_is_told_of_the_rows_that_have_it);
    tcase_add_test(c, more_differences_than_a_cell_has_room_for_are_refused);
    tcase_add_test(c, every_way_to_change_a_setting_is_seen);
    tcase_add_test(c, a_plan_of_ones_own_is_compared_with_the_programs);
    tcase_add_test(c, how_a_run_is_computed_is_no_setting_of_a_papers);
    tcase_add_test(c, a_cell_without_all_its_settings_is_of_another_one);
    suite_add_tcase(suite, c);
    return suite;
}
