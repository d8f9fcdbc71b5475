/* attack.c - see attack.h. */
#include "tests/harness/table/attack.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utime.h>

#include "core/option.h"
#include "harness/plot/plot.h"
#include "harness/site/site.h"
#include "harness/store/logs.h"
#include "harness/table/compare.h"
#include "harness/table/paper.h"

#define TEXT 1024

/* Takes the next part of a text up to a separator; false: there is none left. */
static bool next_part(const char **at, const char *separator, char part[TEXT]) {
    if (!**at) return false;
    const char *end = strstr(*at, separator);
    size_t n = end ? (size_t)(end - *at) : strlen(*at);
    ck_assert_uint_lt(n, TEXT);
    snprintf(part, TEXT, "%.*s", (int)n, *at);
    *at += end ? n + strlen(separator) : n;
    return true;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static void mark(struct run_record *r, const char *what) {
    if (!strcmp(what, "dirty"))
        r->run.git_dirty = 1;
    else if (!strcmp(what, "mixed"))
        r->run.mixed_builds = 1;
    else if (!strcmp(what, "replaced"))
        r->replaced = 1;
    else if (!strcmp(what, "outdated"))
        snprintf(r->run.numerics, sizeof r->run.numerics, "0");
    else
        ck_abort_msg("no mark '%s'", what);
}

static void fail_as(struct run *run, const char *status) {
    int k = 0;
    while (strcmp(run_status_names[k], status) != 0) k++;
    spoil(run, (enum run_status)k, "");
}

/* The name of a plan, or the path of one in the folder, whose name has a dot. */
static void plan_path(const char *name, char path[PATH_BYTES]) {
    bool file = strchr(name, '.') != NULL;
    snprintf(path, PATH_BYTES, "%s%s%s", file ? fixture_folder : "", file ? "/" : "", name);
}

/* Gives the record the id, the identity and the configuration of the plan's run of its task, rate and seed. */
static void take_plan(struct run_record *record, const char *words) {
    char name[TEXT], pair[TEXT];
    struct request *r = calloc(1, sizeof *r);
    struct plan plan = {0};
    struct resolved resolved;
    bool found = false;
    char path[PATH_BYTES];
    const char *plan_name = path;
    next_part(&words, " ", name);
    plan_path(name, path);
    ck_ok(request_words(r, &plan_name, 1, &fixture_problem));
    ck_ok(request_plan(r, &plan, &resolved, &fixture_problem));
    for (int i = 0; i < plan.n && !found; i++) {
        const struct setup *s = plan.setups[i];
        const char *at = words;
        char config[CONFIG_TEXT];
        ck_ok(setup_config_text(&s->spec, config, &fixture_problem));
        found = !strcmp(s->spec.task.name, record->run.task) && s->spec.config.lr == record->run.lr &&
                s->spec.config.seed == (int64_t)record->run.seed;
        while (found && next_part(&at, " ", pair)) found = strstr(config, pair) != NULL;
        if (!found) continue;
        snprintf(record->identity, sizeof record->identity, "%s", s->id.text);
        snprintf(record->config, sizeof record->config, "%s", config);
        snprintf(record->run.run_id, sizeof record->run.run_id, "%s", s->id.run_id);
        snprintf(record->run.cell_id, sizeof record->run.cell_id, "%s", s->id.cell_id);
        record->run.max_steps = record->run.steps = s->shapes.schedule_steps;
    }
    ck_assert_msg(found, "%s has no such run", name);
    plan_free(&plan);
    free(r);
}

static void write_speed(const struct run *run, const char *words) {
    struct perf_row row = {.quiet = 1};
    ck_assert_int_eq(
        sscanf(words, "%lf %ld %15s %16s %15s", &row.tok_per_s, &row.threads, row.dtype, row.machine_id, row.device),
        5);
    snprintf(row.cell_id, sizeof row.cell_id, "%s", run->cell_id);
    ck_ok(perf_append(fixture_folder, &row, &fixture_problem));
}

static void write_file(const char *name, const char *text) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", fixture_folder, name);
    if (strchr(name, '/')) *strrchr(path, '/') = 0;
    if (strchr(name, '/')) ck_ok(make_folder(path, &fixture_problem));
    snprintf(path, sizeof path, "%s/%s", fixture_folder, name);
    spill(path, text, strlen(text));
}

