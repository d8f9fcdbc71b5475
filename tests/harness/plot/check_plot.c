/* check_plot.c - figures of fixture records. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/batch.h"
#include "harness/plot/gnuplot.h"
#include "harness/plot/plot.h"
#include "harness/store/files.h"
#include "tests/harness/plot/plot_fixture.h"

START_TEST(plots_are_drawn_and_nothing_else_is_left) {
    add_grid();
    add_run("lstm;swiglu", 1e-3, 0, 0.9, 0.9);
    spoil(add_run("lru;swiglu", 1e-3, 0, 0.9, 0.9), RUN_NAN, "loss");
    fixture_records[fixture_set.n - 1].n_curve = 0;
    ck_ok(plot(NULL, NULL));
    ck_is_image("s5-table.svg");
    ck_is_image("s5-table.png");
    ck_is_image("s5-accuracy.svg");
    ck_is_image("s5-accuracy.png");
    ck_assert_int_eq(scratch_count(fixture_folder, ""), 4);
}
END_TEST

START_TEST(names_that_mean_something_to_a_shell_or_to_gnuplot_are_harmless) {
    struct run *run = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    strcpy(run->layers, "a'b\"`touch owned`$(touch owned)\n'.system('touch owned').'{/x}^y_z@5%d%%n%;swiglu");
    fixture_records[0].config[0] = 0; /* its mixer is then what it is called */
    strcpy(run->task, "../x'\n`touch owned`$(touch owned)|\"");
    ck_ok(plot(NULL, "table"));
    ck_ok(plot(NULL, "accuracy"));
    ck_assert_int_eq(scratch_count(fixture_folder, "owned"), 4); /* in the names of the four images only */
    ck_assert_int_eq(scratch_count(fixture_folder, ""), 4);
    ck_assert_int_ne(access("owned", F_OK), 0);
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/owned", fixture_folder);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* Epochs count as in the trainer: 1000 examples are eight batches of 128, the last of them not full. */
START_TEST(an_epoch_ends_with_a_batch_that_may_not_be_full) {
    const struct plot_view epochs = {.x = PLOT_EPOCHS};
    stand_in_for_gnuplot();
    add_run("lstm;swiglu", 1e-3, 0, 0.3, 0.3)->n_train = 1000;
    ck_ok(report_plot_view(&fixture_set, NULL, "accuracy", &epochs, fixture_folder, fixture_folder, &fixture_problem));
    char *data = kept("data.kept");
    ck_assert_ptr_eq(strstr(data, "12.5\t0.1\n25\t0.2\n37.5\t0.3\n"), data);
    free(data);
}
END_TEST

/* One of two seeds ends at step 200: past that the row is unknown. */
START_TEST(a_curve_ends_where_the_first_of_its_runs_was_cut_off) {
    stand_in_for_gnuplot();
    cut_off(add_run("lstm;swiglu", 1e-3, 0, 0.3, 0.3), 200);
    add_run("lstm;swiglu", 1e-3, 1, 0.6, 0.6);
    add_run("lru;swiglu", 1e-3, 1, 0.9, 0.9);
    ck_ok(plot(NULL, "accuracy"));
    char *data = kept("data.kept"), *script = kept("script.kept");
    ck_assert_str_eq(data, "100\t0.3\n200\t0.6\n300\t0.9\n\n\n"
                           "100\t0.15\n200\t0.3\n\n\n"
                           "100\t0.1\n200\t0.2\n300\t0.3\n0\tNaN\n\n\n100\t0.2\n200\t0.4\n300\t0.6\n0\tNaN\n\n\n");
    ck_holds(script, "name[1] = 'lru'\nname[2] = 'lstm *'\n");
    ck_holds(script, "; * cut off; D = ");
    free(data);
    free(script);
}
END_TEST

