/* text_files.h - reads the released texts of the Long Range Arena.
 *
 * Reviews: folders train/pos, train/neg, test/pos, test/neg of files NUMBER_RATING.txt of one text each (aclImdb),
 * label 1 in pos, taken in the order of their names. Entries of kind "texts": the bytes of the text, which its length
 * counts.
 *
 * Pairs: a line "label<TAB>id<TAB>id<TAB>text<TAB>text", the label 0, 1, 0.0 or 1.0; quotes are characters like others.
 * Entries of kind "pairs": the bytes of each text as numbers of 4 bytes, then both; the length is the longer one's. */
#ifndef LRNN_TASKS_DATA_TEXT_FILES_H
#define LRNN_TASKS_DATA_TEXT_FILES_H

#include "core/batch.h"
#include "tasks/data/entry_set.h"
#include "tasks/data/text_source.h"

#define TEXTS_KIND "texts"
#define PAIRS_KIND "pairs"
#define TEXT_BYTES (1 << 24) /* of a text at most */

/* Adds all texts of FOLDER/PART/pos and FOLDER/PART/neg. Files of other names are counted in count->passed_over.
 * ST_DATA: the folder is missing or has no text, or a text is empty or longer than TEXT_BYTES. */
enum status reviews_read(const char *folder, enum split split, struct entry_pack *pack, struct read_count *count,
                         struct error *e);

/* Adds all pairs of a file. ST_DATA with file and line. */
enum status pairs_read(struct byte_source *s, enum split split, struct entry_pack *pack, struct error *e);

#endif
