/* check_site.c - the static pages of fixture records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/plot/plot.h"
#include "harness/site/site.h"
#include "harness/store/files.h"
#include "tests/harness/table/fixture.h"

static int pages, pictures;
static struct error why;

static enum status write_site(const char *name) {
    char dir[PATH_BYTES];
    snprintf(dir, sizeof dir, "%s/%s", fixture_folder, name);
    return site_write(&fixture_set, NULL, fixture_folder, dir, &pages, &pictures, &why, &fixture_problem);
}

static char *page(const char *name) {
    char path[PATH_BYTES];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", fixture_folder, name);
    return slurp(path, &size);
}

/* The way from all tasks to a table and from there to a run; `made` twice is made once. */
START_TEST(pages_lead_from_all_tasks_to_a_run) {
    setenv("PATH", "/nowhere", 1); /* without pictures, which is said */
    add_grid();
    for (int i = 0; i < 2; i++) ck_ok(write_site("site"));
    ck_assert_int_eq(pictures, 0);
    ck_holds(why.text, "gnuplot-nox");
    ck_assert_int_eq(pages, 2 + fixture_set.n);
    char *index = page("site/index.html");
    char *link = strstr(index, "<a href=\"s5-");
    ck_assert_ptr_nonnull(link);
    char name[256] = "site/";
    sscanf(link, "<a href=\"%200[^\"]", name + 5);
    char *table = page(name);
    link = strstr(table, "<a href=\"run-");
    ck_assert_ptr_nonnull(link);
    sscanf(link, "<a href=\"%200[^\"]", name + 5);
    char *run = page(name);
    ck_holds(run, "<polyline");
    snprintf(name, sizeof name, " --out %s</pre>", fixture_folder);
    ck_holds(run, "\nlrnn rerun ");
    ck_holds(run, name);
    const char *const texts[] = {index, table, run};
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(strstr(texts[i], "<script"));
        ck_assert_ptr_null(strstr(texts[i], "http"));
        ck_holds(texts[i], "</html>");
    }
    free(index);
    free(table);
    free(run);
}
END_TEST

/* The page of the only run. */
static char *page_of_run(const struct run *run) {
    char name[RUN_ID_HEX + 16];
    ck_ok(write_site("site"));
    snprintf(name, sizeof name, "site/run-%s.html", run->run_id);
    return page(name);
}

/* Between two others, one of which is the same machine under an earlier kernel. */
START_TEST(a_run_shows_the_machine_that_did_it) {
    static const char text[] = "machine_id,env_epoch,cpu\naaaa,1111,'=other\nbbbb,1111,earlier\nbbbb,2222,'=this\n";
    char path[PATH_BYTES];
    setenv("PATH", "/nowhere", 1);
    struct run *run = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    strcpy(run->machine_id, "bbbb");
    strcpy(run->env_epoch, "2222");
    snprintf(path, sizeof path, "%s/machines.csv", fixture_folder);
    spill(path, text, sizeof text - 1);
    char *of_this = page_of_run(run);
    ck_holds(of_this, "<th>cpu</th><td>=this</td>");
    ck_assert_ptr_null(strstr(of_this, "other"));
    free(of_this);
    run->env_epoch[0] = 0; /* a record of before it was stored */
    char *of_either = page_of_run(run);
    ck_holds(of_either, "<th>cpu</th><td>earlier</td>");
    free(of_either);
    strcpy(run->env_epoch, "3333");
    char *of_none = page_of_run(run);
    ck_assert_ptr_null(strstr(of_none, "<h2>Machine</h2>"));
    free(of_none);
}
END_TEST

/* The page of the only table. */
static char *page_of_table(void) {
    char name[256] = "site/";
    ck_ok(write_site("site"));
    char *index = page("site/index.html"), *link = strstr(index, "<a href=\"s5-");
    ck_assert_ptr_nonnull(link);
    sscanf(link, "<a href=\"%200[^\"]", name + 5);
    free(index);
    return page(name);
}

