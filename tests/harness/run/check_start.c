/* check_start.c - where a run starts and ends: weights before the first step come out, the same weights go in, and the
 * weights of the last step come out, as a comparison of whole runs with another program needs. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/study/study.h"
#include "harness/run/train.h"
#include "harness/run/trainer.h"
#include "harness/run/weights.h"
#include "harness/store/record_files.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/program.h"
#include "tests/lib/scratch.h"
#include "tests/lib/support.h"

#define PATH (SCRATCH_BYTES + 64)

static const char *in_folder(const char *name) {
    static char path[PATH];
    snprintf(path, sizeof path, "%s/%s", own_folder, name);
    return path;
}

static void open_initial(struct trainer *t, const struct setup *s) {
    struct error e;
    ck_assert_msg(trainer_create_initial(t, s, &e) == ST_OK, "%s", e.text);
}

/* Parameters as a file of that dtype, the way another program would write them. */
static void write_params(const struct params *p, bool f64, const char *path) {
    struct st_source *sources = calloc((size_t)p->n, sizeof *sources);
    double *values = calloc((size_t)p->floats, sizeof *values);
    struct error e;
    for (int i = 0; i < p->n; i++) {
        const struct param *param = &p->list[i];
        param_to_contract(param, p->value + param->offset, values + param->offset);
        sources[i] = (struct st_source){
            .name = param->name, .rank = param->spec.rank, .f64 = f64, .values = values + param->offset};
        memcpy(sources[i].dims, param->spec.dims, sizeof sources[i].dims);
    }
    ck_assert_msg(safetensors_write(path, sources, p->n, NULL, 0, &e) == ST_OK, "%s", e.text);
    free(values);
    free(sources);
}

static void write_initial(const struct setup *s, bool f64, const char *path) {
    struct trainer t;
    open_initial(&t, s);
    write_params(&t.params, f64, path);
    trainer_free(&t);
}

static const struct {
    const char *model, *flag, *value; /* `flag` NULL: none */
    const char *info;                 /* what of it `lrnn info` has to know */
} nets[] = {{"bdlru:m=3,blocks=5", "dropout", "0.1", ""},
            {"hlru:m=2,channels=7,layout=observer", NULL, NULL, ""},
            {"lstm", "decay", "0.1", ""},
            {"slice:structure=sparse,keep=0.5", NULL, NULL, ""}, /* its mask is a constant */
            {"lru:state=6", "backbone", "s5", "--backbone s5"}}; /* running statistics */
#define N_NETS ((int)(sizeof nets / sizeof nets[0]))

static struct setup *net_run(int i, const char *from) {
    struct config c;
    struct error e;
    struct setup *plain = small_run(own_folder, "gelu", nets[i].model, nets[i].flag, nets[i].value);
    c = plain->spec.config;
    c.steps = 0;
    small_run_free(plain);
    ck_assert_int_eq(config_set(&c, "steps", "12", &e), ST_OK);
    ck_assert_int_eq(config_set(&c, "keep-weights", "all", &e), ST_OK);
    ck_assert(!*from || config_set(&c, "from", from, &e) == ST_OK);
    struct setup *s = setup_make(&c, SMALL_TASK, nets[i].model, &e);
    ck_assert_msg(s != NULL, "%s", e.text);
    return s;
}

static void run_it(struct setup *s, struct run_record *record, struct arena *arena) {
    struct error e;
    char path[512];
    ck_assert_msg(train_run(s, NULL, NULL, &e) == ST_OK, "%s", e.text);
    record_path(own_folder, s->id.run_id, path, sizeof path);
    ck_assert_int_eq(arena_reserve(arena, 1 << 24, &e), ST_OK);
    ck_assert_msg(record_read(path, record, arena, &e) == ST_OK, "%s", e.text);
}

