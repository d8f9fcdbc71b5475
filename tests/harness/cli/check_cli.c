/* check_cli.c - the command line as its users meet it: exit codes, messages, help, data, verify.
 *
 * Runs the program that LRNN names (and LRNN_F64), from the root of the repository. */
#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/safetensors.h"
#include "harness/cli/cli.h"
#include "harness/plan/config.h"
#include "harness/report/report.h"
#include "kernels/kernel.h"
#include "models/model.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#define CASE   "tests/cases/00-bdlru-blocks3-m4.safetensors"
#define CASES  "tests/cases/*-lstm-*.safetensors tests/cases/*-lru-*.safetensors"
#define N_LSTM 2

/* --- exit codes and messages -------------------------------------------------------------------------------------- */

/* A success prints nothing on stderr, an error nothing on stdout but one line "lrnn: ..." on stderr. */
static const struct {
    const char *arguments;
    int status;
    const char *text; /* in what it prints */
} calls[] = {
    {"train listops myosotis:levels=64", 2, "has 2^31 nodes or more"},
    {"train listops bdlru:m=2 --pool top --steps 1", 2, "--pool top reads the root of a tree, and bdlru has none"},
    {"train s3 lstm --steps 0", 2, "steps=0 is not a whole number from 1 to 1000000000000, nor auto"},
    {"train s3 lstm --epochs 0", 2, "epochs=0 is not a whole number from 1 to"},
    {"train s3 lstm --eval-every 0", 2, "eval-every=0 is not a whole number from 1 to"},
    {"train s3 lstm --threads 0", 2, "threads=0 is not a whole number from 1 to"},
    {"train s3 lstm --log-steps ''", 2, "--log-steps needs the name of a file"},
    {"bench s3 --seeds 0", 2, "seeds=0 is not a whole number from 1 to 100000, nor auto"},
    {"bench s3 --limit 0", 2, "limit=0 is not a time such as 90s, 30m or 2h, nor auto"},
    {"bench s3 --limit 0s --dry-run", 2, "limit=0s is not a time"},
    {"", 0, "lrnn doctor"},
    {"--help", 0, "usage: lrnn COMMAND"},
    {"--version", 0, "precision fp32"},
    {"trian", 2, "lrnn: unknown command 'trian'; did you mean 'train'?"},
    {"xyzzyx", 2, "unknown command 'xyzzyx'"},
    {"--verbose", 2, "unknown flag '--verbose'"},
    {"list", 0, "bdlru "},
    {"list modles", 2, "unknown kind 'modles'; did you mean 'models'?"},
    {"list models tasks", 2, "'tasks' is one word too many"},
    {"list tasks", 0, "s5 "},
    {"list papers", 0, "2602.12021 "},
    {"info", 2, "info: say what"},
    {"info bdlru", 0, "gates.weight       [1920][128]"},
    {"info bdlur", 2, "unknown name 'bdlur'; did you mean 'bdlru'?"},
    {"info bdlru:blocs=3", 2, "has no option 'blocs'; did you mean 'blocks'?"},
    {"info bdlru:m=0", 2, "m=0 is not a whole number from 1 to"},
    {"info bdlru:m=five", 2, "m=five is not a whole number"},
    {"info bdlru --dim 12x", 2, "info: dim=12x is not a whole number from 1 to"},
    {"info bdlru --dmi 12", 2, "info: unknown flag '--dmi'; did you mean '--dim'?"},
    {"info bdlru -dim 12", 2, "info: unknown flag '-dim'; did you mean '--dim'?"},
    {"info bdlru --dim", 2, "info: flag '--dim' needs a value"},
    {"info bdlru --dim --layers 2", 2, "info: flag '--dim' needs a value"},
    {"info bdlru --dim 64 --dim=32", 2, "info: flag '--dim' is given twice"},
    {"info --dim=64 --layers 3 bdlru", 0, "dim=64 layers=3"},
    {"info bdlru --length 100000000", 2, "length 100000000"},
    {"info s3", 0, "chance 0.1667"},
    {"info s3:length=8", 0, "8 tokens out of 6"},
    {"info scan_block", 0, "scan_block_ref"},
    {"info scan_block_cpu", 0, "a kernel of scan_block"},
    {"data", 2, "data: say what"},
    {"data shwo s3", 2, "unknown command 'data shwo'; did you mean 'data show'?"},
    {"data show", 2, "data show: say which task"},
    {"data show s33", 2, "unknown task 's33'; did you mean 's3'?"},
    {"data show s3 --split valid", 2, "split=valid is not one of: train val test"},
    {"data show s3 --first -1", 2, "first=-1 is not a whole number"},
    {"data show s3 --count 0", 2, "count=0 is not a whole number"},
    {"data show s3 --split test --first 1999 --count 2", 2, "has 2000 test examples"},
    {"data show s3 --first 10000", 2, "has 10000 train examples"},
    {"data show s3 --order 20", 2, "is past the last epoch, 19: a run of 1580 steps with 79 steps an epoch"},
    {"data show s3 --order 1 --epochs 1", 2, "is past the last epoch, 0"},
    {"data show s3 --order 2 --batch 100 --steps 200", 2, "is past the last epoch, 1"},
    {"data show s3 --order first", 2, "--order first is not an epoch"},
    {"data show s3 --order -1", 2, "--order -1 is not an epoch"},
    {"data show s3 --order 0 --steps 0", 2, "steps=0 is not a whole number"},
    {"data show s3 --order 0 --split val", 2, "--order is of a whole epoch of training"},
    {"data show s3 --split extra", 2, "takes no strings of another length besides"},
    {"data show a5-slice:length=4,n_train=100 --split extra --first 3600", 2, "has 3600 extra examples"},
    {"data show a5-slice:length=4,n_train=100 --split extra", 0, "{\"index\":0,\"input\":["},
    {"data show s3:length=2", 2, "has only 36 sequences"},
    {"data stats s3 --count 600", 0, "chance     0.1667"},
    {"data show s3 --stats --count 600", 0, "chance     0.1667"},
    {"data show --stats parity --split val --json", 0, "\"chance\":0.5"},
    {"verify", 2, "verify: say which case files"},
    {"verify --kernel scan_blok_cpu x", 2, "unknown kernel 'scan_blok_cpu'; did you mean 'scan_block_cpu'?"},
    {"verify --device gpu " CASE, 2, "unknown device 'gpu'"},
    {"verify --device cuda:999 " CASE, 6, "--device cuda"},
    {"perf", 2, "perf: say what"},
    {"perf op", 2, "a name is missing"},
    {"perf op scan_blok", 2, "unknown op 'scan_blok'; did you mean 'scan_block'?"},
    {"perf op linear --kernel linera_cpu", 2, "linear has no kernel 'linera_cpu'"},
    {"perf op scan_block --m 65", 2, "m=65 is not a whole number from 1 to 64"},
    {"perf crossover", 2, "a name is missing"},
    {"perf crossover linear", 2, "linear has 1 CPU kernel beside the reference, expected two"},
    {"perf crossover scan_outer --from 8 --to 7", 2, "from=8 is longer than to=7"},
    {"perf step bdlur", 2, "unknown model 'bdlur'"},
    {"perf step bdlru --length 1000000000", 2, "length 1000000000"},
    {"schema", 2, "schema: say which table"},
    {"schema runs", 0, "run_id"},
    {"schema rnus", 2, "rnus"},
};