/* The reader's choice stands before what all rows share; a word that no line has room for fills lines. */
START_TEST(a_long_foot_loses_its_end_and_not_the_readers_choice) {
    const struct report_filter some = {.where = "lr=0.001"};
    char word[161] = "";
    memset(word, 'a', 160);
    stand_in_for_gnuplot();
    identify(add_run("lstm;swiglu", 1e-3, 0, 0.3, 0.3), "from-xxh3", word);
    ck_ok(plot(&some, "accuracy"));
    char *script = kept("script.kept");
    ck_holds(script, "foot[1] = 'Of all runs those alone with --where ''lr=0.001''. All rows:");
    word[130] = 0;
    ck_holds(script, word);
    ck_holds(script, "feet = 3\n");
    free(script);
}
END_TEST

/* One diverged after step 100, one at once: what is left has a mean, and the legend says of how many. */
START_TEST(a_model_stays_in_the_plot_of_loss_when_runs_of_it_fail) {
    const struct plot_view loss = {.x = PLOT_STEPS, .y = PLOT_LOSS};
    for (int i = 0; i < 3; i++) add_run("lru;swiglu", 1e-3, (uint64_t)i, 0.3, 0.3);
    add_run("lstm;swiglu", 1e-3, 0, 0.6, 0.6);
    spoil(&fixture_records[1].run, RUN_DIVERGED, "loss");
    spoil(&fixture_records[2].run, RUN_NAN, "loss");
    spoil(&fixture_records[3].run, RUN_NAN, "loss");
    fixture_records[1].n_curve = 1;
    fixture_records[2].n_curve = fixture_records[3].n_curve = 0;
    ck_ok(report_plot_view(&fixture_set, NULL, "accuracy", &loss, fixture_folder, fixture_folder, &fixture_problem));
    char *svg = kept("s5-loss.svg");
    ck_holds(svg, "<text>lru # (1 of 3 seeds)</text>");
    ck_holds(svg, "<text>lstm # (no loss)</text>");
    ck_holds(svg, "; # 3 of 4 runs failed; D = ");
    free(svg);
    stand_in_for_gnuplot();
    ck_ok(report_plot_view(&fixture_set, NULL, "accuracy", &loss, fixture_folder, fixture_folder, &fixture_problem));
    char *data = kept("data.kept");
    ck_assert_ptr_eq(strstr(data, "100\t1\n200\t0.5\n300\t0.333333333\n\n\n0\tNaN\n\n\n"), data);
    free(data);
    ck_ok(plot(NULL, "accuracy")); /* of which a failed run has a value, chance */
    data = kept("data.kept");
    ck_assert_ptr_eq(strstr(data, "100\t0.0694444444\n200\t0.0722222222\n300\t0.105555556\n\n\n"), data);
    free(data);
}
END_TEST

START_TEST(every_kind_axis_and_format_is_drawn) {
    add_grid();
    for (int x = PLOT_STEPS; x <= PLOT_FLOPS; x++) {
        struct plot_view view = {
            .x = x, .y = x == PLOT_TIME ? PLOT_LOSS : PLOT_ACC, .log_x = x == PLOT_EPOCHS, .log_y = x == PLOT_TIME};
        const char *kind = x >= PLOT_PARAMS ? "cost" : "accuracy";
        view.formats = FIGURE_SVG | FIGURE_PDF;
        ck_ok(report_plot_view(&fixture_set, NULL, kind, &view, fixture_folder, fixture_folder, &fixture_problem));
    }
    ck_is_image("s5-accuracy.svg");
    ck_is_image("s5-accuracy-epochs.svg");
    ck_is_image("s5-loss-time.svg");
    ck_is_image("s5-cost-flops.svg");
    ck_ok(plot(NULL, "heat"));
    ck_is_image("s5-heat.png");
    ck_is_image("s5-cost.svg"); /* over parameters, as without --x */
    ck_assert_int_eq(scratch_count(fixture_folder, ".pdf"), PLOT_FLOPS);
    struct plot_view wrong = {.x = PLOT_STATE};
    ck_assert_int_eq(
        report_plot_view(&fixture_set, NULL, "accuracy", &wrong, fixture_folder, fixture_folder, &fixture_problem),
        ST_USAGE);
    ck_holds(fixture_problem.text, "plot cost --x state");
    ck_assert_int_eq(
        report_plot_view(&fixture_set, NULL, NULL, &wrong, fixture_folder, fixture_folder, &fixture_problem), ST_USAGE);
    ck_holds(fixture_problem.text, "plot accuracy: over state there is no curve");
    wrong.x = PLOT_STEPS; /* asked for, it is no cost either */
    ck_assert_int_eq(
        report_plot_view(&fixture_set, NULL, "cost", &wrong, fixture_folder, fixture_folder, &fixture_problem),
        ST_USAGE);
    ck_holds(fixture_problem.text, "plot cost: steps is no cost of a model; --x is params, state or flops");
    unsigned formats;
    ck_assert_int_eq(figure_formats_parse("svg,gif", &formats, &fixture_problem), ST_USAGE);
    ck_assert_int_eq(figure_formats_parse("", &formats, &fixture_problem), ST_USAGE);
}
END_TEST

