/* check_export.c - weights out and back in: bit for bit, under the contract's names, and every way it can go wrong.
 *
 * Runs the program that LRNN names, from the root of the repository. */
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/run/weights.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"

#define CASE    "tests/cases/00-bdlru-blocks3-m4.safetensors"
#define ANY_RUN "0123456789abcdef0123456789abcdef"

static char folder[SCRATCH_BYTES];

static void read_file(struct safetensors *file, const char *path) {
    struct error e;
    ck_assert_msg(safetensors_read(file, path, &e) == ST_OK, "%s", e.text);
}

/* --- the commands ------------------------------------------------------------------------------------------------- */

static char id[RUN_ID_HEX], exported[SCRATCH_BYTES + 32];

/* Runs the program; '@' in the arguments stands for the scratch folder, '%' for the run's id. */
static void expect(int status, const char *arguments, const char *in_out, const char *in_err) {
    char command[4096];
    size_t used = 0;
    for (const char *c = arguments; *c && used < sizeof command - 100; c++)
        used += (size_t)(*c == '@'   ? snprintf(command + used, 80, "%s", folder)
                         : *c == '%' ? snprintf(command + used, 80, "%s", id)
                                     : snprintf(command + used, 80, "%c", *c));
    command[used] = 0;
    expect_status(run_program(folder, named_program("LRNN", "./lrnn"), command), status, command);
    if (in_out) ck_assert_msg(strstr(out, in_out) != NULL, "%s: expected \"%s\" in\n%.2000s", command, in_out, out);
    if (in_err) ck_assert_msg(strstr(err, in_err) != NULL, "%s: expected \"%s\" in\n%.2000s", command, in_err, err);
    if (status != 0) {
        ck_assert_msg(*out == 0, "%s: printed %s", command, out);
        ck_assert_msg(strchr(err, '\n') == err + strlen(err) - 1, "%s: not one line:\n%s", command, err);
    }
}

/* With 100 sequences in batches of 32 per epoch is four steps, and the eighth ends the second epoch. */
START_TEST(a_log_counts_epochs_as_the_trainer_does) {
    char path[SCRATCH_BYTES + 32];
    size_t size;
    scratch_make(folder);
    expect(0,
           "train s3:n_train=100,n_val=8,n_test=8,length=4 lru:state=4 --dim 8 --batch 32 --epochs 2 --threads 1 "
           "--json --quiet --out @/r",
           "{", NULL);
    json_t *run = parse_line(out);
    snprintf(id, sizeof id, "%s", json_string_value(json_object_get(run, "run_id")));
    json_decref(run);
    expect(0, "export % @/log --as mllog --out @/r", "exported run ", NULL);
    snprintf(path, sizeof path, "%s/log", folder);
    char *log = slurp(path, &size);
    ck_assert_msg(strstr(log, "{\"epoch_num\":2.0,\"step_num\":8}") != NULL, "%s", log);
    free(log);
    free_output();
    scratch_remove(folder);
}
END_TEST

/* A finished run in FOLDER/r, and its weights in FOLDER/w.safetensors. */
static void set_up_run(void) {
    glob_t found;
    char pattern[SCRATCH_BYTES + 32];
    scratch_make(folder);
    expect(0, "train " SMALL_TASK " bdlru:m=2,blocks=3 --dim 16 --epochs 10 --lr 0.01 --threads 1 --quiet --out @/r",
           "ok", NULL);
    snprintf(pattern, sizeof pattern, "%s/r/runs/*/*.json", folder);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    ck_assert_int_eq((int)found.gl_pathc, 1);
    snprintf(id, sizeof id, "%.32s", strrchr(found.gl_pathv[0], '/') + 1);
    globfree(&found);
    expect(0, "export % @/w.safetensors --out @/r", "exported run ", NULL);
    snprintf(exported, sizeof exported, "%s/w.safetensors", folder);
}

static void tear_down_run(void) {
    free_output();
    scratch_remove(folder);
}

START_TEST(an_import_says_that_it_equals_the_run) {
    expect(0, "import @/w.safetensors --threads 1", "equal the run's record to the last bit", NULL);
    ck_assert_str_eq(err, "");
    expect(0, "import @/w.safetensors --threads 2 --json", "\"recorded\":\"equal\"", NULL);
    json_error_t why;
    json_t *line = json_loads(out, 0, &why);
    ck_assert_msg(line != NULL, "%s: %s", out, why.text);
    ck_assert_str_eq(json_string_value(json_object_get(line, "run_id")), id);
    ck_assert(json_real_value(json_object_get(line, "test_acc")) > 0);
    json_decref(line);
}
END_TEST