START_TEST(exit_codes_and_messages) {
    const char *arguments = calls[_i].arguments;
    expect_status(run(arguments), calls[_i].status, arguments);
    bool good = calls[_i].status == 0;
    expect_text(good ? out : err, calls[_i].text, arguments);
    ck_assert_str_eq(good ? err : out, "");
    if (good) return;
    ck_assert_msg(strncmp(err, "lrnn: ", 6) == 0, "lrnn %s: %s", arguments, err);
    ck_assert_msg(strchr(err, '\n') == err + strlen(err) - 1, "lrnn %s: more than one line:\n%s", arguments, err);
}
END_TEST

static void expect_auto_above_zero(const char *owner, const struct option *table) {
    for (const struct option *o = table; o->name; o++)
        ck_assert_msg(!(o->flags & OPT_AUTO) || o->min > 0, "%s: %s=0 would be taken for auto", owner, o->name);
}

/* auto is held as 0, so 0 itself must not be a value. */
START_TEST(auto_is_said_by_its_word) {
    expect_auto_above_zero("a run", config_options);
    expect_auto_above_zero("the backbone", backbone_options);
    for (const struct model *const *m = model_list(); *m; m++) expect_auto_above_zero((*m)->name, (*m)->options);
    for (const struct task *const *t = task_list(); *t; t++) expect_auto_above_zero((*t)->name, (*t)->options);
}
END_TEST