START_TEST(throughput_is_of_models_that_were_measured_at_several_lengths) {
    static const char perf[] = "shape,tok_per_s\na B32 T64 D128,1000\na B32 T512 D128,900\na B32 T64 D128,2000\n"
                               "b B32 T64 D128,7\n";
    char path[PATH_BYTES];
    stand_in_for_gnuplot();
    ck_assert_int_eq(plot(NULL, "throughput"), ST_DATA);
    snprintf(path, sizeof path, "%s/perf.csv", fixture_folder);
    spill(path, perf, strlen(perf));
    ck_ok(plot(NULL, "throughput"));
    char *data = kept("data.kept");
    ck_assert_str_eq(data, "64\t2000\n512\t900\n\n\n");
    free(data);
    static const char both[] = "shape,dtype,tok_per_s\na B32 T64 D128,fp32,1\na B32 T64 D128,bf16,2\n"
                               "a B32 T512 D128,fp32,3\na B32 T512 D128,bf16,4\n";
    spill(path, both, strlen(both));
    ck_ok(plot(NULL, "throughput"));
    data = kept("data.kept");
    ck_assert_str_eq(data, "64\t1\n512\t3\n\n\n64\t2\n512\t4\n\n\n");
    char *script = kept("script.kept");
    ck_holds(script, "name[1] = 'a'\nname[2] = 'a bf16'\n");
    free(script);
    free(data);
}
END_TEST

/* The script that draws these rows of perf.csv. */
static char *script_of_speeds(const char *perf) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/perf.csv", fixture_folder);
    spill(path, perf, strlen(perf));
    ck_ok(plot(NULL, "throughput"));
    return kept("script.kept");
}

/* A width or a task that is another one makes another model; sizes that all have alike are in no name. */
START_TEST(models_of_throughput_have_the_sizes_in_which_they_differ) {
    stand_in_for_gnuplot();
    char *script = script_of_speeds("shape,tok_per_s\nm=2 B8 T64 D312 L1 V6,1\nm=2 B8 T512 D312 L1 V6,2\n"
                                    "m=2 B8 T64 D128 L1 V6,3\nm=2 B8 T512 D128 L1 V6,4\n");
    char *data = kept("data.kept");
    ck_holds(script, "n = 2\narray name[3]\nname[1] = 'm=2 D312'\nname[2] = 'm=2 D128'\n");
    ck_assert_str_eq(data, "64\t1\n512\t2\n\n\n64\t3\n512\t4\n\n\n");
    free(data);
    free(script);
    script = script_of_speeds("shape,tok_per_s\na B8 T64 D16 params9,1\na B8 T512 D16 params9,2\n"
                              "a B32 T64 D16 L1 V6,3\na B32 T512 D16 L1 V6,4\n");
    ck_holds(script, "name[1] = 'a B8'\nname[2] = 'a B32 L1 V6'\n");
    free(script);
}
END_TEST