START_TEST(why_a_run_ended_is_text_in_pages) {
    setenv("PATH", "/nowhere", 1);
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5)->stop_reason, "<script>alert(1)</script>");
    char *table = page_of_table();
    ck_assert_ptr_null(strstr(table, "<script>"));
    ck_holds(table, "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>");
    free(table);
}
END_TEST

START_TEST(names_are_text_in_pages) {
    setenv("PATH", "/nowhere", 1);
    struct run *run = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    strcpy(run->task, "../x\"><script>alert(1)</script>");
    strcpy(run->layers, "<img src=x>&;swiglu");
    fixture_records[0].config[0] = 0;
    ck_ok(write_site("site"));
    char *index = page("site/index.html");
    ck_assert_ptr_null(strstr(index, "<script>"));
    ck_assert_ptr_null(strstr(index, "<img src=x>"));
    ck_holds(index, "&lt;script&gt;");
    free(index);
    ck_assert_int_eq(scratch_count(fixture_folder, ""), 3); /* all of them in the folder */
}
END_TEST

START_TEST(a_folder_of_something_else_is_left_alone) {
    char path[PATH_BYTES];
    add_grid();
    snprintf(path, sizeof path, "%s/thesis", fixture_folder);
    ck_ok(make_folder(path, &fixture_problem));
    snprintf(path, sizeof path, "%s/thesis/index.html", fixture_folder);
    spill(path, "mine", 4);
    ck_assert_int_eq(write_site("thesis"), ST_USAGE);
    ck_holds(fixture_problem.text, "holds other files");
    char *mine = page("thesis/index.html");
    ck_assert_str_eq(mine, "mine");
    free(mine);
}
END_TEST

static void spill_text(const char *name, const char *text) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", fixture_folder, name);
    spill(path, text, strlen(text));
}

static int has(const char *name) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", fixture_folder, name);
    return access(path, F_OK) == 0;
}

/* A report of one page has a generator of its own, and what is hidden is somebody's as well. */
START_TEST(a_folder_with_anything_else_in_it_is_left_alone) {
    static const char *const names[] = {"thesis/index.html", "thesis/.hidden"};
    char path[PATH_BYTES];
    setenv("PATH", "/nowhere", 1);
    add_grid();
    snprintf(path, sizeof path, "%s/thesis", fixture_folder);
    for (int i = 0; i < 2; i++) {
        char *report = render(&format_html, NULL);
        ck_ok(make_folder(path, &fixture_problem));
        spill_text(names[i], report);
        ck_assert_int_eq(write_site("thesis"), ST_USAGE);
        ck_holds(fixture_problem.text, "holds other files");
        char *kept = page(names[i]);
        ck_assert_str_eq(kept, report);
        free(kept);
        free(report);
        scratch_remove(path);
    }
}
END_TEST

/* Of a run that is not there any more; its reader's own files stay, a copy of a page too. */
START_TEST(pages_of_an_earlier_call_go) {
    char name[RUN_ID_HEX + SCRATCH_BYTES];
    setenv("PATH", "/nowhere", 1);
    add_grid();
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5)->task, "s3");
    ck_ok(write_site("site"));
    snprintf(name, sizeof name, "site/run-%s.html", fixture_records[6].run.run_id);
    char *text = page(name);
    spill_text("site/run-mine.html", "mine");
    spill_text("site/copy.html", text);
    spill_text("site/notes.txt", "mine");
    free(text);
    fixture_set.n = 6;
    ck_ok(write_site("site"));
    ck_assert(!has(name) && has("site/run-mine.html") && has("site/copy.html") && has("site/notes.txt"));
    snprintf(name, sizeof name, "%s/site", fixture_folder);
    ck_assert_int_eq(scratch_count(name, "s3-"), 0);
    ck_assert_int_eq(scratch_count(name, ".html"), pages + 2);
}
END_TEST

