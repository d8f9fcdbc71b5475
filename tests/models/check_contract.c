/* check_contract.c - names, shapes and state of the mixers' parameters, which other programs rely on, from
 * tests/models/contract.
 *
 * A file per mixer, NAME.def, rows at width D = 12. A row is a line `LABEL state FLOATS`, the floats of state per
 * sequence, and below it a line `name rows [columns]` for each parameter: all axes but the last together, no columns
 * for a vector. A name with a slash in front belongs to the net, not to each layer's mixer. Lines that begin with # are
 * comments. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/safetensors.h"
#include "tests/lib/support.h"

#define FOLDER     "tests/models/contract"
#define ROWS_MAX   256
#define PARAMS_MAX 32

struct expected {
    char model[128];
    int64_t state;
    int n;
    struct {
        char name[64];
        int64_t rows, columns; /* columns 0: a vector */
    } params[PARAMS_MAX];
};

/* Adds a line to the rows; ends the tests at one that cannot be read. */
static void read_line(const char *path, int number, const char *line, struct expected *rows, int *n) {
    char first[128], second[32];
    int64_t a = 0, b = 0;
    int words = sscanf(line, "%127s %31s %" SCNd64, first, second, &a);
    if (words <= 0 || first[0] == '#') return;
    if (words == 3 && !strcmp(second, "state") && *n < ROWS_MAX) {
        struct expected *row = &rows[(*n)++];
        *row = (struct expected){.state = a};
        memcpy(row->model, first, sizeof first);
        return;
    }
    struct expected *row = *n ? &rows[*n - 1] : NULL;
    words = sscanf(line, "%63s %" SCNd64 " %" SCNd64, first, &a, &b);
    if (!row || words < 2 || row->n == PARAMS_MAX) {
        fprintf(stderr, "%s line %d: '%s' is neither a row nor a parameter of one\n", path, number, line);
        abort();
    }
    snprintf(row->params[row->n].name, sizeof row->params[row->n].name, "%.63s", first);
    row->params[row->n].rows = a;
    row->params[row->n++].columns = words == 3 ? b : 0;
}

/* All rows of all files, in name order; *n receives their number. */
static const struct expected *contract(int *n) {
    static struct expected rows[ROWS_MAX];
    static int n_rows;
    struct dirent **entries;
    int files = n_rows ? 0 : scandir(FOLDER, &entries, NULL, alphasort);
    for (int i = 0; i < files; i++) {
        char path[300], line[256];
        snprintf(path, sizeof path, FOLDER "/%s", entries[i]->d_name);
        FILE *in = entries[i]->d_name[0] == '.' ? NULL : fopen(path, "r");
        for (int number = 1; in && fgets(line, sizeof line, in); number++) {
            line[strcspn(line, "\n")] = 0;
            read_line(path, number, line, rows, &n_rows);
        }
        if (in) fclose(in);
        free(entries[i]);
    }
    if (files > 0) free(entries);
    *n = n_rows;
    return rows;
}

static const struct expected *contract_row(int i) {
    int n;
    return &contract(&n)[i];
}

static const struct trial_shape small = {.B = 2, .T = 6, .V = 11, .D = 12, .layers = 2, .mlp = MLP_NONE};

/* Checks one parameter of the net and returns its elements. */
static int64_t expect_param(const struct params *p, const char *name, int64_t rows, int64_t columns) {
    const struct param *param = params_find(p, name);
    ck_assert_msg(param != NULL, "there is no parameter %s", name);
    const struct param_spec *spec = &param->spec;
    bool fits = spec->rank == 1 ? !columns : spec->dims[spec->rank - 1] == columns;
    ck_assert_msg(fits && param->count == rows * (columns ? columns : 1), "%s has another shape than (%lld,%lld)", name,
                  (long long)rows, (long long)columns);
    return rows * (columns ? columns : 1);
}

