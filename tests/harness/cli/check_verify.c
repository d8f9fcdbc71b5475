/* check_verify.c - `lrnn verify` on the case files, whole and doctored.
 *
 * Runs the program that LRNN names (and LRNN_F64), from the root of the repository. */
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/file/safetensors.h"
#include "models/model.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#define CASE   "tests/cases/00-bdlru-blocks3-m4.safetensors"
#define CASES  "tests/cases/*-lstm-*.safetensors tests/cases/*-lru-*.safetensors"
#define N_LSTM 2

/* The case files of the mixers that are listed: "NN-MIXER-..." and "wide-NN-MIXER-...", the latter with several heads a
 * part and several chunks. The caller frees the glob. */
static void find_cases(glob_t *found) {
    int flags = 0;
    for (const struct model *const *m = model_list(); *m; m++) {
        char pattern[128];
        snprintf(pattern, sizeof pattern, "tests/cases/*[0-9][0-9]-%s-*.safetensors", (*m)->name);
        if (glob(pattern, flags, NULL, found) == 0) flags = GLOB_APPEND;
    }
    ck_assert_msg(flags == GLOB_APPEND, "no case files under tests/cases");
}

static void verify_everything(const char *program, const char *flags, double bound) {
    glob_t found;
    char arguments[3500];
    find_cases(&found);
    for (size_t first = 0; first < found.gl_pathc; first += 20) {
        size_t n = found.gl_pathc - first < 20 ? found.gl_pathc - first : 20;
        int used = snprintf(arguments, sizeof arguments, "verify%s", flags);
        for (size_t i = 0; i < n; i++)
            used += snprintf(arguments + used, sizeof arguments - (size_t)used, " %s", found.gl_pathv[first + i]);
        expect_status(run_program(program_folder, program, arguments), 0, arguments);
        int files, tensors;
        double worst;
        const char *last = strstr(out, "\nverified ");
        ck_assert_msg(last && sscanf(last, "\nverified %d files, %d tensors, worst %lf", &files, &tensors, &worst) == 3,
                      "%s", out);
        ck_assert_int_eq(files, (int)n);
        ck_assert_int_ge(tensors, 4 * files);
        ck_assert(worst > 0 && worst <= bound);
    }
    globfree(&found);
}

/* Chunkwise kernels compute the cases too small for them when they are named, forward and backward. */
static void verify_chunkwise(const char *program, double bound) {
    static const char *const lines[] = {
        "verify --kernel scan_outer_chunk tests/cases/23-mamba2-state4-headdim4.safetensors "
        "tests/cases/27-plstm-heads2.safetensors tests/cases/28-plstm-heads2-gatesbias.safetensors",
        "verify --kernel scan_delta_chunk tests/cases/24-deltanet-heads2.safetensors "
        "tests/cases/25-deltaproduct-heads2-headdim3-steps4.safetensors "
        "tests/cases/26-deltaproduct-heads2-headdim4-steps2-forgetyes-outgateyes.safetensors"};
    for (int i = 0; i < 2; i++) {
        int files, tensors;
        double worst;
        expect_status(run_program(program_folder, program, lines[i]), 0, lines[i]);
        const char *last = strstr(out, "\nverified ");
        ck_assert_msg(last && sscanf(last, "\nverified %d files, %d tensors, worst %lf", &files, &tensors, &worst) == 3,
                      "%s", out);
        ck_assert_int_eq(files, 3);
        ck_assert(worst > 0 && worst <= bound);
    }
}

START_TEST(verify_passes_with_chunkwise_kernels) {
    verify_chunkwise(named_program("LRNN", "./lrnn"), 1e-4);
    verify_chunkwise(named_program("LRNN_F64", "./lrnn-f64"), 1e-9);
}
END_TEST

START_TEST(verify_passes_all_cases) {
    verify_everything(named_program("LRNN", "./lrnn"), "", 1e-4);
    verify_everything(named_program("LRNN", "./lrnn"), " --kernel reference", 1e-4);
}
END_TEST

START_TEST(verify_passes_all_cases_in_double) {
    verify_everything(named_program("LRNN_F64", "./lrnn-f64"), "", 1e-9);
    verify_everything(named_program("LRNN_F64", "./lrnn-f64"), " --kernel reference", 1e-9);
}
END_TEST

#define MAX_TENSORS 16

/* A case taken apart, to be changed and written again. */
struct doctored {
    struct safetensors file;
    struct st_source sources[MAX_TENSORS + 1];
    struct st_pair pairs[8];
    double *values[MAX_TENSORS + 1];
    int n, n_pairs;
    char path[SCRATCH_BYTES + 32];
};

