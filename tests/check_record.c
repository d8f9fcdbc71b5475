/* check_record.c - the store of run records: what was written comes back, what was damaged is found, many writers do not
 * lose a run, a full disk or a kill leaves nothing half-visible; and the CSV files made from it. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/batch.h"
#include "core/philox.h"
#include "harness/csv.h"
#include "harness/files.h"
#include "harness/record.h"
#include "harness/record_json.h"
#include "harness/record_table.h"
#include "tests/scratch.h"
#include "tests/testing.h"

static char out[SCRATCH_BYTES]; /* a folder of the test's own */
static struct error problem;

static void make_out(void) {
    scratch_make(out);
}

static void remove_out(void) {
    scratch_remove(out);
}

/* What the store says on stderr goes to this file from here on. */
static const char *catch_stderr(void) {
    static char path[128];
    snprintf(path, sizeof path, "%s/stderr", out);
    ck_assert_ptr_nonnull(freopen(path, "w", stderr));
    return path;
}

static void ck_ok(enum status status) {
    ck_assert_msg(status == ST_OK, "status %d: %s", status, problem.text);
}

static char *slurp(const char *path, size_t *size) {
    char *bytes;
    ck_ok(file_read(path, 1 << 24, &bytes, size, &problem));
    return bytes;
}

static void spill(const char *path, const void *bytes, size_t size) {
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}

static void record_id(int i, char id[RUN_ID_HEX]) {
    char text[32];
    snprintf(text, sizeof text, "run %d", i);
    record_hash(text, id);
}

/* A record with a value of its own in every field, awkward ones among them; two curve points, one evaluation. */
static void fill_record(struct run_record *r, struct curve_point curve[2], struct eval_point evals[1], int i) {
    int k = 0;
    record_init(r);
    for (const struct field *field = runs_table.fields; field->name; field++, k++) {
        void *value = (char *)&r->run + field->offset;
        if (field->type == FIELD_INT) *(int64_t *)value = 1000 * i + k;
        if (field->type == FIELD_U64) *(uint64_t *)value = UINT64_MAX - (uint64_t)k;
        if (field->type == FIELD_REAL) *(double *)value = 1.0 / (i + k + 3);
        if (field->type == FIELD_TEXT) snprintf(value, field->size, "\"%d\",\n\\\xC3\xA9%s", k, field->name);
    }
    record_id(i, r->run.run_id);
    r->run.schema = RECORD_SCHEMA;
    r->run.status = RUN_TIMEOUT;
    r->run.n_val = -1;
    r->run.energy_j = NAN;
    r->run.train_loss = INFINITY;
    r->run.val_loss = -INFINITY;
    r->run.test_loss = 4.9406564584124654e-324;
    r->run.wall_s = -0.0;
    snprintf(r->run.started, sizeof r->run.started, "2024-01-01T00:%02d:%02dZ", i / 60 % 60, i % 60);
    snprintf(r->config, sizeof r->config, "lr=0.001\ntask=s5\n");
    snprintf(r->identity, sizeof r->identity, "identity of %d", i);
    curve[0] = (struct curve_point){10, 1600, 0.5, SPLIT_VAL, 0.1, 0.9, NAN, 0.3, 0.7, 1e-3, 2.5, NAN, "eval"};
    curve[1] = (struct curve_point){20, 3200, 1.0, SPLIT_TEST, 1e-17, 1, 1, 1, 1, 1e-3, INFINITY, 1e6, "stop"};
    evals[0] = (struct eval_point){20, SPLIT_TEST, 32, 2000, "length", 0.25, 0.5, 0.5, 0.125, 0.75};
    r->curve = curve;
    r->n_curve = 2;
    r->evals = evals;
    r->n_evals = 1;
}

/* In a process that a test forked only this one may be used: libcheck's messages are the test's own. */
static enum status try_write(int i) {
    struct run_record r;
    struct curve_point curve[2];
    struct eval_point evals[1];
    fill_record(&r, curve, evals, i);
    return record_write(out, &r, &problem);
}

static void write_record(int i) {
    ck_ok(try_write(i));
}

static void id_path(int i, char path[PATH_BYTES]) {
    char id[RUN_ID_HEX];
    record_id(i, id);
    record_path(out, id, path, PATH_BYTES);
}

static enum record_state check(int i) {
    char id[RUN_ID_HEX];
    record_id(i, id);
    return record_check(out, id);
}

static void ck_same_object(const struct table *table, const void *a, const void *b, size_t size) {
    for (const struct field *field = table->fields; field->name; field++)
        if (field_within(field, size)) ck_assert_msg(field_equal(field, a, b), "field %s differs", field->name);
}

