/* reuse.c - see reuse.h. */
#include "harness/run/reuse.h"

#include <stdlib.h>
#include <unistd.h>

#include "harness/store/record_files.h"
#include "harness/store/version.h"

#define RECORD_ARENA ((size_t)64 << 20) /* address space for one record's curve; committed as used */

enum status reuse_find(const struct setup *s, enum reuse *found, struct error *e) {
    *found = REUSE_NONE;
    if (record_check(s->config.out, s->run_id) != RECORD_DONE) return ST_OK;
    if (s->config.force) return record_set_aside(s->config.out, s->run_id, "replaced", e);
    char path[RECORD_TEXT * 2];
    struct arena arena = {0};
    struct run_record *record = calloc(1, sizeof *record);
    record_path(s->config.out, s->run_id, path, sizeof path);
    bool known = record && arena_reserve(&arena, RECORD_ARENA, NULL) == ST_OK &&
                 record_read(path, record, &arena, NULL) == ST_OK && build_made(&record->run);
    *found = known ? REUSE_SAME_BUILD : REUSE_OTHER_BUILD;
    arena_free(&arena);
    free(record);
    return ST_OK;
}

bool reuse_is_there(const struct setup *s) {
    char path[RECORD_TEXT * 2];
    record_path(s->config.out, s->run_id, path, sizeof path);
    return !s->config.force && access(path, F_OK) == 0;
}

void reuse_tell(int other, int total) {
    if (other == 0) return;
    fprintf(stderr, "lrnn: %d of %d runs %s on record by another build of the program; --force does %s again\n", other,
            total, other == 1 ? "is" : "are", other == 1 ? "it" : "them");
}
