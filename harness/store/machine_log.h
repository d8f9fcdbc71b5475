/* machine_log.h - machines.csv: the machines that rows of the other tables name. */
#ifndef LRNN_HARNESS_MACHINE_LOG_H
#define LRNN_HARNESS_MACHINE_LOG_H

#include "core/status.h"
#include "harness/store/machine.h"

/* OUT/machines.csv: adds this machine's row unless it is there. */
enum status machines_export(const char *out, const struct machine *m, struct error *e);

#endif