START_TEST(weights_of_each_kind_can_be_imported) {
    expect(0, "export % @/i.safetensors --initial --out @/r", ", initial weights: ", NULL);
    expect(0, "import @/i.safetensors --json", "\"recorded\":\"unknown\"", NULL);
    expect(0,
           "train " SMALL_TASK " bdlru:m=2,blocks=3 --dim 16 --epochs 1 --quiet --keep-weights all --out @/s "
           "--from @/w.safetensors --json",
           "\"status\":\"ok\"", NULL);
    glob_t found;
    char pattern[SCRATCH_BYTES + 32], command[512];
    snprintf(pattern, sizeof pattern, "%s/s/runs/*/*.json", folder);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    snprintf(command, sizeof command, "export %s @/l.safetensors --last", found.gl_pathv[0]);
    expect(0, command, ", last weights: ", NULL);
    expect(0, "import @/l.safetensors --json", "\"recorded\":\"unknown\"", NULL);
    expect(0, "store merge @/s --out @/t", "1 records and 2 files of weights taken over", NULL);
    snprintf(command, sizeof command, "export %.6s @/t.safetensors --last --out @/t",
             strrchr(found.gl_pathv[0], '/') + 1);
    expect(0, command, ", last weights: ", NULL);
    snprintf(command, sizeof command, "export %s @/v --initial", found.gl_pathv[0]);
    expect(5, command, NULL, "that file holds its initial weights");
    globfree(&found);
}
END_TEST

START_TEST(the_other_precision_draws_other_weights) {
    char command[512];
    snprintf(command, sizeof command, "export %s %s/v --initial --out %s/r", id, folder, folder);
    expect_status(run_program(folder, named_program("LRNN_F64", "./lrnn-f64"), command), 5, command);
    expect_text(err, "computed in fp32, and this program in fp64; lrnn draws its initial weights", command);
}
END_TEST

/* The first digits, the record's path and the kept file's path name the same run; the file is the same to the byte. */
START_TEST(a_run_is_found_by_each_of_its_names) {
    for (int i = 0; i < 3; i++) {
        char arguments[512];
        if (i == 0) snprintf(arguments, sizeof arguments, "export %.6s @/v.safetensors --out @/r", id);
        if (i == 1) snprintf(arguments, sizeof arguments, "export @/r/runs/%.2s/%%.json @/v.safetensors", id);
        if (i == 2) snprintf(arguments, sizeof arguments, "export @/r/weights/%%.safetensors @/v.safetensors");
        expect(0, arguments, "exported run ", NULL);
        char path[SCRATCH_BYTES + 32];
        size_t a, b;
        snprintf(path, sizeof path, "%s/v.safetensors", folder);
        char *first = slurp(exported, &a), *second = slurp(path, &b);
        ck_assert_uint_eq(a, b);
        ck_assert_mem_eq(first, second, a);
        free(first);
        free(second);
        unlink(path);
    }
    ck_assert_int_eq(scratch_count(folder, ".tmp"), 0);
}
END_TEST

