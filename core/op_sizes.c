/* op_sizes.c - see op_sizes.h. */
#include "core/op_sizes.h"

#include <string.h>

#include "core/graph.h"

#define AT(field) offsetof(struct op_sizes, field)

const struct option op_sizes_options[] = {
    {"batch", OPT_INT, AT(batch), "128", 1, 1 << 24, NULL, "sequences B", 0},
    {"length", OPT_INT, AT(length), "16", 1, 1e9, NULL, "tokens of a sequence T; nodes, leaves", 0},
    {"blocks", OPT_INT, AT(blocks), "64", 1, 1 << 24, NULL, "blocks or channels N of a scan", 0},
    {"m", OPT_INT, AT(m), "5", 1, 64, NULL, "block size, order or rank", 0},
    {"gate", OPT_CHOICE, AT(gate), "softmax", 0, 0, "softmax sigmoid relu none", "gate normaliser of a scan", 0},
    {"layout", OPT_CHOICE, AT(layout), "companion", 0, 0, "companion observer", "of scan_companion", 0},
    {"dim", OPT_INT, AT(dim), "128", 1, 1 << 20, NULL, "width D, or the hidden size of scan_lstm", 0},
    {"out", OPT_INT, AT(out), "auto", 1, 1 << 20, NULL, "output width of linear, second width of others; auto = dim",
     OPT_AUTO},
    {"vocab", OPT_INT, AT(vocab), "120", 1, 1 << 24, NULL, "token ids", 0},
    {"heads", OPT_INT, AT(heads), "4", 1, 1 << 16, NULL, "heads of a matrix-state recurrence", 0},
    {"dk", OPT_INT, AT(dk), "32", 1, 1 << 14, NULL, "length of a head's keys, rows of its state", 0},
    {"dv", OPT_INT, AT(dv), "32", 1, 1 << 14, NULL, "length of a head's values, columns of its state", 0},
    {"substeps", OPT_INT, AT(substeps), "1", 1, 64, NULL, "updates a token of scan_delta", 0},
    {"interval", OPT_INT, AT(interval), "4", 1, 1e9, NULL, "tokens of an interval", 0},
    {"examples", OPT_INT, AT(examples), "4096", 1, 1e9, NULL, "examples of the split of take_batch", 0},
    {"variant", OPT_INT, AT(variant), "0", 0, 1000, NULL, "number of the op's variant: optional inputs, attributes", 0},
    {0},
};

int64_t op_sizes_out(const struct op_sizes *s) {
    return s->out ? s->out : s->dim;
}

bool op_reads_size(const struct op *op, const char *option) {
    size_t n = strlen(option);
    for (const char *at = op->sizes; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strncmp(at, option, n) == 0 && (at[n] == ' ' || at[n] == 0)) return true;
    return false;
}

int op_sizes_format(const struct op *op, const struct op_sizes *s, char *text, size_t size) {
    char value[64];
    int used = 0;
    if (size > 0) text[0] = 0;
    for (const struct option *o = op_sizes_options; o->name; o++) {
        bool variant = strcmp(o->name, "variant") == 0;
        if (variant ? s->variant == 0 : !op_reads_size(op, o->name)) continue;
        option_format_value(o, s, value, sizeof value);
        size_t room = (size_t)used < size ? size - (size_t)used : 0;
        used += snprintf(room ? text + used : NULL, room, "%s%s=%s", used ? " " : "", o->name, value);
    }
    return used;
}

static bool has_variant(const struct op *op, struct op_sizes *s, int variant) {
    struct graph_options options = {.training = true};
    struct graph g;
    struct error e = {0};
    s->variant = variant;
    if (graph_create(&g, &options, NULL, &e) != ST_OK) return false;
    bool has = op->build(&g, s);
    graph_free(&g);
    return has;
}

int op_variants(const struct op *op) {
    struct op_sizes s;
    struct error e = {0};
    int n = 0;
    if (options_default(op_sizes_options, &s, &e) != ST_OK) return 0;
    s.batch = s.length = 2;
    while (has_variant(op, &s, n)) n++;
    return n;
}