static void ck_same_record(const struct run_record *a, const struct run_record *b) {
    ck_same_object(&runs_table, &a->run, &b->run, sizeof a->run);
    ck_assert_str_eq(a->config, b->config);
    ck_assert_str_eq(a->identity, b->identity);
    ck_assert_int_eq(a->n_curve, b->n_curve);
    ck_assert_int_eq(a->n_evals, b->n_evals);
    for (int64_t i = 0; i < a->n_curve; i++) ck_same_object(&curves_table, &a->curve[i], &b->curve[i], sizeof *a->curve);
    for (int64_t i = 0; i < a->n_evals; i++) ck_same_object(&evals_table, &a->evals[i], &b->evals[i], sizeof *a->evals);
}

/* --- what was written comes back ------------------------------------------------------------------------------------ */

START_TEST(every_field_comes_back) {
    struct run_record r, got;
    struct curve_point curve[2];
    struct eval_point evals[1];
    struct arena arena = {0};
    char path[PATH_BYTES];
    fill_record(&r, curve, evals, 7);
    ck_ok(record_write(out, &r, &problem));
    ck_ok(arena_reserve(&arena, 1 << 20, &problem));
    id_path(7, path);
    ck_ok(record_read(path, &got, &arena, &problem));
    ck_same_record(&r, &got);
    ck_assert_int_eq(check(7), RECORD_DONE);
    ck_assert_int_eq(check(8), RECORD_ABSENT);
    ck_assert_int_eq(scratch_count(out, ""), 1); /* no temporary file stays */
    arena_free(&arena);
}
END_TEST

START_TEST(a_record_without_values_comes_back) {
    struct run_record r, got;
    struct arena arena = {0};
    char path[PATH_BYTES];
    record_init(&r);
    record_id(1, r.run.run_id);
    ck_ok(record_write(out, &r, &problem));
    ck_ok(arena_reserve(&arena, 1 << 20, &problem));
    id_path(1, path);
    ck_ok(record_read(path, &got, &arena, &problem));
    ck_same_record(&r, &got);
    ck_assert_double_nan(got.run.test_acc);
    ck_assert_int_eq(got.run.params, -1);
    arena_free(&arena);
}
END_TEST

START_TEST(text_that_is_not_utf8_is_stored_with_question_marks) {
    struct run_record r;
    struct record_set set;
    record_init(&r);
    record_id(1, r.run.run_id);
    strcpy(r.run.task, "s5\xFF");
    ck_ok(record_write(out, &r, &problem));
    ck_ok(records_load(&set, out, &problem));
    ck_assert_str_eq(set.list[0].run.task, "s5?");
    records_free(&set);
}
END_TEST

START_TEST(records_are_loaded_by_start_then_id) {
    struct record_set set;
    ck_ok(records_load(&set, out, &problem)); /* no folder yet */
    ck_assert_int_eq(set.n, 0);
    records_free(&set);
    for (int i = 0; i < 30; i++) write_record((i * 7) % 30);
    ck_ok(records_load(&set, out, &problem));
    ck_assert_int_eq(set.n, 30);
    for (int i = 0; i < 30; i++) {
        char id[RUN_ID_HEX];
        record_id(i, id);
        ck_assert_str_eq(set.list[i].run.run_id, id);
        ck_assert_int_eq(set.list[i].n_curve, 2);
        ck_assert_double_eq(set.list[i].curve[0].acc, 0.9);
    }
    records_free(&set);
}
END_TEST

START_TEST(the_first_record_of_an_id_is_kept) {
    struct run_record r;
    struct record_set set;
    write_record(3);
    record_init(&r);
    record_id(3, r.run.run_id);
    r.run.test_acc = 0.125;
    ck_ok(record_write(out, &r, &problem));
    ck_ok(records_load(&set, out, &problem));
    ck_assert_int_eq(set.n, 1);
    ck_assert_double_ne(set.list[0].run.test_acc, 0.125);
    records_free(&set);
    ck_assert_int_eq(scratch_count(out, ""), 1);
}
END_TEST

START_TEST(an_id_that_is_no_id_is_refused) {
    const char *const bad[] = {"", "abc", "../../../../../../../../etc/pass", "ABCDEF0123456789ABCDEF0123456789"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct run_record r;
        record_init(&r);
        strcpy(r.run.run_id, bad[i]);
        ck_assert_int_eq(record_write(out, &r, &problem), ST_FAIL);
        ck_assert_int_eq(record_check(out, bad[i]), RECORD_ABSENT);
    }
    ck_assert_int_eq(scratch_count(out, ""), 0);
}
END_TEST

/* --- damage --------------------------------------------------------------------------------------------------------- */

