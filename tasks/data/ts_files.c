/* ts_files.c - see ts_files.h. */
#include "tasks/data/ts_files.h"

#include <ctype.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tasks/data/grow.h"

/* One file while it is read. */
struct ts {
    struct text_source text;
    char name[TS_LABELS][TS_NAME]; /* of the labels, sorted */
    int64_t labels, dimensions;    /* 0: the header does not say */
    int64_t points;                /* of each case; 0: not in the header, or not constant */
    float *value;                  /* of a case, dimension after dimension */
    int64_t used, room;
};

/* --- header ------------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

/* Reads "true" or "false". */
static enum status read_bool(struct ts *f, bool *value) {
    char word[8];
    text_skip_blanks(&f->text);
    int first = tolower(text_peek(&f->text));
    if (first != 't' && first != 'f') return text_fail(&f->text, "true or false");
    *value = first == 't';
    bool whole = text_word(&f->text, "", word, sizeof word);
    for (char *c = word; *c; c++) *c = (char)tolower(*c);
    if (!whole || strcmp(word, *value ? "true" : "false") != 0) return text_fail(&f->text, "true or false");
    return ST_OK;
}

static enum status read_labels(struct ts *f) {
    bool any;
    TRY(read_bool(f, &any));
    if (!any) return text_fail(&f->text, "cases with labels, @classLabel true,");
    for (text_skip_blanks(&f->text); text_peek(&f->text) > ' '; text_skip_blanks(&f->text)) {
        if (f->labels == TS_LABELS) return text_fail(&f->text, "at most 1024 labels");
        if (!text_word(&f->text, ":,", f->name[f->labels], TS_NAME) || !*f->name[f->labels])
            return text_fail(&f->text, "the name of a label, at most 63 characters without : and ,");
        f->labels++;
    }
    if (f->labels == 0) return text_fail(&f->text, "names of labels");
    qsort(f->name, (size_t)f->labels, TS_NAME, by_name);
    for (int64_t i = 1; i < f->labels; i++)
        if (!strcmp(f->name[i - 1], f->name[i])) return text_fail(&f->text, "names of labels, each once,");
    return ST_OK;
}

static enum status read_count(struct ts *f, const char *what, int64_t most, int64_t *value) {
    text_skip_blanks(&f->text);
    return text_integer(&f->text, 1, most, value) ? ST_OK : text_fail(&f->text, what);
}

/* Reads the value after one key. Keys that the reader does not need are passed over. */
static enum status read_key(struct ts *f, const char *key, bool *data) {
    bool yes = false;
    if (!strcmp(key, "data")) {
        *data = true;
        return text_end_line(&f->text);
    }
    if (!strcmp(key, "dimensions") || !strcmp(key, "dimension"))
        TRY(read_count(f, "a number of dimensions from 1 to 4096", TS_DIMENSIONS, &f->dimensions));
    else if (!strcmp(key, "serieslength"))
        TRY(read_count(f, "a number of points from 1 to 16777216", TS_POINTS, &f->points));
    else if (!strcmp(key, "classlabel"))
        TRY(read_labels(f));
    else if (!strcmp(key, "targetlabel"))
        return text_fail(&f->text, "classes, not numbers, as targets: sort them into classes, @classLabel,");
    else if (!strcmp(key, "univariate") || !strcmp(key, "timestamps"))
        TRY(read_bool(f, &yes));
    else {
        text_skip_line(&f->text);
        return f->text.status;
    }
    if (yes && *key == 't') return text_fail(&f->text, "values without time stamps, @timeStamps false,");
    if (yes) f->dimensions = 1;
    return text_end_line(&f->text);
}