/* The claim of a process on another machine, which nobody has touched for an hour. */
static void write_claim(const char *what) {
    static const char name[] = "claims/0123456789abcdef0123456789abcdef.1";
    char text[2 * TEXT], path[PATH_BYTES];
    struct utimbuf past = {time(NULL) - 3600, time(NULL) - 3600};
    snprintf(text, sizeof text, "elsewhere 7 1 boot/space 2026-01-01T00:00:00Z %s\n", what);
    write_file(name, text);
    snprintf(path, sizeof path, "%s/%s", fixture_folder, name);
    ck_assert_int_eq(utime(path, &past), 0);
}

static void about_run(struct run_record *r, const char *word, const char *rest) {
    char key[TEXT];
    const char *equals = strchr(rest, '=');
    if (!strcmp(word, "key")) {
        snprintf(key, sizeof key, "%.*s", (int)(equals - rest), rest);
        identify(&r->run, key, equals + 1);
    } else if (!strcmp(word, "task")) {
        snprintf(r->run.task, sizeof r->run.task, "%s", rest);
    } else if (!strcmp(word, "cut")) {
        cut_off(&r->run, atol(rest));
    } else if (!strcmp(word, "fail")) {
        fail_as(&r->run, rest);
    } else if (!strcmp(word, "mark")) {
        mark(r, rest);
    } else if (!strcmp(word, "plan")) {
        take_plan(r, rest);
    } else {
        ck_assert_msg(!strcmp(word, "speed"), "no statement '%s'", word);
        write_speed(&r->run, rest);
    }
}

static void make_runs(const char *statements) {
    char statement[TEXT], layers[TEXT], word[TEXT], all[TEXT];
    while (next_part(&statements, " | ", statement)) {
        const char *rest = statement;
        int n;
        double lr, val, test;
        unsigned long seed;
        next_part(&rest, " ", word);
        if (!strcmp(word, "run")) {
            ck_assert_int_eq(sscanf(rest, "%1000s %lf %lu %lf %lf", layers, &lr, &seed, &val, &test), 5);
            add_run(layers, lr, seed, val, test);
        } else if (!strcmp(word, "runs")) {
            ck_assert_int_eq(sscanf(rest, "%d %1000s %lf %lf %lf", &n, layers, &lr, &val, &test), 5);
            for (int i = 1; i <= n; i++) add_run(layers, lr, (uint64_t)i, val, test);
        } else if (!strcmp(word, "all")) {
            next_part(&rest, " ", all);
            for (int i = 0; i < fixture_set.n; i++) about_run(&fixture_records[i], all, rest);
        } else if (!strcmp(word, "lost")) {
            write_claim(rest);
        } else if (!strcmp(word, "file")) {
            next_part(&rest, " ", all);
            char text[TEXT];
            snprintf(text, sizeof text, "%s\n", rest);
            for (char *c = text; *c; c++)
                if (*c == '/') *c = '\n';
            write_file(all, text);
        } else {
            about_run(&fixture_records[fixture_set.n - 1], word, rest);
        }
    }
}

/* --- what is shown ------------------------------------------------------------------------------------------------ */

/* The words of `shown`. */
struct words {
    char list[8][TEXT];
    int n;
};

/* The value of a word "NAME=VALUE", NULL: there is none. */
static char *value_of(struct words *w, const char *name) {
    size_t n = strlen(name);
    for (int i = 0; i < w->n; i++)
        if (!strncmp(w->list[i], name, n) && w->list[i][n] == '=') return w->list[i] + n + 1;
    return NULL;
}

static const struct sheet_format *format_of(const char *name) {
    const struct sheet_format *const *list = sheet_formats();
    while (*list && strcmp((*list)->name, name) != 0) list++;
    ck_assert_msg(*list != NULL, "no format %s", name);
    return *list;
}

static enum status print_report(struct words *w, FILE *f) {
    const struct report *const *report = report_list();
    const char *confirm = value_of(w, "confirm"), *protocol = value_of(w, "protocol");
    struct report_filter filter = {.where = value_of(w, "where"), .confirm = confirm ? atol(confirm) : 0};
    const struct sheet_view view = {.columns = value_of(w, "columns")};
    if (protocol) ck_ok(protocol_find(protocol, &filter.protocol, &fixture_problem));
    filter.protocol_given = protocol != NULL;
    while (*report && strcmp((*report)->name, w->list[0]) != 0) report++;
    ck_assert_msg(*report != NULL, "no report %s", w->list[0]);
    return report_print(*report, &fixture_set, &filter, &view, format_of(w->list[1]), fixture_folder, f,
                        &fixture_problem);
}

