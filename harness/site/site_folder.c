/* site_folder.c - see site_folder.h. */
#include "harness/site/site_folder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/label.h"
#include "harness/store/files.h"
#include "harness/store/own_file.h"

#define HEAD_BYTES 1024 /* of a page, which its generator stands in */

static bool is_page(const char *path) {
    char head[HEAD_BYTES + 1];
    FILE *f = fopen(path, "re");
    if (!f) return false;
    head[fread(head, 1, HEAD_BYTES, f)] = 0;
    fclose(f);
    return strstr(head, "name=\"generator\" content=\"" SITE_GENERATOR "\"") != NULL;
}

enum status site_folder_check(const char *dir, struct error *e) {
    char path[PATH_BYTES];
    struct folder_names names;
    if (folder_names(&names, dir, NULL) != ST_OK) return fail(e, ST_USAGE, "--html %.500s: %s", dir, strerror(errno));
    bool empty = names.n == 0;
    folder_names_free(&names);
    if (empty) return ST_OK;
    TRY(path_format(path, sizeof path, e, "%s/index.html", dir));
    if (is_page(path)) return ST_OK;
    return fail(e, ST_USAGE, "--html %.500s: that folder holds other files; name a new or an empty one", dir);
}

enum status site_page_add(struct site_pages *pages, const char *name, struct error *e) {
    int n = pages->n;
    if ((n & (n - 1)) == 0) { /* full: there is room for the next power of two */
        char **names = realloc(pages->names, (n ? 2 * (size_t)n : 1) * sizeof *names);
        if (!names) return fail(e, ST_MEMORY, "no memory for a page");
        pages->names = names;
    }
    pages->names[n] = strdup(name);
    if (!pages->names[n]) return fail(e, ST_MEMORY, "no memory for a page");
    pages->n++;
    return ST_OK;
}

void site_pages_free(struct site_pages *pages) {
    for (int i = 0; i < pages->n; i++) free(pages->names[i]);
    free(pages->names);
    *pages = (struct site_pages){0};
}

void site_remove_pictures(const char *folder) {
    char path[PATH_BYTES];
    struct folder_names names;
    if (folder_names(&names, folder, NULL) != ST_OK) return;
    for (int i = 0; i < names.n; i++)
        if (text_ends(names.list[i]->d_name, ".svg") &&
            path_format(path, sizeof path, NULL, "%s/%s", folder, names.list[i]->d_name) == ST_OK &&
            own_file_check(path, NULL) == ST_OK)
            unlink(path);
    folder_names_free(&names);
}

static int by_name(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Whether a name is one of a run's page, or of a table's with a hash of six digits at its end. A copy of a page under
 * another name is its reader's. */
static bool is_name_of_ours(const char *name) {
    size_t length = strlen(name), ending = strlen(".html");
    if (length < 7 + ending || !text_ends(name, ".html")) return false;
    if (strncmp(name, "run-", 4) == 0) return true;
    const char *hash = name + length - ending - 6;
    return hash[-1] == '-' && strspn(hash, "0123456789abcdef") == 6;
}

/* A page of ours, and the folder that its pictures were in. Links are nobody's that this program makes. */
static void remove_if_ours(const char *dir, const char *name) {
    char path[PATH_BYTES];
    struct stat what;
    if (!is_name_of_ours(name) || path_format(path, sizeof path, NULL, "%s/%s", dir, name) != ST_OK) return;
    if (lstat(path, &what) != 0 || !S_ISREG(what.st_mode) || !is_page(path)) return;
    unlink(path);
    path[strlen(path) - strlen(".html")] = 0;
    if (lstat(path, &what) != 0 || !S_ISDIR(what.st_mode)) return;
    site_remove_pictures(path);
    rmdir(path); /* which fails where something else is in it */
}

void site_remove_others(const char *dir, struct site_pages *written) {
    qsort(written->names, (size_t)written->n, sizeof *written->names, by_name);
    struct folder_names names;
    if (folder_names(&names, dir, NULL) != ST_OK) return;
    for (int i = 0; i < names.n; i++) {
        const char *name = names.list[i]->d_name;
        if (!bsearch(&name, written->names, (size_t)written->n, sizeof *written->names, by_name))
            remove_if_ours(dir, name);
    }
    folder_names_free(&names);
}