/* Measurements on other devices, with other threads or on other machines belong to other lines. */
START_TEST(models_of_throughput_are_told_apart_by_where_they_ran) {
    stand_in_for_gnuplot();
    char *script = script_of_speeds("shape,tok_per_s,device,threads,machine_id\n"
                                    "a B8 T64,1,,1,aaaaaaaaaaaaaaaa\na B8 T512,2,cpu,1,aaaaaaaaaaaaaaaa\n"
                                    "a B8 T64,3,cuda,1,aaaaaaaaaaaaaaaa\na B8 T512,4,cuda,1,aaaaaaaaaaaaaaaa\n"
                                    "a B8 T64,5,cpu,2,aaaaaaaaaaaaaaaa\na B8 T512,6,cpu,2,aaaaaaaaaaaaaaaa\n"
                                    "a B8 T64,7,cpu,2,bbbbbbbbbbbbbbbb\na B8 T512,8,cpu,2,bbbbbbbbbbbbbbbb\n"
                                    "a B9 T64,7,cpu,2,bbbbbbbbbbbbbbbb\n");
    char *data = kept("data.kept");
    ck_holds(script, "name[1] = 'a cpu threads=1 on aaaaaaaa'\nname[2] = 'a cuda threads=1 on aaaaaaaa'\n"
                     "name[3] = 'a cpu threads=2 on aaaaaaaa'\nname[4] = 'a cpu threads=2 on bbbbbbbb'\n");
    ck_assert_str_eq(data, "64\t1\n512\t2\n\n\n64\t3\n512\t4\n\n\n64\t5\n512\t6\n\n\n64\t7\n512\t8\n\n\n");
    free(data);
    free(script);
}
END_TEST

/* A noisy row of the same build leaves a quiet one; a noisy row of another build does not. */
START_TEST(a_quiet_speed_stands_against_noisy_ones) {
    stand_in_for_gnuplot();
    free(script_of_speeds("shape,tok_per_s,quiet,source_id\na B8 T512,2,1,s\na B8 T64,1,1,s\na B8 T64,9,0,s\n"
                          "a B8 T512,3,1,s\na B8 T512,4,0,other\n"));
    char *data = kept("data.kept");
    ck_assert_str_eq(data, "64\t1\n512\t4\n\n\n");
    free(data);
}
END_TEST

/* Place of a text in an SVG. */
static void place_of(const char *svg, const char *text, double *x, double *y) {
    const char *at = strstr(svg, text), *place = NULL, *next = svg;
    ck_assert_msg(at != NULL, "no '%s' in the picture", text);
    while ((next = strstr(next, "translate(")) && next < at) place = next++;
    ck_assert_msg(place && sscanf(place, "translate(%lf,%lf)", x, y) == 2, "'%s' has no place", text);
}

/* Runs of a few seconds have ticks of half a second. */
START_TEST(ticks_of_short_times_are_told_apart) {
    struct plot_view view = {.x = PLOT_TIME};
    struct run *run = add_run("lstm;swiglu", 1e-3, 0, 0.9, 0.9);
    run->wall_s = 3.2;
    ck_ok(report_plot_view(&fixture_set, NULL, "accuracy", &view, fixture_folder, fixture_folder, &fixture_problem));
    char *svg = kept("s5-accuracy-time.svg");
    ck_assert(strstr(svg, "<text>1.5</text>") && strstr(svg, "<text>2</text>"));
    free(svg);
}
END_TEST

