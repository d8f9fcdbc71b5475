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

/* The rows of `lrnn data`: of a task's examples, and of released data. */
enum data_command {
    DATA_SHOW,
    DATA_STATS,
    DATA_DUMP,
    DATA_LIST,
    DATA_URLS,
    DATA_IMPORT,
    DATA_VERIFY,
    DATA_PATH,
    DATA_COMMANDS
};

/* Those of released data, for lists of commands. */
#define DATA_SET_COMMANDS                                                                                              \
    [DATA_LIST] = {.name = "data list",                                                                                \
                   .usage = "data list",                                                                               \
                   .summary = "released data that tasks read, and what of it is imported",                             \
                   .run = data_sets_list},                                                                             \
    [DATA_URLS] = {.name = "data urls",                                                                                \
                   .usage = "data urls [NAME]",                                                                        \
                   .summary = "address, size and SHA-256 of each file",                                                \
                   .run = data_sets_urls},                                                                             \
    [DATA_IMPORT] = {.name = "data import",                                                                            \
                     .usage = "data import NAME FOLDER",                                                               \
                     .summary = "check the files in a folder and store them in the cache folder",                      \
                     .run = data_sets_import},                                                                         \
    [DATA_VERIFY] = {.name = "data verify",                                                                            \
                     .usage = "data verify [NAME]",                                                                    \
                     .summary = "whether what was imported is whole",                                                  \
                     .run = data_sets_verify},                                                                         \
    [DATA_PATH] = {.name = "data path",                                                                                \
                   .usage = "data path NAME",                                                                          \
                   .summary = "the file that an import writes and tasks read",                                         \
                   .run = data_sets_path}

#endif