START_TEST(every_truncation_is_found_and_set_aside) {
    char path[PATH_BYTES], aside[PATH_BYTES + 16];
    size_t size;
    write_record(0);
    id_path(0, path);
    snprintf(aside, sizeof aside, "%s.corrupt", path);
    char *whole = slurp(path, &size);
    catch_stderr();
    for (size_t n = 0; n < size; n++) {
        spill(path, whole, n);
        ck_assert_msg(check(0) == RECORD_WAS_CORRUPT, "cut to %zu of %zu bytes", n, size);
        ck_assert_msg(access(path, F_OK) != 0, "cut to %zu bytes: still in place", n);
        struct stat info;
        ck_assert_int_eq(stat(aside, &info), 0);
        ck_assert_uint_eq((size_t)info.st_size, n);
        ck_assert_int_eq(unlink(aside), 0);
    }
    spill(path, whole, size);
    ck_assert_int_eq(check(0), RECORD_DONE);
    free(whole);
}
END_TEST

START_TEST(every_flipped_bit_is_found_or_changes_nothing) {
    struct run_record r, got;
    struct curve_point curve[2];
    struct eval_point evals[1];
    struct arena arena = {0};
    size_t size;
    char *text, path[] = "flipped";
    int found = 0;
    fill_record(&r, curve, evals, 1);
    ck_ok(arena_reserve(&arena, 1 << 20, &problem));
    ck_ok(record_format(&r, &text, &size, &problem));
    for (int i = 0; i < 10000; i++) {
        struct rng rng = rng_at(1, STREAM_TEST, (uint64_t)i);
        size_t at = rng_below(&rng, size);
        char bit = (char)(1 << rng_below(&rng, 8));
        text[at] ^= bit;
        size_t mark = arena_mark(&arena);
        enum status status = record_parse(text, size, path, r.run.run_id, &got, &arena, &problem);
        ck_assert_msg(status == ST_OK || status == ST_DATA, "byte %zu: status %d", at, status);
        if (status == ST_OK) ck_same_record(&r, &got);
        found += status == ST_DATA;
        arena_release(&arena, mark);
        text[at] ^= bit;
    }
    ck_assert_int_ge(found, 9900); /* the rest: e and E of an exponent */
    ck_ok(record_parse(text, size, path, r.run.run_id, &got, &arena, &problem));
    free(text);
    arena_free(&arena);
}
END_TEST

START_TEST(a_damaged_record_is_named_kept_and_done_again) {
    char path[PATH_BYTES], aside[PATH_BYTES + 16];
    const char *said = catch_stderr();
    size_t size;
    id_path(5, path);
    for (int i = 1; i <= 3; i++) {
        write_record(5);
        spill(path, "{}\n", (size_t)i);
        ck_assert_int_eq(check(5), RECORD_WAS_CORRUPT);
        ck_assert_int_eq(check(5), RECORD_ABSENT);
        snprintf(aside, sizeof aside, i == 1 ? "%s.corrupt" : "%s.corrupt.%d", path, i);
        char *kept = slurp(aside, &size);
        ck_assert_uint_eq(size, (size_t)i);
        free(kept);
        fflush(stderr);
        char *text = slurp(said, &size);
        ck_assert_ptr_nonnull(strstr(text, aside));
        free(text);
    }
    write_record(5); /* again */
    ck_assert_int_eq(check(5), RECORD_DONE);
}
END_TEST

START_TEST(a_write_over_a_damaged_record_replaces_it) {
    char path[PATH_BYTES];
    catch_stderr();
    write_record(5);
    id_path(5, path);
    spill(path, "damaged\n", 8);
    write_record(5);
    ck_assert_int_eq(check(5), RECORD_DONE);
    ck_assert_int_eq(scratch_count(out, ".corrupt"), 1);
}
END_TEST

START_TEST(a_record_under_another_name_is_damage) {
    char path[PATH_BYTES], other[PATH_BYTES], id[RUN_ID_HEX], folder[PATH_BYTES];
    struct record_set set;
    catch_stderr();
    write_record(1);
    id_path(1, path);
    record_id(2, id);
    id_path(2, other);
    path_folder(other, folder, sizeof folder);
    ck_ok(make_folder(folder, &problem));
    ck_assert_int_eq(rename(path, other), 0);
    ck_ok(records_load(&set, out, &problem));
    ck_assert_int_eq(set.n, 0);
    records_free(&set);
    ck_assert_int_eq(check(2), RECORD_ABSENT);
    ck_assert_int_eq(scratch_count(out, ".corrupt"), 1);
}
END_TEST

