/* claim.c - see claim.h. */
#include "harness/store/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/file/name.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"
#include "harness/store/leftovers.h"

#define MOST_BYTES 4096
#define MOST_TRIES 100
#define MOST_TOLD  65536   /* most bytes of a live text, which `lrnn top` reads */
#define LIVE       ".live" /* ending of a live text's name, in place of a claim's number */

/* --- this process ------------------------------------------------------------------------------------------------- */

/* A process: its number, its start (numbers are reused), and the boot and namespace in which the number is valid. */
struct owner {
    char host[64], place[128];
    long pid, began;
};

/* Returns when the process began, in clock ticks since boot; -1: there is no such process, or it is a zombie. */
static long start_of(long pid) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    const char *at = strrchr(text, ')'); /* a process name may contain blanks and ')' */
    long began = -1;
    if (!at || !at[1] || at[2] == 'Z' || at[2] == 'X') return -1;
    for (int field = 2; field < 22 && at; field++) at = strchr(at + 1, ' ');
    if (at) began = strtol(at + 1, NULL, 10);
    return began;
}

static void read_word(const char *path, char *text, size_t size) {
    FILE *f = fopen(path, "re");
    text[0] = 0;
    if (f && fgets(text, (int)size, f)) text[strcspn(text, "\n ")] = 0;
    if (f) fclose(f);
}

