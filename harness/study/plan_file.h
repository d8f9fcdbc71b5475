/* plan_file.h - files that list the runs for a table or figure of a paper (papers/NAME.plan), or the default runs of a
 * task (profiles/SUITE.plan; harness/study/profile.h). Both kinds are built into the program.
 *
 * Lines are key=value. A line that begins with a blank continues the value of the line before it. '#' begins a comment
 * line, in which a plan names its sources. The keys are
 *   title link                         text for people
 *   paper source                       the paper's arXiv id, and its table as named in results/published.csv: ours are
 *                                      compared with its numbers
 *   table                              "ours" means that the table is not in the paper; runs with a setting that the
 *                                      paper's table lacks get no verdict (harness/rows/setting.h)
 *   base                               another plan, by name or by a path relative to this plan's folder. Its lines
 *                                      apply to keys that this plan does not set. epochs here replace steps there, and
 *                                      steps replace epochs. title, link, note and expect are not taken over
 *   profile                            the profile to use unless the command line names one
 *   tasks models lr seeds variants     like the words and flags of `lrnn sweep`
 *   rows columns lengths overall       the layout of the paper's table: harness/rows/paper_cells.h
 *   protocol                           how the paper computes a number from its runs
 *   note                               text below the table: our choices where the paper leaves something open
 *   differs differs.MODEL              how the plan's runs differ from the paper's, for all runs or for one model's
 *   measure                            "accuracy", or "speed": then nothing is trained, and the training step is timed
 *                                      for each number of the table
 *   task.KEY model.KEY                 values of an option, for each task or model that has it
 *   any flag of a run                  one value or several
 *   expect FIGURE >= BOUND             what `lrnn gate` expects of the plan's runs (harness/gate/expect.h); the line
 *                                      has no '=' after its key
 * A key after "PROFILE." applies only under that profile, and overrules the plain key. PROFILE.epochs also overrules
 * plain steps, and PROFILE.steps plain epochs. */
#ifndef LRNN_HARNESS_STUDY_PLAN_FILE_H
#define LRNN_HARNESS_STUDY_PLAN_FILE_H

#include "core/label.h"
#include "core/values.h"
#include "harness/store/files.h"

#define PLAN_FILE_MOST_BYTES 65536
#define PLAN_NAME_BYTES      64
#define PLAN_PAPERS          "papers/"
#define PLAN_PROFILES        "profiles/"
#define PLAN_EXPECT          "expect." /* followed by the line's number: the key of a line "expect ..." */

/* A parsed plan: its lines in order, as pairs. Keys still have their profile in front. */
struct plan_file {
    char name[PLAN_NAME_BYTES]; /* "hlru-table2" */
    struct label lines;
};

/* Parses the text of a plan. `name` is for messages. ST_USAGE, with the line: it is not key=value, its key is unknown
 * (the nearest is suggested) or not for profiles, its model is unknown, its key is given twice or without a value, it
 * has bytes that are not text, or the text is too long. */
enum status plan_file_parse(struct plan_file *p, const char *name, const char *text, size_t size, struct error *e);

/* Reads a plan and the plans on which it is based. `name` is a built-in plan ("profiles/s3", "hlru-table2") or a path,
 * which has a '/' or ends with ".plan". ST_DATA: there is no such plan, or the file cannot be read; ST_USAGE: as above,
 * or the bases form a circle, or all texts together are too long. */
enum status plan_file_read(struct plan_file *p, const char *name, struct error *e);

/* Returns the value of a key under a profile; NULL: the plan does not set it. */
const char *plan_file_get(const struct plan_file *p, const char *profile, const char *key);

/* Returns text number i, from 0, about a difference between the plan's runs under a profile and the paper's runs.
 * *model is the model whose runs differ, or "" for all models. NULL: there are fewer texts. */
const char *plan_file_differs(const struct plan_file *p, const char *profile, int i, const char **model);

/* Lists every key under that profile once, with its value. It leaves out texts for people, the base and the profile. */
enum status plan_file_settings(const struct plan_file *p, const char *profile, struct label *settings, struct error *e);

/* Parses a list of seeds: "5" means 1 to 5; "3,7" and "4..9" are lists. `origin` says in messages where the text is
 * from. Call texts_free also after an error. ST_USAGE: not a list, or a seed that is given twice or that no run may
 * have. */
enum status seeds_parse(const char *text, const char *origin, struct texts *seeds, struct error *e);

/* Returns name number i, from 0, of a folder's built-in plans in sorted order; NULL past the end. */
const char *plan_file_built_in(const char *folder, int i);

/* Whether a file in profiles/ has a profile of that name. */
bool plan_file_is_profile(const char *name);

#endif