START_TEST(a_record_of_a_later_schema_is_left_alone) {
    struct run_record r;
    struct record_set set;
    struct arena arena = {0};
    char path[PATH_BYTES];
    catch_stderr();
    record_init(&r);
    record_id(1, r.run.run_id);
    r.run.schema = RECORD_SCHEMA + 1;
    ck_ok(record_write(out, &r, &problem));
    ck_assert_int_eq(check(1), RECORD_DONE);
    ck_ok(records_load(&set, out, &problem));
    ck_assert_int_eq(set.n, 0);
    records_free(&set);
    id_path(1, path);
    ck_assert_int_eq(access(path, R_OK), 0);
    ck_ok(arena_reserve(&arena, 1 << 16, &problem));
    ck_assert_int_eq(record_read(path, &r, &arena, &problem), ST_DATA);
    arena_free(&arena);
}
END_TEST

START_TEST(a_record_with_duplicate_keys_is_damage) {
    char path[PATH_BYTES];
    size_t size;
    catch_stderr();
    write_record(1);
    id_path(1, path);
    char *text = slurp(path, &size), *longer = malloc(size + 32);
    int n = sprintf(longer, "{\"config\":\"\",%s", text + 1);
    spill(path, longer, (size_t)n);
    ck_assert_int_eq(check(1), RECORD_WAS_CORRUPT);
    free(text);
    free(longer);
}
END_TEST

/* --- hard times ----------------------------------------------------------------------------------------------------- */

START_TEST(an_unwritable_folder_is_named) {
    struct run_record r;
    char blocked[PATH_BYTES], good[sizeof out];
    record_init(&r);
    record_id(1, r.run.run_id);
    snprintf(blocked, sizeof blocked, "%s/file", out);
    spill(blocked, "", 0);
    ck_assert_int_eq(record_write(blocked, &r, &problem), ST_FAIL);
    ck_assert_ptr_nonnull(strstr(problem.text, blocked));
    ck_assert_int_eq(record_write("/proc/lrnn", &r, &problem), ST_FAIL);
    ck_assert_ptr_nonnull(strstr(problem.text, "/proc/lrnn"));
    strcpy(good, out);
    ck_assert_int_eq(make_folder(good, &problem), ST_OK);
}
END_TEST

/* No file may grow beyond `bytes`: writes fail as on a full disk. libcheck's own file is under it too, so the test lifts
 * it before it asserts anything. */
static void limit_files(rlim_t bytes) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

START_TEST(a_full_disk_loses_nothing_and_leaves_nothing_half_visible) {
    struct run_record r;
    struct curve_point curve[2];
    struct eval_point evals[1];
    struct record_set set;
    struct perf_row row = {.cell_id = "c", .tok_per_s = 5, .samples = 30};
    char path[PATH_BYTES];
    size_t before, after;
    signal(SIGXFSZ, SIG_IGN);
    write_record(0);
    ck_ok(perf_append(out, &row, &problem));
    ck_ok(records_load(&set, out, &problem));
    ck_ok(records_export_csv(&set, out, &problem));
    snprintf(path, sizeof path, "%s/perf.csv", out);
    free(slurp(path, &before));
    fill_record(&r, curve, evals, 1);
    for (rlim_t bytes = 0; bytes < 1000; bytes += 37) {
        struct error why[2];
        limit_files(bytes);
        enum status written = record_write(out, &r, &why[0]), exported = records_export_csv(&set, out, &why[1]);
        limit_files(RLIM_INFINITY);
        ck_assert_int_eq(written, ST_FAIL);
        ck_assert_int_eq(exported, ST_FAIL);
        ck_assert_ptr_nonnull(strstr(why[0].text, out));
        ck_assert_ptr_nonnull(strstr(why[1].text, "runs.csv: File too large"));
        ck_assert_int_eq(scratch_count(out, ".tmp"), 0);
    }
    limit_files(before + 10); /* a part of the row fits */
    enum status appended = perf_append(out, &row, &problem);
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(appended, ST_FAIL);
    free(slurp(path, &after));
    ck_assert_uint_eq(after, before);
    records_free(&set);
    ck_assert_int_eq(check(0), RECORD_DONE);
    ck_assert_int_eq(check(1), RECORD_ABSENT);
    ck_ok(record_write(out, &r, &problem));
    ck_assert_int_eq(check(1), RECORD_DONE);
}
END_TEST

#define WRITERS 16
#define RUNS 50
#define SHARED 5