static enum status print_paper(struct words *w, FILE *f) {
    char path[PATH_BYTES];
    const char *tasks = value_of(w, "tasks"), *where = value_of(w, "where");
    for (int i = 0; i < fixture_set.n; i++)
        ck_ok(record_write(fixture_folder, &fixture_set.list[i], NULL, &fixture_problem));
    plan_path(w->list[1], path);
    const struct paper_choice choice = {path, tasks ? tasks : "", "", where ? where : ""};
    return paper_print(&choice, fixture_folder, NULL, format_of(w->list[2]), f, &fixture_problem);
}

/* The first half of the records against the second. */
static enum status print_comparison(struct words *w, FILE *f) {
    struct sheets sheets = {0};
    struct record_set sets[2] = {fixture_set, fixture_set};
    sets[0].n = fixture_set.n / 2;
    sets[1].list += sets[0].n;
    sets[1].n -= sets[0].n;
    struct comparison of = {.sets = {&sets[0], &sets[1]},
                            .names = {"before", "after"},
                            .for_programs = format_of(w->list[1])->for_programs};
    enum status status = compare_runs(&sheets, &of, &fixture_problem);
    if (status == ST_OK) status = sheets_write(&sheets, format_of(w->list[1]), f, &fixture_problem);
    sheets_free(&sheets);
    return status;
}

/* The data of the page of S5. */
static enum status print_site(struct words *w, FILE *f) {
    struct report_filter filter = {.where = value_of(w, "where")};
    char dir[PATH_BYTES], path[PATH_BYTES + 32];
    int files;
    double bytes;
    size_t size;
    snprintf(dir, sizeof dir, "%s/site", fixture_folder);
    TRY(site_write(&(struct site_request){&fixture_set, &filter, fixture_folder, dir, "", &(struct history){0}, ""},
                   &files, &bytes, &fixture_problem));
    snprintf(path, sizeof path, "%s/data/task-s5.js", dir);
    char *text = slurp(path, &size);
    fwrite(text, 1, size, f);
    free(text);
    return ST_OK;
}

/* The script and the data that gnuplot gets. */
static enum status print_plot(struct words *w, FILE *f) {
    static const char *const names[] = {"script.kept", "data.kept"};
    struct report_filter filter = {.where = value_of(w, "where")};
    const struct plot_view view = {.x = PLOT_AUTO};
    stand_in_for_gnuplot();
    TRY(report_plot_view(&fixture_set, &filter, w->list[1], &view, fixture_folder, fixture_folder, &fixture_problem));
    for (int i = 0; i < 2; i++) {
        char path[PATH_BYTES];
        size_t size;
        snprintf(path, sizeof path, "%s/%s", fixture_folder, names[i]);
        char *text = slurp(path, &size);
        fwrite(text, 1, size, f);
        free(text);
    }
    return ST_OK;
}

void attack_try(const struct attack *a) {
    struct words w = {.n = 0};
    const char *at = a->shown;
    char part[TEXT], *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    while (next_part(&at, " ", w.list[w.n])) w.n++;
    for (int i = 0; i < w.n; i++)
        for (char *c = w.list[i]; *c; c++)
            if (*c == '+') *c = ' ';
    ck_assert_msg(*a->says, "%s: nothing is asked of what is shown", a->does);
    make_runs(a->runs);
    enum status status = !strcmp(w.list[0], "plot")      ? print_plot(&w, f)
                         : !strcmp(w.list[0], "paper")   ? print_paper(&w, f)
                         : !strcmp(w.list[0], "compare") ? print_comparison(&w, f)
                         : !strcmp(w.list[0], "site")    ? print_site(&w, f)
                                                         : print_report(&w, f);
    fclose(f);
    ck_assert_msg(status == ST_OK, "%s: %s", a->does, fixture_problem.text);
    for (at = a->says; next_part(&at, " | ", part);)
        ck_assert_msg(strstr(text, part) != NULL, "who %s is not told of \"%s\" by\n%.3000s", a->does, part, text);
    for (at = a->never; next_part(&at, " | ", part);)
        ck_assert_msg(strstr(text, part) == NULL, "who %s has \"%s\" in\n%.3000s", a->does, part, text);
    free(text);
}

Suite *attack_suite(const char *name, const TTest *test, int n) {
    Suite *s = fixture_suite(name, NULL, 0);
    TCase *c = tcase_create(name);
    tcase_add_checked_fixture(c, fixture_open, fixture_close);
    tcase_add_loop_test(c, test, 0, n);
    suite_add_tcase(s, c);
    return s;
}