static void load(struct params *p, const char *path) {
    struct safetensors file;
    struct error e;
    ck_assert_msg(safetensors_read(&file, path, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(weights_load(p, &file, path, &e) == ST_OK, "%s", e.text);
    safetensors_free(&file);
}

START_TEST(a_run_from_its_own_first_weights_has_the_same_bits) {
    static struct run_record drawn, read;
    struct arena arenas[2] = {0};
    struct trainer first, a, b;
    struct weights_count count;
    struct error e;
    struct setup *s = net_run(_i, "");
    run_it(s, &drawn, &arenas[0]);
    open_initial(&first, s);
    ck_assert_msg(weights_export_initial(&drawn, &first.params, in_folder("initial"), &count, &e) == ST_OK, "%s",
                  e.text);
    ck_assert_int_eq(count.tensors, first.params.n);

    struct setup *again = net_run(_i, in_folder("initial"));
    ck_assert_str_ne(again->id.run_id, s->id.run_id);
    ck_assert_msg(trainer_create(&a, s, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(trainer_create(&b, again, &e) == ST_OK, "%s", e.text);
    expect_same_bits(first.params.value, a.params.value, a.params.floats, "first weights");
    for (int step = 0; step < 12; step++) {
        expect_same_bits(a.params.value, b.params.value, a.params.floats, "weights");
        trainer_step(&a);
        trainer_step(&b);
        ck_assert(a.state.loss == b.state.loss && a.state.grad_norm == b.state.grad_norm);
    }
    run_it(again, &read, &arenas[1]);
    ck_assert(read.run.test_loss == drawn.run.test_loss && read.run.val_loss == drawn.run.val_loss);
    ck_assert_int_eq(read.run.best_step, drawn.run.best_step);
    trainer_free(&first);
    trainer_free(&a);
    trainer_free(&b);
    arena_free(&arenas[0]);
    arena_free(&arenas[1]);
    small_run_free(again);
    small_run_free(s);
}
END_TEST

/* The best and the last differ where a validation before the last was better. */
START_TEST(best_and_last_weights_are_those_of_their_steps) {
    static struct run_record record;
    struct arena arena = {0};
    struct trainer t, kept;
    struct error e;
    struct setup *s = net_run(_i, "");
    s->spec.config.lr = 0.3; /* rough enough that the last is not the best */
    s->shapes.eval_every = 1;
    run_it(s, &record, &arena);
    open_initial(&kept, s);
    ck_assert_msg(trainer_create(&t, s, &e) == ST_OK, "%s", e.text);
    static const enum weights_of which[] = {WEIGHTS_BEST, WEIGHTS_LAST};
    const int64_t steps[] = {record.run.best_step, 12};
    for (int i = 0; i < 2; i++) {
        while (t.state.step < steps[i]) trainer_step(&t);
        ck_assert_msg(weights_export(&record, which[i], own_folder, in_folder("w"), NULL, &e) == ST_OK, "%s", e.text);
        load(&kept.params, in_folder("w"));
        expect_same_bits(kept.params.value, t.params.value, t.params.floats, i ? "last" : "best");
    }
    trainer_free(&kept);
    trainer_free(&t);
    arena_free(&arena);
    small_run_free(s);
}
END_TEST

START_TEST(the_last_weights_are_kept_only_where_asked_for) {
    static struct run_record record;
    struct arena arena = {0};
    struct error e;
    struct setup *s = small_run(own_folder, "gelu", "lstm", NULL, NULL);
    run_it(s, &record, &arena);
    ck_assert_int_eq(scratch_count(own_folder, ".safetensors"), 1);
    ck_assert_int_eq(weights_export(&record, WEIGHTS_LAST, own_folder, in_folder("w"), NULL, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "--keep-weights all") != NULL, "%s", e.text);
    ck_assert_int_eq(access(in_folder("w"), F_OK), -1);
    arena_free(&arena);
    small_run_free(s);
}
END_TEST

/* The record's hash covers the best weights' file, which holds the hash of the other. */
START_TEST(altered_last_weights_are_refused) {
    static struct run_record record;
    struct arena arena = {0};
    struct error e;
    char path[PATH + RECORD_TEXT];
    size_t size;
    struct setup *s = net_run(0, "");
    run_it(s, &record, &arena);
    snprintf(path, sizeof path, "%s/weights/%s.last.safetensors", own_folder, s->id.run_id);
    char *bytes = slurp(path, &size);
    bytes[size - 1] ^= 1;
    spill(path, bytes, size);
    free(bytes);
    ck_assert_int_eq(weights_export(&record, WEIGHTS_LAST, own_folder, in_folder("w"), NULL, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "is cut off or altered") != NULL, "%s", e.text);
    ck_assert_int_eq(weights_export(&record, WEIGHTS_BEST, own_folder, in_folder("w"), NULL, &e), ST_OK);
    arena_free(&arena);
    small_run_free(s);
}
END_TEST

/* The identity is the content's: where the file lies, and what it is called, is not part of it. */
START_TEST(a_run_is_what_its_first_weights_hold) {
    struct setup *s = net_run(0, "");
    struct trainer t;
    write_initial(s, REAL_IS_DOUBLE, in_folder("a"));
    write_initial(s, REAL_IS_DOUBLE, in_folder("b"));
    struct setup *a = net_run(0, in_folder("a")), *b = net_run(0, in_folder("b"));
    ck_assert_str_eq(a->id.run_id, b->id.run_id);
    ck_assert_ptr_null(strstr(a->id.config_text, own_folder));
    char line[64];
    snprintf(line, sizeof line, "\nfrom-xxh3=%.32s\n", a->spec.config.from_xxh3);
    ck_assert_msg(strlen(a->spec.config.from_xxh3) == 32 && strstr(a->id.config_text, line), "%s", a->id.config_text);
    ck_assert_ptr_null(strstr(s->id.text, "\nfrom-xxh3="));
    open_initial(&t, s);
    t.params.value[0] += (real)1;
    write_params(&t.params, REAL_IS_DOUBLE, in_folder("b"));
    trainer_free(&t);
    struct setup *other = net_run(0, in_folder("b"));
    ck_assert_str_ne(a->id.run_id, other->id.run_id);

    struct error e; /* the file that b was resolved with is no longer there */
    ck_assert_int_eq(trainer_create(&t, b, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "changed while the run was set up") != NULL, "%s", e.text);
    trainer_free(&t);
    small_run_free(other);
    small_run_free(a);
    small_run_free(b);
    small_run_free(s);
}
END_TEST

/* A stored configuration has the content's name alone: it says what the file has to be, and needs it to run. */
START_TEST(a_stored_configuration_asks_for_the_file_that_it_names) {
    struct setup *s = net_run(0, "");
    struct trainer t;
    struct error e;
    write_initial(s, REAL_IS_DOUBLE, in_folder("a"));
    struct setup *from = net_run(0, in_folder("a"));
    struct setup *stored = setup_stored(from->id.config_text, "a record", 1, &e);
    ck_assert_msg(stored != NULL, "%s", e.text);
    ck_assert_str_eq(stored->id.run_id, from->id.run_id);
    ck_assert_int_eq(trainer_create(&t, stored, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, from->spec.config.from_xxh3) && strstr(e.text, "--from"), "%s", e.text);
    trainer_free(&t);
    spill(in_folder("b"), "other", 5);
    struct config c = from->spec.config;
    snprintf(c.from, sizeof c.from, "%s", in_folder("b"));
    ck_assert_ptr_null(setup_make(&c, SMALL_TASK, nets[0].model, &e));
    ck_assert_int_eq(e.status, ST_DATA);
    ck_assert_msg(strstr(e.text, from->spec.config.from_xxh3) != NULL, "%s", e.text);
    small_run_free(stored);
    small_run_free(from);
    small_run_free(s);
}
END_TEST

/* F32 is exact where double is computed; F64 would be rounded where float is. */
START_TEST(the_other_precision_is_exact_or_refused) {
    struct setup *s = net_run(0, "");
    struct trainer t;
    struct error e;
    write_initial(s, !REAL_IS_DOUBLE, in_folder("a"));
    struct setup *from = net_run(0, in_folder("a"));
    enum status status = trainer_create(&t, from, &e);
    ck_assert_int_eq(status, REAL_IS_DOUBLE ? ST_OK : ST_DATA);
    if (!REAL_IS_DOUBLE)
        ck_assert_msg(strstr(e.text, "embedding is F64, expected F32") && strstr(e.text, "lrnn-f64"), "%s", e.text);
    for (int64_t i = 0; REAL_IS_DOUBLE && i < t.params.floats; i++)
        if (t.params.value[i] != (real)(float)t.params.value[i]) ck_abort_msg("element %d is no float", (int)i);
    trainer_free(&t);
    small_run_free(from);
    small_run_free(s);
}
END_TEST

/* `lrnn info --json` lists every tensor of an exported file, by name, shape and use. */
START_TEST(info_names_what_a_file_has_to_hold) {
    struct setup *s = net_run(_i, "");
    struct trainer t;
    char arguments[512];
    snprintf(arguments, sizeof arguments, "info %s --task %s --dim 16 --mlp gelu --json %s", nets[_i].model, SMALL_TASK,
             nets[_i].info);
    ck_assert_msg(run_program(own_folder, named_program("LRNN", "./lrnn"), arguments) == 0, "%s", err);
    json_t *object = parse_line(out), *params = json_object_get(object, "params");
    open_initial(&t, s);
    ck_assert_int_eq((int)json_array_size(params), t.params.n);
    ck_assert_int_eq(whole(object, "trained"), params_trained(&t.params));
    for (int i = 0; i < t.params.n; i++) {
        const json_t *p = json_array_get(params, (size_t)i), *shape = json_object_get(p, "shape");
        const struct param *param = params_find(&t.params, json_string_value(json_object_get(p, "name")));
        ck_assert_msg(param && (int)json_array_size(shape) == param->spec.rank, "parameter %d of %s", i, out);
        for (int a = 0; a < param->spec.rank; a++)
            ck_assert_int_eq(json_integer_value(json_array_get(shape, (size_t)a)), param->spec.dims[a]);
        ck_assert_str_eq(json_string_value(json_object_get(p, "group")), param_group_names[param->spec.group]);
        const json_t *decays = json_object_get(p, "decay");
        struct param_rule rule = backbone_param_rule(&s->spec.config.net, param->spec.group);
        if (param->spec.group == PARAM_CONST) {
            ck_assert(!decays && !json_object_get(p, "rate"));
        } else {
            ck_assert_int_eq(json_is_true(decays), rule.decays);
            ck_assert_double_eq(number(p, "rate"), rule.rate);
        }
    }
    json_decref(object);
    free_output();
    trainer_free(&t);
    small_run_free(s);
}
END_TEST

Suite *check_start(void);
Suite *check_start(void) {
    Suite *suite = suite_create("start");
    TCase *c = tcase_create("start");
    tcase_add_checked_fixture(c, own_folder_begin, own_folder_end);
    tcase_add_loop_test(c, a_run_from_its_own_first_weights_has_the_same_bits, 0, N_NETS);
    tcase_add_loop_test(c, best_and_last_weights_are_those_of_their_steps, 0, N_NETS);
    tcase_add_test(c, the_last_weights_are_kept_only_where_asked_for);
    tcase_add_test(c, altered_last_weights_are_refused);
    tcase_add_test(c, a_run_is_what_its_first_weights_hold);
    tcase_add_test(c, a_stored_configuration_asks_for_the_file_that_it_names);
    tcase_add_test(c, the_other_precision_is_exact_or_refused);
    tcase_add_loop_test(c, info_names_what_a_file_has_to_hold, 0, N_NETS);
    suite_add_tcase(suite, c);
    return suite;
}