START_TEST(every_command_has_help) {
    for (const struct command *const *c = cli_commands(); *c; c++) {
        char arguments[128], usage[160];
        snprintf(arguments, sizeof arguments, "%s --help", (*c)->name);
        snprintf(usage, sizeof usage, "usage: lrnn %s", (*c)->usage);
        expect_status(run(arguments), 0, arguments);
        expect_text(out, usage, arguments);
        expect_status(run("--help"), 0, "--help");
        if (!(*c)->hidden) expect_text(out, (*c)->summary, "--help");
    }
}
END_TEST

START_TEST(a_hidden_command_works_and_is_not_listed) {
    expect_status(run("--help"), 0, "--help");
    ck_assert_ptr_null(strstr(out, "template"));
    expect_status(run("template word --times 2"), 0, "template");
    ck_assert_str_eq(out, "word\nword\n");
    expect_status(run("template --times 0"), ST_USAGE, "template");
}
END_TEST

START_TEST(report_help_names_every_report_but_the_template) {
    expect_status(run("report --help"), 0, "report --help");
    expect_text(out, "(term md latex csv)", "report --help");
    for (const struct report *const *r = report_list(); *r; r++)
        ck_assert_msg(!strstr(out, (*r)->help) == (*r)->hidden, "%s in\n%s", (*r)->name, out);
    expect_status(run("report --what tabels"), ST_USAGE, "report --what tabels");
    expect_text(err, "unknown report 'tabels'; did you mean 'tables'?", "report --what tabels");
    expect_status(run("report --format tex"), ST_USAGE, "report --format tex");
    expect_text(err, "is not one of: term md latex csv", "report --format tex");
}
END_TEST

START_TEST(full_output_is_an_error) {
    char command[512];
    snprintf(command, sizeof command, "%s list >/dev/full 2>%s/err", named_program("LRNN", "./lrnn"), program_folder);
    size_t size;
    int status = system(command);
    snprintf(command, sizeof command, "%s/err", program_folder);
    err = slurp(command, &size);
    ck_assert_int_eq(WEXITSTATUS(status), 1);
    expect_text(err, "cannot write to standard output", "list");
}
END_TEST

START_TEST(models_listed_can_be_described) {
    expect_status(run("list models"), 0, "list models");
    char *list = strdup(out), *state = NULL;
    int n = 0;
    for (char *line = strtok_r(list, "\n", &state); line; line = strtok_r(NULL, "\n", &state), n++) {
        char arguments[128];
        line[strcspn(line, " ")] = 0; /* the name comes first, without a heading */
        snprintf(arguments, sizeof arguments, "info %s", line);
        expect_status(run(arguments), 0, arguments);
        expect_text(out, "equation", arguments);
    }
    free(list);
    int shown = 0;
    for (const struct model *const *m = model_list(); *m; m++) shown += !(*m)->hidden;
    ck_assert_int_eq(n, shown);
}
END_TEST

