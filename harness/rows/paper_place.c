/* paper_place.c - the rows and columns of a plan's table (paper_cells.h): their names, and the place of each of the
 * plan's runs. */
#include "harness/rows/paper_cells.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/row_key.h"

/* --- labels ------------------------------------------------------------------------------------------------------- */

const char *paper_setting(const struct paper_cells *p, const char *key, const char *fallback) {
    const char *value = plan_file_get(&p->request.file, p->resolved.profile, key);
    return value ? value : fallback;
}

enum status paper_protocol(const struct request *request, const char *profile, enum report_protocol *protocol,
                           struct error *e) {
    struct error why;
    const char *name = plan_file_get(&request->file, profile, "protocol");
    if (protocol_find(name ? name : "val-mean", protocol, &why) == ST_OK) return ST_OK;
    return fail(e, why.status, "%s: %.800s", request->file.name, why.text);
}

void paper_word(const struct paper_cells *p, int word, char *text, size_t size) {
    const char *at = p->resolved.tasks;
    text[0] = 0;
    for (int i = 0; i <= word; i++) {
        at += strspn(at, " ");
        if (text_part(&at, " ", text, size, NULL) != ST_OK) return;
    }
}

enum status paper_mixer(const struct spec *s, struct label *mixer, struct error *e) {
    return label_of(mixer, s->model.model->name, s->model.model->options, s->model.inst, 0, e);
}

enum status paper_find_number(const struct paper_cells *p, const struct setup *s, const char *task, int64_t length,
                              struct published_value *value, const char **row, struct error *e) {
    struct label mixer, flags;
    char metric[64];
    TRY(paper_mixer(&s->spec, &mixer, e));
    TRY(row_key(s->id.text, &flags, e));
    if (length == PAPER_LEAST)
        snprintf(metric, sizeof metric, "least");
    else if (length)
        snprintf(metric, sizeof metric, "acc_%" PRId64, length);
    else
        snprintf(metric, sizeof metric, "%s", metric_names[s->spec.task.shape.metric]);
    *value = published_find(&p->published,
                            &(struct published_query){.arxiv = paper_setting(p, "paper", ""),
                                                      .source = paper_setting(p, "source", ""),
                                                      .task = task,
                                                      .metric = metric,
                                                      .mixer = &mixer,
                                                      .flags = &flags},
                            row);
    return ST_OK;
}

/* Names a task of the plan by its word, without options if no other word has the same task name. */
static void name_task(struct paper_cells *p, int word, char *text, size_t size) {
    char other[RECORD_TEXT];
    paper_word(p, word, text, size);
    size_t length = strcspn(text, ":");
    if (!text[length]) return;
    for (int i = 0; paper_word(p, i, other, sizeof other), *other; i++)
        if (i != word && strcspn(other, ":") == length && !strncmp(other, text, length)) return;
    text[length] = 0;
    p->short_tasks = true;
}

/* Gives a run's value of a key of `rows` or `columns`; "": its model or task lacks the option. */
static enum status value_of(struct paper_cells *p, const struct spec *s, int word, const char *key, char *text,
                            size_t size, struct error *e) {
    struct label l;
    text[0] = 0;
    if (!strcmp(key, "task")) {
        name_task(p, word, text, size);
    } else if (!strncmp(key, "task.", 5)) {
        TRY(label_of(&l, "task", s->task.task->options, s->task.inst, 0, e));
        if (label_get(&l, key + 5)) snprintf(text, size, "%s", label_get(&l, key + 5));
    } else if (!strncmp(key, "model.", 6)) {
        TRY(paper_mixer(s, &l, e));
        if (label_get(&l, key + 6)) snprintf(text, size, "%s", label_get(&l, key + 6));
    } else {
        option_format_value(row_key_flag(key), &s->config, text, size);
    }
    return ST_OK;
}

/* Writes the mixer's short label, without the option that distinguishes columns. */
static enum status short_mixer(const struct spec *s, const char *columns, char *text, size_t size, struct error *e) {
    struct label l;
    TRY(paper_mixer(s, &l, e));
    TRY(label_shorten(&l, s->model.model->options, OPT_ORDER, e));
    if (!strncmp(columns, "model.", 6)) label_remove(&l, columns + 6);
    return label_format(&l, text, size, e);
}

static enum status long_name(const struct paper_cells *p, const char *what, size_t size, struct error *e) {
    return fail(e, ST_USAGE, "%s: a %s's name is longer than %zu characters", p->request.file.name, what, size - 1);
}

