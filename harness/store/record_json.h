/* record_json.h - converts a run record to JSON text, and back. */
#ifndef LRNN_HARNESS_STORE_RECORD_JSON_H
#define LRNN_HARNESS_STORE_RECORD_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "core/arena.h"
#include "core/status.h"
#include "harness/store/record.h"

#define RECORD_MOST_BYTES ((size_t)256 << 20)

/* Returns arena bytes that suffice for the curves and evaluations of any record of `size` bytes. */
size_t record_arena_bytes(size_t size);

/* Make JSON values. In a text (a path, a name from the command line) bytes that are not UTF-8 become '?'. NAN becomes
 * null, infinity the text "inf" or "-inf". NULL: no memory. */
json_t *json_from_text(const char *text);
json_t *json_from_real(double value);

/* Writes the text of a record; the caller frees *text. ST_FAIL: a value outside its enum, or no memory. */
enum status record_format(const struct run_record *r, char **text, size_t *size, struct error *e);

/* Verifies and parses a text. `run_id` is the id in the file's name, or NULL. With r == NULL it only verifies, and
 * needs no arena. `path` is for messages. ST_DATA: the text is damaged, or is the record of another run; ST_USAGE: it
 * is undamaged, but of another schema; ST_FAIL: no memory, or undamaged but not JSON. */
enum status record_parse(const char *text, size_t size, const char *path, const char *run_id, struct run_record *r,
                         struct arena *arena, struct error *e);

#endif