START_TEST(sixteen_writers_lose_no_run) {
    for (int p = 0; p < WRITERS; p++)
        if (fork() == 0) {
            for (int i = 0; i < RUNS; i++) {
                if (try_write(SHARED + p * RUNS + i) != ST_OK) _exit(1);
                if (i % 10 == 0 && try_write(i / 10) != ST_OK) _exit(1); /* the same ones in every process */
            }
            _exit(0);
        }
    for (int p = 0; p < WRITERS; p++) {
        int state;
        ck_assert_int_gt(wait(&state), 0);
        ck_assert_int_eq(state, 0);
    }
    struct record_set set;
    ck_ok(records_load(&set, out, &problem));
    ck_assert_int_eq(set.n, SHARED + WRITERS * RUNS);
    records_free(&set);
    for (int i = 0; i < SHARED + WRITERS * RUNS; i++) ck_assert_int_eq(check(i), RECORD_DONE);
    ck_assert_int_eq(scratch_count(out, ""), SHARED + WRITERS * RUNS);
}
END_TEST

START_TEST(kills_at_any_moment_lose_no_finished_run) {
    int next = 0, killed_inside = 0;
    for (int kill_number = 0; kill_number < 60; kill_number++) {
        int ends[2], first = next;
        ck_assert_int_eq(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            for (int i = first;; i++) {
                if (try_write(i) != ST_OK) _exit(1);
                if (write(ends[1], &i, sizeof i) != sizeof i) _exit(1); /* this one is reported done */
            }
        }
        struct rng rng = rng_at(2, STREAM_TEST, (uint64_t)kill_number);
        usleep((useconds_t)(500 + rng_below(&rng, 8000)));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        close(ends[1]);
        for (int i; read(ends[0], &i, sizeof i) == sizeof i;) next = i + 1;
        close(ends[0]);
        for (int i = first; i < next; i++) ck_assert_int_eq(check(i), RECORD_DONE);
        enum record_state state = check(next); /* the one under way: whole, or not there */
        ck_assert_int_ne(state, RECORD_WAS_CORRUPT);
        killed_inside += state == RECORD_ABSENT;
        next += state == RECORD_DONE;
    }
    struct record_set set;
    ck_ok(records_load(&set, out, &problem));
    ck_assert_int_eq(set.n, next);
    records_free(&set);
    ck_assert_int_gt(next, 0);
    ck_assert_int_gt(killed_inside, 0);
}
END_TEST

/* --- CSV ------------------------------------------------------------------------------------------------------------ */

#define RUNS_HEADER                                                                                                    \
    "schema,run_id,cell_id,sweep,suite,task,task_version,model,layers,seed,data_seed,split_hash,n_train,n_val,n_test," \
    "vocab,len_train,len_test,d_model,n_layers,block,rank,order,params,params_nonemb,state_floats,optimizer,lr,"       \
    "schedule,warmup_steps,weight_decay,beta1,beta2,grad_clip,batch,max_steps,dtype,status,status_detail,stop_reason," \
    "steps,tokens,best_step,solved_step,train_loss,val_loss,test_loss,train_acc,val_acc,test_acc,test_macro_acc,"      \
    "test_seq_acc,test_last_acc,profile,backbone,mlp,norm,metric,metric_value,solved,wall_s,train_s,eval_s,data_s,"    \
    "step_ms_med,step_ms_mad,step_ms_p95,tok_per_s,flop_step,tflops,peak_dev_bytes,peak_host_bytes,energy_j,backend,"  \
    "device,machine_id,threads,deterministic,version,numerics,git_commit,git_dirty,build_id,compiler,cuda,driver,"     \
    "kernel,env_epoch,started,finished,attempt,resumed,ckpt,ckpt_xxh3\n"
#define CURVES_HEADER                                                                                                  \
    "schema,run_id,step,tokens,wall_s,split,loss,acc,seq_acc,ppl,lr,grad_norm,update_ratio,tok_per_s,dev_bytes,event," \
    "macro_acc,last_acc\n"
#define EVALS_HEADER "schema,run_id,step,split,length,difficulty,n,loss,acc,seq_acc,macro_acc,last_acc\n"
#define PERF_HEADER                                                                                                    \
    "schema,sitting,bench,shape,dtype,pass,arm,pair,order,time_ns,sm_mhz,temp_c,throttled,commit,build_id,machine_id," \
    "started,samples,time_ns_mad,time_ns_p95,tok_per_s,threads,cell_id\n"

static void ck_file_starts(const char *name, const char *start) {
    char path[PATH_BYTES];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", out, name);
    char *text = slurp(path, &size);
    ck_assert_msg(strncmp(text, start, strlen(start)) == 0, "%s: expected\n%s got\n%.2000s", name, start, text);
    free(text);
}

START_TEST(headers_are_golden) {
    struct record_set set;
    struct perf_row row = {.tok_per_s = NAN};
    ck_ok(records_load(&set, out, &problem));
    ck_ok(records_export_csv(&set, out, &problem));
    ck_ok(perf_append(out, &row, &problem));
    ck_file_starts("runs.csv", RUNS_HEADER);
    ck_file_starts("curves.csv", CURVES_HEADER);
    ck_file_starts("evals.csv", EVALS_HEADER);
    ck_file_starts("perf.csv", PERF_HEADER);
    records_free(&set);
}
END_TEST

