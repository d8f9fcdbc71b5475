/* reuse.c - see reuse.h. */
#include "harness/run/reuse.h"

#include <unistd.h>

#include "harness/store/record_files.h"
#include "harness/store/version.h"

enum status reuse_find(const struct setup *s, enum reuse *found, struct error *e) {
    *found = REUSE_NONE;
    if (record_check(s->config.out, s->run_id) != RECORD_DONE) return ST_OK;
    if (s->config.force) return record_set_aside(s->config.out, s->run_id, "replaced", e);
    char path[RECORD_TEXT * 2];
    struct open_record *open;
    record_path(s->config.out, s->run_id, path, sizeof path);
    bool known = record_open(path, &open, NULL) == ST_OK && build_made(&open->record.run);
    *found = known ? REUSE_SAME_BUILD : REUSE_OTHER_BUILD;
    record_close(open);
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