/* Beside the plot they would leave it a half of the width, and a title above a map none to itself. */
START_TEST(wide_names_leave_room_for_plot_and_title) {
    double x, y;
    add_run("lru;swiglu", 1e-3, 0, 0.5, 0.5);
    add_run("lru;swiglu", 1e-3, 1, 0.5, 0.5);
    ck_ok(plot(NULL, "accuracy"));
    char *svg = kept("s5-accuracy.svg");
    place_of(svg, "<text>lru</text>", &x, &y);
    ck_assert(x > 900 && y < 200);
    free(svg);
    add_run("bdlru:m=2,blocks=17,gate=sigmoid,gate-init=4.75;swiglu", 1e-3, 0, 0.5, 0.5);
    ck_ok(plot(NULL, "accuracy"));
    svg = kept("s5-accuracy.svg");
    place_of(svg, "<text>lru</text>", &x, &y);
    ck_assert_msg(x < 600 && y > 500, "%g %g", x, y);
    ck_assert_int_gt(figure_height(30, 41), figure_height(10, 41) + 400); /* the plot keeps its own */
    free(svg);
    static const char *const wide[] = {"heat", "table"};
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "s5-%s.svg", wide[i]);
        ck_ok(plot(NULL, wide[i]));
        svg = kept(name);
        place_of(svg, "<text>s5, profile ", &x, &y);
        ck_assert_msg(x < 40 && y < 60, "%s: %g %g", wide[i], x, y);
        place_of(svg, i ? "<text>a failed run counts" : "<text>the last attempt at each run", &x, &y);
        ck_assert_msg(x < 40 && y < 100, "%s: %g %g", wide[i], x, y);
        if (!strcmp(wide[i], "table")) { /* names stand above their bars, whose axis has the picture's width */
            double end;
            place_of(svg, "<text>lru</text>", &x, &y);
            place_of(svg, "<text>1.0</text>", &end, &y);
            ck_assert_msg(x < 100 && end > 900, "%g %g", x, end);
        }
        free(svg);
    }
}
END_TEST

START_TEST(tables_of_one_task_have_plots_of_their_own) {
    add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    struct run *other = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    strcpy(other->profile, "smoke");
    identify(other, "dim", "32");
    ck_ok(plot(NULL, "table"));
    ck_is_image("s5-paper-table.png");
    ck_is_image("s5-smoke-table.png");
    ck_ok(plot(&(struct report_filter){.profile = "paper"}, "table"));
    ck_is_image("s5-table.png");
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5)->task, "s5:length=8");
    ck_ok(plot(NULL, "table"));
    ck_is_image("s5-length=8-table.png");
    ck_ok(plot(&(struct report_filter){.task = "s5:length=8"}, "accuracy"));
    ck_is_image("s5-accuracy.png");
    ck_assert_int_eq(plot(NULL, "pie"), ST_USAGE);
}
END_TEST

/* Two names may be equal in the part that fits into a file's name. */
START_TEST(tables_of_long_names_have_plots_of_their_own) {
    stand_in_for_gnuplot();
    for (int i = 0; i < 2; i++) {
        struct run *run = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
        snprintf(run->task, sizeof run->task, "s5:file=%0200d", i);
    }
    ck_ok(plot(NULL, "table"));
    ck_assert_int_eq(scratch_count(fixture_folder, "-table.svg"), 2);
}
END_TEST

/* The script of a figure of all records. */
static char *script_of(const char *kind, enum report_protocol protocol) {
    ck_ok(plot(&(struct report_filter){.protocol = protocol}, kind));
    return kept("script.kept");
}

