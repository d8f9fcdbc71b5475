/* leftovers.c - see leftovers.h. */
#include "harness/store/leftovers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static bool is_left(const char *name) {
    char path[64];
    long pid = writer_of(name);
    snprintf(path, sizeof path, "/proc/%ld", pid);
    return pid > 0 && access(path, F_OK) != 0;
}

void leftovers_remove(const char *out, const char *run_id) {
    char folder[PATH_BYTES], path[PATH_BYTES], ours[64], runs[16];
    snprintf(ours, sizeof ours, "%.40s.", run_id);
    snprintf(runs, sizeof runs, "runs/%.2s", run_id);
    const char *const folders[] = {runs, "checkpoints", "claims", "weights"};
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        struct folder_names names;
        if (path_format(folder, sizeof folder, NULL, "%s/%s", out, folders[k]) != ST_OK ||
            folder_names(&names, folder, NULL) != ST_OK)
            continue;
        for (int i = 0; i < names.n; i++) {
            const char *name = names.list[i]->d_name;
            if (strncmp(name + strspn(name, "."), ours, strlen(ours)) == 0 && is_left(name) &&
                path_format(path, sizeof path, NULL, "%s/%s", folder, name) == ST_OK)
                unlink(path);
        }
        folder_names_free(&names);
    }
}

/* Adds those in OUT/PLACE, and with `deeper` those in its folders. */
static enum status count_in(const char *out, const char *place, bool deeper, int *n, char *first, struct error *e) {
    char folder[PATH_BYTES], below[PATH_BYTES];
    struct folder_names names;
    TRY(path_format(folder, sizeof folder, e, "%s/%s", out, place));
    TRY(folder_names(&names, folder, e));
    enum status status = ST_OK;
    for (int i = 0; i < names.n && status == ST_OK; i++) {
        const char *name = names.list[i]->d_name;
        if (deeper && strlen(name) == 2 && path_format(below, sizeof below, NULL, "%s/%s", place, name) == ST_OK)
            status = count_in(out, below, false, n, first, e);
        if (is_left(name) && (*n)++ == 0) status = path_format(first, PATH_BYTES, e, "%s/%s", folder, name);
    }
    folder_names_free(&names);
    return status;
}

enum status leftovers_count(const char *out, int *n, char *first, struct error *e) {
    *n = 0;
    TRY(count_in(out, "runs", true, n, first, e));
    TRY(count_in(out, "checkpoints", false, n, first, e));
    TRY(count_in(out, "claims", false, n, first, e));
    return count_in(out, "weights", false, n, first, e);
}
