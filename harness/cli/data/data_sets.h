/* data_sets.h - the sub-commands of `lrnn data` on released data: list, urls, import, verify, path. */
#ifndef LRNN_HARNESS_CLI_DATA_DATA_SETS_H
#define LRNN_HARNESS_CLI_DATA_DATA_SETS_H

#include "harness/cli/cli.h"

/* Each is the `run` of a command. ST_USAGE: no such data set; ST_DATA: files that are missing or not what they should
 * be. */
enum status data_sets_list(int argc, char **argv, struct error *e);
enum status data_sets_urls(int argc, char **argv, struct error *e);
enum status data_sets_import(int argc, char **argv, struct error *e);
enum status data_sets_verify(int argc, char **argv, struct error *e);
enum status data_sets_path(int argc, char **argv, struct error *e);

/* Their rows, for lists of commands. */
#define DATA_SET_COMMANDS                                                                                              \
    {"data list",    "data list", "released data that tasks read, and what of it is imported",                         \
     data_sets_list, false,       NULL},                                                                               \
        {"data urls", "data urls [NAME]", "address, size and SHA-256 of each file", data_sets_urls, false, NULL},      \
        {"data import",                                                                                                \
         "data import NAME FOLDER",                                                                                    \
         "check the files in a folder and store them in the cache folder",                                             \
         data_sets_import,                                                                                             \
         false,                                                                                                        \
         NULL},                                                                                                        \
        {"data verify", "data verify [NAME]", "whether what was imported is whole", data_sets_verify, false, NULL},    \
        {"data path", "data path NAME", "the file that an import writes and tasks read", data_sets_path, false, NULL},

#endif