static void take_apart(struct doctored *d) {
    struct error e = {ST_OK, ""};
    ck_assert_msg(safetensors_read(&d->file, CASE, &e) == ST_OK, "%s", e.text);
    ck_assert_int_le(d->file.n, MAX_TENSORS);
    ck_assert_int_le(d->file.n_metadata, 8);
    d->n = d->file.n;
    d->n_pairs = d->file.n_metadata;
    for (int i = 0; i < d->n_pairs; i++) d->pairs[i] = d->file.metadata[i];
    for (int i = 0; i < d->n; i++) {
        const struct st_tensor *t = &d->file.tensors[i];
        d->values[i] = malloc((size_t)t->count * sizeof(double));
        for (int64_t j = 0; j < t->count; j++) d->values[i][j] = st_value(t, j);
        d->sources[i] = (struct st_source){.name = t->name, .rank = t->rank, .f64 = true, .values = d->values[i]};
        memcpy(d->sources[i].dims, t->dims, sizeof t->dims);
    }
    snprintf(d->path, sizeof d->path, "%s/case.safetensors", program_folder);
}

static int find_source(const struct doctored *d, const char *name) {
    for (int i = 0; i < d->n; i++)
        if (strcmp(d->sources[i].name, name) == 0) return i;
    ck_abort_msg("the case has no tensor %s", name);
    return -1;
}

static void set_pair(struct doctored *d, const char *key, const char *value) {
    for (int i = 0; i < d->n_pairs; i++)
        if (strcmp(d->pairs[i].key, key) == 0) d->pairs[i].value = value;
}

static void expect_verify(struct doctored *d, int status, const char *in_out, const char *in_err) {
    struct error e = {ST_OK, ""};
    char arguments[256];
    enum status written = safetensors_write(d->path, d->sources, d->n, d->pairs, d->n_pairs, &e);
    ck_assert_msg(written == ST_OK, "%s", e.text);
    snprintf(arguments, sizeof arguments, "verify %s %s", d->path, CASE);
    expect_status(run(arguments), status, arguments);
    if (in_out) expect_text(out, in_out, arguments);
    if (in_err) expect_text(err, in_err, arguments);
    expect_text(out, CASE " y ", arguments); /* the other file is processed all the same */
    for (int i = 0; i < d->file.n; i++) free(d->values[i]);
    safetensors_free(&d->file);
}

START_TEST(verify_accepts_a_copy) {
    struct doctored d;
    take_apart(&d);
    expect_verify(&d, 0, "verified 2 files, 12 tensors", NULL);
}
END_TEST

START_TEST(verify_finds_a_wrong_gradient) {
    struct doctored d;
    take_apart(&d);
    d.values[find_source(&d, "g.v.weight")][3] += 1;
    expect_verify(&d, 1, "g.v.weight ", "1 of 12 tensors");
    expect_text(out, "FAIL", "verify");
}
END_TEST

START_TEST(verify_fails_what_is_not_finite) {
    struct doctored d;
    take_apart(&d);
    d.values[find_source(&d, "y")][0] = NAN;
    expect_verify(&d, 1, " y nan FAIL", "1 of 12 tensors");
    expect_text(out, "worst nan", "verify");
}
END_TEST

START_TEST(verify_names_a_missing_tensor) {
    struct doctored d;
    take_apart(&d);
    d.sources[find_source(&d, "p.gates.bias")] = d.sources[d.n - 1];
    d.n--;
    expect_verify(&d, ST_USAGE, NULL, "p.gates.bias is missing");
}
END_TEST

START_TEST(verify_names_an_extra_tensor) {
    struct doctored d;
    take_apart(&d);
    d.sources[d.n] = d.sources[find_source(&d, "x")];
    d.sources[d.n++].name = "p.other";
    expect_verify(&d, ST_USAGE, NULL, "p.other is not one of mixer bdlru");
}
END_TEST

START_TEST(verify_names_a_misshapen_tensor) {
    struct doctored d;
    take_apart(&d);
    struct st_source *s = &d.sources[find_source(&d, "p.gates.weight")];
    int64_t rows = s->dims[0];
    s->dims[0] = s->dims[1];
    s->dims[1] = rows;
    ck_assert_int_ne(s->dims[0], s->dims[1]);
    expect_verify(&d, ST_USAGE, NULL, "tensor p.gates.weight is (");
}
END_TEST

START_TEST(verify_names_an_unknown_mixer) {
    struct doctored d;
    take_apart(&d);
    set_pair(&d, "mixer", "bdlur");
    expect_verify(&d, ST_USAGE, NULL, "unknown model 'bdlur'");
}
END_TEST

START_TEST(verify_wants_options_where_they_belong) {
    struct doctored d;
    take_apart(&d);
    set_pair(&d, "mixer", "bdlru:m=2");
    expect_verify(&d, ST_USAGE, NULL, "mixer bdlru:m=2 has its options in config, not in mixer");
}
END_TEST

START_TEST(verify_names_an_unknown_key) {
    struct doctored d;
    take_apart(&d);
    set_pair(&d, "config", "blocks=3 n=4");
    expect_verify(&d, ST_USAGE, NULL, "mixer bdlru has no option 'n'; `lrnn info bdlru` lists what there is");
}
END_TEST

START_TEST(verify_names_what_a_case_lacks) {
    struct doctored d;
    take_apart(&d);
    for (int i = 0; i < d.n_pairs; i++)
        if (!strcmp(d.pairs[i].key, "mixer")) d.pairs[i] = d.pairs[--d.n_pairs];
    expect_verify(&d, ST_USAGE, NULL, "not a case file: __metadata__ lacks mixer");
    take_apart(&d);
    d.sources[find_source(&d, "x")] = d.sources[d.n - 1];
    d.n--;
    expect_verify(&d, ST_USAGE, NULL, "tensor x is missing");
}
END_TEST

