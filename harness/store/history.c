/* history.c - see history.h. */
#include "harness/store/history.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "harness/store/files.h"
#include "harness/store/logs.h"
#include "harness/store/record.h"

#define MOST_BYTES ((size_t)256 << 20)
#define SUM_KEY    ",\"xxh3\":\""
#define SUM_BYTES  (sizeof SUM_KEY + RUN_ID_HEX) /* with the closing quote and brace */

/* Whether a line has a hash that is not its own. */
static bool is_altered(const char *text, size_t n) {
    char sum[RUN_ID_HEX];
    if (n < SUM_BYTES || memcmp(text + n - SUM_BYTES, SUM_KEY, sizeof SUM_KEY - 1) != 0) return false;
    record_hash_bytes(text, n - SUM_BYTES, sum);
    return memcmp(text + n - SUM_BYTES + sizeof SUM_KEY - 1, sum, RUN_ID_HEX - 1) != 0;
}

enum status history_append(const char *path, const char *object, struct error *e) {
    size_t n = strlen(object) - 1; /* without its brace */
    char sum[RUN_ID_HEX], *line = malloc(n + SUM_BYTES + 1);
    if (!line) return fail(e, ST_MEMORY, "no memory for a line of %s", path);
    record_hash_bytes(object, n, sum);
    snprintf(line, n + SUM_BYTES + 1, "%.*s" SUM_KEY "%s\"}", (int)n, object, sum);
    enum status status = line_append(path, line, e);
    free(line);
    return status;
}

/* Returns the key that is wrong in a line of this version; NULL: the line is valid. */
static const char *misfit(const json_t *line) {
    static const char *const texts[] = {"date", "commit", "machine", "name", "verdict"};
    const json_t *figures = json_object_get(line, "figures");
    size_t i;
    const json_t *figure;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (!json_is_string(json_object_get(line, texts[k]))) return texts[k];
    if (!json_is_array(figures)) return "figures";
    json_array_foreach(figures, i, figure) {
        if (!json_is_string(json_object_get(figure, "name"))) return "name of a figure";
        if (!json_is_string(json_object_get(figure, "figure"))) return "figure of a figure";
    }
    return NULL;
}

static bool read_line(struct history *h, const char *text, size_t n, char *why, size_t size) {
    json_error_t problem;
    json_t *line = json_loadb(text, n, 0, &problem);
    const json_t *version = json_object_get(line, "gate");
    const char *lacks = "gate";
    if (!line)
        snprintf(why, size, "%s", problem.text);
    else if (is_altered(text, n))
        snprintf(why, size, "the line was altered: its bytes do not have the hash that it states");
    else if (json_integer_value(version) > HISTORY_VERSION) {
        h->later++;
        json_decref(line);
        return true;
    } else if (!json_is_integer(version) || (lacks = misfit(line)))
        snprintf(why, size, "the line has no %s, or another kind of it", lacks);
    else {
        h->lines[h->n++] = line;
        return true;
    }
    json_decref(line);
    return false;
}

enum status history_read(struct history *h, const char *path, FILE *broken, struct error *e) {
    char *text = NULL, why[512];
    size_t size;
    *h = (struct history){0};
    enum status status = file_read(path, MOST_BYTES, &text, &size, e);
    if (status == ST_DATA) return ST_OK;
    TRY(status);
    size_t lines = 1;
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    h->lines = calloc(lines, sizeof *h->lines);
    if (!h->lines) status = fail(e, ST_MEMORY, "no memory for %s", path);
    const char *at = text;
    for (int number = 1; status == ST_OK && at < text + size; number++) {
        const char *end = memchr(at, '\n', (size_t)(text + size - at));
        size_t n = (size_t)((end ? end : text + size) - at);
        if (n && !read_line(h, at, n, why, sizeof why) && broken)
            fprintf(broken, "%s line %d: %s\n", path, number, why);
        at += n + 1;
    }
    free(text);
    return status;
}

void history_free(struct history *h) {
    for (int i = 0; i < h->n; i++) json_decref(h->lines[i]);
    free(h->lines);
    *h = (struct history){0};
}
