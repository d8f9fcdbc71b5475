/* cmd_verify.c - `lrnn verify`: compares layers with case files. */
#include <math.h>
#include <stdlib.h>

#include "harness/cli/cli.h"
#include "harness/run/verify.h"
#include "kernels/kernel.h"

struct verify_flags {
    char device[OPTION_TEXT], kernel[OPTION_TEXT];
    bool quiet;
};

static const struct option flags[] = {
    {"device", OPT_TEXT_FIELD, offsetof(struct verify_flags, device), "cpu", 0, 0, NULL,
     "processor to run on: cpu, cuda or cuda:N", 0},
    {"kernel", OPT_TEXT_FIELD, offsetof(struct verify_flags, kernel), "", 0, 0, NULL,
     "use this kernel, or 'reference'; mixers to which it does not apply are skipped", 0},
    {"quiet", OPT_BOOL, offsetof(struct verify_flags, quiet), "no", 0, 0, NULL,
     "print only failures, a line per mixer, and the total", 0},
    {0},
};

static const char *kernel_name(const void *list, int i) {
    return i == 0 ? "reference" : ((const struct kernel *const *)list)[i - 1]->name;
}

static void add_to(struct verify_total *sum, const struct verify_total *file) {
    sum->model = file->model;
    sum->files += file->files;
    sum->tensors += file->tensors;
    sum->failed += file->failed;
    sum->skipped += file->skipped;
    if (isnan(file->worst) || file->worst > sum->worst) sum->worst = file->worst;
}

/* Processes every file, even after failures. The last of `sums` is the total; the others are one per mixer. */
static enum status verify_all(const char *const *files, int n, const struct verify_flags *f, const struct place *place,
                              struct verify_total *sums, int n_mixers, struct error *e) {
    struct verify_total *total = &sums[n_mixers];
    int bad = 0;
    for (int i = 0; i < n; i++) {
        struct verify_total file = {.quiet = f->quiet};
        struct error bad_file = {ST_OK, ""};
        if (verify_file(files[i], f->kernel, place, &file, stdout, &bad_file) == ST_OK) {
            for (int m = 0; m < n_mixers; m++)
                if (model_list()[m] == file.model) add_to(&sums[m], &file);
            add_to(total, &file);
            continue;
        }
        fflush(stdout);
        fprintf(stderr, "lrnn: %s\n", bad_file.text);
        bad++;
    }
    for (const struct verify_total *t = sums; t < total; t++) {
        if (!t->model) continue;
        printf("mixer %s %d files %d tensors worst %.1e", t->model->name, t->files, t->tensors, t->worst);
        if (t->failed) printf(", %d failed", t->failed);
        if (t->skipped) printf(", %d skipped", t->skipped);
        printf("\n");
    }
    printf("verified %d files, %d tensors, worst %.3e\n", total->files, total->tensors, total->worst);
    if (bad) return fail(e, ST_USAGE, "%d of %d files could not be verified", bad, n);
    if (total->failed)
        return fail(e, ST_FAIL, "%d of %d tensors differ by more than %g", total->failed, total->tensors, VERIFY_BOUND);
    return ST_OK;
}

static enum status run(int argc, char **argv, struct error *e) {
    struct verify_flags f;
    const char *files[argc];
    struct flag_set set = {flags, &f};
    struct cli cli = {
        .command = &command_verify, .sets = &set, .n_sets = 1, .positional = files, .max_positional = argc};
    TRY(options_default(flags, &f, e));
    TRY(cli_parse(&cli, argc, argv, e));
    struct place place;
    int n_mixers = 0, n_kernels = 0, index;
    while (model_list()[n_mixers]) n_mixers++;
    while (kernel_list()[n_kernels]) n_kernels++;
    if (*f.kernel) TRY(name_choose("kernel", f.kernel, n_kernels + 1, kernel_name, kernel_list(), &index, e));
    if (cli.n_positional == 0)
        return fail(e, ST_USAGE, "verify: say which case files; usage: lrnn %s", command_verify.usage);
    struct verify_total *sums = calloc((size_t)n_mixers + 1, sizeof *sums);
    if (!sums) return fail(e, ST_MEMORY, "no memory for the sums of %d mixers", n_mixers);
    enum status status = place_open(&place, f.device, e);
    if (status == ST_OK) status = verify_all(files, cli.n_positional, &f, &place, sums, n_mixers, e);
    place_close(&place);
    free(sums);
    return status;
}

const struct command command_verify = {
    .name = "verify",
    .usage = "verify FILE... [flags]",
    .summary = "compare mixers with case files, forward and every gradient (docs/extend.md)",
    .run = run,
};
