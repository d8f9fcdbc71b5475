/* renew.c - see renew.h. */
#include "harness/store/renew.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "harness/store/record_files.h"
#include "harness/store/record_json.h"
#include "harness/store/schema.h"

/* The text reads back as the record. */
static enum status verify(const char *text, size_t size, const struct run_record *r, const char *path,
                          struct error *e) {
    struct arena arena = {0};
    struct run_record *again = malloc(sizeof *again);
    enum status status = again ? arena_reserve(&arena, record_arena_bytes(size), e) : ST_MEMORY;
    if (!again) fail(e, ST_MEMORY, "no memory for a run record");
    if (status == ST_OK) status = record_parse(text, size, path, r->run.run_id, again, &arena, e);
    if (status == ST_OK && !record_equal(again, r))
        status = fail(e, ST_FAIL, "%s would say something else when written anew; it stays as it is", path);
    arena_free(&arena);
    free(again);
    return status;
}

static enum status renew_one(const char *path, struct run_record *r, struct error *e) {
    char *text;
    size_t size;
    r->run.schema = RECORD_SCHEMA;
    TRY(record_format(r, &text, &size, e));
    enum status status = verify(text, size, r, path, e);
    if (status == ST_OK) status = write_file_atomic(path, text, size, e);
    free(text);
    return status;
}

static size_t size_of(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? (size_t)info.st_size : 0;
}

static enum status look_at(const char *path, struct renew_count *count, struct error *e) {
    struct open_record *open;
    TRY(record_open(path, &open, e));
    enum status status = ST_OK;
    bool old = open->record.run.schema == RECORD_SCHEMA - 1;
    count->bytes_before += size_of(path);
    if (old) status = renew_one(path, &open->record, e);
    count->bytes += size_of(path);
    count->renewed += old && status == ST_OK;
    record_close(open);
    return status;
}

enum status store_renew(const char *folder, struct renew_count *count, struct error *e) {
    char **paths;
    *count = (struct renew_count){0};
    TRY(records_paths(folder, &paths, &count->records, e));
    enum status status = count->records ? ST_OK : fail(e, ST_DATA, "no run records under %s/runs", folder);
    for (int i = 0; i < count->records; i++) {
        if (status == ST_OK) status = look_at(paths[i], count, e);
        free(paths[i]);
    }
    free(paths);
    return status;
}