static const struct {
    const char *arguments;
    int status;
    const char *message;
} wrong_calls[] = {
    {"export", 2, "say which run and where to; usage: lrnn export RUN FILE"},
    {"export %", 2, "say which run and where to"},
    {"export % @/v x --out @/r", 2, "'x' is one word too many"},
    {"export nonsense @/v --out @/r", 2, "'nonsense' is neither a run id"},
    {"export %0 @/v --out @/r", 2, "is neither a run id"},
    {"export ffffffff0 @/v --out @/r", 5, "no run on record in"},
    {"export % @/v --out @/absent", 5, "no run on record in"},
    {"export @/r/runs/none.json @/v", 5, "none.json: No such file or directory"},
    {"export @/r @/v", 2, "is not the path of a run: expected OUT/runs/ab/ID.json"},
    {"export % @/absent/v --out @/r", 1, "/absent/v: No such file or directory"},
    {"export % @/r --out @/r", 1, "Is a directory"},
    {"export % @/v --initial --last --out @/r", 2, "--initial and --last are two sets of weights"},
    {"export % @/v --last --out @/r", 5, "--keep-weights all"},
    {"train s3 lstm --out @/s --from @/absent", 5, "--from: cannot read"},
    {"train s3 lstm --out @/s --from @", 5, "it is not a file"},
    {"train s3 lstm --out @/s --from " CASE, 5,
     "/00-bdlru-blocks3-m4.safetensors does not hold this net; missing: embedding"},
    {"train s3 lstm --out @/s --from-xxh3 0123", 2, "unknown flag '--from-xxh3'"},
    {"train s3 lstm --out @/s -c @/stored", 2, "name their file with --from"},
    {"bench s3 --models lstm --out @/s --from @/w.safetensors", 2, "bench draws the weights of every seed"},
    {"bench s3 --models lstm --out @/s -c @/stored", 2, "bench draws the weights of every seed"},
    {"export % @/v --as mllog --last --out @/r", 2, "--initial and --last are of weights; a curve is whole"},
    {"import", 2, "import: say which file"},
    {"import @/absent", 5, "cannot open"},
    {"import @", 5, "it is not a regular file"},
    {"import @/r/weights/%.safetensors", 5, "has no configuration in its __metadata__; `lrnn export` writes it"},
    {"import " CASE, 5, "is a case file, not exported weights; `lrnn verify` reads it"},
};
#define N_WRONG ((int)(sizeof wrong_calls / sizeof wrong_calls[0]))

START_TEST(a_wrong_call_is_one_clear_sentence) {
    char path[256];
    snprintf(path, sizeof path, "%s/stored", folder);
    spill(path, "from-xxh3=0123\n", strlen("from-xxh3=0123\n"));
    expect(wrong_calls[_i].status, wrong_calls[_i].arguments, NULL, wrong_calls[_i].message);
    ck_assert_int_eq(scratch_count(folder, ".tmp"), 0);
}
END_TEST

static void damage(const char *format, long at, int bit) {
    char path[256];
    snprintf(path, sizeof path, format, folder, id);
    size_t size;
    char *bytes = slurp(path, &size);
    size_t place = at < 0 ? size - (size_t)-at : (size_t)at;
    if (bit >= 0) bytes[place] = (char)(bytes[place] ^ (1 << bit));
    spill(path, bytes, bit >= 0 ? size : place);
    free(bytes);
}

START_TEST(altered_weights_are_not_exported) {
    damage("%s/r/weights/%s.safetensors", -3, 2); /* in the last value: still a whole safetensors file */
    expect(5, "export % @/v --out @/r", NULL, "is cut off or altered: its XXH3-128 is ");
    damage("%s/r/weights/%s.safetensors", -3, 2);
    expect(0, "export % @/v --out @/r", "exported", NULL);
    damage("%s/r/weights/%s.safetensors", -8, -1);
    expect(5, "export % @/v --out @/r", NULL, "is cut off or altered");
    char path[256];
    snprintf(path, sizeof path, "%s/r/weights/%s.safetensors", folder, id);
    unlink(path);
    char sentence[256];
    snprintf(sentence, sizeof sentence, ": No such file or directory; `lrnn rerun %.8s --keep --out %s/r` makes them",
             id, folder);
    expect(5, "export % @/v --out @/r", NULL, sentence);
    expect(0, "rerun % --keep --out @/r", "run ", NULL);
    expect(0, "export % @/v --out @/r/rerun", "exported", NULL);
}
END_TEST

START_TEST(an_altered_record_is_not_believed) {
    char format[64];
    snprintf(format, sizeof format, "%%s/r/runs/%.2s/%%s.json", id);
    damage(format, -20, 0);
    expect(5, "export % @/v --out @/r", NULL, "is cut off or altered");
}
END_TEST

