/* power.c - see power.h.
 *
 * A file's bytes are durable as its latest fsync saw them; what it holds beyond may be there, in part, or not. A name
 * (made by link, rename or creation, or taken away) is durable once its folder has been fsynced after it. */
#include "tests/faults/power.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/philox.h"
#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "tests/faults/file_log.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

#define MOST_FILES 256

struct power_event {
    char op;
    const char *path, *other, *bytes;
    size_t size, end; /* end: of the event in the log */
};

void power_promise(struct power_log *p, const char *log_path, int runs) {
    struct stat info;
    ck_assert(stat(log_path, &info) == 0 && p->n_promises + runs <= POWER_PROMISES);
    for (int i = 0; i < runs; i++) p->promises[p->n_promises++] = (size_t)info.st_size;
}

void power_read(struct power_log *p, const char *log_path, int forgetful) {
    struct file_log_entry head;
    p->bytes = slurp(log_path, &p->size);
    p->events = calloc(p->size / sizeof head + 1, sizeof *p->events);
    ck_assert_ptr_nonnull(p->events);
    for (size_t at = 0; at < p->size;) {
        struct power_event *e = &p->events[p->n_events++];
        memcpy(&head, p->bytes + at, sizeof head);
        e->op = head.op;
        e->path = p->bytes + at + sizeof head;
        e->other = e->path + head.path;
        e->bytes = e->other + head.other;
        e->size = head.bytes;
        at += sizeof head + head.path + head.other + head.bytes;
        e->end = at;
        ck_assert_uint_le(at, p->size);
        if (forgetful && e->op == FILE_SYNCED) p->n_events--;
    }
}

void power_free(struct power_log *p) {
    free(p->events);
    free(p->bytes);
    *p = (struct power_log){0};
}

/* --- the disk after an event -------------------------------------------------------------------------------------- */

struct content {
    const char *durable, *latest; /* NULL: nothing is known of it */
    size_t durable_size, latest_size;
};

/* A change of names: `name` leads to file `file`, or to nothing (-1), from then on. */
struct change {
    const char *name;
    int file;
    bool durable;
};

struct disk {
    struct content files[MOST_FILES];
    struct change changes[2 * MOST_FILES];
    int n_files, n_changes;
};

static int file_of(const struct disk *d, const char *name) {
    for (int i = d->n_changes - 1; i >= 0; i--)
        if (!strcmp(d->changes[i].name, name)) return d->changes[i].file;
    return -1;
}

static void change(struct disk *d, const char *name, int file) {
    ck_assert_int_lt(d->n_changes, 2 * MOST_FILES);
    d->changes[d->n_changes++] = (struct change){name, file, false};
}

static int need_file(struct disk *d, const char *name) {
    int file = file_of(d, name);
    if (file >= 0) return file;
    ck_assert_int_lt(d->n_files, MOST_FILES);
    d->files[d->n_files] = (struct content){0};
    change(d, name, d->n_files);
    return d->n_files++;
}

static bool lies_in(const char *path, const char *folder) {
    size_t n = strlen(folder);
    return !strncmp(path, folder, n) && path[n] == '/' && !strchr(path + n + 1, '/');
}

static void saw(struct content *c, const struct power_event *e) {
    c->latest = e->bytes;
    c->latest_size = e->size;
}

static void apply(struct disk *d, const struct power_event *e) {
    int file;
    switch (e->op) {
    case FILE_CREATED:
        need_file(d, e->path);
        break;
    case FILE_TRUNCATED:
        saw(&d->files[need_file(d, e->path)], e);
        break;
    case FILE_SYNCED:
        for (int i = 0; i < d->n_changes; i++) d->changes[i].durable |= lies_in(d->changes[i].name, e->path);
        if (e->size == 0 && file_of(d, e->path) < 0) break; /* a folder */
        file = need_file(d, e->path);
        saw(&d->files[file], e);
        d->files[file].durable = e->bytes;
        d->files[file].durable_size = e->size;
        break;
    case FILE_LINKED:
        file = need_file(d, e->path);
        saw(&d->files[file], e);
        change(d, e->other, file);
        break;
    case FILE_RENAMED: /* one change of names, or none: the new name and the loss of the old one go together */
        file = need_file(d, e->other);
        saw(&d->files[file], e);
        change(d, e->path, file);
        change(d, e->other, -1);
        break;
    case FILE_REMOVED:
        if (file_of(d, e->path) >= 0) change(d, e->path, -1);
        break;
    default:
        break;
    }
}

/* --- a state of it ------------------------------------------------------------------------------------------------ */

enum extent { ONLY_DURABLE, HALF, LATEST, EXTENTS };

static void put(const char *folder, const char *store, const char *name, const struct content *c, enum extent extent) {
    char path[PATH_BYTES];
    const char *bytes = extent == ONLY_DURABLE ? c->durable : c->latest;
    size_t size = extent == ONLY_DURABLE ? c->durable_size : c->latest_size;
    if (extent == HALF && !c->durable) size /= 2; /* what is durable is there whole */
    snprintf(path, sizeof path, "%s%s", folder, name + strlen(store));
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) { /* no fsync: many states */
        *slash = 0;
        ck_assert(mkdir(path, 0777) == 0 || errno == EEXIST);
        *slash = '/';
    }
    spill(path, bytes ? bytes : "", bytes ? size : 0);
}

