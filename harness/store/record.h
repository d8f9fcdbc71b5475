/* record.h - the record of one run, as data: what record_files.h keeps as the truth, one immutable JSON file a run.
 *
 * schema.h describes every field: the JSON writer and reader, runs.csv and `lrnn schema runs` walk that table. */
#ifndef LRNN_HARNESS_RECORD_H
#define LRNN_HARNESS_RECORD_H

