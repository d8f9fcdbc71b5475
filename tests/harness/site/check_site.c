/* check_site.c - the data files and pages of fixture records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/batch.h"
#include "harness/site/site.h"
#include "harness/store/files.h"
#include "tests/harness/table/fixture.h"

static int files;
static double bytes;
static struct history history; /* none, unless a test reads one */
static const char *broken_history = "";

/* A filter that all records pass, so that the papers' plans, which take seconds, are not made. */
static struct report_filter all = {.where = "dim=128"};

static enum status write_site(const char *name) {
    char dir[PATH_BYTES];
    snprintf(dir, sizeof dir, "%s/%s", fixture_folder, name);
    return site_write(&(struct site_request){&fixture_set, &all, fixture_folder, dir, "", &history, broken_history},
                      &files, &bytes, &fixture_problem);
}

static char *file(const char *name) {
    char path[PATH_BYTES];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", fixture_folder, name);
    return slurp(path, &size);
}

static void spill_text(const char *name, const char *text) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", fixture_folder, name);
    spill(path, text, strlen(text));
}

static bool has(const char *name) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", fixture_folder, name);
    return access(path, F_OK) == 0;
}

static void ck_file(const char *name, const char *part) {
    char *text = file(name);
    ck_holds(text, part);
    free(text);
}

static void ck_file_lacks(const char *name, const char *part) {
    char *text = file(name);
    ck_assert_msg(!strstr(text, part), "%s holds %s", name, part);
    free(text);
}

/* Twelve gates of which the seventh and all after it are slower: a step; one of another machine is another series. What
 * is broken is named, and what a line says is text. */
START_TEST(the_history_of_gates_has_its_steps) {
    struct printed lines, broken;
    struct history gates;
    char path[PATH_BYTES];
    add_grid();
    ck_ok(printed_begin(&lines, "history", &fixture_problem));
    for (int i = 0; i < 13; i++)
        fprintf(lines.f,
                "{\"gate\":1,\"date\":\"2026-01-%02d\",\"commit\":\"c%d\",\"machine\":\"%s\",\"name\":\"<b>\\\"\","
                "\"verdict\":\"same\",\"figures\":[{\"name\":\"linear\",\"figure\":\"ms\",\"value\":%g,"
                "\"verdict\":\"same\"},{\"name\":\"s3 lstm\",\"figure\":\"steps_to_90\",\"value\":null},"
                "{\"name\":\"s3 lstm\",\"figure\":\"step_ms_med\",\"value\":1,\"verdict\":\"same\"},"
                "{\"name\":\"s3 lstm\",\"figure\":\"params\",\"value\":1,\"verdict\":\"same\"}]}\n",
                i + 1, i, i == 12 ? "other" : "mine", i < 6 ? 1 + 0.01 * (i % 3) : 2 + 0.01 * (i % 2));
    fputs("{\"gate\":2}\n{\"gate\":1,\"date\":1}\n", lines.f);
    ck_ok(printed_end(&lines, ST_OK, "history", &fixture_problem));
    spill_text("gate.jsonl", lines.text);
    free(lines.text);
    snprintf(path, sizeof path, "%s/gate.jsonl", fixture_folder);
    ck_ok(printed_begin(&broken, "history", &fixture_problem));
    ck_ok(history_read(&gates, path, broken.f, &fixture_problem));
    ck_ok(printed_end(&broken, ST_OK, "history", &fixture_problem));
    history = gates;
    broken_history = broken.text;
    ck_ok(write_site("site"));
    char *text = file("site/data/history.js");
    ck_holds(text, "\"gate\":\"<b>\\\"\",\"name\":\"linear\",\"figure\":\"ms\",\"machine\":\"mine\"");
    ck_holds(text, "\"machine\":\"other\"");
    ck_holds(text, "\"name\":\"s3 lstm\",\"figure\":\"step_ms_med\",\"machine\":\"other\"");
    ck_holds(text, "\"name\":\"s3 lstm\",\"figure\":\"params\",\"machine\":\"\"");
    ck_holds(text, "\"steps\":[[6,1.01,2,],\n]");
    ck_holds(text, "\"later\":1,");
    ck_holds(text, "gate.jsonl line 15: the line has no date, or another kind of it");
    ck_assert_ptr_null(strstr(text, "steps_to_90"));
    free(text);
    history_free(&gates);
    history = (struct history){0};
    broken_history = "";
    free(broken.text);
}
END_TEST

