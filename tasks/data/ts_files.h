/* ts_files.h - reads time series in the archive's text format (.ts): lines with # are comments, lines with @ the header
 * (keys in any case: @dimensions, @univariate, @seriesLength, @classLabel true A B ..., @data), then a case per line:
 * dimensions separated by ':', values by ',', the label after the last ':'.
 *
 * A payload is the case's values as 4-byte floats, dimension fastest; its length counts points. A label is the rank of
 * its name among the header's names, sorted by bytes. */
#ifndef LRNN_TASKS_DATA_TS_FILES_H
#define LRNN_TASKS_DATA_TS_FILES_H

#include "tasks/data/entry_set.h"
#include "tasks/data/text_source.h"

#define TS_KIND       "series"
#define TS_DIMENSIONS 4096
#define TS_POINTS     (1 << 24) /* of a case */
#define TS_VALUES     (1 << 26) /* of a case */
#define TS_LABELS     1024
#define TS_NAME       64

/* Adds the cases of a file. The first file sets width and labels of the set; later files must have the same. ST_DATA
 * with file and line: a malformed header or case, missing values, values that are no finite floats, dimensions of
 * different lengths, a label outside the list, no case at all. */
enum status ts_read(struct byte_source *s, enum split split, struct entry_pack *pack, struct error *e);

#endif
