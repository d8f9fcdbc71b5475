/* sweep_list.c - see sweep_list.h. */
#include "harness/run/sweep_list.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file/name.h"
#include "harness/store/files.h"

#define FOLDER     "sweeps"
#define ENDING     ".tsv"
#define MOST_BYTES ((size_t)64 << 20)

/* Writes the lines of the file. Without steps, they are the text whose hash is in the file's name. */
static enum status format_list(const struct plan *plan, bool steps, struct printed *list, struct error *e) {
    TRY(printed_begin(list, "a list of runs", e));
    for (int i = 0; i < plan->n; i++) {
        const struct setup *s = plan->setups[i];
        fprintf(list->f, "%s\t%g\t%s\t%s\t%g\t%" PRId64, s->id.run_id, s->estimate.flops, s->spec.task.name,
                s->id.model_label, s->spec.config.lr, s->spec.config.seed);
        if (steps) fprintf(list->f, "\t%" PRId64, s->shapes.steps);
        fputc('\n', list->f);
    }
    return printed_end(list, ST_OK, "a list of runs", e);
}

/* Gives the path of a list, OUT/sweeps/NAME-HASH.tsv. In NAME, all but letters and digits become hyphens. */
static enum status list_path(const char *out, const char *name, const char *text, size_t size, char path[PATH_BYTES],
                             struct error *e) {
    char plain[48], hash[RUN_ID_HEX];
    size_t n = 0;
    for (const char *c = *name ? name : "sweep"; *c && n + 1 < sizeof plain; c++)
        plain[n++] = isalnum((unsigned char)*c) ? *c : '-';
    plain[n] = 0;
    record_hash_bytes(text, size, hash);
    return path_format(path, PATH_BYTES, e, "%s/" FOLDER "/%s-%.8s" ENDING, out, plain, hash);
}

enum status sweep_list_write(const struct plan *plan, const char *out, const char *name, const struct label *call,
                             struct sweep_list_new *new, struct error *e) {
    char path[PATH_BYTES], folder[PATH_BYTES];
    struct printed list, file = {0}, runs = {0};
    TRY(path_format(folder, sizeof folder, e, "%s/" FOLDER, out));
    TRY(format_list(plan, false, &list, e));
    enum status status = format_list(plan, true, &runs, e);
    if (status == ST_OK) status = list_path(out, name, list.text, list.size, path, e);
    if (new) *new = (struct sweep_list_new){0};
    if (new &&status == ST_OK) *new = (struct sweep_list_new){access(out, F_OK) != 0, access(path, F_OK) != 0};
    if (status == ST_OK) status = make_folder(folder, e);
    if (status == ST_OK) status = printed_begin(&file, path, e);
    if (status == ST_OK) {
        for (int i = 0; call && i < call->n; i++)
            fprintf(file.f, "%s%s=%s", i ? "\t" : "# ", label_key(call, i), label_value(call, i));
        if (call && call->n) fputc('\n', file.f);
        fwrite(runs.text, 1, runs.size, file.f);
        status = printed_write(&file, ST_OK, path, e);
    }
    free(runs.text);
    free(list.text);
    return status;
}

void sweep_list_withdraw(const struct plan *plan, const char *out, const char *name, const struct sweep_list_new *new) {
    char path[PATH_BYTES], folder[PATH_BYTES];
    struct printed list;
    if (!new->list || format_list(plan, false, &list, NULL) != ST_OK) return;
    if (list_path(out, name, list.text, list.size, path, NULL) == ST_OK) unlink(path);
    path_folder(path, folder, sizeof folder);
    rmdir(folder); /* does nothing if the folder is not empty */
    if (new->out) rmdir(out);
    free(list.text);
}

