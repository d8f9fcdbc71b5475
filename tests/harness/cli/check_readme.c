/* check_readme.c - what README.md shows is what its commands print of the committed records, byte for byte; and its
 * commands leave a clone as it was. */
#include <dirent.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/program.h"
#include "tests/testing.h"

#define PROMPT "$ ./lrnn "

/* The block of the page after a command, up to the next one or the end of the block; *at moves there. */
static char *shown(const char **at) {
    const char *end = strstr(*at, "\n```");
    const char *next = strstr(*at, "\n" PROMPT);
    ck_assert_ptr_nonnull(end);
    if (next && next < end) end = next;
    char *text = strndup(*at, (size_t)(end + 1 - *at));
    *at = end;
    return text;
}

START_TEST(commands_of_the_readme_print_what_it_shows) {
    size_t size;
    char *page = slurp("README.md", &size);
    int commands = 0;
    for (const char *at = page; (at = strstr(at, "\n" PROMPT)) != NULL; commands++) {
        char arguments[512];
        at += strlen("\n" PROMPT);
        size_t length = strcspn(at, "\n");
        ck_assert_uint_lt(length, sizeof arguments);
        memcpy(arguments, at, length);
        arguments[length] = 0;
        at += length + 1;
        char *want = shown(&at);
        expect_status(run(arguments), 0, arguments);
        ck_assert_str_eq(out, want);
        free(want);
    }
    ck_assert_int_ge(commands, 1);
    free(page);
}
END_TEST

/* The rows of every table of the committed records. A row is told from the others of its table by its label; what was
 * cut off before its schedule ended, or is of another setting than the published number, has no difference from it. */
START_TEST(committed_tables_have_no_row_twice_and_no_difference_of_unlike_things) {
    expect_status(run("report --out results/baseline --format json"), 0, "report");
    char *text = out;
    out = NULL;
    json_t *seen = json_object();
    int rows = 0, cut_off = 0, compared = 0;
    for (char *rest, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), rows++) {
        json_t *row = parse_line(line);
        char name[1024];
        const char *label = json_string_value(json_object_get(row, "label"));
        snprintf(name, sizeof name, "%s, profile %s: %s", json_string_value(json_object_get(row, "task")),
                 json_string_value(json_object_get(row, "profile")), label);
        ck_assert_msg(!json_object_get(seen, name), "two rows are called: %s", name);
        json_object_set_new(seen, name, json_true());
        bool is_cut = whole(row, "n_cut_off_grid") > 0 || whole(row, "n_cut_off") > 0;
        bool is_unlike = strcmp(json_string_value(json_object_get(row, "published_setting")), "other") == 0;
        bool has_difference = json_is_number(json_object_get(row, "delta"));
        ck_assert_msg(!has_difference || (!is_cut && !is_unlike), "a difference from the published number: %s", name);
        cut_off += is_cut;
        compared += has_difference;
        json_decref(row);
    }
    json_decref(seen);
    free(text);
    ck_assert_int_ge(rows, 200);
    ck_assert_int_ge(cut_off, 1);
    ck_assert_int_ge(compared, 1);
}
END_TEST

/* Counts digits followed by the sign of a run that was cut off. */
static int count_marked(const char *text, const char *sign) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, sign)) != NULL; at += strlen(sign))
        n += at > text && at[-1] >= '0' && at[-1] <= '9';
    return n;
}

/* A row with a run that was cut off has a sign at its number in every format that people read. */
START_TEST(committed_runs_that_were_cut_off_are_marked) {
    static const char *const formats[][2] = {{"term", "*"}, {"md", "\\*"}, {"latex", "*"}, {"html", "*"}};
    int cut_off = 0;
    expect_status(run("report --out results/baseline --format json"), 0, "report");
    for (const char *at = out; (at = strstr(at, "\"n_cut_off\":")) != NULL; at++)
        cut_off += strtol(at + strlen("\"n_cut_off\":"), NULL, 10) > 0;
    ck_assert_int_ge(cut_off, 1);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments, "report --out results/baseline --columns acc --format %s", formats[i][0]);
        expect_status(run(arguments), 0, arguments);
        ck_assert_msg(count_marked(out, formats[i][1]) == cut_off, "%s: %d rows marked, expected %d", formats[i][0],
                      count_marked(out, formats[i][1]), cut_off);
    }
}
END_TEST

/* Whether .gitignore has a line for it. */
static bool is_ignored(const char *name) {
    size_t size;
    char path[512], *lines = slurp(".gitignore", &size), *rest;
    bool found = false;
    snprintf(path, sizeof path, "/results/%s", name);
    for (char *line = strtok_r(lines, "\n", &rest); line && !found; line = strtok_r(NULL, "\n", &rest)) {
        size_t n = strlen(line);
        if (n && line[n - 1] == '/') line[n - 1] = 0;
        found = fnmatch(line, path, FNM_PATHNAME) == 0;
    }
    free(lines);
    return found;
}

START_TEST(what_commands_write_into_results_is_ignored_by_git) {
    static const char *const lines[] = {
        "bench s3:n_train=100,n_val=20,n_test=20,length=4 --profile smoke --models lstm:hidden=4 --epochs 1 --no-speed "
        "--quiet",
        "plot accuracy --format pdf"};
    char arguments[512];
    int n = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        snprintf(arguments, sizeof arguments, "%s --out %s/results", lines[i], program_folder);
        expect_status(run(arguments), 0, arguments);
    }
    snprintf(arguments, sizeof arguments, "%s/results", program_folder);
    DIR *folder = opendir(arguments);
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *d; (d = readdir(folder)) != NULL;) {
        if (d->d_name[0] == '.') continue;
        ck_assert_msg(is_ignored(d->d_name), "git would show results/%s", d->d_name);
        n++;
    }
    closedir(folder);
    ck_assert_int_ge(n, 7);
    ck_assert(is_ignored("rerun") && is_ignored("slurm") && !is_ignored("published"));
}
END_TEST

Suite *check_readme(void);
Suite *check_readme(void) {
    Suite *suite = suite_create("readme");
    TCase *c = tcase_create("readme");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_add_test(c, commands_of_the_readme_print_what_it_shows);
    tcase_add_test(c, committed_tables_have_no_row_twice_and_no_difference_of_unlike_things);
    tcase_add_test(c, committed_runs_that_were_cut_off_are_marked);
    tcase_add_test(c, what_commands_write_into_results_is_ignored_by_git);
    suite_add_tcase(suite, c);
    return suite;
}
