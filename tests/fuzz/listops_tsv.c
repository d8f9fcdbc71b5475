/* listops_tsv.c - fuzz target: whatever the bytes, the reader refuses them with one sentence or gives expressions
 * that have the value it says. */
#include "tasks/language/listops_operation.h"
#include "tasks/language/listops_tsv.h"
#include "tests/fuzz/fuzz.h"

#define MAX_LENGTH 2000

/* The value of the expression at *at, which moves past it; aborts if there is none. */
static int32_t value_of(const uint8_t **at, const uint8_t *end) {
    if (*at == end) abort();
    uint8_t token = *(*at)++;
    if (token >= LISTOPS_DIGIT && token < LISTOPS_DIGIT + 10) return token - LISTOPS_DIGIT;
    if (token < LISTOPS_MAX || token > LISTOPS_SM) abort();
    struct operation o;
    operation_start(&o, token);
    while (*at < end && **at != LISTOPS_CLOSE) operation_add(&o, value_of(at, end));
    if (*at == end || o.arguments == 0) abort();
    ++*at;
    return operation_value(&o);
}

FUZZ(listops_tsv) {
    static struct arena arena;
    struct error e = {ST_OK, ""};
    struct listops_rows rows;
    if (!arena.base && arena_reserve(&arena, (size_t)64 << 20, &e) != ST_OK) abort();
    arena_release(&arena, 0);
    if (listops_tsv_parse(&rows, data, size, "FILE", MAX_LENGTH, &arena, &e) != ST_OK) {
        if (e.status != ST_DATA || strncmp(e.text, "FILE, line ", 11) != 0 || strchr(e.text, '\n')) abort();
        return 0;
    }
    if (rows.n < 1) abort();
    for (int64_t i = 0; i < rows.n; i++) {
        const struct listops_row *row = rows.row[i];
        const uint8_t *at = row->tokens, *end = at + row->length;
        if (row->length < 1 || row->length >= MAX_LENGTH || value_of(&at, end) != row->label || at != end) abort();
    }
    return 0;
}