/* A name that is not hidden nor temporary is for good: what it leads to must be what the program had put there. Tables
 * to which rows are appended (logs.h) may end in a part of a row, which the next writer takes away. */
static bool is_for_good(const char *name) {
    const char *base = strrchr(name, '/') + 1;
    return base[0] != '.' && !strstr(base, ".tmp") && strcmp(base, "machines.csv") != 0 &&
           strcmp(base, "limits.csv") != 0;
}

/* Names as the chosen changes leave them; puts their files. Returns what is wrong, or NULL. */
static const char *build(const struct disk *d, const bool *chosen, enum extent extent, const char *store,
                         const char *folder) {
    for (int i = 0; i < d->n_changes; i++) {
        bool last = chosen[i] && !strncmp(d->changes[i].name, store, strlen(store));
        for (int j = i + 1; j < d->n_changes && last; j++)
            last = !(chosen[j] && !strcmp(d->changes[j].name, d->changes[i].name));
        if (!last || d->changes[i].file < 0) continue;
        const struct content *c = &d->files[d->changes[i].file];
        if (is_for_good(d->changes[i].name) &&
            (!c->durable || c->durable_size != c->latest_size || memcmp(c->durable, c->latest, c->latest_size) != 0))
            return d->changes[i].name;
        put(folder, store, d->changes[i].name, c, extent);
    }
    return NULL;
}

/* Builds the state and reads it; event `i` was the last. `goes_on` NULL: the program is not started again. */
static void try_state(const struct disk *d, const bool *chosen, enum extent extent, const struct power_log *p, int i,
                      const char *store, power_goes_on *goes_on, struct tally *t) {
    char folder[SCRATCH_BYTES], state[SCRATCH_BYTES + 16];
    struct record_set set = {0};
    struct error e = {0};
    int promised = 0;
    for (int k = 0; k < p->n_promises; k++) promised += p->promises[k] <= p->events[i].end;
    scratch_make(folder);
    snprintf(state, sizeof state, "%s/store", folder);
    ck_assert_int_eq(mkdir(state, 0777), 0);
    const char *torn = build(d, chosen, extent, store, state);
    enum status status = records_load(&set, state, &e);
    if (torn)
        bad(t, "power gone after event %d (%c %s): %s has its name before its bytes are durable", i, p->events[i].op,
            p->events[i].path, torn);
    else if (status != ST_OK || set.n < promised)
        bad(t, "power gone after event %d (%c %s): %d records, but %d runs had been reported done. %.300s", i,
            p->events[i].op, p->events[i].path, set.n, promised, e.text);
    else if (goes_on)
        goes_on(folder, t);
    if (status == ST_OK) records_free(&set);
    scratch_remove(folder);
    t->tried++;
}

/* The subset number `choice` of what is not durable: all, none, then by the bits of the number, or at random where
 * there are more subsets than choices. Both halves of a rename go together. */
static void choose(const struct disk *d, uint64_t choice, struct rng *random, bool *chosen) {
    int bit = 0;
    for (int i = 0; i < d->n_changes; i++) {
        bool second = i > 0 && d->changes[i].file < 0 && d->changes[i - 1].file >= 0 &&
                      file_of(d, d->changes[i - 1].name) == d->changes[i - 1].file;
        if (d->changes[i].durable)
            chosen[i] = true;
        else if (second)
            chosen[i] = chosen[i - 1];
        else
            chosen[i] = choice == 0 || (choice > 1 && (random ? rng_below(random, 2) : choice >> bit++ & 1));
    }
}

void power_replay(const struct power_log *p, const char *store, int choices, int every, power_goes_on *goes_on,
                  struct tally *t) {
    struct disk *d = calloc(1, sizeof *d);
    bool chosen[2 * MOST_FILES] = {false};
    ck_assert_ptr_nonnull(d);
    for (int i = 0; i < p->n_events; i++) {
        struct rng random = rng_at(1, STREAM_TEST, (uint64_t)i);
        int open = 0;
        apply(d, &p->events[i]);
        for (int k = 0; k < d->n_changes; k++) open += !d->changes[k].durable;
        uint64_t subsets = open < 20 ? ((uint64_t)1 << open) + 2 : UINT64_MAX;
        for (uint64_t choice = 0; choice < subsets && choice < (uint64_t)choices; choice++)
            for (int extent = 0; extent < EXTENTS; extent++) {
                choose(d, choice, subsets > (uint64_t)choices ? &random : NULL, chosen);
                try_state(d, chosen, (enum extent)extent, p, i, store, t->tried % every == 0 ? goes_on : NULL, t);
            }
    }
    free(d);
}

const char *power_outside(const struct power_log *p, const char *folder) {
    for (int i = 0; i < p->n_events; i++) {
        const struct power_event *e = &p->events[i];
        bool inside = !strncmp(e->path, folder, strlen(folder)) && !strstr(e->path, "/../");
        if (e->op == FILE_LINKED || e->op == FILE_RENAMED)
            inside = inside && !strncmp(e->other, folder, strlen(folder));
        if (e->op != FILE_SYNCED && !inside) return e->path;
    }
    return NULL;
}