/* Whether rows are distinguished by the whole model. */
static bool has_whole_models(const struct paper_cells *p) {
    const char *keys = paper_setting(p, "rows", "model");
    return !strncmp(keys, "model", 5) && (keys[5] == 0 || keys[5] == ' ');
}

/* Names the row of a run: the paper's name of its model, or the mixer, or with `both` first the one and then the other.
 * The other keys of `rows` follow as " key=value". */
static enum status name_row(struct paper_cells *p, const struct setup *s, int word, bool both, char *text, size_t size,
                            struct error *e) {
    struct published_value number;
    const char *row;
    char mixer[LABEL_TEXT];
    size_t used;
    int more = 0;
    if (has_whole_models(p)) {
        TRY(paper_find_number(p, s, NULL, 0, &number, &row, e));
        TRY(short_mixer(&s->spec, paper_setting(p, "columns", "task"), mixer, sizeof mixer, e));
        TRY(text_copy(*row ? row : mixer, text, size, e));
        used = strlen(text);
        if (*row && both) more = snprintf(text + used, size - used, " (%s)", mixer);
        if (more < 0 || used + (size_t)more >= size) return long_name(p, "row", size, e);
    } else {
        TRY(text_copy(s->spec.model.model->name, text, size, e));
    }
    for (const char *at = paper_setting(p, "rows", "model"); *at; at += strspn(at, " ")) {
        char key[128], value[RECORD_TEXT];
        TRY(text_part(&at, " ", key, sizeof key, e));
        if (!strcmp(key, "model")) continue;
        TRY(value_of(p, &s->spec, word, key, value, sizeof value, e));
        const char *dot = strrchr(key, '.');
        used = strlen(text);
        more = *value ? snprintf(text + used, size - used, " %s=%s", dot ? dot + 1 : key, value) : 0;
        if (more < 0 || used + (size_t)more >= size) return long_name(p, "row", size, e);
    }
    return ST_OK;
}

/* --- rows, columns and places -------------------------------------------------------------------------- */

/* Returns the index of the text in a list. Adds the text if it is new. -1: no memory. */
static int find_or_add(char (**list)[RECORD_TEXT], int *n, const char *text) {
    for (int i = 0; i < *n; i++)
        if (!strcmp((*list)[i], text)) return i;
    char(*longer)[RECORD_TEXT] = realloc(*list, (size_t)(*n + 1) * sizeof *longer);
    if (!longer) return -1;
    *list = longer;
    snprintf(longer[*n], RECORD_TEXT, "%s", text);
    return (*n)++;
}

const struct setup *paper_setup(const struct paper_cells *p, const struct paper_spot *spot) {
    return p->plan.setups[p->plan.uses[spot->use].run];
}

int paper_count_spots(const struct paper_cells *p) {
    return p->plan.n_uses * p->n_lengths;
}

/* Finds row and column of a spot. With `both`, the row's name has the mixer after the paper's name of the model. */
static enum status place(struct paper_cells *p, bool both, struct paper_spot *spot, struct error *e) {
    char row[RECORD_TEXT], column[RECORD_TEXT];
    const struct setup *s = paper_setup(p, spot);
    int word = p->plan.uses[spot->use].word;
    TRY(name_row(p, s, word, both, row, sizeof row, e));
    TRY(value_of(p, &s->spec, word, paper_setting(p, "columns", "task"), column, sizeof column, e));
    size_t used = strlen(column), room = sizeof column - used;
    if (spot->length && (size_t)snprintf(column + used, room, " at %" PRId64, spot->length) >= room)
        return long_name(p, "column", sizeof column, e);
    spot->row = find_or_add(&p->rows, &p->n_rows, row);
    spot->column = find_or_add(&p->columns, &p->n_columns, column);
    return spot->row < 0 || spot->column < 0 ? fail(e, ST_MEMORY, "no memory for a table") : ST_OK;
}

/* Marks the rows that would have runs of several mixers in one cell, because the paper has the same name for them. */
static enum status find_shared(const struct paper_cells *p, const struct paper_spot *spots, bool *shared, bool *any,
                               struct error *e) {
    const struct paper_spot **first = calloc((size_t)p->n_rows * (size_t)p->n_columns + 1, sizeof(struct paper_spot *));
    enum status status = first ? ST_OK : fail(e, ST_MEMORY, "no memory for a table");
    const char *columns = paper_setting(p, "columns", "task");
    for (int i = 0; i < paper_count_spots(p) && status == ST_OK; i++) {
        char mixer[LABEL_TEXT], other[LABEL_TEXT];
        const struct paper_spot **there = &first[spots[i].row * p->n_columns + spots[i].column];
        if (!*there) *there = &spots[i];
        status = short_mixer(&paper_setup(p, &spots[i])->spec, columns, mixer, sizeof mixer, e);
        if (status == ST_OK) status = short_mixer(&paper_setup(p, *there)->spec, columns, other, sizeof other, e);
        if (status == ST_OK && strcmp(mixer, other) != 0) *any = shared[spots[i].row] = true;
    }
    free(first);
    return status;
}