START_TEST(doctor_looks_at_the_folder) {
    char arguments[128];
    snprintf(arguments, sizeof arguments, "doctor --out %s/new/results", program_folder);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "this machine is ready", arguments);
    ck_assert_int_eq(scratch_count(program_folder, "doctor"), 0);
    expect_status(run("doctor --out /proc/results"), 1, "doctor --out /proc/results");
    expect_text(out, "BAD   results", "doctor --out /proc/results");
}
END_TEST

/* --- data --------------------------------------------------------------------------------------------------------- */

START_TEST(data_show_prints_json_lines) {
    const char *arguments = "data show word-problem:group=z6,length=5,n_train=100 --split val --first 7 --count 3";
    expect_status(run(arguments), 0, arguments);
    char *text = strdup(out), *state = NULL;
    int n = 0;
    for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state), n++) {
        json_t *object = parse_line(line), *input = json_object_get(object, "input"),
               *target = json_object_get(object, "target");
        ck_assert_int_eq(whole(object, "index"), 7 + n);
        ck_assert_uint_eq(json_object_size(object), 3);
        ck_assert_uint_eq(json_array_size(input), 5);
        ck_assert_uint_eq(json_array_size(target), 5);
        int64_t sum = 0; /* residues add up */
        for (size_t t = 0; t < 5; t++) {
            sum = (sum + json_integer_value(json_array_get(input, t))) % 6;
            ck_assert_int_eq(json_integer_value(json_array_get(target, t)), sum);
        }
        json_decref(object);
    }
    ck_assert_int_eq(n, 3);
    free(text);
}
END_TEST

/* Every example once, and each epoch in an order of its own; the last batch is what is left. */
START_TEST(data_order_is_a_permutation_of_its_own) {
    char orders[2][2048] = {"", ""};
    for (int epoch = 0; epoch < 2; epoch++) {
        char arguments[128], *state = NULL;
        int64_t seen[100] = {0}, n = 0;
        snprintf(arguments, sizeof arguments, "data show s3:n_train=100 --batch 30 --seed 3 --order %d", epoch);
        expect_status(run(arguments), 0, arguments);
        for (char *line = strtok_r(out, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
            json_t *object = parse_line(line), *indices = json_object_get(object, "indices");
            ck_assert_uint_eq(json_array_size(indices), n < 90 ? 30 : 10);
            for (size_t i = 0; i < json_array_size(indices); i++, n++) {
                int64_t index = json_integer_value(json_array_get(indices, i));
                ck_assert(index >= 0 && index < 100 && seen[index]++ == 0);
                size_t used = strlen(orders[epoch]);
                snprintf(orders[epoch] + used, sizeof orders[epoch] - used, "%d ", (int)index);
            }
            json_decref(object);
        }
        ck_assert_int_eq(n, 100);
    }
    ck_assert_str_ne(orders[0], orders[1]);
}
END_TEST

START_TEST(data_stats_counts_every_target) {
    const char *arguments = "data stats s3 --split test --count 100 --json";
    expect_status(run(arguments), 0, arguments);
    json_t *object = parse_line(out), *labels = json_object_get(object, "labels");
    int64_t sum = 0, most = 0;
    for (size_t i = 0; i < json_array_size(labels); i++) {
        int64_t count = json_integer_value(json_array_get(labels, i));
        sum += count;
        if (count > most) most = count;
    }
    ck_assert_uint_eq(json_array_size(labels), 6);
    ck_assert_int_eq(sum, 1600);
    ck_assert_int_eq(whole(object, "scored"), 1600);
    ck_assert_double_eq_tol(number(object, "majority"), (double)most / 1600, 1e-6);
    ck_assert_double_eq_tol(number(object, "floor"), (1 + 15.0 / 6) / 16, 1e-6);
    json_decref(object);
}
END_TEST

/* --- verify ------------------------------------------------------------------------------------------------------- */

/* The case files of the mixers that are listed: "NN-MIXER-..." and "wide-NN-MIXER-...", the latter with several heads a part and several chunks. The caller frees the glob. */
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
    expect_verify(&d, 2, NULL, "p.gates.bias is missing");
}
END_TEST

