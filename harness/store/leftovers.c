/* leftovers.c - see leftovers.h. */
#include "harness/store/leftovers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/label.h"

/* Returns the process in a name .NAME.PID.NANOSECONDS.ATTEMPT.tmp; -1: the name is another. */
static long writer_of(const char *name) {
    const char *at = name + strlen(name);
    if (*name != '.' || !text_ends(name, ".tmp")) return -1;
    for (int dots = 0; dots < 4; dots += *at == '.')
        if (--at <= name) return -1;
    return isdigit((unsigned char)at[1]) ? strtol(at + 1, NULL, 10) : -1;
}

/* Whether a killed process has left the file; gives its path (PATH_BYTES). *now is the time of the file system; 0: it
 * is not known yet, and read if needed, which writes a file. */
static bool is_left(const char *folder, const char *name, time_t *now, char *path) {
    char process[64];
    struct stat s;
    long pid = writer_of(name);
    snprintf(process, sizeof process, "/proc/%ld", pid);
    if (pid <= 0 || access(process, F_OK) == 0) return false;
    if (path_format(path, PATH_BYTES, NULL, "%s/%s", folder, name) != ST_OK) return false;
    if (lstat(path, &s) != 0 || !S_ISREG(s.st_mode)) return false;
    if (*now == 0) *now = folder_now(folder);
    return difftime(*now, s.st_mtime) >= LEFTOVER_S;
}

void leftovers_remove(const char *out, const char *run_id) {
    char folder[PATH_BYTES], path[PATH_BYTES], ours[64], runs[16];
    time_t now = 0;
    snprintf(ours, sizeof ours, ".%.40s.", run_id);
    snprintf(runs, sizeof runs, "runs/%.2s", run_id);
    const char *const folders[] = {runs, "checkpoints", "weights"};
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        struct folder_names names;
        if (path_format(folder, sizeof folder, NULL, "%s/%s", out, folders[k]) != ST_OK ||
            folder_names(&names, folder, NULL) != ST_OK)
            continue;
        for (int i = 0; i < names.n; i++) {
            const char *name = names.list[i]->d_name;
            if (strncmp(name, ours, strlen(ours)) == 0 && is_left(folder, name, &now, path)) unlink(path);
        }
        folder_names_free(&names);
    }
}

/* Counts so far, with the first error. */
struct count {
    int n;
    char *first;
    time_t now;
    enum status status;
    struct error *e;
};

static bool is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* Counts those in a folder, and with `deeper` those in its folders AB. */
static void count_in(struct count *c, const char *folder, bool deeper) {
    char path[PATH_BYTES];
    struct folder_names names;
    enum status status = folder_names(&names, folder, c->status == ST_OK ? c->e : NULL);
    if (c->status == ST_OK) c->status = status;
    for (int i = 0; i < names.n; i++) {
        const char *name = names.list[i]->d_name;
        if (is_left(folder, name, &c->now, path) && c->n++ == 0) memcpy(c->first, path, PATH_BYTES);
        if (deeper && strlen(name) == 2 && path_format(path, sizeof path, NULL, "%s/%s", folder, name) == ST_OK &&
            is_folder(path))
            count_in(c, path, false);
    }
    folder_names_free(&names);
}

enum status leftovers_count(const char *out, int *n, char *first, struct error *e) {
    static const char *const folders[] = {"runs", "checkpoints", "claims", "weights"};
    char folder[PATH_BYTES];
    struct count c = {.first = first, .e = e};
    *n = 0;
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        TRY(path_format(folder, sizeof folder, e, "%s/%s", out, folders[k]));
        count_in(&c, folder, k == 0);
        *n = c.n;
    }
    return c.status;
}