/* `made` twice is made once. Nothing comes from elsewhere, and nothing tells where the records lie. */
START_TEST(every_page_has_its_kind_and_no_address_of_elsewhere) {
    static const char *const pages[] = {"index", "task", "mixer", "compare", "run", "papers", "history"};
    add_grid();
    for (int i = 0; i < 2; i++) ck_ok(write_site("site"));
    ck_assert_int_eq(files, 7 + 3 + 5);
    for (int i = 0; i < 7; i++) {
        char name[64], kind[64];
        snprintf(name, sizeof name, "site/%s.html", pages[i]);
        snprintf(kind, sizeof kind, "<html lang=\"en\" data-page=\"%s\">", pages[i]);
        ck_file(name, kind);
        ck_file(name, "</html>");
        ck_file_lacks(name, "http");
        ck_file_lacks(name, "$");
    }
    ck_file_lacks("site/site.css", "http");
    ck_file_lacks("site/site.js", "eval(");
    ck_file_lacks("site/site.js", "innerHTML");
    ck_file_lacks("site/pages.js", "eval(");
    ck_file_lacks("site/pages.js", "innerHTML");
    ck_file_lacks("site/data/index.js", fixture_folder);
    ck_file_lacks("site/data/task-s5.js", fixture_folder);
}
END_TEST

/* Two rates and three seeds, of which validation prefers the first; the tables have the same numbers. */
START_TEST(a_row_says_which_runs_its_number_is_of) {
    struct report_tables tables;
    char part[128];
    add_grid();
    ck_ok(write_site("site"));
    const struct report_row *row = only_row(&tables);
    snprintf(part, sizeof part, "[\"%.12s\",0,\"paper\",\"bdlru:m=5\",\"\",0,0,%.7g,null,null,%d,", row->id,
             row->estimate, row->n);
    ck_file("site/data/index.js", part);
    snprintf(part, sizeof part, "\"first\":0,\"all\":%d,\"chosen\":%d,", row->n_all, (int)(row->chosen - row->all));
    ck_file("site/data/task-s5.js", part);
    snprintf(part, sizeof part, "\"run_id\":[\"%s\",\"%s\",", row->all[0]->run.run_id, row->all[1]->run.run_id);
    ck_file("site/data/task-s5.js", part);
    ck_file("site/data/task-s5.js", "\"command\":\"lrnn train s5 bdlru:blocks=64,m=5 ");
    report_tables_free(&tables);
}
END_TEST

/* The second row's runs are each .1 better than the first row's, seed by seed. */
START_TEST(rows_are_paired_seed_by_seed) {
    for (uint64_t seed = 1; seed <= 3; seed++) {
        add_run("lstm;gelu", 1e-3, seed, 0.5, 0.5 + 0.01 * (double)seed);
        add_run("bdlru:m=5;gelu", 1e-3, seed, 0.6, 0.6 + 0.01 * (double)seed);
    }
    ck_ok(write_site("site"));
    ck_file("site/data/task-s5.js", "\"pairs\":[[1,0,3,-0.1,-0.1,-0.1],");
}
END_TEST

START_TEST(validation_ranks_the_rows_of_a_task) {
    struct report_tables tables;
    char first[64], second[64];
    add_run("bdlru:m=5;gelu", 1e-3, 1, 0.5, 0.9);
    add_run("lstm;gelu", 1e-3, 1, 0.6, 0.1);
    ck_ok(write_site("site"));
    ck_ok(report_tables_make(&tables, &fixture_set, NULL, fixture_folder, &fixture_problem));
    char *index = file("site/data/index.js");
    for (int k = 0; k < 2; k++) {
        const struct report_row *row = &tables.list[0].rows[k];
        snprintf(first, sizeof first, "[\"%.12s\",", row->id);
        snprintf(second, sizeof second, ",%.7g,%d,0.001,1,", row->solve_rate.high,
                 strcmp(row->run->model, "lstm") != 0);
        const char *line = strstr(index, first);
        ck_assert_ptr_nonnull(line);
        ck_holds(line, second);
    }
    free(index);
    report_tables_free(&tables);
}
END_TEST