/* Adds the run of a line, which has the id, a tab, the FLOPs, fields for people, and the steps. */
static enum status add_line(struct sweep_list *p, const char *line, const char *path, struct error *e) {
    char *end;
    if (p->n == 0 && !p->call.n && !strncmp(line, "# ", 2))
        return label_parse_pairs(&p->call, path, line + 2, "\t", NULL) == ST_OK
                   ? ST_OK
                   : fail(e, ST_DATA, "%s line 1: expected the words of a call; move the file away", path);
    bool id = strspn(line, "0123456789abcdef") == RUN_ID_HEX - 1 && line[RUN_ID_HEX - 1] == '\t';
    double flops = id ? strtod(line + RUN_ID_HEX, &end) : 0;
    if (!id || *end != '\t' || flops < 0)
        return fail(e, ST_DATA, "%s line %d: expected a run's id and its FLOPs; move the file away", path,
                    p->n + 1 + (p->call.n > 0));
    for (int field = 0; end && field < 5; field++) end = strchr(end + (field > 0), '\t');
    snprintf(p->ids[p->n], RUN_ID_HEX, "%.32s", line);
    p->steps[p->n] = end ? strtoll(end, NULL, 10) : 0;
    p->flops[p->n++] = flops;
    return ST_OK;
}

static enum status read_one(struct sweep_list *p, const char *path, struct error *e) {
    char *text;
    size_t size;
    struct stat file;
    TRY(file_read(path, MOST_BYTES, &text, &size, e));
    if (stat(path, &file) == 0) p->written_ns = (int64_t)file.st_mtim.tv_sec * 1000000000 + file.st_mtim.tv_nsec;
    size_t lines = 1;
    for (const char *c = text; (c = strchr(c, '\n')); c++) lines++;
    p->ids = calloc(lines, sizeof *p->ids);
    p->flops = calloc(lines, sizeof *p->flops);
    p->steps = calloc(lines, sizeof *p->steps);
    enum status status = p->ids && p->flops && p->steps ? ST_OK : fail(e, ST_MEMORY, "no memory to read %s", path);
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line && status == ST_OK; line = strtok_r(NULL, "\n", &rest))
        status = add_line(p, line, path, e);
    free(text);
    return status;
}

void sweep_lists_free(struct sweep_list *list, int n) {
    for (int i = 0; i < n; i++) {
        free(list[i].ids);
        free(list[i].flops);
        free(list[i].steps);
    }
    free(list);
}

enum status sweep_lists_read(const char *out, struct sweep_list **list, int *n, struct error *e) {
    char folder[PATH_BYTES], path[PATH_BYTES];
    struct folder_names names;
    *list = NULL;
    *n = 0;
    TRY(path_format(folder, sizeof folder, e, "%s/" FOLDER, out));
    TRY(folder_names(&names, folder, e));
    struct sweep_list *lists = calloc((size_t)names.n + 1, sizeof *lists);
    enum status status = lists ? ST_OK : fail(e, ST_MEMORY, "no memory for the lists in %s", folder);
    for (int i = 0; i < names.n && status == ST_OK; i++) {
        const char *name = names.list[i]->d_name;
        if (*name == '.' || !text_ends(name, ENDING)) continue;
        struct sweep_list *next = &lists[(*n)++];
        snprintf(next->name, sizeof next->name, "%.*s", (int)(strlen(name) - strlen(ENDING)), name);
        status = path_format(path, sizeof path, e, "%s/%s", folder, name);
        if (status == ST_OK) status = read_one(next, path, e);
    }
    folder_names_free(&names);
    if (status == ST_OK) {
        *list = lists;
        return ST_OK;
    }
    sweep_lists_free(lists, *n);
    *n = 0;
    return status;
}

enum status sweep_lists_check(const char *out, struct error *e) {
    struct sweep_list *list;
    int n;
    TRY(sweep_lists_read(out, &list, &n, e));
    sweep_lists_free(list, n);
    return ST_OK;
}

enum status sweep_lists_merge(const char *from, const char *out, struct error *e) {
    struct sweep_list *list;
    int n;
    TRY(sweep_lists_read(from, &list, &n, e));
    enum status status = ST_OK;
    for (int i = 0; i < n && status == ST_OK; i++) {
        char path[PATH_BYTES], *text = NULL;
        size_t size;
        bool new;
        status = path_format(path, sizeof path, e, "%s/" FOLDER "/%s" ENDING, from, list[i].name);
        if (status == ST_OK) status = file_read(path, MOST_BYTES, &text, &size, e);
        if (status == ST_OK) status = path_format(path, sizeof path, e, "%s/" FOLDER "/%s" ENDING, out, list[i].name);
        if (status == ST_OK) status = file_put(path, text, size, &new, e);
        free(text);
    }
    sweep_lists_free(list, n);
    return status;
}
