/* record_json.c - writes and reads a run record as JSON. The first line has the checksum of all bytes after it, so that
 * one altered bit is found before anything is parsed.
 *
 * Curve and evaluations, the largest parts of a record, are tables: the names of the columns once, then one array per
 * point. Numbers have the fewest digits that read back to the same value. */
#include "harness/store/record_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/batch.h"
#include "core/option.h"
#include "harness/store/files.h"
#include "harness/store/schema.h"

#define BEFORE_SUM        "{\"checksum\": \""
#define AFTER_SUM         "\",\n"
#define SUM_AT            (sizeof BEFORE_SUM - 1)
#define SUM_DIGITS        (RUN_ID_HEX - 1)
#define BODY_AT           (SUM_AT + SUM_DIGITS + sizeof AFTER_SUM - 1)
#define POINT_LEAST_BYTES 10 /* [1,"val"], : every point has both */

size_t record_arena_bytes(size_t size) {
    size_t larger =
        sizeof(struct curve_point) > sizeof(struct eval_point) ? sizeof(struct curve_point) : sizeof(struct eval_point);
    return size / POINT_LEAST_BYTES * larger + 4 * ARENA_ALIGN;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

json_t *json_from_text(const char *text) {
    json_t *value = json_string(text);
    if (value) return value;
    char *plain = strdup(text);
    if (!plain) return NULL;
    for (char *p = plain; *p; p++)
        if ((unsigned char)*p >= 0x80) *p = '?';
    value = json_string(plain);
    free(plain);
    return value;
}

json_t *json_from_real(double value) {
    if (isnan(value)) return json_null();
    if (isinf(value)) return json_string(value < 0 ? "-inf" : "inf");
    return json_real(value);
}

/* The printing functions return true on failure. Write errors are not checked here, since the stream remembers them. */
static bool print_text(FILE *f, const char *text) {
    json_t *value = json_from_text(text);
    bool failed = !value || json_dumpf(value, f, JSON_ENCODE_ANY) != 0;
    json_decref(value);
    return failed;
}

/* Prints texts, infinities and integers too large for the JSON library (seeds above 2^63) in quotes, other numbers
 * without. Fails if an enum value has no name. */
static bool print_field(FILE *f, const struct field *field, const void *object) {
    char number[40];
    const void *value = (const char *)object + field->offset;
    const char *text = field_text(field, object, number, sizeof number);
    bool quoted = field->type == FIELD_TEXT || field->type == FIELD_NAME;
    if (field->type == FIELD_REAL) quoted = isinf(*(const double *)value);
    if (field->type == FIELD_U64) quoted = *(const uint64_t *)value > INT64_MAX;
    if (field->type == FIELD_NAME && !text) return true;
    if (quoted) return print_text(f, text ? text : "");
    bool negative_zero = text && !strcmp(text, "-0"); /* integers in JSON have no -0 */
    fputs(negative_zero ? "-0.0" : text ? text : "null", f);
    return false;
}

/* Prints a list as a table of the fields in which at least one point has a value. */
static bool print_list(FILE *f, const char *name, const struct table *table, const void *list, int64_t n,
                       size_t object_size) {
    const struct field *columns[LIST_MOST_COLUMNS];
    char number[40];
    int count = 0;
    bool failed = false;
    for (const struct field *field = table->fields; field->name; field++) {
        bool used = false;
        if (!field_within(field, object_size)) continue;
        for (int64_t i = 0; i < n && !used; i++)
            used = field->type == FIELD_TEXT || field->type == FIELD_NAME ||
                   field_text(field, (const char *)list + (size_t)i * object_size, number, sizeof number);
        if (used) columns[count++] = field;
    }
    fprintf(f, ",\n\"%s\": {\"columns\": [", name);
    for (int k = 0; k < count; k++) fprintf(f, "%s\"%s\"", k ? "," : "", columns[k]->name);
    fputs("],\n \"points\": [", f);
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < count; k++) {
            fputs(k ? "," : i ? ",\n[" : "\n[", f);
            failed |= print_field(f, columns[k], (const char *)list + (size_t)i * object_size);
        }
        fputs("]", f);
    }
    fputs("]}", f);
    return failed;
}

/* Prints one line per field of the run and one per point, so that people and diff can read a record. */
static bool print_record(FILE *f, const struct run_record *r) {
    bool failed = false;
    fprintf(f, BEFORE_SUM "%0*d" AFTER_SUM, (int)SUM_DIGITS, 0);
    for (const struct field *field = runs_table.fields; field->name; field++) {
        fprintf(f, "%s\n \"%s\": ", field == runs_table.fields ? "\"run\": {" : ",", field->name);
        failed |= print_field(f, field, &r->run);
    }
    fputs("\n},\n\"config\": ", f);
    failed |= print_text(f, r->config);
    fputs(",\n\"identity\": ", f);
    failed |= print_text(f, r->identity);
    failed |= print_list(f, "curve", &curves_table, r->curve, r->n_curve, sizeof *r->curve);
    failed |= print_list(f, "evals", &evals_table, r->evals, r->n_evals, sizeof *r->evals);
    fputs("\n}\n", f);
    return failed;
}