/* The parameters of one layer beside its mixer's: *named more names; returns their elements. */
static int64_t expect_block(const struct params *p, int layer, int mlp, int *named) {
    char name[80];
    snprintf(name, sizeof name, "layers.%d.norm.weight", layer);
    int64_t total = expect_param(p, name, 12, 0), width = mlp == MLP_SWIGLU ? 32 : 48;
    ++*named; /* width: floor(8 * 12 / 3) = 32, a multiple of 16; 4 * 12 */
    if (mlp == MLP_NONE) return total;
    snprintf(name, sizeof name, "layers.%d.mlp_norm.weight", layer);
    total += expect_param(p, name, 12, 0);
    ++*named;
    int matrices = mlp == MLP_SWIGLU ? 3 : 2;
    for (int w = 1; w <= matrices; w++, ++*named) {
        snprintf(name, sizeof name, "layers.%d.mlp.w%d.weight", layer, w);
        total += expect_param(p, name, w == matrices ? 12 : width, w == matrices ? width : 12);
    }
    return total;
}

START_TEST(parameters_are_those_of_the_contract) {
    const struct expected *x = contract_row(_i);
    for (int mlp = MLP_NONE; mlp <= MLP_GELU; mlp++) {
        struct trial t;
        struct trial_shape s = small;
        s.model = x->model;
        s.mlp = mlp;
        trial_open(&t, &s, 1);
        int64_t total = expect_param(&t.params, "embedding", 11, 12) + expect_param(&t.params, "head.weight", 11, 12) +
                        expect_param(&t.params, "head.bias", 11, 0) + expect_param(&t.params, "norm.weight", 12, 0);
        int named = 4;
        for (int layer = 0; layer < 2; layer++) {
            for (int i = 0; i < x->n; i++) {
                char name[96];
                bool once = x->params[i].name[0] == '/';
                if (once && layer > 0) continue;
                if (once)
                    snprintf(name, sizeof name, "%s", x->params[i].name + 1);
                else
                    snprintf(name, sizeof name, "layers.%d.mixer.%s", layer, x->params[i].name);
                total += expect_param(&t.params, name, x->params[i].rows, x->params[i].columns);
                named++;
            }
            total += expect_block(&t.params, layer, mlp, &named);
        }
        ck_assert_int_eq(t.params.n, named); /* none beyond those */
        ck_assert_int_eq(params_trained(&t.params), total);
        trial_close(&t);
    }
}
END_TEST

START_TEST(state_is_counted) {
    const struct expected *x = contract_row(_i);
    struct model_choice choice;
    struct error e = {0};
    struct dims d = {.B = 2, .T = 6, .D = 12};
    ck_assert_int_eq(model_parse(&choice, x->model, &e), ST_OK);
    ck_assert_int_eq(model_fit(&choice, &d, &e), ST_OK);
    ck_assert_int_eq(choice.model->state_floats(choice.inst, &choice.dims), x->state);
}
END_TEST

/* A mixer that case files check has a contract, too. */
START_TEST(mixers_with_ground_truth_have_a_contract) {
    struct dirent **entries;
    int n, cases = 0, files = scandir("tests/cases", &entries, NULL, alphasort);
    const struct expected *rows = contract(&n);
    for (int i = 0; i < files; i++) {
        struct safetensors st;
        struct error e = {0};
        char path[300];
        snprintf(path, sizeof path, "tests/cases/%s", entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            ck_assert_msg(safetensors_read(&st, path, &e) == ST_OK, "%s", e.text);
            const char *mixer = safetensors_metadata(&st, "mixer");
            bool found = false;
            for (int r = 0; r < n && mixer; r++)
                found |= !strncmp(rows[r].model, mixer, strlen(mixer)) && strchr(":", rows[r].model[strlen(mixer)]);
            ck_assert_msg(found, "%s is of mixer %s, which has no row in " FOLDER, path, mixer);
            cases++;
            safetensors_free(&st);
        }
        free(entries[i]);
    }
    if (files > 0) free(entries);
    ck_assert_int_eq(cases, 87);
}
END_TEST

Suite *check_contract(void);
Suite *check_contract(void) {
    Suite *suite = suite_create("contract");
    TCase *tests = tcase_create("contract");
    int rows;
    contract(&rows);
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, parameters_are_those_of_the_contract, 0, rows);
    tcase_add_loop_test(tests, state_is_counted, 0, rows);
    tcase_add_test(tests, mixers_with_ground_truth_have_a_contract);
    suite_add_tcase(suite, tests);
    return suite;
}
