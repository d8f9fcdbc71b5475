/* reuse.c - see reuse.h. */
#include "harness/run/reuse.h"

#include <unistd.h>

#include "harness/run/checkpoint.h"
#include "harness/store/record_files.h"
#include "harness/store/version.h"

static bool may_not_fail_again(int64_t status) {
    return status == RUN_KILLED || status == RUN_TIMEOUT || status == RUN_OOM || status == RUN_ERROR;
}

struct reuse reuse_find(const struct setup *s, bool retry) {
    struct reuse found = {.known = record_check(s->spec.config.out, s->id.run_id) == RECORD_DONE};
    if (!found.known) return found;
    char path[RECORD_TEXT * 2];
    struct open_record *open;
    record_path(s->spec.config.out, s->id.run_id, path, sizeof path);
    bool read = record_open(path, &open, NULL) == ST_OK;
    found.failed = read && may_not_fail_again(open->record.run.status);
    found.other = !read || !build_made(&open->record.run);
    found.again = s->spec.config.force || (retry && found.failed);
    record_close(open);
    return found;
}

enum status reuse_release(const struct setup *s, const struct reuse *found, struct error *e) {
    if (!found->again) return ST_OK;
    if (s->spec.config.force) checkpoint_remove(s);
    return record_set_aside(s->spec.config.out, s->id.run_id, s->spec.config.force ? "replaced" : "retried", e);
}

bool reuse_is_there(const struct setup *s, bool retry) {
    char path[RECORD_TEXT * 2];
    struct open_record *open;
    record_path(s->spec.config.out, s->id.run_id, path, sizeof path);
    bool there = !s->spec.config.force && access(path, F_OK) == 0;
    if (!there || !retry || record_open(path, &open, NULL) != ST_OK) return there;
    bool failed = may_not_fail_again(open->record.run.status);
    record_close(open);
    return !failed;
}

void reuse_tell(int other, int total) {
    if (other == 0) return;
    fprintf(stderr, "lrnn: %d of %d runs %s on record by another build of the program; --force does %s again\n", other,
            total, other == 1 ? "is" : "are", other == 1 ? "it" : "them");
}