/* By the protocol's level, and by which rows have an interval at all. */
START_TEST(bars_say_what_they_and_their_lines_are) {
    static const struct {
        enum report_protocol protocol;
        int seeds[2];
        const char *interval, *bests;
    } cases[] = {
        {PROTOCOL_VAL_MEAN, {3, 5}, "interval = '95 % interval; of fewer seeds, min to max'\n", "bests = 1\n"},
        {PROTOCOL_VAL_MEAN, {3, 4}, "interval = 'seeds, min to max'\n", "bests = 1\n"},
        {PROTOCOL_VAL_MEAN, {5, 6}, "interval = '95 % interval'\n", "bests = 1\n"},
        {PROTOCOL_VAL_MEAN, {1, 1}, "interval = ''\n", "bests = 0\n"},
        {PROTOCOL_MEAN_CI90, {3, 3}, "interval = '90 % interval'\n", "bests = 1\n"},
        {PROTOCOL_BEST_OF_GRID, {5, 5}, "interval = ''\n", "bests = 0\n"},
        {PROTOCOL_IQM, {6, 6}, "interval = '95 % interval'\n", "bests = 1\n"},
    };
    stand_in_for_gnuplot();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char estimate[64];
        fixture_set.n = 0;
        for (int k = 0; k < 2; k++)
            for (int seed = 0; seed < cases[i].seeds[k]; seed++)
                add_run(k ? "lstm;swiglu" : "lru;swiglu", 1e-3, (uint64_t)seed, 0.5, 0.25 + 0.125 * seed);
        char *script = script_of("table", cases[i].protocol);
        snprintf(estimate, sizeof estimate, "estimate = '%s'\n", protocol_of(cases[i].protocol)->name);
        ck_holds(script, estimate);
        ck_holds(script, cases[i].interval);
        ck_holds(script, cases[i].bests);
        free(script);
    }
    char *data = kept("data.kept"); /* the interquartile mean of .25, .375, ... .875, not the largest */
    ck_assert_str_ne(data, "");
    ck_assert_ptr_eq(strstr(data, "1\t0.5625\t"), data);
    free(data);
}
END_TEST

/* Lines of thousands of seeds hide each other, and gnuplot takes minutes to draw them; the mean is of all. */
START_TEST(of_many_seeds_some_are_lines_and_the_title_says_so) {
    stand_in_for_gnuplot();
    for (int i = 0; i < 150; i++) add_run("lstm;swiglu", 1e-3, (uint64_t)i, i < 75 ? 0.3 : 0.9, 0.5);
    for (int i = 0; i < 2; i++) add_run("lru;swiglu", 1e-3, (uint64_t)i, 0.9, 0.9);
    ck_ok(plot(NULL, "accuracy"));
    char *data = kept("data.kept"), *script = kept("script.kept");
    int lines = 0, low = 0;
    for (const char *at = data; (at = strstr(at, "0\tNaN\n\n\n")); at++) lines++;
    for (const char *at = data; (at = strstr(at, "300\t0.3\n0\tNaN\n")); at++) low++;
    ck_assert_int_eq(lines, 102); /* 100 of the lstm, 2 of the lru */
    ck_assert_int_eq(low, 50);    /* from the first to the last seed */
    ck_holds(data, "\n\n100\t0.2\n200\t0.4\n300\t0.6\n\n\n");
    ck_holds(script, "m = 102\n");
    ck_holds(script, "'mean over seeds, at most 100 seeds of a model as thin lines; ");
    free(data);
    free(script);
}
END_TEST

START_TEST(the_line_below_the_title_says_which_seeds_are_shown) {
    stand_in_for_gnuplot();
    for (int i = 0; i < 3; i++) add_run("lstm;swiglu", 1e-3, (uint64_t)i, 0.5, 0.5);
    static const char *const kinds[] = {"accuracy", "table", "heat"}; /* the last has every run */
    for (int i = 0; i < 3; i++) {
        ck_ok(plot(&(struct report_filter){.confirm = 2}, kinds[i]));
        char *script = kept("script.kept");
        ck_assert_int_eq(strstr(script, "; the 2 largest seeds, the others chose the rate'\n") != NULL, i < 2);
        free(script);
    }
}
END_TEST

START_TEST(the_line_below_the_title_has_the_sizes_that_all_rows_share) {
    stand_in_for_gnuplot();
    struct run *run = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    add_run("lru;swiglu", 1e-3, 0, 0.5, 0.5);
    char *script = script_of("table", PROTOCOL_VAL_MEAN);
    ck_holds(script, "chance; D = 128, 1 layer, batch 128, 100000 training sequences of length 16'\n");
    free(script);
    run->d_model = 24;
    run->n_layers = 2;
    script = script_of("table", PROTOCOL_VAL_MEAN);
    ck_holds(script, "chance; batch 128, 100000 training sequences");
    free(script);
}
END_TEST