START_TEST(verify_names_an_extra_tensor) {
    struct doctored d;
    take_apart(&d);
    d.sources[d.n] = d.sources[find_source(&d, "x")];
    d.sources[d.n++].name = "p.other";
    expect_verify(&d, 2, NULL, "p.other is not one of mixer bdlru");
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
    expect_verify(&d, 2, NULL, "tensor p.gates.weight is (");
}
END_TEST

START_TEST(verify_names_an_unknown_mixer) {
    struct doctored d;
    take_apart(&d);
    set_pair(&d, "mixer", "bdlur");
    expect_verify(&d, 2, NULL, "unknown model 'bdlur'");
}
END_TEST

START_TEST(verify_names_an_unknown_key) {
    struct doctored d;
    take_apart(&d);
    set_pair(&d, "config", "blocks=3 n=4");
    expect_verify(&d, 2, NULL, "has no option 'n'");
}
END_TEST

START_TEST(verify_names_what_does_not_fit_the_config) {
    struct doctored d;
    take_apart(&d);
    set_pair(&d, "config", "blocks=3 m=5");
    expect_verify(&d, 2, NULL, "expected (");
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
    expect_status(run(arguments), 2, arguments);
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

static TCase *new_case(Suite *s, const char *name) {
    TCase *t = tcase_create(name);
    tcase_add_checked_fixture(t, program_begin, program_end);
    suite_add_tcase(s, t);
    return t;
}

/* A dry run's first word is the run's id, and a limit is part of what a run is: the profile's 9 minutes of s3 are gone where
 * the command line says how long a run is. */
START_TEST(a_length_on_the_command_line_replaces_the_profiles_limit) {
    static const struct {
        const char *length;
        bool same;
    } cases[] = {{"", true}, {" --epochs 3", false}, {" --steps 3", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[128], id[33];
        snprintf(line, sizeof line, "bench s3 --models lstm --dry-run%s", cases[i].length);
        expect_status(run(line), 0, line);
        snprintf(id, sizeof id, "%s", out);
        snprintf(line, sizeof line, "bench s3 --models lstm --dry-run%s --limit 540s", cases[i].length);
        expect_status(run(line), 0, line);
        ck_assert_msg(!strncmp(id, out, 32) == cases[i].same, "%s: %s, without the limit %s", line, out, id);
    }
}
END_TEST

Suite *check_cli(void) {
    Suite *s = suite_create("cli");
    TCase *t = new_case(s, "messages");
    tcase_add_loop_test(t, exit_codes_and_messages, 0, (int)(sizeof calls / sizeof calls[0]));
    tcase_add_test(t, auto_is_said_by_its_word);
    tcase_add_test(t, every_command_has_help);
    tcase_add_test(t, a_hidden_command_works_and_is_not_listed);
    tcase_add_test(t, report_help_names_every_report_but_the_template);
    tcase_add_test(t, full_output_is_an_error);
    tcase_add_test(t, models_listed_can_be_described);
    tcase_add_test(t, doctor_looks_at_the_folder);
    tcase_add_test(t, a_length_on_the_command_line_replaces_the_profiles_limit);
    t = new_case(s, "data");
    tcase_add_test(t, data_show_prints_json_lines);
    tcase_add_test(t, data_order_is_a_permutation_of_its_own);
    tcase_add_test(t, data_stats_counts_every_target);
    t = new_case(s, "verify");
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
    tcase_add_test(t, verify_names_an_unknown_key);
    tcase_add_test(t, verify_names_what_does_not_fit_the_config);
    tcase_add_test(t, verify_rejects_a_torn_file);
    tcase_add_test(t, verify_skips_where_a_kernel_does_not_apply);
    tcase_add_test(t, verify_sums_up_by_mixer);
    tcase_add_test(t, verify_sums_up_what_a_kernel_skips);
    return s;
}