/* A value that differs from the one before it is written, else there is a hole. */
START_TEST(columns_of_runs_repeat_nothing) {
    for (uint64_t seed = 1; seed <= 3; seed++) add_run("lstm;gelu", 1e-3, seed, 0.5, seed < 3 ? 0.25 : 0.5);
    ck_ok(write_site("site"));
    ck_file("site/data/task-s5.js", "\"test_acc\":[0.25,,0.5,],");
    ck_file("site/data/task-s5.js", "\"task\":[\"s5\",,,],");
}
END_TEST

START_TEST(settings_unlike_the_profile_come_first) {
    struct run *run = add_run("lstm;gelu", 1e-3, 1, 0.5, 0.5);
    identify(run, "clip", "0.5");
    all.where = NULL;
    strcpy(run->task, "none-of-a-paper");
    ck_ok(write_site("site"));
    all.where = "dim=128";
    ck_file("site/data/task-none-of-a-paper.js", "\"unlike_profile\":[\"lr-min\",\"clip\",]");
    ck_file("site/data/papers.js", "\"missing\":\"No run of its tasks is on record.\"");
}
END_TEST

START_TEST(names_are_text_everywhere) {
    static const char task[] = "../x\"><script>alert('1')</script>\\$&\n";
    struct run *run = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    strcpy(run->task, task);
    strcpy(run->layers, "<img src=x>&;swiglu");
    strcpy(run->stop_reason, "</script>");
    strcpy(run->machine_id, "b\xe4"
                            "d \xe2\x82\xac \xed\xa0\x80");
    fixture_records[0].config[0] = 0;
    ck_ok(write_site("site"));
    ck_file("site/data/index.js", "\"../x\\\"><script>alert('1')</script>\\\\$&\\u000a\"");
    ck_file_lacks("site/index.html", "alert");
    ck_assert_int_eq(scratch_count(fixture_folder, ""), files); /* all of them in the folder */
    char *index = file("site/data/index.js"), *at = strstr(index, "\"stem\":\""), stem[64], name[128];
    ck_assert_int_eq(sscanf(at, "\"stem\":\"%63[^\"]", stem), 1);
    ck_assert_msg(strspn(stem, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(stem), "%s", stem);
    snprintf(name, sizeof name, "site/data/task-%s.js", stem);
    ck_file(name, "\"machine_id\":[\"b\\ufffdd \xe2\x82\xac \\ufffd");
    ck_file(name, "\"stop_reason\":[\"</script>\",],");
    free(index);
}
END_TEST

START_TEST(machines_of_the_folder_are_there) {
    add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    spill_text("machines.csv", "machine_id,env_epoch,cpu\naaaa,1111,'=other\n");
    ck_ok(write_site("site"));
    ck_file("site/data/machines.js", "{\"machine_id\":\"aaaa\",\"env_epoch\":\"1111\",\"cpu\":\"=other\",},");
}
END_TEST

/* A report of one page has a generator of its own, and what is hidden is somebody's as well. */
START_TEST(a_folder_with_anything_else_in_it_is_left_alone) {
    static const char *const names[] = {"thesis/index.html", "thesis/.hidden"};
    char path[PATH_BYTES];
    add_grid();
    snprintf(path, sizeof path, "%s/thesis", fixture_folder);
    for (int i = 0; i < 2; i++) {
        char *report = render(&format_html, NULL);
        ck_ok(make_folder(path, &fixture_problem));
        spill_text(names[i], report);
        ck_assert_int_eq(write_site("thesis"), ST_USAGE);
        ck_holds(fixture_problem.text, "holds other files");
        ck_file(names[i], report);
        free(report);
        scratch_remove(path);
    }
}
END_TEST

/* Data of a task that is gone is removed; the reader's own files stay. */
START_TEST(data_of_an_earlier_call_go) {
    add_grid();
    strcpy(add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5)->task, "s3");
    ck_ok(write_site("site"));
    ck_assert(has("site/data/task-s3.js"));
    spill_text("site/notes.txt", "mine");
    spill_text("site/data/s3.png", "of the task");
    spill_text("site/data/mine.png", "mine");
    spill_text("site/data/task-mine.js", "mine");
    fixture_set.n = 6;
    ck_ok(write_site("site"));
    ck_assert(!has("site/data/task-s3.js") && has("site/notes.txt") && has("site/data/task-mine.js"));
    ck_assert(!has("site/data/s3.png") && has("site/data/mine.png"));
}
END_TEST