START_TEST(curve_and_evaluation_rows_are_golden) {
    struct record_set set;
    char id[RUN_ID_HEX], want[1024];
    write_record(2);
    record_id(2, id);
    ck_ok(records_load(&set, out, &problem));
    ck_ok(records_export_csv(&set, out, &problem));
    snprintf(want, sizeof want, CURVES_HEADER "1,%s,10,1600,0.5,val,0.1,0.9,0.3,1.1051709180756477,0.001,2.5,,,,eval,,0.7\n"
             "1,%s,20,3200,1,test,1e-17,1,1,1,0.001,inf,,1000000,,stop,1,1\n", id, id);
    char path[PATH_BYTES];
    size_t size;
    snprintf(path, sizeof path, "%s/curves.csv", out);
    char *text = slurp(path, &size);
    ck_assert_str_eq(text, want);
    free(text);
    snprintf(want, sizeof want, EVALS_HEADER "1,%s,20,test,32,length,2000,0.25,0.5,0.125,0.5,0.75\n", id);
    snprintf(path, sizeof path, "%s/evals.csv", out);
    text = slurp(path, &size);
    ck_assert_str_eq(text, want);
    free(text);
    records_free(&set);
}
END_TEST

START_TEST(cells_of_runs_csv_come_back) {
    struct record_set set;
    struct csv_table t;
    char path[PATH_BYTES];
    write_record(2);
    ck_ok(records_load(&set, out, &problem));
    ck_ok(records_export_csv(&set, out, &problem));
    snprintf(path, sizeof path, "%s/runs.csv", out);
    ck_ok(csv_read(&t, path, &problem));
    ck_assert_int_eq(t.rows, 1);
    const struct run *run = &set.list[0].run;
    for (const struct field *field = runs_table.fields; field->name; field++) {
        const void *value = (const char *)run + field->offset;
        const char *cell = csv_cell(&t, 0, field->name);
        if (field->type == FIELD_TEXT) ck_assert_str_eq(csv_text_plain(cell), value);
        if (field->type == FIELD_U64) ck_assert_uint_eq(strtoull(cell, NULL, 10), *(const uint64_t *)value);
        if (field->type == FIELD_REAL && *cell) ck_assert_double_eq(strtod(cell, NULL), *(const double *)value);
        if (field->type == FIELD_REAL && !*cell) ck_assert_double_nan(*(const double *)value);
        if (field->type == FIELD_INT) ck_assert_int_eq(*cell ? strtoll(cell, NULL, 10) : -1, *(const int64_t *)value);
    }
    ck_assert_str_eq(csv_cell(&t, 0, "status"), "timeout");
    ck_assert_str_eq(csv_cell(&t, 0, "n_val"), "");
    ck_assert_str_eq(csv_cell(&t, 0, "train_loss"), "inf");
    ck_assert_str_eq(csv_cell(&t, 0, "val_loss"), "-inf");
    csv_free(&t);
    records_free(&set);
}
END_TEST

START_TEST(text_cells_are_quoted_and_never_formulas) {
    static const char *const texts[][2] = {
        {"plain", "plain"},         {"a,b", "\"a,b\""},         {"a\"b", "\"a\"\"b\""}, {"two\nlines", "\"two\nlines\""},
        {"=1+1", "'=1+1"},          {"+1", "'+1"},              {"-x", "'-x"},          {"@SUM(A1)", "'@SUM(A1)"},
        {"'quoted", "''quoted"},    {"\ttab", "'\ttab"},        {"\rcr", "\"'\rcr\""},  {"", ""},
        {"=\"a\",b", "\"'=\"\"a\"\",b\""}, {"a=b", "a=b"},      {" =1", " =1"},
    };
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/cells.csv", out);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t size;
        struct csv_table t;
        FILE *f = fopen(path, "w");
        fputs("a,b\n", f);
        csv_text(f, texts[i][0]);
        fputs(",end\n", f);
        fclose(f);
        char *text = slurp(path, &size), want[64];
        snprintf(want, sizeof want, "a,b\n%s,end\n", texts[i][1]);
        ck_assert_str_eq(text, want);
        free(text);
        ck_ok(csv_read(&t, path, &problem));
        ck_assert_int_eq(t.rows, 1);
        ck_assert_str_eq(csv_text_plain(csv_cell(&t, 0, "a")), texts[i][0]);
        ck_assert_str_eq(csv_cell(&t, 0, "b"), "end");
        csv_free(&t);
    }
}
END_TEST