/* Places all spots. Then places the spots in rows that several mixers share again, under longer names. */
enum status paper_place(struct paper_cells *p, struct paper_spot *spots, struct error *e) {
    for (int i = 0; i < paper_count_spots(p); i++) {
        spots[i].use = i % p->plan.n_uses;
        spots[i].length = p->lengths[i / p->plan.n_uses];
        TRY(place(p, false, &spots[i], e));
    }
    if (!has_whole_models(p)) return ST_OK;
    bool any = false, *shared = calloc((size_t)p->n_rows + 1, sizeof *shared);
    enum status status = shared ? find_shared(p, spots, shared, &any, e) : fail(e, ST_MEMORY, "no memory for a table");
    if (any) p->n_rows = 0;
    for (int i = 0; i < paper_count_spots(p) && any && status == ST_OK; i++)
        status = place(p, shared[spots[i].row], &spots[i], e);
    free(shared);
    return status;
}

struct paper_cell *paper_cell_at(const struct paper_cells *p, int row, int column) {
    return &p->cells[row * p->n_columns + column];
}

/* --- the plan's lines --------------------------------------------------------------------------------------------- */

/* Checks a key of `rows` or `columns`: it must be the task, an option of a task or model, a flag, or for rows the
 * model. Rate and seed are refused, because a cell's number is computed from all its rates and seeds. */
static enum status check_key(const struct paper_cells *p, const char *line, const char *key, struct error *e) {
    bool rows = !strcmp(line, "rows");
    const struct option *o = row_key_option(key);
    if (o && o->flags & (OPT_RATE | OPT_SEED))
        return fail(e, ST_USAGE,
                    "%s: '%.60s' of its %s tells no cells apart, since a cell's number is made of all its rates and "
                    "seeds; take the key out",
                    p->request.file.name, key, line);
    if (!strcmp(key, "task") || (rows && !strcmp(key, "model")) || o) return ST_OK;
    return fail(
        e, ST_USAGE,
        "%s: '%.60s' of its %s is neither %stask, an option of a task or model (task.OPTION, model.OPTION), nor "
        "a flag",
        p->request.file.name, key, line, rows ? "model, " : "");
}

static enum status read_lengths(struct paper_cells *p, const char *list, struct error *e) {
    const char *at = list;
    if (p->speed)
        return fail(e, ST_USAGE, "%s: lengths=%.60s, but speed is that of training; leave the line out",
                    p->request.file.name, list);
    for (int i = 0;; i++, at++) {
        char number[32];
        if (i == PAPER_MOST_LENGTHS || text_part(&at, ",", number, sizeof number, NULL) != ST_OK ||
            !parse_int64(number, &p->lengths[i]) || p->lengths[i] < 1)
            return fail(e, ST_USAGE, "%s: lengths=%.60s is not a list of at most %d whole numbers, such as 192,384",
                        p->request.file.name, list, PAPER_MOST_LENGTHS);
        p->n_lengths = i + 1;
        if (!*at) return ST_OK;
    }
}

/* Rows may have several keys, columns have one. */
enum status paper_read_table(struct paper_cells *p, struct error *e) {
    const char *columns = paper_setting(p, "columns", "task"), *lengths = paper_setting(p, "lengths", NULL),
               *least = paper_setting(p, "least", NULL);
    p->n_lengths = 1;
    if (lengths) TRY(read_lengths(p, lengths, e));
    p->bound = NAN;
    if (least && (!parse_double(least, &p->bound) || !(p->bound >= 0 && p->bound < 1)))
        return fail(e, ST_USAGE, "%s: least=%.60s: expected an accuracy from 0 to below 1, such as .9",
                    p->request.file.name, least);
    for (const char *at = paper_setting(p, "rows", "model"); *at; at += strspn(at, " ")) {
        char key[128];
        TRY(text_part(&at, " ", key, sizeof key, e));
        TRY(check_key(p, "rows", key, e));
    }
    if (strchr(columns, ' '))
        return fail(e, ST_USAGE, "%s: columns=%.60s: one key tells columns apart; the others may be of rows",
                    p->request.file.name, columns);
    TRY(check_key(p, "columns", columns, e));
    TRY(paper_check_differences(p, e));
    return paper_protocol(&p->request, p->resolved.profile, &p->protocol, e);
}