/* Not only that it is not there. */
START_TEST(why_a_picture_is_missing_is_told) {
    stand_in_for_gnuplot();
    spill_text("gnuplot", "#!/bin/sh\necho no font here >&2\nexit 3\n");
    add_grid();
    ck_ok(write_site("site"));
    ck_assert_int_eq(pictures, 0);
    ck_holds(why.text, "(exit 3): no font here");
    stand_in_for_gnuplot();
    fixture_set.n = 1; /* of which there is no map, which nobody has to be told */
    ck_ok(write_site("site"));
    ck_assert_int_gt(pictures, 0);
    ck_assert_msg(why.status == ST_OK, "%s", why.text);
}
END_TEST

START_TEST(what_failed_is_marked) {
    setenv("PATH", "/nowhere", 1);
    add_grid();
    ck_ok(write_site("site"));
    char *index = page("site/index.html");
    ck_assert_ptr_null(strstr(index, FAILED_NOTE));
    free(index);
    spoil(&fixture_records[0].run, RUN_NAN, "loss");
    spoil(&fixture_records[3].run, RUN_NAN, "loss");
    char *table = page_of_table();
    ck_holds(table, "<td>nan</td><td class=\"r\">0.0083" FAILED_MARK "</td>");
    const char *runs = strstr(table, "<h2>Runs</h2>");
    ck_holds(runs, "</table></div>\n<ul>\n<li>" FAILED_NOTE "</li>\n</ul>");
    free(table);
    index = page("site/index.html");
    ck_holds(index, FAILED_MARK "</td></tr>\n</tbody>\n</table></div>\n<ul>\n<li>" FAILED_NOTE "</li>\n</ul>");
    free(index);
    cut_off(&fixture_records[1].run, 200);
    table = page_of_table();
    runs = strstr(table, "<h2>Runs</h2>");
    ck_holds(runs, "</table></div>\n<ul>\n<li>" CUT_OFF_NOTE "</li>\n<li>" FAILED_NOTE "</li>\n</ul>");
    free(table);
}
END_TEST

/* A line of one point is none; a model of another program has no command; a name may be of any bytes. */
START_TEST(odd_runs_have_pages_that_can_be_read) {
    setenv("PATH", "/nowhere", 1);
    struct run *run = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    fixture_records[0].n_curve = 1;
    strcpy(fixture_records[0].config, "task=word-problem\nmodel=no-such\n");
    strcpy(run->machine_id, "b\xe4"
                            "d \xe2\x82\xac \xed\xa0\x80");
    char *text = page_of_run(run);
    ck_holds(text, "<circle cx=\"124.0\"");
    ck_assert_ptr_null(strstr(text, "lrnn rerun"));
    ck_holds(text, "b\xef\xbf\xbd"
                   "d \xe2\x82\xac \xef\xbf\xbd");
    free(text);
}
END_TEST

/* Without gnuplot, or where a kind has nothing to show any more, no picture of an earlier call is left. */
START_TEST(pictures_are_those_of_the_numbers_beside_them) {
    static const char *const kinds[] = {"accuracy", "table", "cost", "heat"};
    add_grid();
    char *table = page_of_table();
    ck_assert_int_eq(pictures, 4);
    for (int i = 0; i < 4; i++) {
        char text[64];
        snprintf(text, sizeof text, "/s5-%s.svg\" alt=\"%s\"", kinds[i], kinds[i]);
        ck_holds(table, text);
        snprintf(text, sizeof text, "/s5-%s.svg\"><img src=", kinds[i]); /* alone it is as large as one likes */
        ck_holds(table, text);
    }
    free(table);
    fixture_set.n = 1;
    table = page_of_table();
    ck_assert_int_eq(pictures, 3);
    ck_holds(table, "/s5-cost.svg");
    ck_assert_ptr_null(strstr(table, "heat"));
    free(table);
    setenv("PATH", "/nowhere", 1);
    table = page_of_table();
    ck_assert_int_eq(pictures, 0);
    ck_assert_ptr_null(strstr(table, "<img"));
    free(table);
}
END_TEST