START_TEST(csv_files_that_are_none_are_refused_with_the_line) {
    static const char *const bad[][2] = {{"", "header"},          {"a,b\n1\n", "line 2"}, {"a\n\"open\n", "line 2"},
                                         {"a\n\"x\"y\n", "line 2"}, {"a,b", "header"},     {"a\n\"x\ny\"\n1,2\n", "line 4"}};
    char path[PATH_BYTES];
    struct csv_table t;
    snprintf(path, sizeof path, "%s/bad.csv", out);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        spill(path, bad[i][0], strlen(bad[i][0]));
        ck_assert_int_eq(csv_read(&t, path, &problem), ST_DATA);
        ck_assert_msg(strstr(problem.text, bad[i][1]), "case %zu: %s", i, problem.text);
    }
    spill(path, "a,b\r\n1,\"2\"\r\n3,4", 17); /* CR LF from elsewhere; a torn last row */
    ck_ok(csv_read(&t, path, &problem));
    ck_assert_int_eq(t.rows, 1);
    ck_assert_str_eq(csv_cell(&t, 0, "b"), "2");
    ck_assert_str_eq(csv_cell(&t, 0, "none"), "");
    csv_free(&t);
}
END_TEST

START_TEST(schema_lists_every_column_with_unit_and_meaning) {
    static const char *const tables[][2] = {{"runs", RUNS_HEADER}, {"curves", CURVES_HEADER}, {"evals", EVALS_HEADER},
                                            {"perf", PERF_HEADER}};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        char *text = NULL, name[32], columns[4096] = "";
        size_t size;
        FILE *f = open_memstream(&text, &size);
        ck_ok(schema_print(tables[i][0], f, &problem));
        fclose(f);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
            ck_assert_int_eq(sscanf(line, "%31s", name), 1);
            ck_assert_uint_gt(strlen(line), 48); /* name, type, unit and something behind them */
            strcat(strcat(columns, *columns ? "," : ""), name);
        }
        ck_assert_str_eq(strcat(columns, "\n"), tables[i][1]);
        free(text);
    }
    ck_assert_int_eq(schema_print("walks", stdout, &problem), ST_USAGE);
}
END_TEST

/* --- perf.csv and machines.csv -------------------------------------------------------------------------------------- */

START_TEST(the_latest_speed_of_a_cell_is_found) {
    struct perf_row row = {.sitting = "s", .bench = "step bdlru:m=5,blocks=64", .shape = "B=128,T=16", .dtype = "fp32",
                           .pass = "step", .samples = 30, .time_ns_med = 1.5e7, .time_ns_mad = 1e5, .time_ns_p95 = 2e7,
                           .tok_per_s = 136533.3, .threads = 2, .commit = "abc", .build_id = "=-O3, \"x\"",
                           .machine_id = "0123456789abcdef", .started = "2024-01-01T00:00:00Z", .cell_id = "c1"};
    struct perf_row got;
    ck_assert(!perf_latest(out, "c1", &got));
    ck_ok(perf_append(out, &row, &problem));
    strcpy(row.cell_id, "c2");
    ck_ok(perf_append(out, &row, &problem));
    strcpy(row.cell_id, "c1");
    row.tok_per_s = 140000;
    ck_ok(perf_append(out, &row, &problem));
    ck_assert(perf_latest(out, "c1", &got));
    ck_assert_double_eq(got.tok_per_s, 140000);
    ck_assert_double_eq(got.time_ns_med, 1.5e7);
    ck_assert_double_eq(got.time_ns_mad, 1e5);
    ck_assert_double_eq(got.time_ns_p95, 2e7);
    ck_assert_int_eq(got.samples, 30);
    ck_assert_int_eq(got.threads, 2);
    ck_assert_str_eq(got.bench, row.bench);
    ck_assert_str_eq(got.shape, row.shape);
    ck_assert_str_eq(got.build_id, row.build_id);
    ck_assert_str_eq(got.started, row.started);
    ck_assert(perf_latest(out, "c2", &got));
    ck_assert_double_eq(got.tok_per_s, 136533.3);
    ck_assert(!perf_latest(out, "c3", &got));
}
END_TEST

