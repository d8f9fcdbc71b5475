/* check_plot_length.c - figures of accuracy by length and by position, of fixture records. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/batch.h"
#include "tests/harness/plot/plot_fixture.h"

static int lines_of(const char *text) {
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

static void ck_shares_points(bool shared) {
    ck_ok(plot(NULL, "length"));
    ck_is_image("s5-length.svg");
    ck_is_image("s5-length.png");
    char *text = kept("s5-length.svg");
    ck_assert_int_eq(strstr(text, "neighbouring lengths share a point") != NULL, shared);
    free(text);
}

/* Nine lengths make neighbours share a point, eight do not. */
START_TEST(lengths_are_plotted_where_there_are_several) {
    static struct eval_point evals[10] = {{.step = 9, .split = SPLIT_TEST, .length = 32, .n = 40, .acc = 0.5}};
    for (int i = 1; i < 10; i++) {
        evals[i] = (struct eval_point){.split = SPLIT_TEST, .length = 8 * i + i, .n = 10, .acc = 0.1 * i};
        strcpy(evals[i].difficulty, "length");
    }
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5)->profile, "smoke");
    ck_assert_int_eq(plot(NULL, "length"), ST_USAGE);
    ck_holds(fixture_problem.text, "several lengths");
    fixture_records[fixture_set.n - 1].evals = evals;
    fixture_records[fixture_set.n - 1].n_evals = 9;
    ck_shares_points(false);
    fixture_records[fixture_set.n - 1].n_evals = 10;
    ck_shares_points(true);
    stand_in_for_gnuplot(); /* the first bin begins at 9, the last ends at 81 */
    ck_ok(plot(NULL, "length"));
    char *data = kept("data.kept");
    ck_assert_ptr_eq(strstr(data, "12\t0.1\t"), data);
    ck_holds(data, "\n19.5\t0.2\t");
    ck_holds(data, "\n80.5\t0.9\t");
    free(data);
    for (int i = 1; i < 10; i++) evals[i].n = 4; /* too few by themselves: 9 to 31 share a point, and so on */
    ck_ok(plot(NULL, "length"));
    data = kept("data.kept");
    ck_assert_ptr_eq(strstr(data, "20\t0.2\t0.0"), data);
    ck_holds(data, "\n68.5\t0.8\t");
    ck_assert_int_eq(lines_of(data), 3 + 2);
    free(data);
}
END_TEST

/* Bins of 8 would be 500: those of 16 are the last's as well. */
START_TEST(the_last_of_many_lengths_has_a_point_of_its_own) {
    static struct eval_point evals[400];
    for (int i = 0; i < 400; i++) {
        evals[i] = (struct eval_point){.split = SPLIT_TEST, .length = 10 * (i + 1), .n = 10, .acc = i < 399 ? 0.5 : 1};
        strcpy(evals[i].difficulty, "length");
    }
    add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    fixture_records[0].evals = evals;
    fixture_records[0].n_evals = 400;
    stand_in_for_gnuplot();
    ck_ok(plot(NULL, "length"));
    char *data = kept("data.kept");
    ck_holds(data, "\n4000\t1\t");
    ck_holds(data, "\n3991.5\t0.5\t");
    free(data);
}
END_TEST

/* A line per model and, as a map, a row; positions that no run was scored at are left out. */
START_TEST(positions_are_plotted_as_lines_and_as_a_map) {
    static struct eval_point evals[] = {
        {.split = SPLIT_TEST, .length = 8, .n = 40, .acc = 0.5},
        {.split = SPLIT_TEST, .length = 1, .n = 40, .acc = 1, .difficulty = "position"},
        {.split = SPLIT_TEST, .length = 4, .n = 40, .acc = 0.75, .difficulty = "position"},
        {.split = SPLIT_TEST, .length = 8, .n = 40, .acc = 0.25, .difficulty = "position"},
    };
    add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    ck_assert_int_eq(plot(NULL, "position"), ST_USAGE);
    ck_holds(fixture_problem.text, "accuracy by position");
    fixture_records[0].evals = evals;
    fixture_records[0].n_evals = 4;
    ck_ok(plot(NULL, "position"));
    ck_ok(plot(NULL, "position-map"));
    ck_is_image("s5-position.png");
    ck_is_image("s5-position-map.png");
    stand_in_for_gnuplot();
    ck_ok(plot(NULL, "position"));
    char *data = kept("data.kept");
    ck_assert_str_eq(data, "1\t1\t0.912378399\t1\n4\t0.75\t0.598060386\t0.858128814\n"
                           "8\t0.25\t0.141871186\t0.401939614\n\n\n");
    free(data);
    ck_ok(plot(NULL, "position-map"));
    data = kept("data.kept");
    ck_assert_str_eq(data, "1\t1\t1\t \n2\t1\t0.75\t \n3\t1\t0.25\t \n");
    free(data);
    char *script = kept("script.kept");
    ck_holds(script, "columns = 3\n");
    ck_holds(script, "column[3] = '8'\n");
    free(script);
}
END_TEST

/* Like the table of lengths: each seed's accuracy counts alike, a failed seed's as chance, 1/120. */
START_TEST(a_failed_run_is_chance_at_every_length) {
    static struct eval_point evals[2] = {{.split = SPLIT_TEST, .length = 8, .n = 10, .acc = 1},
                                         {.split = SPLIT_TEST, .length = 16, .n = 30, .acc = 0.5}};
    stand_in_for_gnuplot();
    for (int i = 0; i < 2; i++) {
        strcpy(evals[i].difficulty, "length");
        add_run("lstm;swiglu", 1e-3, (uint64_t)i, 0.5, 0.5);
    }
    fixture_records[0].evals = evals;
    fixture_records[0].n_evals = 2;
    spoil(&fixture_records[1].run, RUN_NAN, "loss");
    ck_ok(plot(NULL, "length"));
    char *data = kept("data.kept");
    ck_assert_str_eq(data, "8\t0.504166667\t0.239609978\t0.766410582\n16\t0.254166667\t0.132750287\t0.431393798\n\n\n");
    free(data);
}
END_TEST

Suite *check_plot_length(void);
Suite *check_plot_length(void) {
    const TTest *const tests[] = {
        lengths_are_plotted_where_there_are_several,
        the_last_of_many_lengths_has_a_point_of_its_own,
        positions_are_plotted_as_lines_and_as_a_map,
        a_failed_run_is_chance_at_every_length,
    };
    return fixture_suite("plot_length", tests, (int)(sizeof tests / sizeof tests[0]));
}
