/* own_file.h - which files of an output folder this program wrote. A folder may hold files of other people; what is
 * written anew at every call (tables, pictures) takes the place of an earlier one of ours alone. */
#ifndef LRNN_HARNESS_STORE_OWN_FILE_H
#define LRNN_HARNESS_STORE_OWN_FILE_H

#include "core/status.h"

/* ST_USAGE, with what to do: a file of that name is there and not ours, or, with the reason, nobody can tell. A table
 * (.csv) of ours begins with the column `schema`, machines.csv with `machine_id`, or ends before that; a picture has
 * the mark below. */
enum status own_file_check(const char *path, struct error *e);

/* Puts our mark into a picture, where it changes nothing that is seen: a text chunk of a PNG, a comment after the end
 * of an SVG or a PDF. ST_FAIL. */
enum status own_file_mark(const char *path, struct error *e);

#endif
