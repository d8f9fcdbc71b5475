/* export_log.h - a run's record as other tools read it: TensorBoard's event file, MLPerf's log lines. */
#ifndef LRNN_HARNESS_CLI_EXPORT_LOG_H
#define LRNN_HARNESS_CLI_EXPORT_LOG_H

#include "harness/store/record.h"

/* A file for TensorBoard, which wants "tfevents" in its name: loss and the task's metric on validation, rate and
 * gradient norm at each evaluation. The format is TFRecord (length, masked CRC-32C, bytes, masked CRC-32C) of
 * tensorflow.Event messages. ST_FAIL with path and reason. */
enum status export_tensorboard(const struct run_record *r, const char *path, struct error *e);

/* ":::MLLOG {...}" lines of MLPerf's logging (mlcommons/logging, mllog): what was trained and how, eval_accuracy at
 * each validation, run_start and run_stop. */
enum status export_mllog(const struct run_record *r, const char *path, struct error *e);

#endif
