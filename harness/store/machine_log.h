/* machine_log.h - machines.csv: the machines that rows of the other tables name. */
#ifndef LRNN_HARNESS_STORE_MACHINE_LOG_H
#define LRNN_HARNESS_STORE_MACHINE_LOG_H

#include <stdbool.h>

#include "core/status.h"
#include "harness/store/machine.h"

/* OUT/machines.csv: adds this machine's row unless it is there. */
enum status machines_export(const char *out, const struct machine *m, struct error *e);

/* Whether OUT/machines.csv has that machine's row of that epoch. */
bool machines_have(const char *out, const char *machine_id, const char *env_epoch);

/* Adds the rows of FROM/machines.csv that OUT has not, if there is such a file. ST_DATA: it cannot be read; ST_FAIL. */
enum status machines_merge(const char *from, const char *out, struct error *e);

/* Whether a folder's file, if there is one, can be taken over and added to: errors as table_check. */
enum status machines_check(const char *out, struct error *e);

#endif