/* Describes this process. `place` names the boot and the pid namespace, within which process numbers are unique. */
static void read_self(struct owner *o) {
    char boot[64], space[48];
    *o = (struct owner){.pid = (long)getpid()};
    if (gethostname(o->host, sizeof o->host - 1) != 0) snprintf(o->host, sizeof o->host, "unknown");
    for (char *p = o->host; *p; p++)
        if ((unsigned char)*p <= ' ') *p = '_';
    read_word("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    space[n > 0 ? n : 0] = 0;
    snprintf(o->place, sizeof o->place, "%s/%s", boot, space);
    o->began = start_of(o->pid);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Returns n of a file name "<run_id>.<n>"; 0: another run's file, or no claim. */
static int number_of(const char *name, const char *run_id) {
    size_t n = strlen(run_id);
    int64_t number;
    if (strncmp(name, run_id, n) != 0 || name[n] != '.' || !parse_int64(name + n + 1, &number)) return 0;
    return number > 0 && number < 1000000 ? (int)number : 0;
}

/* Returns the largest number of the run's claims; 0: it has no claim. */
static int latest(const char *folder, const char *run_id) {
    struct folder_names names;
    int most = 0;
    if (folder_names(&names, folder, NULL) != ST_OK) return 0;
    for (int i = 0; i < names.n; i++) {
        int number = number_of(names.list[i]->d_name, run_id);
        if (number > most) most = number;
    }
    folder_names_free(&names);
    return most;
}

/* Whether the claim is free: it then names no process. */
static bool is_free(const struct claim_info *info) {
    return info->pid == 0;
}

/* Reads a claim and whether its owner is alive. The age of another machine's claim is measured by the clock of the file
 * system of `clock`, a folder; NULL: by this machine's clock, without writing anything. False: the claim is gone. */
static bool read_claim(const char *clock, const char *path, struct claim_info *info) {
    char *text;
    size_t size;
    struct stat s;
    struct owner o = {.pid = -1}, self;
    *info = (struct claim_info){.pid = -1};
    if (stat(path, &s) != 0 || file_read(path, MOST_BYTES, &text, &size, NULL) != ST_OK) return false;
    int end = 0;
    int fields = sscanf(text, "%63s %ld %ld %127s %31s %n", o.host, &o.pid, &o.began, o.place, info->since, &end);
    if (fields == 5) snprintf(info->what, sizeof info->what, "%.*s", (int)strcspn(text + end, "\n"), text + end);
    free(text);
    memcpy(info->host, o.host, sizeof info->host);
    info->pid = o.pid;
    if (fields != 5 || is_free(info)) return true;
    read_self(&self);
    bool here = !strcmp(self.host, o.host) && !strcmp(self.place, o.place);
    if (here)
        info->live = start_of(o.pid) == o.began;
    else
        info->live = difftime(clock ? folder_now(clock) : time(NULL), s.st_mtime) < CLAIM_STALE_S;
    return true;
}

/* Creates the file with this text unless it exists. *made: this call created it. */
static enum status create(const char *path, const char *text, bool *made, struct error *e) {
    char temporary[PATH_BYTES];
    TRY(temporary_write(path, text, strlen(text), temporary, e));
    *made = file_link(temporary, path);
    int reason = errno;
    unlink(temporary);
    if (*made || reason == EEXIST) return ST_OK;
    return file_link_refused(path, reason, e);
}

/* --- claims ------------------------------------------------------------------------------------------------------- */

static enum status make_path(char *path, size_t size, const char *folder, const char *run_id, int number,
                             struct error *e) {
    return path_format(path, size, e, "%s/%s.%d", folder, run_id, number);
}

void claim_words(char what[RECORD_TEXT], const char *task, const char *model, double lr, int64_t seed) {
    snprintf(what, RECORD_TEXT, "%.200s %.200s lr %g seed %lld", task, model, lr, (long long)seed);
}

enum status claim_take(struct claim *c, const char *out, const char *run_id, const char *what, enum claim_state *state,
                       struct error *e) {
    char folder[PATH_BYTES], path[sizeof c->path], text[RECORD_TEXT + 512], since[32];
    struct owner self;
    c->path[0] = 0;
    *state = CLAIM_OTHERS;
    TRY(path_format(folder, sizeof folder, e, "%s/claims", out));
    TRY(make_folder(folder, e));
    read_self(&self);
    time_now_text(since, sizeof since);
    snprintf(text, sizeof text, "%s %ld %ld %s %s %s\n", self.host, self.pid, self.began, self.place, since, what);
    for (int i = 0; i < MOST_TRIES; i++) {
        struct claim_info info;
        bool made;
        int number = latest(folder, run_id);
        TRY(make_path(path, sizeof path, folder, run_id, number, e));
        if (number > 0 && !read_claim(folder, path, &info)) continue; /* removed, because the run is done */
        if (number > 0 && info.live) return ST_OK;
        TRY(make_path(path, sizeof path, folder, run_id, number + 1, e));
        TRY(create(path, text, &made, e));
        if (!made) continue;
        memcpy(c->path, path, sizeof c->path);
        *state = CLAIM_MINE;
        if (number > 0) leftovers_remove(out, run_id); /* the process of the earlier claim may have been killed */
        return ST_OK;
    }
    return ST_OK; /* other processes try too; one of them gets it */
}

void claim_beat(const struct claim *c) {
    if (*c->path) (void)utimensat(AT_FDCWD, c->path, NULL, 0);
}

/* Gives the path of the live text of a claim; "": there is no claim. */
static void live_path(const struct claim *c, char path[sizeof c->path + 16]) {
    const char *name = strrchr(c->path, '/'), *dot = strrchr(c->path, '.');
    path[0] = 0;
    if (name && dot)
        snprintf(path, sizeof c->path + 16, "%.*s/.%.*s" LIVE, (int)(name - c->path), c->path, (int)(dot - name - 1),
                 name + 1);
}

void claim_tell(const struct claim *c, const char *text, size_t size) {
    char path[sizeof c->path + 16], temporary[PATH_BYTES];
    live_path(c, path);
    int fd = *path ? temporary_open(path, temporary, sizeof temporary) : -1;
    if (fd < 0) return;
    bool whole = write(fd, text, size) == (ssize_t)size;
    whole = close(fd) == 0 && whole;
    if (!whole || rename(temporary, path) != 0) unlink(temporary);
}

char *claim_told(const char *out, const char *run_id) {
    char path[PATH_BYTES], *text;
    size_t size;
    if (path_format(path, sizeof path, NULL, "%s/claims/.%s" LIVE, out, run_id) != ST_OK) return NULL;
    return file_read(path, MOST_TOLD, &text, &size, NULL) == ST_OK ? text : NULL;
}

void claim_release(struct claim *c) {
    char path[sizeof c->path + 16];
    live_path(c, path);
    if (*path) unlink(path);
    const char *dot = strrchr(c->path, '.');
    int64_t number;
    bool made;
    if (dot && parse_int64(dot + 1, &number)) {
        snprintf(path, sizeof path, "%.*s.%lld", (int)(dot - c->path), c->path, (long long)number + 1);
        (void)create(path, "free 0 0 - - -\n", &made, NULL); /* if the file cannot be made, the claim becomes stale */
    }
    c->path[0] = 0;
}

void claim_done(struct claim *c, const char *out, const char *run_id) {
    char folder[PATH_BYTES], path[PATH_BYTES];
    c->path[0] = 0;
    if (path_format(folder, sizeof folder, NULL, "%s/claims", out) != ST_OK) return;
    if (path_format(path, sizeof path, NULL, "%s/.%s" LIVE, folder, run_id) == ST_OK) unlink(path);
    int most = latest(folder, run_id);
    for (int i = 1; i <= most; i++)
        if (make_path(path, sizeof path, folder, run_id, i, NULL) == ST_OK) unlink(path);
}

/* --- all of a folder ---------------------------------------------------------------------------------------------- */

enum status claims_list(const char *out, struct claim_info **list, int *n, struct error *e) {
    char folder[PATH_BYTES], path[PATH_BYTES], run_id[RUN_ID_HEX] = "";
    struct folder_names names;
    *list = NULL;
    *n = 0;
    TRY(path_format(folder, sizeof folder, e, "%s/claims", out));
    TRY(folder_names(&names, folder, e));
    enum status status = ST_OK;
    *list = calloc((size_t)names.n + 1, sizeof **list);
    if (!*list) status = fail(e, ST_MEMORY, "no memory for a list of claims");
    for (int i = 0; i < names.n && status == ST_OK; i++) {
        const char *name = names.list[i]->d_name;
        struct claim_info *info = &(*list)[*n];
        if (strspn(name, "0123456789abcdef") != RUN_ID_HEX - 1) continue;
        if (strncmp(name, run_id, RUN_ID_HEX - 1) == 0) continue; /* names are sorted: same run as before */
        snprintf(run_id, sizeof run_id, "%.32s", name);
        status = make_path(path, sizeof path, folder, run_id, latest(folder, run_id), e);
        if (status != ST_OK || !read_claim(NULL, path, info) || is_free(info)) continue;
        memcpy(info->run_id, run_id, sizeof info->run_id);
        ++*n;
    }
    folder_names_free(&names);
    if (status == ST_OK) return ST_OK;
    free(*list);
    *list = NULL;
    *n = 0;
    return status;
}
