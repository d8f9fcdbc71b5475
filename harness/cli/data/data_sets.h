/* data_sets.h - the sub-commands of `lrnn data` on released data. */
#ifndef LRNN_HARNESS_CLI_DATA_DATA_SETS_H
#define LRNN_HARNESS_CLI_DATA_DATA_SETS_H

#include "harness/cli/cli.h"

/* Rows of `lrnn data`: examples of a task, and released data. */
enum {
    DATA_SHOW,
    DATA_STATS,
    DATA_DUMP,
    DATA_CHECK,
    DATA_LIST,
    DATA_URLS,
    DATA_FETCH,
    DATA_IMPORT,
    DATA_VERIFY,
    DATA_PATH,
    DATA_COMMANDS,
};
extern const struct command data_commands[DATA_COMMANDS + 1]; /* in cmd_data.c */

/* Functions for `run` of these commands. ST_USAGE: no such data set; ST_DATA: files that are missing or damaged. */
enum status data_check(int argc, char **argv, struct error *e);
enum status data_fetch(int argc, char **argv, struct error *e);
enum status data_sets_list(int argc, char **argv, struct error *e);
enum status data_sets_urls(int argc, char **argv, struct error *e);
enum status data_sets_import(int argc, char **argv, struct error *e);
enum status data_sets_verify(int argc, char **argv, struct error *e);
enum status data_sets_path(int argc, char **argv, struct error *e);

struct dataset;

/* Imports the files in a folder and prints what was imported. Errors as dataset_import. */
enum status data_import(const struct dataset *d, const char *folder, struct error *e);

#endif
