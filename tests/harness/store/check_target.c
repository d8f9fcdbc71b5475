/* check_target.c - what a rename would take away is refused, and stays. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file/safetensors.h"
#include "core/file/target.h"
#include "harness/store/files.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

static char folder[SCRATCH_BYTES];

static void make(void) {
    scratch_make(folder);
}

static void clear(void) {
    scratch_remove(folder);
}

/* Both writers refuse `path` as `what`, and leave it as it is. */
static void stays(const char *path, mode_t kind, const char *what) {
    const double one = 1;
    const struct st_source source = {.name = "w", .rank = 1, .dims = {1}, .f64 = true, .values = &one};
    struct stat there;
    struct error e;
    ck_assert_int_eq(write_file_atomic(path, "x", 1, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, path) && strstr(e.text, what), "%s", e.text);
    ck_assert_int_eq(safetensors_write(path, &source, 1, NULL, 0, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, path) && strstr(e.text, what), "%s", e.text);
    ck_assert_int_eq(lstat(path, &there), 0);
    ck_assert_uint_eq(there.st_mode & S_IFMT, kind);
    ck_assert_int_eq(scratch_count(folder, ".tmp"), 0);
}

START_TEST(links_and_pipes_stay) {
    char file[SCRATCH_BYTES + 8], link[SCRATCH_BYTES + 8], pipe[SCRATCH_BYTES + 8];
    snprintf(file, sizeof file, "%s/file", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    snprintf(pipe, sizeof pipe, "%s/pipe", folder);
    ck_assert_int_eq(symlink(file, link), 0);
    stays(link, S_IFLNK, "a symbolic link");
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    stays(pipe, S_IFIFO, "a pipe");
    struct error e;
    ck_assert_int_eq(file_target_check("/dev/null", &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "a device") != NULL, "%s", e.text);
}
END_TEST

START_TEST(files_and_free_names_are_written) {
    char file[SCRATCH_BYTES + 8];
    struct error e;
    snprintf(file, sizeof file, "%s/file", folder);
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(write_file_atomic(file, i ? "b" : "a", 1, &e) == ST_OK, "%s", e.text);
        size_t size;
        char *bytes = slurp(file, &size);
        ck_assert_str_eq(bytes, i ? "b" : "a");
        free(bytes);
    }
}
END_TEST

Suite *check_target(void);
Suite *check_target(void) {
    Suite *suite = suite_create("target");
    TCase *c = tcase_create("target");
    tcase_add_checked_fixture(c, make, clear);
    tcase_add_test(c, links_and_pipes_stay);
    tcase_add_test(c, files_and_free_names_are_written);
    suite_add_tcase(suite, c);
    return suite;
}