START_TEST(what_failed_or_was_cut_off_is_told) {
    add_grid();
    spoil(&fixture_records[0].run, RUN_NAN, "loss");
    cut_off(&fixture_records[1].run, 200);
    ck_ok(write_site("site"));
    ck_file("site/data/task-s5.js", "\"status\":[\"nan\",\"ok\",");
    ck_file("site/data/task-s5.js", "\"status_detail\":[\"loss\",null,");
    ck_file("site/data/index.js", " cut failed grid ");
    struct report_tables tables;
    char part[64];
    const struct report_row *row = only_row(&tables);
    snprintf(part, sizeof part, ",%d,%d,6,", row->estimate_cut, row->n_estimate_failed);
    ck_file("site/data/index.js", part);
    report_tables_free(&tables);
}
END_TEST

/* The best of the grid is of six runs; three of them are the seeds that may have solved the task. */
START_TEST(seeds_are_those_of_the_chosen_rate) {
    add_grid();
    all.protocol = PROTOCOL_BEST_OF_GRID;
    ck_ok(write_site("site"));
    all.protocol = PROTOCOL_VAL_MEAN;
    struct report_tables tables;
    char part[128];
    const struct report_row *row = only_row(&tables);
    snprintf(part, sizeof part, "\"\",0,0,%.7g,null,null,3,%d,%.7g,%.7g,", row->best, row->solved, row->solve_rate.low,
             row->solve_rate.high);
    ck_file("site/data/index.js", part);
    report_tables_free(&tables);
}
END_TEST

/* Marks are columns, so that a mixer has one name. */
START_TEST(a_mixer_has_no_mark_in_its_name_and_need_not_be_the_programs) {
    struct run *marked = add_run("full-attention:heads=2;gelu", 1e-3, 1, 0.5, 0.5);
    identify(marked, "allow-non-causal", "yes");
    for (uint64_t seed = 1; seed <= 2; seed++) add_run("former:m=2;gelu", 1e-3, seed, 0.5, 0.5);
    ck_ok(write_site("site"));
    ck_file("site/data/index.js", "\"full-attention:heads=2\",\"\",0,1,");
    ck_file("site/data/index.js", "\"former:m=2\",\"\",0,0,");
    char *index = file("site/data/index.js"), *former = strstr(index, "{\"name\":\"former\",\"title\":\"former\",");
    ck_assert_ptr_nonnull(former);
    ck_assert_ptr_null(strstr(former + 1, "{\"name\":\"former\""));
    ck_holds(index, "{\"name\":\"full-attention\",");
    free(index);
}
END_TEST

/* A failed run counts as chance after its last evaluation, at 100, whatever step it failed at. */
START_TEST(a_failed_run_is_chance_after_its_last_evaluation) {
    add_run("lstm;gelu", 1e-3, 1, 0.3, 0.3);
    add_run("lstm;gelu", 1e-3, 2, 0.6, 0.6);
    spoil(&fixture_records[1].run, RUN_NAN, "loss");
    fixture_records[1].n_curve = 1;
    fixture_records[1].run.steps = 250;
    ck_ok(write_site("site"));
    ck_file("site/data/task-s5.js",
            "\"band\":[[100,0.15,0.1,0.2],[200,0.1042,0.008333,0.2],[300,0.1542,0.008333,0.3],");
}
END_TEST

/* The bins are those of the tables: from the shortest, 9, then from 12, 16, 24, 32, 48 and 64 on. */
START_TEST(lengths_share_bins_as_in_tables) {
    static struct eval_point evals[9];
    for (int i = 0; i < 9; i++) {
        evals[i] = (struct eval_point){.split = SPLIT_TEST, .length = 9 * (i + 1), .n = 10, .acc = 0.1 * i};
        strcpy(evals[i].difficulty, "length");
    }
    add_run("lstm;gelu", 1e-3, 1, 0.5, 0.5);
    fixture_records[0].evals = evals;
    fixture_records[0].n_evals = 9;
    ck_ok(write_site("site"));
    ck_file("site/data/task-s5.js", "\"length\":[[9,11,0,10,");
    ck_file("site/data/task-s5.js", "\n[64,81,0.75,20,");
}
END_TEST