/* Each once: those of a fold stand on its own page, not on that of the first as well, which has the table of all. */
START_TEST(a_page_has_the_pictures_of_its_fold) {
    enum { FOLDS = 12, KINDS = 3 };
    stand_in_for_gnuplot();
    for (int i = 0; i < FOLDS; i++) {
        struct run *run = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
        snprintf(run->task, sizeof run->task, i ? "molecules:fold=%d" : "molecules", i);
        strcpy(run->suite, "graphs");
    }
    ck_ok(write_site("site"));
    ck_assert_int_eq(pictures, FOLDS * KINDS);
}
END_TEST

/* As the tables call it: its interval is not on the page. */
START_TEST(the_best_number_is_called_accuracy) {
    setenv("PATH", "/nowhere", 1);
    add_grid();
    ck_ok(write_site("site"));
    char *index = page("site/index.html");
    ck_holds(index, "<th>best</th><th class=\"r\">acc</th>");
    ck_assert_ptr_null(strstr(index, "CI or values"));
    free(index);
}
END_TEST

START_TEST(the_first_page_says_which_seeds_its_numbers_are_of) {
    char dir[PATH_BYTES];
    setenv("PATH", "/nowhere", 1);
    add_grid();
    snprintf(dir, sizeof dir, "%s/site", fixture_folder);
    ck_ok(site_write(&fixture_set, &(struct report_filter){.confirm = 1}, fixture_folder, dir, &pages, &pictures, &why,
                     &fixture_problem));
    char *index = page("site/index.html");
    ck_holds(index, "<p>Each row reports its 1 largest seeds; the others chose the rate (--confirm-seeds).</p>");
    free(index);
}
END_TEST

/* A failed attempt has a page of its own beside that of the run which took its place. */
START_TEST(an_attempt_has_a_page_of_its_own) {
    char name[RUN_ID_HEX + 64], link[RUN_ID_HEX + 64];
    setenv("PATH", "/nowhere", 1);
    struct run *failed = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5), *again = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    spoil(failed, RUN_NAN, "loss");
    failed->attempt = 1;
    again->attempt = 2;
    fixture_records[0].set_aside = true;
    char *table = page_of_table();
    ck_assert_int_eq(pages, 2 + 2);
    snprintf(link, sizeof link, "<a href=\"run-%s-attempt1.html\">", failed->run_id);
    ck_holds(table, link);
    snprintf(link, sizeof link, "<a href=\"run-%s.html\">", again->run_id);
    ck_holds(table, link);
    free(table);
    snprintf(name, sizeof name, "site/run-%s-attempt1.html", failed->run_id);
    char *first = page(name);
    ck_holds(first, "<strong>nan</strong>: loss");
    free(first);
    snprintf(name, sizeof name, "site/run-%s.html", again->run_id);
    char *second = page(name);
    ck_assert_ptr_null(strstr(second, "<strong>nan</strong>"));
    free(second);
}
END_TEST

Suite *check_site(void);
Suite *check_site(void) {
    const TTest *const tests[] = {
        pages_lead_from_all_tasks_to_a_run,
        a_run_shows_the_machine_that_did_it,
        pictures_are_those_of_the_numbers_beside_them,
        a_page_has_the_pictures_of_its_fold,
        the_best_number_is_called_accuracy,
        the_first_page_says_which_seeds_its_numbers_are_of,
        an_attempt_has_a_page_of_its_own,
        names_are_text_in_pages,
        why_a_run_ended_is_text_in_pages,
        a_folder_of_something_else_is_left_alone,
        a_folder_with_anything_else_in_it_is_left_alone,
        pages_of_an_earlier_call_go,
        why_a_picture_is_missing_is_told,
        what_failed_is_marked,
        odd_runs_have_pages_that_can_be_read,
    };
    return fixture_suite("site", tests, (int)(sizeof tests / sizeof tests[0]));
}