enum status record_format(const struct run_record *r, char **text, size_t *size, struct error *e) {
    char sum[RUN_ID_HEX];
    struct printed json;
    *text = NULL;
    if (r->run.status < 0 || r->run.status >= RUN_STATUS_COUNT)
        return fail(e, ST_FAIL, "run %s has status %lld, expected 0..%d", r->run.run_id, (long long)r->run.status,
                    RUN_STATUS_COUNT - 1);
    TRY(printed_begin(&json, "a record", e));
    enum status status = print_record(json.f, r) ? ST_FAIL : ST_OK;
    if (printed_end(&json, status, "a record", e) != ST_OK)
        return fail(e, ST_FAIL, "no memory to write the record of run %s (or a curve point of an unknown split)",
                    r->run.run_id);
    record_hash(json.text + BODY_AT, sum);
    memcpy(json.text + SUM_AT, sum, SUM_DIGITS);
    *text = json.text;
    *size = json.size;
    return ST_OK;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Sets a field from its JSON value. False: the value has the wrong type. */
static bool field_from_json(const struct field *field, const json_t *value, void *object) {
    void *out = (char *)object + field->offset;
    const char *text = json_string_value(value);
    char *end = NULL;
    switch (field->type) {
    case FIELD_INT:
        *(int64_t *)out = json_is_null(value) ? -1 : json_integer_value(value);
        return json_is_null(value) || json_is_integer(value);
    case FIELD_U64:
        *(uint64_t *)out = text ? strtoull(text, &end, 10) : (uint64_t)json_integer_value(value);
        return text ? *text && *end == 0 : json_is_integer(value);
    case FIELD_REAL:
        *(double *)out = text && *text == '-' ? -INFINITY : text ? INFINITY : NAN;
        if (json_is_number(value)) *(double *)out = json_number_value(value);
        return json_is_number(value) || json_is_null(value) ||
               (text && (!strcmp(text, "inf") || !strcmp(text, "-inf")));
    case FIELD_TEXT:
        if (!text || json_string_length(value) >= field->size) return false;
        memcpy(out, text, json_string_length(value) + 1);
        return true;
    case FIELD_NAME:
        for (int64_t i = 0; text && field->names[i]; i++)
            if (!strcmp(field->names[i], text)) {
                *(int64_t *)out = i;
                return true;
            }
        return false;
    default:
        return false;
    }
}

/* Finds a value by name in a JSON object or, if `columns` has the names, in a row of a table; NULL: there is none. */
static const json_t *value_of(const json_t *in, const json_t *columns, const char *name) {
    size_t k;
    const json_t *column;
    if (!columns) return json_object_get(in, name);
    json_array_foreach(columns, k, column) {
        const char *text = json_string_value(column);
        if (text && strcmp(text, name) == 0) return json_array_get(in, k);
    }
    return NULL;
}

/* Reads the fields of an object. Within a schema columns are only appended, so missing fields get "does not apply" and
 * unknown ones are skipped. */
static enum status object_from_json(const struct table *table, const json_t *in, const json_t *columns, void *object,
                                    size_t object_size, const char *path, struct error *e) {
    for (const struct field *field = table->fields; field->name; field++) {
        if (!field_within(field, object_size)) continue;
        const json_t *value = value_of(in, columns, field->name);
        if (!value) field_clear(field, object);
        if (value && !field_from_json(field, value, object))
            return fail(e, ST_USAGE, "%s: the value of %s in %s is not one this program can read", path, field->name,
                        table->name);
    }
    return ST_OK;
}

static enum status list_from_json(const struct table *table, const json_t *in, void **list, int64_t *n,
                                  size_t object_size, struct arena *arena, const char *path, struct error *e) {
    const json_t *columns = json_object_get(in, "columns");
    const json_t *points = json_object_get(in, "points");
    if (!json_is_array(columns) || !json_is_array(points))
        return fail(e, ST_USAGE, "%s has no list of points for %s", path, table->name);
    *n = (int64_t)json_array_size(points);
    *list = arena_alloc(arena, (size_t)*n * object_size);
    if (!*list) return fail(e, ST_MEMORY, "%s: no memory for %lld points of %s", path, (long long)*n, table->name);
    memset(*list, 0, (size_t)*n * object_size);
    for (int64_t i = 0; i < *n; i++) {
        const json_t *point = json_array_get(points, (size_t)i);
        if (json_array_size(point) != json_array_size(columns))
            return fail(e, ST_USAGE, "%s: point %lld of %s has %zu values, expected one for each of %zu columns", path,
                        (long long)i, table->name, json_array_size(point), json_array_size(columns));
        if (!value_of(point, columns, "step") || !value_of(point, columns, "split"))
            return fail(e, ST_USAGE, "%s: point %lld of %s has no step or no split", path, (long long)i, table->name);
        TRY(object_from_json(table, point, columns, (char *)*list + (size_t)i * object_size, object_size, path, e));
    }
    return ST_OK;
}

static enum status text_from_json(const json_t *in, char *text, size_t size, const char *path, struct error *e) {
    const char *value = json_string_value(in);
    if (!value || strlen(value) >= size)
        return fail(e, ST_USAGE, "%s: a text is missing or longer than %zu bytes", path, size - 1);
    memcpy(text, value, strlen(value) + 1);
    return ST_OK;
}

static enum status record_from_json(const json_t *root, const char *path, struct run_record *r, struct arena *arena,
                                    struct error *e) {
    void *curve = NULL, *evals = NULL;
    record_init(r);
    TRY(object_from_json(&runs_table, json_object_get(root, "run"), NULL, &r->run, sizeof r->run, path, e));
    TRY(text_from_json(json_object_get(root, "config"), r->config, sizeof r->config, path, e));
    TRY(text_from_json(json_object_get(root, "identity"), r->identity, sizeof r->identity, path, e));
    TRY(list_from_json(&curves_table, json_object_get(root, "curve"), &curve, &r->n_curve, sizeof *r->curve, arena,
                       path, e));
    TRY(list_from_json(&evals_table, json_object_get(root, "evals"), &evals, &r->n_evals, sizeof *r->evals, arena, path,
                       e));
    r->curve = curve;
    r->evals = evals;
    return ST_OK;
}

/* Checks that the bytes are unaltered. */
static enum status verify_bytes(const char *text, size_t size, const char *path, struct error *e) {
    char sum[RUN_ID_HEX];
    if (size <= BODY_AT || memcmp(text, BEFORE_SUM, SUM_AT) != 0 ||
        memcmp(text + SUM_AT + SUM_DIGITS, AFTER_SUM, sizeof AFTER_SUM - 1) != 0)
        return fail(e, ST_DATA, "%s, %zu bytes, does not begin as a run record does", path, size);
    if (memchr(text, 0, size)) return fail(e, ST_DATA, "%s is altered: it holds a zero byte", path);
    record_hash(text + BODY_AT, sum);
    if (memcmp(sum, text + SUM_AT, SUM_DIGITS) == 0) return ST_OK;
    return fail(e, ST_DATA, "%s, %zu bytes, is cut off or altered: its checksum is %s, expected %.*s", path, size, sum,
                (int)SUM_DIGITS, text + SUM_AT);
}

static enum status other_schema(const char *path, long long schema, struct error *e) {
    return fail(e, ST_USAGE, "%s is of schema %lld; this program reads schema %d", path, schema, RECORD_SCHEMA);
}

/* If unaltered bytes do not parse, memory ran out (which the library may call a syntax error) or another program made
 * them. Neither counts as damage, but a number too large for a double does. */
enum status record_parse(const char *text, size_t size, const char *path, const char *run_id, struct run_record *r,
                         struct arena *arena, struct error *e) {
    static const char key[] = "\"schema\":";
    TRY(verify_bytes(text, size, path, e));
    json_error_t reason = {0};
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &reason);
    if (!root && json_error_code(&reason) == json_error_numeric_overflow) {
        const char *at = strstr(text, key); /* the schema comes before all other numbers */
        long long schema = at ? strtoll(at + sizeof key - 1, NULL, 10) : 0;
        if (schema > RECORD_SCHEMA) return other_schema(path, schema, e);
        return fail(e, ST_DATA, "%s has a number that is too large for this program: %s", path, reason.text);
    }
    if (!root) return fail(e, ST_FAIL, "cannot read %s: no memory, or not a record: %s", path, reason.text);
    const json_t *run = json_object_get(root, "run");
    const char *id = json_string_value(json_object_get(run, "run_id"));
    json_int_t schema = json_integer_value(json_object_get(run, "schema"));
    enum status status = ST_OK;
    if (run_id && (!id || strcmp(id, run_id) != 0))
        status = fail(e, ST_DATA, "%s holds the record of run %s", path, id ? id : "(none)");
    else if (schema != RECORD_SCHEMA)
        status = other_schema(path, schema, e);
    else if (r)
        status = record_from_json(root, path, r, arena, e);
    json_decref(root);
    return status;
}
