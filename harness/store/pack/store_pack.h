/* store_pack.h - packs the records of a folder (record_pack.h). */
#ifndef LRNN_HARNESS_STORE_PACK_STORE_PACK_H
#define LRNN_HARNESS_STORE_PACK_STORE_PACK_H

#include "harness/store/pack/record_pack.h"

/* Packs the records of OUT into its packs, after a check of each, and removes their files. Attempts that were set aside
 * stay files. ST_DATA: a record is damaged; ST_FAIL: a process does a run there, or OUT cannot be written. */
enum status store_pack(const char *out, struct pack_count *count, struct error *e);

#endif
