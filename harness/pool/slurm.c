/* slurm.c - see slurm.h. */
#include "harness/pool/slurm.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/option.h"
#include "harness/pool/runner.h"
#include "harness/store/files.h"
#include "harness/store/shell.h"

#define FOLDER   "slurm"
#define NOTICE_S 120 /* how many seconds before the end of a task's time its runs begin to save */

/* Slurm sends SIGUSR1 before a task's time ends: the task saves its checkpoints and goes back into the queue. A task
 * that is cancelled or preempted gets SIGTERM, and saves them too. */
static const char body[] =
    "again=\n"
    "trap 'again=yes; kill -TERM \"$sweep\"' USR1 # the time is nearly over\n"
    "trap 'kill -TERM \"$sweep\"' TERM\n"
    "\"${command[@]}\" &\n"
    "sweep=$!\n"
    "while kill -0 \"$sweep\" 2>/dev/null; do wait \"$sweep\"; done\n"
    "wait \"$sweep\"\n"
    "status=$?\n"
    "if [ -n \"$again\" ] && [ \"$status\" -eq 143 ]; then scontrol requeue \"$SLURM_JOB_ID\"; fi\n"
    "exit \"$status\"\n";

/* Refuses control characters, because a line of #SBATCH cannot quote them. */
static enum status check_line(const char *what, const char *text, struct error *e) {
    for (const char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c))
            return fail(e, ST_USAGE, "%s has a line end or another control character, which a job's script cannot hold",
                        what);
    return ST_OK;
}

/* Refuses characters that #SBATCH may interpret, because the list of devices has no quotes around it. */
static enum status check_gres(const char *text, struct error *e) {
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(":,._-=/", *c))
            return fail(e, ST_USAGE,
                        "--gres %.60s: expected what sbatch takes, letters, digits and : , . _ - = /, for example "
                        "gpu:1; further flags go into --sbatch",
                        text);
    return ST_OK;
}

enum status slurm_script(const struct slurm_array *a, FILE *f, struct error *e) {
    char out[PATH_BYTES], here[PATH_BYTES], program[PATH_BYTES];
    TRY(own_program(program, e));
    if (!getcwd(here, sizeof here)) return fail(e, ST_FAIL, "cannot tell the working folder: %s", strerror(errno));
    bool absolute = a->out[0] == '/';
    TRY(path_format(out, sizeof out, e, "%s%s%s", absolute ? "" : here, absolute ? "" : "/", a->out));
    TRY(check_line("--out", out, e));
    TRY(check_line("--sbatch", a->sbatch, e));
    TRY(check_gres(a->gres, e));
    if (strchr(out, '"') || strchr(out, '%'))
        return fail(e, ST_USAGE, "--out %.500s: Slurm would not read \" and %% in a folder's name as they stand", out);

    fputs("#!/bin/bash\n#SBATCH --job-name=lrnn-", f);
    for (const char *c = a->name; *c; c++) fputc(isalnum((unsigned char)*c) ? *c : '-', f);
    fprintf(f, "\n#SBATCH --array=1-%" PRId64 "\n", a->tasks);
    fprintf(f, "#SBATCH --output=\"%s/" FOLDER "/%%A_%%a.log\"\n", out);
    fprintf(f, "#SBATCH --open-mode=append\n#SBATCH --requeue\n#SBATCH --signal=B:USR1@%d\n", NOTICE_S);
    if (*a->gres) fprintf(f, "#SBATCH --gres=%s\n", a->gres);
    if (*a->sbatch) fprintf(f, "#SBATCH %s\n", a->sbatch);

    fputs("cd ", f);
    shell_quote(f, here);
    fputs(" || exit 1\n", f);
    if (a->jobs == 0) /* do as many runs at a time as the task's processors allow */
        fprintf(f,
                "jobs=$((${SLURM_CPUS_ON_NODE:-1} / %" PRId64 "))\n"
                "jobs=$((jobs < 1 ? 1 : jobs > %d ? %d : jobs))\n",
                a->threads > 1 ? a->threads : 1, RUNNER_MOST_JOBS, RUNNER_MOST_JOBS);
    fputs("command=(", f);
    shell_quote(f, program);
    fprintf(f, " %s --shard \"$SLURM_ARRAY_TASK_ID/%" PRId64 "\"", a->command, a->tasks);
    if (a->jobs == 0) fputs(" -j \"$jobs\"", f);
    /* the words come after the flags, because after "--" nothing is read as a flag */
    fprintf(f, " %s)\n", a->words);
    fputs(body, f);
    return ST_OK;
}

/* --- submitting --------------------------------------------------------------------------------------------------- */

/* Replaces line feeds by blanks. */
static void join_lines(char *text) {
    for (; *text; text++)
        if (*text == '\n') *text = ' ';
}

/* Submits the script with sbatch. The standard error of sbatch is always shown, because sites print warnings there.
 * ST_FAIL: it is unknown whether the job is queued. */
static enum status hand_over(const char *script, int64_t *id, struct error *e) {
    static const char *const arguments[] = {"sbatch", "--parsable", NULL};
    struct program_words words;
    char *said = words.said;
    int code;
    struct error why;
    enum status status = program_run(arguments, NULL, script, &words, &code, &why);
    *id = status == ST_DATA || (status == ST_OK && code != 0) ? -1 : 0;
    if (status == ST_DATA)
        return fail(e, ST_DATA,
                    "--slurm: there is no sbatch in PATH; call this on a login node of the cluster, or share the work "
                    "by --shard i/n");
    if (status != ST_OK) return fail(e, status, "--slurm: %s", why.text);
    if (code != 0) {
        const char *reason = *words.complained ? words.complained : *said ? said : "without a reason";
        join_lines(words.complained);
        join_lines(said);
        return fail(e, ST_USAGE, "--slurm: sbatch refuses the job: %.600s", reason);
    }
    if (*words.complained) fprintf(stderr, "%s\n", words.complained);
    join_lines(said);
    said[strcspn(said, ";")] = 0; /* "17;cluster" */
    if (parse_int64(said, id)) return ST_OK;
    return fail(
        e, ST_FAIL,
        "--slurm: sbatch answers \"%.300s\" instead of a job's number, and exits 0; squeue says whether the job "
        "is queued",
        said);
}

enum status slurm_submit(const struct slurm_array *a, int64_t *id, struct error *e) {
    char folder[PATH_BYTES], path[PATH_BYTES];
    struct printed script;
    *id = -1;
    TRY(printed_begin(&script, "a script", e));
    TRY(printed_end(&script, slurm_script(a, script.f, e), "a script", e));
    enum status status = path_format(folder, sizeof folder, e, "%s/" FOLDER, a->out);
    if (status == ST_OK) status = make_folder(folder, e);
    if (status == ST_OK) {
        status = hand_over(script.text, id, e);
        if (*id < 0) rmdir(folder); /* does nothing if the folder is not empty */
    }
    if (status == ST_OK) status = path_format(path, sizeof path, e, "%s/%" PRId64 ".sh", folder, *id);
    if (status == ST_OK) status = write_file_atomic(path, script.text, script.size, e);
    free(script.text);
    return status;
}