/* Graph layers have no state, a run that failed at once no loss: their tables have no such plot, the others theirs. */
START_TEST(a_table_with_nothing_to_draw_keeps_no_other_from_its_plot) {
    const struct plot_view state = {.x = PLOT_STATE}, loss = {.x = PLOT_STEPS, .y = PLOT_LOSS};
    const struct {
        const char *kind, *reason, *file;
        const struct plot_view *view;
    } cases[] = {
        {"cost", "no model here has a cost of that kind, so there is no plot of the kind cost", "s5-cost-state.svg",
         &state},
        {"accuracy", "no run here has a number of its validation", "s5-loss.svg", &loss},
    };
    struct run *run = add_run("gcn;swiglu", 1e-3, 0, 0.5, 0.5);
    strcpy(run->task, "s3"); /* the first table */
    spoil(run, RUN_NAN, "loss");
    run->state_floats = 0;
    fixture_records[0].n_curve = 0;
    for (int i = 0; i < 2; i++) {
        fixture_set.n = 1;
        ck_assert_int_eq(report_plot_view(&fixture_set, NULL, cases[i].kind, cases[i].view, fixture_folder,
                                          fixture_folder, &fixture_problem),
                         ST_USAGE);
        ck_holds(fixture_problem.text, cases[i].reason);
        add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
        ck_ok(report_plot_view(&fixture_set, NULL, cases[i].kind, cases[i].view, fixture_folder, fixture_folder,
                               &fixture_problem));
        ck_is_image(cases[i].file);
    }
}
END_TEST

/* Neighbours above 2^53, where not every whole number is a double. */
START_TEST(large_seeds_have_columns_of_their_own) {
    stand_in_for_gnuplot();
    for (int i = 0; i < 2; i++) {
        add_run("lstm;swiglu", 1e-3, (UINT64_C(1) << 53) + (uint64_t)i, 0.5, 0.5);
        snprintf(fixture_records[i].run.run_id, RUN_ID_HEX, "%032d", i);
    }
    char *script = script_of("heat", PROTOCOL_VAL_MEAN);
    ck_holds(script, "columns = 2\n");
    ck_holds(script, "column[2] = '9007199254740993'\n");
    free(script);
}
END_TEST

/* Cells of runs that were cut off, of runs that failed, and of a run that was done again (the last attempt alone). */
START_TEST(cells_of_a_map_say_how_a_run_ended) {
    stand_in_for_gnuplot();
    for (int i = 0; i < 4; i++) add_run("lstm;swiglu", 1e-3, (uint64_t)(i < 2 ? 0 : i), 0.5, 0.5);
    fixture_records[0].run.attempt = 1;
    fixture_records[0].set_aside = true;
    fixture_records[1].run.attempt = 2;
    spoil(&fixture_records[0].run, RUN_KILLED, "");
    spoil(&fixture_records[2].run, RUN_NAN, "loss");
    cut_off(&fixture_records[3].run, 200);
    char *script = script_of("heat", PROTOCOL_VAL_MEAN), *data = kept("data.kept");
    ck_assert_str_eq(data, "1\t1\t0.5\t0.500#\n2\t1\tNaN\tfailed\n3\t1\t0.5\t0.500*\n");
    ck_holds(script, "each run (#: an earlier one failed, and counts as chance in tables); * cut off");
    ck_holds(script, "; * cut off; # 2 of 4 runs failed; D = ");
    free(script);
    free(data);
}
END_TEST

/* Rows of one run stand beside rows of three; a failed run counts in the first row's number, and never in the best. */
START_TEST(bars_say_of_how_many_runs_the_best_is) {
    stand_in_for_gnuplot();
    for (int i = 0; i < 3; i++) add_run("lru;swiglu", 1e-3, (uint64_t)i, 0.5, 0.5);
    add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    spoil(&fixture_records[1].run, RUN_NAN, "loss");
    char *script = script_of("table", PROTOCOL_VAL_MEAN);
    ck_holds(script, "best = 'best of 1 to 3 runs'\n");
    ck_holds(script, "name[1] = 'lru #'\nname[2] = 'lstm'\n");
    free(script);
    const struct plot_view view = {.x = PLOT_AUTO};
    ck_ok(report_plot_view(&fixture_set, NULL, "cost", &view, fixture_folder, fixture_folder, &fixture_problem));
    script = kept("script.kept");
    ck_holds(script, "name[1] = 'lru #'\nname[2] = 'lstm'\n");
    free(script);
    script = script_of("table", PROTOCOL_BEST_OF_GRID);
    ck_holds(script, "name[1] = 'lru'\n");
    free(script);
}
END_TEST

