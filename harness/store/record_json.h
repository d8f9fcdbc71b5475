/* record_json.h - a run record as text, and back. */
#ifndef LRNN_HARNESS_STORE_RECORD_JSON_H
#define LRNN_HARNESS_STORE_RECORD_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "core/arena.h"
#include "core/status.h"
#include "harness/store/record.h"

#define RECORD_MOST_BYTES ((size_t)256 << 20)

/* Arena bytes that suffice for the curves and evaluations of any whole record of `size` bytes. */
size_t record_arena_bytes(size_t size);

/* Values as records have them. A text that is not UTF-8 (a path, a name from the command line) has its other bytes
 * replaced by '?'; a number that is none is null, infinity the text "inf" or "-inf". NULL: no memory. */
json_t *json_from_text(const char *text);
json_t *json_from_real(double value);

/* The text of a record; the caller frees *text. ST_FAIL: a value outside its enum, or no memory. */
enum status record_format(const struct run_record *r, char **text, size_t *size, struct error *e);

/* Parses and verifies. `run_id` is the id that the file's name promises, or NULL. With r == NULL it only verifies, and
 * needs no arena. `path` is for messages. ST_DATA: the text is damaged, or is the record of another run; ST_USAGE: it
 * is whole, but of another schema than this program's; ST_FAIL: no memory, or whole but not JSON. */
enum status record_parse(const char *text, size_t size, const char *path, const char *run_id, struct run_record *r,
                         struct arena *arena, struct error *e);

#endif
