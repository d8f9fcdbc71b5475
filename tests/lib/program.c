/* program.c - see program.h. */
#include "tests/lib/program.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/store/record_files.h"
#include "tests/testing.h"

char *out, *err;
char program_folder[SCRATCH_BYTES];

void free_output(void) {
    free(out);
    free(err);
    out = err = NULL;
}

static char *read_output(const char *folder, const char *name) {
    char path[4096];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return slurp(path, &size);
}

/* Commands in a text as an installed program has them: "lrnn bench" for "/path/lrnn bench". */
static void call_by_name(char *text, const char *program) {
    size_t length = strlen(program);
    if (!strchr(program, '/')) return;
    for (char *at = text; (at = strstr(at, program)); at += 4) {
        if (at[length] != ' ') continue;
        memmove(at + 4, at + length, strlen(at + length) + 1);
        memcpy(at, "lrnn", 4);
    }
}

int run_program(const char *folder, const char *program, const char *arguments) {
    char command[4096];
    int n = snprintf(command, sizeof command, "%s %s >%s/out 2>%s/err </dev/null", program, arguments, folder, folder);
    ck_assert_int_lt(n, (int)sizeof command);
    int status = system(command);
    free_output();
    out = read_output(folder, "out");
    err = read_output(folder, "err");
    call_by_name(out, program);
    call_by_name(err, program);
    ck_assert_msg(WIFEXITED(status), "%s: ended by a signal\n%s", command, err);
    return WEXITSTATUS(status);
}

const char *named_program(const char *variable, const char *fallback) {
    const char *path = getenv(variable);
    return path ? path : fallback;
}

void program_begin(void) {
    scratch_make(program_folder);
}

void program_begin_without_data(void) {
    program_begin();
    ck_assert_int_eq(setenv("LRNN_CACHE", program_folder, 1), 0);
}

void program_begin_inside(void) {
    static const char *const names[][2] = {
        {"LRNN", "./lrnn"}, {"LRNN_F64", "./lrnn-f64"}, {"LRNN_FAULTS", "build/faults.so"}};
    char path[PATH_MAX];
    program_begin();
    for (int i = 0; i < 3; i++)
        if (realpath(named_program(names[i][0], names[i][1]), path)) ck_assert_int_eq(setenv(names[i][0], path, 1), 0);
    ck_assert_int_eq(chdir(program_folder), 0);
}

void program_end(void) {
    free_output();
    scratch_remove(program_folder);
}

bool is_in_folder(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", program_folder, name);
    return access(path, F_OK) == 0;
}

int records_in(const char *name) {
    char path[256];
    struct record_set set;
    struct error e;
    snprintf(path, sizeof path, "%s/%s", program_folder, name);
    ck_assert_msg(records_load(&set, path, &e) == ST_OK, "%s", e.text);
    int n = set.n;
    records_free(&set);
    return n;
}

int run(const char *arguments) {
    return run_program(program_folder, named_program("LRNN", "./lrnn"), arguments);
}

void expect_status(int got, int want, const char *arguments) {
    ck_assert_msg(got == want, "lrnn %s: exit status %d, expected %d\n%.1500s%.1500s", arguments, got, want, out, err);
}

void expect_text(const char *text, const char *wanted, const char *arguments) {
    ck_assert_msg(strstr(text, wanted) != NULL, "lrnn %s: expected \"%s\" in\n%.2000s", arguments, wanted, text);
}

json_t *parse_line(const char *line) {
    json_error_t e;
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &e);
    ck_assert_msg(json_is_object(object), "%s: %s", e.text, line);
    return object;
}

int64_t whole(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_integer(value), "no whole number '%s'", key);
    return json_integer_value(value);
}

double number(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_number(value), "no number '%s'", key);
    return json_number_value(value);
}