START_TEST(verify_names_what_does_not_fit_the_config) {
    struct doctored d;
    take_apart(&d);
    set_pair(&d, "config", "blocks=3 m=5");
    expect_verify(&d, ST_USAGE, NULL, "expected (");
}
END_TEST

START_TEST(verify_rejects_a_torn_file) {
    char path[SCRATCH_BYTES + 32], arguments[256];
    size_t size;
    char *bytes = slurp(CASE, &size);
    snprintf(path, sizeof path, "%s/torn.safetensors", program_folder);
    spill(path, bytes, size - 8);
    free(bytes);
    snprintf(arguments, sizeof arguments, "verify %s %s/absent %s", path, program_folder, CASE);
    expect_status(run(arguments), ST_USAGE, arguments);
    expect_text(out, "verified 1 files, 6 tensors", arguments);
    expect_text(err, "2 of 3 files could not be verified", arguments);
}
END_TEST

START_TEST(verify_skips_where_a_kernel_does_not_apply) {
    const char *arguments = "verify --kernel scan_lstm_ref " CASE;
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "y skipped: scan_lstm_ref", arguments);
    expect_text(out, "verified 0 files, 0 tensors", arguments);
}
END_TEST

START_TEST(verify_sums_up_by_mixer) {
    int lstm = 0, lru = 0, lstm_tensors, lru_tensors;
    double lstm_worst, lru_worst, worst;
    expect_status(run("verify " CASES), 0, "verify " CASES);
    const char *a = strstr(out, "\nmixer lru "), *b = strstr(out, "\nmixer lstm "), *total = strstr(out, "\nverified ");
    ck_assert_msg(a && b && a < total && b < total, "%s", out);
    ck_assert_int_eq(sscanf(a, "\nmixer lru %d files %d tensors worst %lf\n", &lru, &lru_tensors, &lru_worst), 3);
    ck_assert_int_eq(sscanf(b, "\nmixer lstm %d files %d tensors worst %lf\n", &lstm, &lstm_tensors, &lstm_worst), 3);
    ck_assert_int_eq(lstm, N_LSTM);
    int files, tensors;
    ck_assert_int_eq(sscanf(total, "\nverified %d files, %d tensors, worst %lf", &files, &tensors, &worst), 3);
    ck_assert(files == lstm + lru && tensors == lstm_tensors + lru_tensors);
    ck_assert_int_ge(lru, 1);
    /* A mixer's line has two digits, off by at most 5 % where the first is 1; the total's four are off by .05 %. */
    ck_assert(fabs(worst - fmax(lstm_worst, lru_worst)) <= 0.06 * worst && lstm_worst > 0 && lru_worst > 0);
    expect_status(run("verify --quiet " CASES), 0, "verify --quiet " CASES);
    expect_text(out, "mixer lstm 2 files", "verify --quiet " CASES);
    ck_assert_msg(strncmp(out, "mixer ", 6) == 0 && !strstr(out, "pass"), "%s", out);
}
END_TEST

START_TEST(verify_sums_up_what_a_kernel_skips) {
    const char *arguments = "verify --quiet --kernel scan_lstm_ref " CASE;
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "mixer bdlru 0 files 0 tensors worst 0.0e+00, 6 skipped\n", arguments);
    ck_assert_ptr_null(strstr(out, "skipped: "));
}
END_TEST

Suite *check_verify(void) {
    Suite *s = suite_create("verify");
    TCase *t = tcase_create("verify");
    tcase_add_checked_fixture(t, program_begin, program_end);
    suite_add_tcase(s, t);
    tcase_add_test(t, verify_passes_all_cases);
    tcase_add_test(t, verify_passes_all_cases_in_double);
    tcase_add_test(t, verify_passes_with_chunkwise_kernels);
    tcase_add_test(t, verify_accepts_a_copy);
    tcase_add_test(t, verify_finds_a_wrong_gradient);
    tcase_add_test(t, verify_fails_what_is_not_finite);
    tcase_add_test(t, verify_names_a_missing_tensor);
    tcase_add_test(t, verify_names_an_extra_tensor);
    tcase_add_test(t, verify_names_a_misshapen_tensor);
    tcase_add_test(t, verify_names_an_unknown_mixer);
    tcase_add_test(t, verify_wants_options_where_they_belong);
    tcase_add_test(t, verify_names_an_unknown_key);
    tcase_add_test(t, verify_names_what_a_case_lacks);
    tcase_add_test(t, verify_names_what_does_not_fit_the_config);
    tcase_add_test(t, verify_rejects_a_torn_file);
    tcase_add_test(t, verify_skips_where_a_kernel_does_not_apply);
    tcase_add_test(t, verify_sums_up_by_mixer);
    tcase_add_test(t, verify_sums_up_what_a_kernel_skips);
    return s;
}
