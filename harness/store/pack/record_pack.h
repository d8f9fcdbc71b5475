/* record_pack.h - packed records: OUT/runs/ab.gz has the records of the folder OUT/runs/ab, their texts byte for byte,
 * one after the other by run id, compressed by gzip to a quarter. `zcat OUT/runs/ab.gz | jq` reads them.
 *
 * Every reader of records finds both kinds. If a run is in both, the record in the folder is taken: so a program that
 * stops in the middle of packing or unpacking loses and doubles nothing. */
#ifndef LRNN_HARNESS_STORE_PACK_RECORD_PACK_H
#define LRNN_HARNESS_STORE_PACK_RECORD_PACK_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"
#include "harness/store/files.h"
#include "harness/store/record.h"

#define PACK_MOST_BYTES ((size_t)1 << 30) /* of the texts together */
#define PACK_WINDOW     (15 + 16)         /* zlib's word for its largest window with a gzip header */

/* A record's id, and where its text is in that of its pack. */
struct packed {
    char id[RUN_ID_HEX];
    size_t at, size;
};

/* A pack in memory. `path` is the file that it was read from, "" if there is none. */
struct record_pack {
    char path[PATH_BYTES], *text;
    struct packed *list;
    int n;
};

/* Reads OUT/runs/ab.gz; n is 0 if there is no such file. The file ends with the size of its data, which bounds the
 * memory; a size that gzip cannot reach is refused. ST_DATA, with path and advice: the file is damaged, or has a record
 * that belongs into another folder; ST_FAIL: it cannot be read. Free the pack in either case. */
enum status pack_read(const char *path, struct record_pack *pack, struct error *e);
void pack_free(struct record_pack *pack);

/* Reads the bytes of such a file. Errors as pack_read; free it in either case. */
enum status pack_parse(struct record_pack *pack, const char *path, const char *bytes, size_t size, struct error *e);

/* Whether a file in OUT/runs has the name of a pack, "ab.gz". */
bool is_pack_name(const char *name);

/* Splits records that follow each other in `text`, which has a terminator after `size` bytes; `pack` takes it. `ab` are
 * the first digits of the ids, "" for any. ST_DATA: a part of the text is no record, or has another id. */
enum status pack_split(struct record_pack *pack, char *text, size_t size, const char *ab, struct error *e);

/* Reads the text of the record OUT/runs/ab/ID.json from that file or, if there is none, from OUT/runs/ab.gz. The caller
 * frees *text. `last` keeps the pack that was read last, for the next record; NULL: for one record alone. ST_DATA:
 * there is no such record; ST_FAIL: it cannot be read, or its pack is damaged. */
enum status record_text(const char *path, struct record_pack *last, char **text, size_t *size, struct error *e);

/* Gives the path of the pack for the path of a record: OUT/runs/ab.gz for OUT/runs/ab/ID.json. ST_FAIL: too long. */
enum status pack_path(const char *path, char pack[PATH_BYTES], struct error *e);

/* Whether there is a record at that path, or in its pack. */
bool record_is_there(const char *path);

struct pack_count {
    int records, files; /* taken from files or packs, and those files or packs */
};

/* Gives each packed record its own file again, and removes the packs: of the folder `ab`, or of all if it is NULL. */
enum status store_unpack(const char *out, const char *ab, struct pack_count *count, struct error *e);

#endif
