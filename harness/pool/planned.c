/* planned.c - see planned.h. */
#include "harness/pool/planned.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file/name.h"
#include "harness/study/setup.h"
#include "harness/store/files.h"
#include "harness/store/record.h"

#define FOLDER     "sweeps"
#define ENDING     ".tsv"
#define MOST_BYTES ((size_t)64 << 20)

/* A name out of letters, digits and hyphens. */
static void plain_name(const char *name, char *plain, size_t size) {
    size_t n = 0;
    for (; *name && n + 1 < size; name++) plain[n++] = isalnum((unsigned char)*name) ? *name : '-';
    plain[n] = 0;
}

static enum status format_list(const struct plan *plan, char **text, size_t *size, struct error *e) {
    FILE *f = open_memstream(text, size);
    if (!f) return fail(e, ST_MEMORY, "no memory for a list of %d runs", plan->n);
    for (int i = 0; i < plan->n; i++) {
        const struct setup *s = plan->setups[i];
        fprintf(f, "%s\t%g\t%s\t%s\t%g\t%" PRId64 "\n", s->id.run_id, s->estimate.flops, s->spec.task.name,
                s->id.model_label, s->spec.config.lr, s->spec.config.seed);
    }
    bool whole = !ferror(f);
    whole = fclose(f) == 0 && whole;
    if (whole) return ST_OK;
    free(*text);
    return fail(e, ST_MEMORY, "no memory for a list of %d runs", plan->n);
}

/* OUT/sweeps/NAME-HASH.tsv */
static enum status list_path(const char *out, const char *name, const char *text, size_t size, char path[PATH_BYTES],
                             struct error *e) {
    char plain[48], hash[RUN_ID_HEX];
    plain_name(*name ? name : "sweep", plain, sizeof plain);
    record_hash_bytes(text, size, hash);
    return path_format(path, PATH_BYTES, e, "%s/" FOLDER "/%s-%.8s" ENDING, out, plain, hash);
}

enum status planned_write(const struct plan *plan, const char *out, const char *name, struct planned_new *new,
                          struct error *e) {
    char path[PATH_BYTES], folder[PATH_BYTES], *text;
    size_t size;
    TRY(path_format(folder, sizeof folder, e, "%s/" FOLDER, out));
    TRY(format_list(plan, &text, &size, e));
    enum status status = list_path(out, name, text, size, path, e);
    if (new) *new = (struct planned_new){access(out, F_OK) != 0, access(path, F_OK) != 0};
    if (status == ST_OK) status = make_folder(folder, e);
    if (status == ST_OK) status = write_file_atomic(path, text, size, e);
    free(text);
    return status;
}

void planned_withdraw(const struct plan *plan, const char *out, const char *name, const struct planned_new *new) {
    char path[PATH_BYTES], folder[PATH_BYTES], *text;
    size_t size;
    if (!new->list || format_list(plan, &text, &size, NULL) != ST_OK) return;
    if (list_path(out, name, text, size, path, NULL) == ST_OK) unlink(path);
    path_folder(path, folder, sizeof folder);
    rmdir(folder); /* which does nothing where something lies in it */
    if (new->out) rmdir(out);
    free(text);
}

/* One line: the id, a tab, the FLOPs, and what people read. */
static enum status add_line(struct planned *p, const char *line, const char *path, struct error *e) {
    char *end;
    bool id = strspn(line, "0123456789abcdef") == RUN_ID_HEX - 1 && line[RUN_ID_HEX - 1] == '\t';
    double flops = id ? strtod(line + RUN_ID_HEX, &end) : 0;
    if (!id || *end != '\t' || flops < 0)
        return fail(e, ST_DATA, "%s line %d: expected a run's id and its FLOPs; move the file away", path, p->n + 1);
    snprintf(p->ids[p->n], RUN_ID_HEX, "%.32s", line);
    p->flops[p->n++] = flops;
    return ST_OK;
}

static enum status read_one(struct planned *p, const char *path, struct error *e) {
    char *text;
    size_t size;
    TRY(file_read(path, MOST_BYTES, &text, &size, e));
    size_t lines = 1;
    for (const char *c = text; (c = strchr(c, '\n')); c++) lines++;
    p->ids = calloc(lines, sizeof *p->ids);
    p->flops = calloc(lines, sizeof *p->flops);
    enum status status = p->ids && p->flops ? ST_OK : fail(e, ST_MEMORY, "no memory to read %s", path);
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line && status == ST_OK; line = strtok_r(NULL, "\n", &rest))
        status = add_line(p, line, path, e);
    free(text);
    return status;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct planned *)a)->name, ((const struct planned *)b)->name);
}

enum status planned_read(const char *out, struct planned **list, int *n, struct error *e) {
    char folder[PATH_BYTES], path[PATH_BYTES];
    *list = NULL;
    *n = 0;
    TRY(path_format(folder, sizeof folder, e, "%s/" FOLDER, out));
    DIR *d = opendir(folder);
    if (!d && errno != ENOENT) return fail(e, ST_DATA, "cannot read the folder %s: %s", folder, strerror(errno));
    enum status status = ST_OK;
    for (struct dirent *entry; d && status == ST_OK && (entry = readdir(d));) {
        if (entry->d_name[0] == '.' || !text_ends(entry->d_name, ENDING)) continue;
        struct planned *longer = realloc(*list, (size_t)(*n + 1) * sizeof *longer);
        if (!longer) {
            status = fail(e, ST_MEMORY, "no memory for the lists in %s", folder);
            break;
        }
        *list = longer;
        longer[*n] = (struct planned){.n = 0};
        snprintf(longer[*n].name, sizeof longer[*n].name, "%.*s", (int)(strlen(entry->d_name) - strlen(ENDING)),
                 entry->d_name);
        status = path_format(path, sizeof path, e, "%s/%s", folder, entry->d_name);
        if (status == ST_OK) status = read_one(&longer[*n], path, e);
        ++*n;
    }
    if (d) closedir(d);
    if (status == ST_OK && *n) qsort(*list, (size_t)*n, sizeof **list, by_name);
    if (status == ST_OK) return ST_OK;
    planned_free(*list, *n);
    *list = NULL;
    *n = 0;
    return status;
}

void planned_free(struct planned *list, int n) {
    for (int i = 0; i < n; i++) {
        free(list[i].ids);
        free(list[i].flops);
    }
    free(list);
}

/* --- taken over --------------------------------------------------------------------------------------------------- */

enum status planned_check(const char *out, struct error *e) {
    struct planned *list;
    int n;
    TRY(planned_read(out, &list, &n, e));
    planned_free(list, n);
    return ST_OK;
}

static enum status merge_one(const char *name, const char *from, const char *out, struct error *e) {
    char path[PATH_BYTES], *text;
    size_t size;
    bool new;
    TRY(path_format(path, sizeof path, e, "%s/" FOLDER "/%s" ENDING, from, name));
    TRY(file_read(path, MOST_BYTES, &text, &size, e));
    enum status status = path_format(path, sizeof path, e, "%s/" FOLDER "/%s" ENDING, out, name);
    if (status == ST_OK) status = file_put(path, text, size, &new, e);
    free(text);
    return status;
}

enum status planned_merge(const char *from, const char *out, struct error *e) {
    struct planned *list;
    int n;
    TRY(planned_read(from, &list, &n, e));
    enum status status = ST_OK;
    for (int i = 0; i < n && status == ST_OK; i++) status = merge_one(list[i].name, from, out, e);
    planned_free(list, n);
    return status;
}