START_TEST(eight_writers_of_perf_csv_lose_no_row) {
    for (int p = 0; p < 8; p++)
        if (fork() == 0) {
            for (int i = 0; i < 25; i++) {
                struct perf_row row = {.tok_per_s = 1};
                snprintf(row.cell_id, sizeof row.cell_id, "cell-%d-%d", p, i);
                if (perf_append(out, &row, NULL) != ST_OK) _exit(1);
            }
            _exit(0);
        }
    for (int p = 0, state; p < 8; p++) {
        ck_assert_int_gt(wait(&state), 0);
        ck_assert_int_eq(state, 0);
    }
    char path[PATH_BYTES];
    struct csv_table t;
    struct perf_row got;
    snprintf(path, sizeof path, "%s/perf.csv", out);
    ck_ok(csv_read(&t, path, &problem));
    ck_assert_int_eq(t.rows, 200);
    csv_free(&t);
    ck_assert(perf_latest(out, "cell-7-24", &got));
}
END_TEST

START_TEST(the_machine_is_the_same_every_time_and_listed_once) {
    struct machine m, again;
    struct csv_table t;
    char path[PATH_BYTES];
    machine_read(&m);
    machine_read(&again);
    ck_assert_str_eq(m.id, again.id);
    ck_assert_str_eq(m.env_epoch, again.env_epoch);
    ck_assert_uint_eq(strspn(m.id, "0123456789abcdef"), 16);
    ck_assert_uint_eq(strspn(m.env_epoch, "0123456789abcdef"), 16);
    ck_assert_int_ge(m.cores, 1);
    ck_assert_uint_gt(strlen(m.cpu), 0);
    ck_assert_uint_gt(strlen(m.kernel), 0);
    ck_ok(machines_export(out, &m, &problem));
    ck_ok(machines_export(out, &m, &problem));
    strcpy(again.env_epoch, "0000000000000000"); /* the same machine, another kernel */
    ck_ok(machines_export(out, &again, &problem));
    snprintf(path, sizeof path, "%s/machines.csv", out);
    ck_ok(csv_read(&t, path, &problem));
    ck_assert_int_eq(t.rows, 2);
    ck_assert_str_eq(csv_cell(&t, 0, "machine_id"), m.id);
    ck_assert_str_eq(csv_text_plain(csv_cell(&t, 0, "cpu")), m.cpu);
    csv_free(&t);
}
END_TEST

START_TEST(times_are_rfc_3339_and_run_forward) {
    char text[32];
    int year, month, day, hour, minute, second, used = 0;
    time_now_text(text, sizeof text);
    ck_assert_int_eq(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &year, &month, &day, &hour, &minute, &second, &used), 6);
    ck_assert_int_eq(used, 20);
    ck_assert_uint_eq(strlen(text), 20);
    ck_assert_int_ge(year, 2024);
    double before = time_now_s();
    usleep(2000);
    double passed = time_now_s() - before;
    ck_assert_double_ge(passed, 0.002);
    ck_assert_double_le(passed, 60);
}
END_TEST

START_TEST(the_hash_is_xxh3_128) {
    char hex[RUN_ID_HEX];
    record_hash("", hex); /* the empty input of the reference implementation's own table */
    ck_assert_str_eq(hex, "99aa06d3014798d86001c324468d497f");
}
END_TEST

static void add_all(TCase *c, const TTest *const *tests, size_t n) {
    for (size_t i = 0; i < n; i++) tcase_add_test(c, tests[i]);
}

Suite *check_record(void) {
    const TTest *const store[] = {
        every_field_comes_back, a_record_without_values_comes_back, text_that_is_not_utf8_is_stored_with_question_marks,
        records_are_loaded_by_start_then_id, the_first_record_of_an_id_is_kept, an_id_that_is_no_id_is_refused,
        every_truncation_is_found_and_set_aside, every_flipped_bit_is_found_or_changes_nothing,
        a_damaged_record_is_named_kept_and_done_again, a_write_over_a_damaged_record_replaces_it,
        a_record_under_another_name_is_damage, a_record_of_a_later_schema_is_left_alone,
        a_record_with_duplicate_keys_is_damage, an_unwritable_folder_is_named,
        a_full_disk_loses_nothing_and_leaves_nothing_half_visible, sixteen_writers_lose_no_run,
        kills_at_any_moment_lose_no_finished_run, headers_are_golden, curve_and_evaluation_rows_are_golden,
        cells_of_runs_csv_come_back, text_cells_are_quoted_and_never_formulas,
        csv_files_that_are_none_are_refused_with_the_line, schema_lists_every_column_with_unit_and_meaning,
        the_latest_speed_of_a_cell_is_found, eight_writers_of_perf_csv_lose_no_row,
        the_machine_is_the_same_every_time_and_listed_once, times_are_rfc_3339_and_run_forward, the_hash_is_xxh3_128,
    };
    Suite *s = suite_create("record");
    TCase *c = tcase_create("store");
    tcase_add_checked_fixture(c, make_out, remove_out);
    tcase_set_timeout(c, 120);
    add_all(c, store, sizeof store / sizeof store[0]);
    suite_add_tcase(s, c);
    return s;
}