/* A file of somebody else in the way of the last is told before the first is drawn, and no folder is left empty. */
START_TEST(figures_are_drawn_all_or_none) {
    char path[PATH_BYTES], to[PATH_BYTES];
    add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    struct run *other = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    strcpy(other->profile, "smoke");
    identify(other, "dim", "32");
    snprintf(path, sizeof path, "%s/s5-smoke-table.svg", fixture_folder);
    spill(path, "mine", 4);
    ck_assert_int_eq(plot(NULL, "table"), ST_USAGE);
    ck_holds(fixture_problem.text, "s5-smoke-table.svg is there and was not written by lrnn");
    ck_assert_int_eq(scratch_count(fixture_folder, ""), 1);
    const struct plot_view view = {.x = PLOT_AUTO};
    static const char *const kinds[] = {"heat", "throughput", "table"}; /* none of the last for want of gnuplot */
    snprintf(to, sizeof to, "%s/to", fixture_folder);
    setenv("PATH", "/nowhere", 1);
    for (int i = 0; i < 3; i++)
        ck_assert_int_ne(report_plot_view(&fixture_set, NULL, kinds[i], &view, fixture_folder, to, &fixture_problem),
                         ST_OK);
    ck_assert(access(to, F_OK) != 0);
}
END_TEST

START_TEST(without_gnuplot_the_sentence_says_what_to_install) {
    add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    setenv("PATH", "/nowhere", 1);
    ck_assert_int_eq(plot(NULL, "table"), ST_FAIL);
    ck_holds(fixture_problem.text, "gnuplot-nox");
    ck_assert_int_eq(scratch_count(fixture_folder, ""), 0);
}
END_TEST

Suite *check_plot(void) {
    const TTest *const tests[] = {
        plots_are_drawn_and_nothing_else_is_left,
        names_that_mean_something_to_a_shell_or_to_gnuplot_are_harmless,
        an_epoch_ends_with_a_batch_that_may_not_be_full,
        a_curve_ends_where_the_first_of_its_runs_was_cut_off,
        a_long_foot_loses_its_end_and_not_the_readers_choice,
        a_model_stays_in_the_plot_of_loss_when_runs_of_it_fail,
        every_kind_axis_and_format_is_drawn,
        throughput_is_of_models_that_were_measured_at_several_lengths,
        models_of_throughput_have_the_sizes_in_which_they_differ,
        models_of_throughput_are_told_apart_by_where_they_ran,
        a_quiet_speed_stands_against_noisy_ones,
        ticks_of_short_times_are_told_apart,
        wide_names_leave_room_for_plot_and_title,
        tables_of_one_task_have_plots_of_their_own,
        tables_of_long_names_have_plots_of_their_own,
        bars_say_what_they_and_their_lines_are,
        of_many_seeds_some_are_lines_and_the_title_says_so,
        the_line_below_the_title_says_which_seeds_are_shown,
        the_line_below_the_title_has_the_sizes_that_all_rows_share,
        a_table_with_nothing_to_draw_keeps_no_other_from_its_plot,
        large_seeds_have_columns_of_their_own,
        cells_of_a_map_say_how_a_run_ended,
        bars_say_of_how_many_runs_the_best_is,
        figures_are_drawn_all_or_none,
        without_gnuplot_the_sentence_says_what_to_install,
    };
    return fixture_suite("plot", tests, (int)(sizeof tests / sizeof tests[0]));
}