/* s3-250 has a summary of its own. */
START_TEST(an_alias_is_the_whole_name) {
    strcpy(add_run("lstm;gelu", 1e-3, 1, 0.5, 0.5)->task, "s3-250");
    strcpy(add_run("lstm;gelu", 1e-3, 1, 0.5, 0.5)->task, "s3:length=8");
    ck_ok(write_site("site"));
    char *text = file("site/data/task-s3-250.js"), *alias = strstr(text, "\"alias\":");
    ck_assert_ptr_nonnull(alias);
    ck_assert_ptr_null(strstr(alias + 1, "\"alias\":"));
    free(text);
}
END_TEST

/* A failed attempt is a run of its own beside the one which took its place. */
START_TEST(an_attempt_is_marked) {
    struct run *failed = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5), *again = add_run("lstm;swiglu", 1e-3, 0, 0.5, 0.5);
    spoil(failed, RUN_NAN, "loss");
    failed->attempt = 1;
    again->attempt = 2;
    fixture_records[0].set_aside = true;
    ck_ok(write_site("site"));
    ck_file("site/data/task-s5.js", "\"set_aside\":1,},\n{\"val\":");
}
END_TEST

START_TEST(the_first_page_says_which_seeds_its_numbers_are_of) {
    add_grid();
    all.confirm = 1;
    ck_ok(write_site("site"));
    all.confirm = 0;
    ck_file("site/data/index.js", "\"confirm\":1,");
}
END_TEST

/* One whole record and a damaged one. */
START_TEST(a_damaged_record_is_named_and_left_out) {
    struct record_set set;
    struct printed broken;
    char path[PATH_BYTES], dir[PATH_BYTES], *text;
    size_t size;
    add_run("lstm;gelu", 1e-3, 1, 0.5, 0.5);
    add_run("lstm;gelu", 1e-3, 2, 0.5, 0.5);
    for (int i = 0; i < 2; i++) ck_ok(record_write(fixture_folder, &fixture_records[i], NULL, &fixture_problem));
    record_path(fixture_folder, fixture_records[1].run.run_id, path, sizeof path);
    text = slurp(path, &size);
    text[size / 2] ^= 1;
    spill(path, text, size);
    free(text);
    ck_assert_int_eq(report_load(&set, fixture_folder, &fixture_problem), ST_DATA);
    ck_ok(printed_begin(&broken, "a test", &fixture_problem));
    ck_ok(report_load_sound(&set, fixture_folder, broken.f, &fixture_problem));
    ck_ok(printed_end(&broken, ST_OK, "a test", &fixture_problem));
    ck_assert_int_eq(set.n, 1);
    snprintf(dir, sizeof dir, "%s/site", fixture_folder);
    ck_ok(site_write(&(struct site_request){&set, &all, fixture_folder, dir, broken.text, &history, ""}, &files, &bytes,
                     &fixture_problem));
    ck_file("site/data/index.js", fixture_records[1].run.run_id);
    ck_file_lacks("site/data/task-s5.js", fixture_records[1].run.run_id);
    free(broken.text);
    records_free(&set);
}
END_TEST

Suite *check_site(void);
Suite *check_site(void) {
    const TTest *const tests[] = {
        every_page_has_its_kind_and_no_address_of_elsewhere,
        the_history_of_gates_has_its_steps,
        a_row_says_which_runs_its_number_is_of,
        rows_are_paired_seed_by_seed,
        validation_ranks_the_rows_of_a_task,
        columns_of_runs_repeat_nothing,
        settings_unlike_the_profile_come_first,
        names_are_text_everywhere,
        machines_of_the_folder_are_there,
        a_folder_with_anything_else_in_it_is_left_alone,
        data_of_an_earlier_call_go,
        what_failed_or_was_cut_off_is_told,
        an_attempt_is_marked,
        seeds_are_those_of_the_chosen_rate,
        a_mixer_has_no_mark_in_its_name_and_need_not_be_the_programs,
        a_failed_run_is_chance_after_its_last_evaluation,
        lengths_share_bins_as_in_tables,
        an_alias_is_the_whole_name,
        the_first_page_says_which_seeds_its_numbers_are_of,
        a_damaged_record_is_named_and_left_out,
    };
    return fixture_suite("site", tests, (int)(sizeof tests / sizeof tests[0]));
}
