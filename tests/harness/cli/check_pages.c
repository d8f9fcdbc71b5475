/* check_pages.c - README.md and the pages of docs/ and examples/ cite only what is there: links between them, and files
 * of the repository. */
#include <ctype.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/scratch.h"
#include "tests/testing.h"

static const char *const folders[] = {".ci/",    "core/",     "docs/",  "examples/", "harness/", "kernels/", "models/",
                                      "papers/", "profiles/", "plots/", "results/",  "tasks/",   "tests/",   "tools/"};
/* Files that commands write and that are never committed. */
static const char *const written[] = {"results/device/", "results/runs/", "results/gate.jsonl", "models/mine.c"};

static glob_t pages;
static char *page;

static void find_pages(void) {
    ck_assert_int_eq(glob("*.md", 0, NULL, &pages), 0);
    ck_assert_int_eq(glob("docs/*.md", GLOB_APPEND, NULL, &pages), 0);
    ck_assert_int_eq(glob("examples/*/*.md", GLOB_APPEND, NULL, &pages), 0);
}

static void free_pages(void) {
    globfree(&pages);
    free(page);
    page = NULL;
}

static void open_page(const char *name) {
    size_t size;
    free(page);
    page = slurp(name, &size);
}

START_TEST(links_lead_to_files) {
    int links = 0;
    for (size_t i = 0; i < pages.gl_pathc; i++) {
        const char *name = pages.gl_pathv[i], *slash = strrchr(name, '/');
        open_page(name);
        for (const char *at = strstr(page, "]("); at; at = strstr(at + 1, "](")) {
            char to[256], path[512];
            snprintf(to, sizeof to, "%.*s", (int)strcspn(at + 2, ")#"), at + 2);
            if (!*to || strstr(to, "://")) continue;
            snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash + 1 - name) : 0, name, to);
            ck_assert_msg(access(path, F_OK) == 0, "%s links to %s, which is not there", name, path);
            links++;
        }
    }
    ck_assert_int_ge(links, 30);
}
END_TEST

/* models/NAME.c, kernels/ROOM/list.def, results/runs/<ab>/, tasks/{data,mad}: the reader puts a word there. */
static bool is_pattern(const char *path) {
    return strstr(path, "NAME") || strstr(path, "ROOM") || strstr(path, "SUITE") || strstr(path, "TASK") ||
           strpbrk(path, "<{");
}

static bool is_there(const char *path) {
    glob_t found;
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        if (strncmp(path, written[i], strlen(written[i])) == 0) return true;
    int status = glob(path, 0, NULL, &found);
    if (status == 0) globfree(&found);
    return status == 0;
}

/* The path that begins at this place of the page; false: none does. What ends a sentence is no part of it. */
static bool path_at(const char *at, char *path, size_t size) {
    bool begins = at == page || !(isalnum((unsigned char)at[-1]) || strchr("_./-", at[-1]));
    for (size_t i = 0; begins && i < sizeof folders / sizeof *folders; i++) {
        if (strncmp(at, folders[i], strlen(folders[i])) != 0) continue;
        snprintf(path, size, "%.*s", (int)strcspn(at, " \n`'\",;:()[]|\\"), at);
        size_t length = strlen(path);
        if (path[length - 1] == '.') path[length - 1] = 0;
        return true;
    }
    return false;
}

START_TEST(files_that_pages_name_are_there) {
    int named = 0;
    for (size_t i = 0; i < pages.gl_pathc; i++) {
        open_page(pages.gl_pathv[i]);
        for (const char *at = page; *at; at++) {
            char path[512];
            if (!path_at(at, path, sizeof path) || is_pattern(path)) continue;
            ck_assert_msg(is_there(path), "%s names %s, which is not there", pages.gl_pathv[i], path);
            named++;
        }
    }
    ck_assert_int_ge(named, 100);
}
END_TEST

Suite *check_pages(void);
Suite *check_pages(void) {
    Suite *suite = suite_create("pages");
    TCase *c = tcase_create("pages");
    tcase_add_checked_fixture(c, find_pages, free_pages);
    tcase_add_test(c, links_lead_to_files);
    tcase_add_test(c, files_that_pages_name_are_there);
    suite_add_tcase(suite, c);
    return suite;
}