START_TEST(an_id_of_two_runs_and_one_of_an_unfinished_run_are_refused) {
    char path[256], arguments[64];
    char other = id[31] == '0' ? '1' : '0';
    snprintf(path, sizeof path, "%s/r/runs/%.2s/%.31s%c.json", folder, id, id, other);
    spill(path, "", 0);
    snprintf(arguments, sizeof arguments, "export %.8s @/v --out @/r", id);
    expect(2, arguments, NULL, "give more digits");
    ck_assert(strstr(err, id) != NULL);
    snprintf(path, sizeof path, "%s/r/checkpoints", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/r/checkpoints/" ANY_RUN ".ckpt", folder);
    spill(path, "", 0);
    expect(5, "export @/r/checkpoints/" ANY_RUN ".ckpt @/v", NULL,
           "run " ANY_RUN " is not finished: there is no record ");
    if (strncmp(id, "01234567", 8) != 0)
        expect(5, "export 01234567 @/v --out @/r", NULL, "run " ANY_RUN " is not finished");
}
END_TEST

/* --- doctored files ----------------------------------------------------------------------------------------------- */

#define MAX_TENSORS 40
#define MAX_PAIRS   20

/* An exported file taken apart, to be changed and written again. */
struct doctored {
    struct safetensors file;
    struct st_source sources[MAX_TENSORS];
    struct st_pair pairs[MAX_PAIRS];
    double *values[MAX_TENSORS];
    int n, n_pairs;
    char config[CONFIG_TEXT];
};

static void take_apart(struct doctored *d) {
    read_file(&d->file, exported);
    ck_assert_int_lt(d->file.n, MAX_TENSORS);
    ck_assert_int_le(d->file.n_metadata, MAX_PAIRS);
    d->n = d->file.n;
    d->n_pairs = d->file.n_metadata;
    for (int i = 0; i < d->n_pairs; i++) d->pairs[i] = d->file.metadata[i];
    for (int i = 0; i < d->n; i++) {
        const struct st_tensor *t = &d->file.tensors[i];
        d->values[i] = calloc((size_t)t->count, sizeof(double));
        for (int64_t j = 0; j < t->count; j++) d->values[i][j] = st_value(t, j);
        d->sources[i] = (struct st_source){.name = t->name, .rank = t->rank, .f64 = t->f64, .values = d->values[i]};
        memcpy(d->sources[i].dims, t->dims, sizeof t->dims);
    }
}

/* Writes it over the exported file. */
static void put_together(struct doctored *d) {
    struct error e = {ST_OK, ""};
    enum status written = safetensors_write(exported, d->sources, d->n, d->pairs, d->n_pairs, &e);
    ck_assert_msg(written == ST_OK, "%s", e.text);
    for (int i = 0; i < d->file.n; i++) free(d->values[i]);
    safetensors_free(&d->file);
}

static struct st_source *source_of(struct doctored *d, const char *name) {
    for (int i = 0; i < d->n; i++)
        if (!strcmp(d->sources[i].name, name)) return &d->sources[i];
    ck_abort_msg("there is no tensor %s", name);
    return NULL;
}

static void set_pair(struct doctored *d, const char *key, const char *value) {
    for (int i = 0; i < d->n_pairs; i++)
        if (!strcmp(d->pairs[i].key, key)) {
            if (value)
                d->pairs[i].value = value;
            else
                d->pairs[i] = d->pairs[--d->n_pairs];
            return;
        }
    ck_abort_msg("there is no metadata %s", key);
}

/* Replaces a part of the stored configuration. */
static void edit_config(struct doctored *d, const char *from, const char *to) {
    const char *config = safetensors_metadata(&d->file, "config"), *at = strstr(config, from);
    ck_assert_msg(at != NULL, "no \"%s\" in\n%s", from, config);
    snprintf(d->config, sizeof d->config, "%.*s%s%s", (int)(at - config), config, to, at + strlen(from));
    set_pair(d, "config", d->config);
}

static void refused(struct doctored *d, const char *message) {
    put_together(d);
    expect(5, "import @/w.safetensors", NULL, message);
}

/* Expects the same message about the tensors when a run starts from them, and no record. */
static void refused_everywhere(struct doctored *d, const char *message) {
    refused(d, message);
    expect(5, "train " SMALL_TASK " bdlru:m=2,blocks=3 --dim 16 --quiet --out @/s --from @/w.safetensors", NULL,
           message);
    ck_assert_int_eq(scratch_count(folder, ".json"), 1);
}

START_TEST(a_missing_an_extra_and_a_misshapen_tensor_are_named_together) {
    struct doctored d;
    take_apart(&d);
    source_of(&d, "head.bias")->name = "other";
    struct st_source *s = source_of(&d, "head.weight");
    int64_t rows = s->dims[0];
    s->dims[0] = s->dims[1];
    s->dims[1] = rows;
    refused_everywhere(&d, "does not hold this net; missing: head.bias; not of this net: other; wrong: "
                           "head.weight is (16,6), expected (6,16)");
}
END_TEST

START_TEST(many_missing_tensors_are_counted) {
    struct doctored d;
    take_apart(&d);
    d.n -= 5;
    refused_everywhere(&d, " and 2 more");
}
END_TEST

START_TEST(another_dtype_is_named) {
    struct doctored d;
    take_apart(&d);
    source_of(&d, "norm.weight")->f64 = true;
    refused_everywhere(&d, "wrong: norm.weight is F64, expected F32");
}
END_TEST

START_TEST(a_value_that_is_not_finite_is_named) {
    struct doctored d;
    take_apart(&d);
    for (int i = 0; i < d.n; i++)
        if (!strcmp(d.sources[i].name, "embedding")) d.values[i][7] = NAN;
    refused_everywhere(&d, "element 7 of tensor embedding is nan, expected a finite number");
}
END_TEST

/* Logits of all signs overflow. */
START_TEST(a_loss_that_is_none_is_null) {
    struct doctored d;
    take_apart(&d);
    for (int i = 0; i < d.n; i++)
        for (int64_t j = 0; j < d.file.tensors[i].count; j++)
            if (!strcmp(d.sources[i].name, "norm.weight") || !strcmp(d.sources[i].name, "head.weight"))
                d.values[i][j] *= 1e37;
    set_pair(&d, "values_xxh3", NULL);
    put_together(&d);
    expect(0, "import @/w.safetensors --json", "\"val_loss\":null", NULL);
    json_t *line = parse_line(out);
    ck_assert_str_eq(json_string_value(json_object_get(line, "task")), "s3:length=8,n_train=300,n_val=50,n_test=60");
    ck_assert_str_eq(json_string_value(json_object_get(line, "layers")), "bdlru:blocks=3,m=2;swiglu");
    json_decref(line);
}
END_TEST

static const struct {
    const char *key, *value, *message;
} bad_metadata[] = {
    {"lrnn_weights", NULL, "its __metadata__ has no lrnn_weights"},
    {"lrnn_weights", "2", "lrnn_weights is \"2\", expected \"1\""},
    {"config", NULL, "has no configuration in its __metadata__"},
    {"config", "", "does not name both a task and a model"},
    {"config", "task=s3\nmodel=bdlru\nnonsense\n", "line 3: 'nonsense' is not of the form key=value"},
    {"config", "task=s3\nmodel=bdlru\ndmi=16\n", "w.safetensors: its configuration line 3 has no option 'dmi'"},
    {"config", "task=s33\nmodel=bdlru\n", "unknown task 's33'"},
    {"config", "task=s3\nmodel=bdlur\n", "unknown model 'bdlur'"},
    {"config", "task=s3\nmodel=bdlru\ndevice=tpu\n", "unknown device 'tpu'"},
    {"config", "task=s3\nmodel=bdlru\nbatch=16000000\ndim=65536\n", "the machine has"},
    {"dtype", "fp64", "holds fp64 weights, and this program computes in fp32; lrnn-f64 reads them"},
};
#define N_METADATA ((int)(sizeof bad_metadata / sizeof bad_metadata[0]))

START_TEST(bad_metadata_is_refused_with_its_reason) {
    struct doctored d;
    take_apart(&d);
    set_pair(&d, bad_metadata[_i].key, bad_metadata[_i].value);
    refused(&d, bad_metadata[_i].message);
}
END_TEST

START_TEST(another_model_of_the_same_task_does_not_fit) {
    struct doctored d;
    take_apart(&d);
    edit_config(&d, "model.blocks=3", "model.blocks=4");
    refused(&d, "wrong: layers.0.mixer.");
}
END_TEST

START_TEST(changed_weights_and_a_changed_configuration_are_said) {
    struct doctored d;
    take_apart(&d);
    for (int i = 0; i < d.n; i++)
        if (!strcmp(d.sources[i].name, "head.bias")) d.values[i][2] += 1;
    put_together(&d);
    char command[SCRATCH_BYTES + 64];
    snprintf(command, sizeof command, "import %s", exported);
    expect_status(run_program(folder, named_program("LRNN", "./lrnn"), command), ST_DATA, command);
    expect_text(out, "test accuracy 0.", command);
    expect_text(err, "its weights are not those that were exported", command);
    take_apart(&d);
    set_pair(&d, "values_xxh3", NULL);
    put_together(&d);
    expect(0, "import @/w.safetensors", "they differ from the run's record: val accuracy 0.", NULL);
    take_apart(&d);
    edit_config(&d, "\nseed=1\n", "\nseed=2\n");
    put_together(&d);
    expect(0, "import @/w.safetensors --json", "\"recorded\":\"different\"", "its configuration is that of run");
}
END_TEST

/* A task of macro accuracy: it comes first wherever a number of the run is said, and is compared. */
START_TEST(what_a_task_is_measured_by_is_named_and_compared) {
    struct safetensors f;
    char command[512];
    glob_t found;
    scratch_remove(folder);
    scratch_make(folder);
    snprintf(exported, sizeof exported, "%s/w.safetensors", folder);
    expect(0,
           "train compression:vocab=6,length=6,n_train=200,n_val=64,n_test=64 lstm:hidden=8 --dim 16 --epochs 3 "
           "--quiet --out @/r",
           "; test macro accuracy 0.", NULL);
    ck_assert_ptr_nonnull(strstr(out, ", token accuracy 0."));
    snprintf(command, sizeof command, "%s/r/runs/*/*.json", folder);
    ck_assert_int_eq(glob(command, 0, NULL, &found), 0);
    snprintf(command, sizeof command, "export %s @/w.safetensors", found.gl_pathv[0]);
    expect(0, command, "exported run ", NULL);
    snprintf(command, sizeof command, "train -c %s --quiet --json --out @/r", found.gl_pathv[0]);
    expect(0, command, "\"metric\":\"macro_acc\",\"metric_value\":0.", NULL);
    globfree(&found);
    read_file(&f, exported);
    ck_assert(safetensors_metadata(&f, "val_macro_acc") && safetensors_metadata(&f, "test_macro_acc"));
    safetensors_free(&f);
    expect(0, "import @/w.safetensors", "\ntest macro accuracy 0.", NULL);
    ck_assert_ptr_nonnull(strstr(out, "equal the run's record"));
    expect(0, "import @/w.safetensors --json", "\"metric\":\"macro_acc\",\"val_acc\":", NULL);
    ck_assert(strstr(out, "\"val_macro_acc\":0.") && strstr(out, "\"test_macro_acc\":0."));
    struct doctored d;
    take_apart(&d);
    set_pair(&d, "test_macro_acc", "0.5");
    put_together(&d);
    expect(0, "import @/w.safetensors", "they differ from the run's record: val macro accuracy 0.", NULL);
    ck_assert_ptr_nonnull(strstr(out, ", test macro accuracy 0.5\n"));
}
END_TEST

START_TEST(a_torn_file_is_refused) {
    size_t size;
    char *bytes = slurp(exported, &size);
    spill(exported, bytes, size - 4);
    free(bytes);
    expect(5, "import @/w.safetensors", NULL, "w.safetensors: offset ");
}
END_TEST

Suite *check_export(void) {
    Suite *suite = suite_create("export");
    TCase *commands = tcase_create("commands");
    TCase *logs = tcase_create("logs");
    tcase_add_test(logs, a_log_counts_epochs_as_the_trainer_does);
    suite_add_tcase(suite, logs);
    tcase_add_checked_fixture(commands, set_up_run, tear_down_run);
    tcase_add_test(commands, an_import_says_that_it_equals_the_run);
    tcase_add_test(commands, weights_of_each_kind_can_be_imported);
    tcase_add_test(commands, the_other_precision_draws_other_weights);
    tcase_add_test(commands, a_run_is_found_by_each_of_its_names);
    tcase_add_loop_test(commands, a_wrong_call_is_one_clear_sentence, 0, N_WRONG);
    tcase_add_test(commands, altered_weights_are_not_exported);
    tcase_add_test(commands, an_altered_record_is_not_believed);
    tcase_add_test(commands, an_id_of_two_runs_and_one_of_an_unfinished_run_are_refused);
    tcase_add_test(commands, a_missing_an_extra_and_a_misshapen_tensor_are_named_together);
    tcase_add_test(commands, many_missing_tensors_are_counted);
    tcase_add_test(commands, another_dtype_is_named);
    tcase_add_test(commands, a_value_that_is_not_finite_is_named);
    tcase_add_test(commands, a_loss_that_is_none_is_null);
    tcase_add_loop_test(commands, bad_metadata_is_refused_with_its_reason, 0, N_METADATA);
    tcase_add_test(commands, another_model_of_the_same_task_does_not_fit);
    tcase_add_test(commands, changed_weights_and_a_changed_configuration_are_said);
    tcase_add_test(commands, what_a_task_is_measured_by_is_named_and_compared);
    tcase_add_test(commands, a_torn_file_is_refused);
    suite_add_tcase(suite, commands);
    return suite;
}