static enum status read_header(struct ts *f) {
    char key[32];
    text_skip_mark(&f->text);
    for (bool data = false; !data;) {
        text_skip_blanks(&f->text);
        int c = text_peek(&f->text);
        if (c == '#' || c == '%' || c == '\n') {
            text_skip_line(&f->text);
            continue;
        }
        if (c != '@') return text_fail(&f->text, "a line of the header, which begins with @,");
        text_take(&f->text);
        if (!text_word(&f->text, "", key, sizeof key)) return text_fail(&f->text, "a key of at most 31 characters");
        for (char *k = key; *k; k++) *k = (char)tolower(*k);
        TRY(read_key(f, key, &data));
    }
    return f->labels ? ST_OK : text_fail(&f->text, "@classLabel before @data");
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

static enum status keep_value(struct ts *f, double value) {
    if (f->used == TS_VALUES) return text_fail(&f->text, "a case of at most 67108864 values");
    if (f->used == f->room) {
        float *more = grow(f->value, &f->room, f->used + 1, (int64_t)sizeof *more);
        if (!more) return fail(f->text.e, ST_MEMORY, "no memory for a case of %" PRId64 " values", f->used + 1);
        f->value = more;
    }
    f->value[f->used++] = (float)value;
    return ST_OK;
}

/* Reports a dimension that does not begin with a number, with its place if the header counts dimensions. */
static enum status number_fail(struct ts *f, int64_t dimension) {
    char what[96];
    if (!f->dimensions || dimension == 0) return text_fail(&f->text, "a finite number");
    snprintf(what, sizeof what, "a finite number, in dimension %" PRId64 " of %" PRId64 ",", dimension + 1,
             f->dimensions);
    return text_fail(&f->text, what);
}

/* Reads the values of dimension number `dimension`, from 0, and the ':' after them. *points is the number of values in
 * each dimension before it, 0 for the first one. */
static enum status read_dimension(struct ts *f, int64_t dimension, int64_t *points) {
    int64_t before = f->used, n;
    double value;
    do {
        text_skip_blanks(&f->text);
        int c = text_peek(&f->text);
        if (c == '?' || c == 'N' || c == 'n')
            return text_fail(&f->text, "a value (missing ones are not read: fill them in)");
        if (!text_number(&f->text, &value)) return number_fail(f, dimension);
        if (fabs(value) > FLT_MAX)
            return fail(f->text.e, ST_DATA, "%s, line %" PRId64 ": expected a number of at most 3.4e38, found %g",
                        f->text.from->name, f->text.line, value);
        TRY(keep_value(f, value));
        text_skip_blanks(&f->text);
    } while (text_peek(&f->text) == ',' && text_take(&f->text));
    n = f->used - before;
    if ((*points && n != *points) || (f->points && n != f->points)) {
        char what[80];
        snprintf(what, sizeof what, "a dimension of %" PRId64 " values, not %" PRId64 ",",
                 *points ? *points : f->points, n);
        return text_fail(&f->text, what);
    }
    *points = n;
    if (text_peek(&f->text) != ':') return text_fail(&f->text, "',' or ':' after a value");
    text_take(&f->text);
    return ST_OK;
}

/* Reads the label: the last word of a case, without a ':' after it. */
static enum status read_label(struct ts *f, int64_t *label) {
    char word[TS_NAME];
    text_skip_blanks(&f->text);
    bool whole = text_word(&f->text, ":,", word, sizeof word);
    const char *found = whole ? bsearch(word, f->name, (size_t)f->labels, TS_NAME, by_name) : NULL;
    if (found) {
        *label = (found - f->name[0]) / TS_NAME;
        return text_end_line(&f->text);
    }
    if (f->text.status != ST_OK) return f->text.status;
    int next = text_peek(&f->text);
    if (next == ',' || next == ':')
        return fail(f->text.e, ST_DATA,
                    "%s, line %" PRId64 ": expected a label after %" PRId64 " dimensions, found another dimension",
                    f->text.from->name, f->text.line, f->dimensions);
    return fail(f->text.e, ST_DATA, "%s, line %" PRId64 ": expected a label of the header's list, found '%s'",
                f->text.from->name, f->text.line, word);
}

/* Whether the label follows: no ':' comes before the end of the line. The header's number of dimensions decides if it
 * is there, else the first case does. */
static bool at_label(struct ts *f, int64_t dimensions) {
    if (f->dimensions) return dimensions == f->dimensions;
    text_fill(&f->text, SOURCE_WINDOW / 2);
    for (size_t i = f->text.at; i < f->text.n && f->text.window[i] != '\n'; i++)
        if (f->text.window[i] == ':' || f->text.window[i] == ',') return false;
    return true;
}

static enum status read_case(struct ts *f, enum split split, struct entry_pack *pack) {
    int64_t points = 0, dimensions = 0, label = 0;
    f->used = 0;
    do TRY(read_dimension(f, dimensions, &points));
    while (++dimensions < TS_DIMENSIONS && !at_label(f, dimensions));
    f->dimensions = dimensions;
    TRY(read_label(f, &label));
    struct entry_set *set = &pack->set;
    if (!set->width) set->width = dimensions;
    if (set->width != dimensions)
        return fail(f->text.e, ST_DATA, "%s: expected %" PRId64 " dimensions as in the file before, found %" PRId64,
                    f->text.from->name, set->width, dimensions);
    uint8_t *to = entry_pack_add(pack, split, label, points, f->used * (int64_t)sizeof(float), f->text.e);
    if (!to) return f->text.e->status;
    for (int64_t t = 0; t < points; t++)
        for (int64_t d = 0; d < dimensions; d++, to += sizeof(float))
            memcpy(to, &f->value[d * points + t], sizeof(float));
    return ST_OK;
}

static enum status read_file(struct ts *f, enum split split, struct entry_pack *pack) {
    TRY(read_header(f));
    if (!pack->set.labels) pack->set.labels = f->labels;
    if (pack->set.labels != f->labels)
        return fail(f->text.e, ST_DATA, "%s: expected %" PRId64 " labels as in the file before, found %" PRId64,
                    f->text.from->name, pack->set.labels, f->labels);
    uint64_t names = XXH3_64bits(f->name, (size_t)f->labels * TS_NAME);
    if (!pack->label_names) pack->label_names = names;
    if (pack->label_names != names)
        return fail(f->text.e, ST_DATA, "%s: its %" PRId64 " labels have other names than in the file before",
                    f->text.from->name, f->labels);
    int64_t cases = 0;
    for (int c; (c = text_peek(&f->text)) != TEXT_END;)
        if (c == '\n' || c == '#' || c == '%') {
            text_skip_line(&f->text);
        } else if (c == ' ' || c == '\t') {
            text_skip_blanks(&f->text);
        } else {
            TRY(read_case(f, split, pack));
            cases++;
        }
    if (f->text.status != ST_OK) return f->text.status;
    return cases ? ST_OK : text_fail(&f->text, "a case");
}

enum status ts_read(struct byte_source *s, enum split split, struct entry_pack *pack, struct error *e) {
    struct ts *f = calloc(1, sizeof *f);
    if (!f) return fail(e, ST_MEMORY, "%s: no memory to read it", s->name);
    text_open(&f->text, s, e);
    enum status status = read_file(f, split, pack);
    free(f->value);
    free(f);
    return status;
}
