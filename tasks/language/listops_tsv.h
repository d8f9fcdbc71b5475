/* listops_tsv.h - reads the released files of ListOps: a line "Source<TAB>Target", then an expression and its value per
 * line. Everything in a file is checked; an error is one sentence. */
#ifndef LRNN_TASKS_LANGUAGE_LISTOPS_TSV_H
#define LRNN_TASKS_LANGUAGE_LISTOPS_TSV_H

#include <stddef.h>
#include <stdint.h>

#include <xxhash.h>

#include "core/arena.h"

struct listops_row {
    struct listops_row *next; /* in the file; NULL after the last */
    int32_t length;           /* tokens, at least 1 */
    int32_t label;            /* 0..9: the value of the expression */
    uint8_t tokens[];         /* LISTOPS_* ids, no eos */
};

struct listops_rows {
    const struct listops_row **row; /* (n) */
    int64_t n;                      /* at least 1 */
};

/* Reads a file, or its image in memory, onto the arena, which owns the rows (after an error too). Parentheses must
 * balance and are dropped. ST_DATA, with `name` (path) and line: the file is missing or no regular file, a line is
 * malformed, an expression has `max_length` or more tokens or is nested deeper than 64, a label is not the expression's
 * value, the file ends within a line or holds no expression, or a read fails. ST_MEMORY: the arena is full. The file's
 * bytes are hashed into *content (or NULL). */
enum status listops_tsv_read(struct listops_rows *rows, const char *path, int64_t max_length, struct arena *arena,
                             XXH3_state_t *content, struct error *e);
enum status listops_tsv_parse(struct listops_rows *rows, const void *bytes, size_t size, const char *name,
                              int64_t max_length, struct arena *arena, struct error *e);

#endif
