/* plan_file.h - files that say which runs a table or figure of a paper is made of (papers/NAME.plan), or which ones a
 * task has by default (profiles/SUITE.plan; harness/study/profile.h). Both kinds are built into the program.
 *
 * Lines are key=value; one that begins with a blank goes on with the value before it; '#' begins a comment line, in
 * which a plan names its sources. The keys are
 *   title link                         what it is: for people
 *   paper source                       whose numbers stand beside ours: the paper's arXiv id, and its table as
 *                                      results/published.csv calls it
 *   table                              ours: the table is none of the paper's; runs of which the paper's table does not
 *                                      have the setting get no verdict (harness/rows/setting.h)
 *   base                               another plan, by name or by a path from this one's folder, whose lines hold
 *                                      where this one has none of that key, nor says in epochs what the base says in
 *                                      steps, or in steps what it says in epochs; title, link and note are each plan's
 *                                      own
 *   profile                            the one that holds unless the command line names another
 *   tasks models lr seeds variants     as the words and flags of `lrnn sweep`
 *   rows columns lengths overall       of the paper's table: harness/rows/paper_cells.h
 *   protocol                           how the paper makes a number of its runs
 *   note                               what stands below the table: what the paper leaves open, and is ours here
 *   differs differs.MODEL              in what the plan's runs are not the paper's, all runs or a model's runs
 *   measure                            accuracy, or speed: nothing is trained, each cell's training step is timed
 *   task.KEY model.KEY                 values of an option, of each task or model that has it
 *   any flag of a run                  a value or several
 *   expect FIGURE >= BOUND             without a '=' after the key: what `lrnn gate` asks of the plan's runs
 *                                      (harness/gate/expect.h); each plan's own
 * A key after "PROFILE." holds under that profile alone, and before the same key without; epochs there before steps
 * without, and the other way round. */
#ifndef LRNN_HARNESS_STUDY_PLAN_FILE_H
#define LRNN_HARNESS_STUDY_PLAN_FILE_H

#include "core/label.h"
#include "harness/store/files.h"

#define PLAN_FILE_MOST_BYTES 65536
#define PLAN_NAME_BYTES      64
#define PLAN_PAPERS          "papers/"
#define PLAN_PROFILES        "profiles/"
#define PLAN_EXPECT          "expect." /* and its line's number: the key of what a line expects */

/* A plan as it was read: its lines, in their order, as pairs; the keys still have their profiles in front. */
struct plan_file {
    char name[PLAN_NAME_BYTES]; /* "hlru-table2" */
    struct label lines;
};

/* Reads the text of a plan. `name` stands in messages. ST_USAGE with the line: one that is no pair, a key that is none
 * (with the nearest) or none of a profile's, a model that is none, one given twice, one without a value, bytes that are
 * no text, or too many of them. */
enum status plan_file_parse(struct plan_file *p, const char *name, const char *text, size_t size, struct error *e);

/* Reads a plan and the plans that it is based on. `name` is a plan that is built in, "profiles/s3" or "hlru-table2",
 * else a file's path: it has a '/' or ends with ".plan". ST_DATA: there is none of that name, or it is no file that can
 * be read; ST_USAGE: as above, or the plans are based on each other in a circle, or are too long together. */
enum status plan_file_read(struct plan_file *p, const char *name, struct error *e);

/* The value of a key under a profile; NULL: the plan does not say. */
const char *plan_file_get(const struct plan_file *p, const char *profile, const char *key);

/* Difference number i, from 0, of the plan's runs under a profile from the paper's: its text, and the model whose runs
 * it is of, "" being all. NULL: there are fewer. */
const char *plan_file_differs(const struct plan_file *p, const char *profile, int i, const char **model);

/* Every key under that profile, once, with its value; what is for people, the base and the profile are left out. */
enum status plan_file_settings(const struct plan_file *p, const char *profile, struct label *settings, struct error *e);

/* "5" as 1 to 5, else a list such as "3,7" or "4..9"; `origin` says where it stands. The list is the caller's to free;
 * NULL after an error. ST_USAGE: no such list, a seed twice, below 0. */
enum status seeds_parse(const char *text, const char *origin, int64_t **seeds, int *n, struct error *e);

/* Name number i, from 0, of the plans of a folder that are built in, sorted; NULL past the end. */
const char *plan_file_built_in(const char *folder, int i);

/* Whether a file in profiles/ has a profile of that name. */
bool plan_file_is_profile(const char *name);

#endif
