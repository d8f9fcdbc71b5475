/* store_pack.c - see store_pack.h. */
#include "harness/store/pack/store_pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/file/name.h"
#include "harness/store/claim.h"
#include "harness/store/record_files.h"
#include "harness/store/record_json.h"

/* Compresses as gzip does, without a name or a time: the same records give the same bytes. */
static enum status fold(const char *path, const char *text, size_t size, struct error *e) {
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)text, .avail_in = (unsigned)size};
    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, PACK_WINDOW, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return fail(e, ST_MEMORY, "no memory to write %s", path);
    size_t most = deflateBound(&z, size);
    unsigned char *bytes = malloc(most);
    z.next_out = bytes;
    z.avail_out = (unsigned)most;
    bool whole = bytes && deflate(&z, Z_FINISH) == Z_STREAM_END;
    size_t n = z.total_out;
    deflateEnd(&z);
    enum status status =
        whole ? write_file_atomic(path, bytes, n, e) : fail(e, ST_MEMORY, "no memory to write %s", path);
    free(bytes);
    return status;
}

/* Refuses a folder where a process does a run: its record could be packed while it is set aside. */
static enum status check_idle(const char *out, struct error *e) {
    struct claim_info *list;
    int n, live = 0;
    TRY(claims_list(out, &list, &n, e));
    while (live < n && !list[live].live) live++;
    enum status status = live == n ? ST_OK
                                   : fail(e, ST_FAIL, "process %ld on %s does run %.8s in %s; wait for it, or stop it",
                                          list[live].pid, list[live].host, list[live].run_id, out);
    free(list);
    return status;
}

/* Packs the records first ... end - 1, which are all of one folder, and removes their files. */
static enum status pack_folder(const struct record_list *files, int first, int end, int *removed, struct error *e) {
    struct record_pack pack = {0};
    struct printed all;
    char path[PATH_BYTES], *text;
    size_t size;
    TRY(pack_path(files->list[first].path, path, e));
    TRY(printed_begin(&all, path, e));
    enum status status = ST_OK;
    for (int i = first; i < end && status == ST_OK; i++) {
        const struct record_file *file = &files->list[i];
        status = record_text(file->path, &pack, &text, &size, e);
        if (status != ST_OK) break;
        status = record_parse(text, size, file->path, file->id, NULL, NULL, e);
        fwrite(text, 1, size, all.f);
        free(text);
    }
    pack_free(&pack);
    TRY(printed_end(&all, status, path, e));
    snprintf(pack.path, sizeof pack.path, "%s", path);
    status = pack_split(&pack, all.text, all.size, "", e); /* so each record is found again */
    if (status == ST_OK && (pack.n != end - first || all.size > PACK_MOST_BYTES))
        status = fail(e, ST_FAIL, "%s would have %zu bytes and %d records of %d; leave them in their files", path,
                      all.size, pack.n, end - first);
    if (status == ST_OK) status = fold(path, all.text, all.size, e);
    pack_free(&pack);
    for (int i = first; i < end && status == ST_OK; i++)
        if (!files->list[i].packed && unlink(files->list[i].path) == 0) ++*removed;
    path_folder(files->list[first].path, path, sizeof path);
    if (status == ST_OK) rmdir(path); /* if nothing is left there */
    return status;
}

static int by_id(const void *a, const void *b) {
    return strcmp(((const struct record_file *)a)->id, ((const struct record_file *)b)->id);
}

enum status store_pack(const char *out, struct pack_count *count, struct error *e) {
    struct record_list files;
    *count = (struct pack_count){0};
    TRY(check_idle(out, e));
    TRY(records_list(&files, out, true, e));
    int n = 0;
    for (int i = 0; i < files.n; i++) { /* attempts that were set aside go to the end of the list */
        struct record_file file = files.list[i];
        if (file.set_aside) continue;
        files.list[i] = files.list[n];
        files.list[n++] = file;
    }
    if (n) qsort(files.list, (size_t)n, sizeof *files.list, by_id);
    enum status status = n ? ST_OK : fail(e, ST_DATA, "no run records under %s/runs", out);
    for (int first = 0, end; first < n && status == ST_OK; first = end) {
        bool is_new = false;
        for (end = first; end < n && strncmp(files.list[end].id, files.list[first].id, 2) == 0; end++)
            is_new |= !files.list[end].packed;
        if (is_new) status = pack_folder(&files, first, end, &count->records, e);
        count->files += is_new && status == ST_OK;
    }
    records_list_free(&files);
    return status;
}
