/* check_record_csv.c - what is exported from run records, and the tables that grow by a row: golden headers and rows,
 * quoting, concurrent writers. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/logs.h"
#include "harness/store/record.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"
#include "tests/harness/store/record_samples.h"
#include "tests/lib/process.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

static char out[SCRATCH_BYTES];
static struct error problem;

static void make_out(void) {
    scratch_make(out);
}

static void remove_out(void) {
    scratch_remove(out);
}

static void ck_ok(enum status status) {
    ck_assert_msg(status == ST_OK, "status %d: %s", status, problem.text);
}

/* The store holds the second sample alone; it is loaded and exported. */
static void export_sample(struct record_set *set) {
    struct run_record r;
    struct curve_point curve[2];
    struct eval_point evals[1];
    sample_fill(&r, curve, evals, 2);
    ck_ok(record_write(out, &r, NULL, &problem));
    ck_ok(records_load(set, out, &problem));
    ck_ok(records_export_csv(set, out, &problem));
}

#define RUNS_HEADER                                                                                                    \
    "schema,run_id,cell_id,suite,task,task_version,model,layers,seed,data_seed,split_hash,n_train,n_val,n_test,"       \
    "vocab,len_train,len_test,d_model,n_layers,block,order,params,params_nonemb,state_floats,optimizer,lr,"            \
    "schedule,warmup_steps,weight_decay,beta1,beta2,grad_clip,batch,max_steps,dtype,status,status_detail,stop_reason," \
    "steps,tokens,best_step,solved_step,train_loss,val_loss,test_loss,val_acc,test_acc,test_macro_acc,"                \
    "test_seq_acc,test_last_acc,profile,backbone,mlp,norm,metric,metric_value,solved,wall_s,train_s,eval_s,data_s,"    \
    "step_ms_med,step_ms_mad,step_ms_p95,tok_per_s,flop_step,tflops,peak_dev_bytes,peak_host_bytes,backend,"           \
    "device,machine_id,threads,deterministic,version,numerics,git_commit,git_dirty,build_id,compiler,driver,"          \
    "kernel,env_epoch,started,finished,attempt,resumed,ckpt,ckpt_xxh3,chance,source_id,mixed_builds,"                  \
    "val_metric,seq_chance,test_nonfinite,former_id,walked,beside\n"
#define CURVES_HEADER                                                                                                  \
    "schema,run_id,step,tokens,wall_s,split,loss,acc,seq_acc,ppl,lr,grad_norm,tok_per_s,event,"                        \
    "macro_acc,last_acc,length\n"
#define EVALS_HEADER "schema,run_id,step,split,length,difficulty,n,loss,acc,seq_acc,macro_acc,last_acc\n"
#define PERF_HEADER                                                                                                    \
    "schema,sitting,bench,shape,dtype,pass,time_ns,commit,build_id,machine_id,"                                        \
    "started,samples,time_ns_mad,time_ns_p95,tok_per_s,threads,cell_id,foreign,warm_up,quiet,"                         \
    "source_id,compiler,device,env_epoch,best_ns,floor_ns,flops,bytes\n"

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
    export_sample(&set);
    sample_id(2, id);
    snprintf(want, sizeof want,
             CURVES_HEADER "3,%s,10,1600,0.5,val,0.1,0.9,0.3,1.1051709180756477,0.001,2.5,,eval,,0.7,0\n"
                           "3,%s,20,3200,1,test,1e-17,1,1,1,0.001,inf,1000000,stop,1,1,64\n",
             id, id);
    char path[PATH_BYTES];
    size_t size;
    snprintf(path, sizeof path, "%s/curves.csv", out);
    char *text = slurp(path, &size);
    ck_assert_str_eq(text, want);
    free(text);
    snprintf(want, sizeof want, EVALS_HEADER "3,%s,20,test,32,length,2000,0.25,0.5,0.125,0.5,0.75\n", id);
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
    export_sample(&set);
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
        {"plain", "plain"},
        {"a,b", "\"a,b\""},
        {"a\"b", "\"a\"\"b\""},
        {"two\nlines", "\"two\nlines\""},
        {"=1+1", "'=1+1"},
        {"+1", "'+1"},
        {"-x", "'-x"},
        {"@SUM(A1)", "'@SUM(A1)"},
        {"'quoted", "''quoted"},
        {"\ttab", "'\ttab"},
        {"\rcr", "\"'\rcr\""},
        {"", ""},
        {"=\"a\",b", "\"'=\"\"a\"\",b\""},
        {"a=b", "a=b"},
        {" =1", " =1"},
    };
    char path[PATH_BYTES], *printed;
    size_t printed_size;
    FILE *control = open_memstream(&printed, &printed_size);
    csv_text(control, "a\033[31mb\177\u202e"); /* a terminal would obey it */
    fclose(control);
    ck_assert_str_eq(printed, "a?[31mb??");
    free(printed);
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
    static const char *const bad[][2] = {
        {"", "bad.csv has no header row"},
        {"a,b", "bad.csv has no header row"},
        {"a,b\n1\n", "bad.csv, line 2: expected 2 cells as in the header, got 1"},
        {"a\n\"open\n", "bad.csv, line 2: a quoted cell does not end properly"},
        {"a\n\"x\"y\n", "bad.csv, line 2: a quoted cell does not end properly"},
        {"a\n\"x\ny\"\n1,2\n", "bad.csv, line 4: expected 1 cells as in the header, got 2"}};
    char path[PATH_BYTES];
    struct csv_table t;
    snprintf(path, sizeof path, "%s/bad.csv", out);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        spill(path, bad[i][0], strlen(bad[i][0]));
        ck_assert_int_eq(csv_read(&t, path, &problem), ST_DATA);
        ck_assert_msg(strstr(problem.text, bad[i][1]), "case %zu: %s", i, problem.text);
    }
}
END_TEST

/* The write of the last row may break off anywhere: before, in and after a quoted cell. The lines end in CR LF. */
START_TEST(a_torn_last_row_is_left_out) {
    static const char whole[] = "a,b\r\n1,\"2\"\r\n", last[] = "3,\"x \"\"y\"\" z\"";
    char path[PATH_BYTES], text[sizeof whole + sizeof last];
    struct csv_table t;
    snprintf(path, sizeof path, "%s/torn.csv", out);
    for (size_t n = 0; n < sizeof last; n++) {
        snprintf(text, sizeof text, "%s%.*s", whole, (int)n, last);
        spill(path, text, strlen(text));
        ck_ok(csv_read(&t, path, &problem));
        ck_assert_int_eq(t.rows, 1);
        ck_assert_str_eq(csv_cell(&t, 0, "b"), "2");
        ck_assert_str_eq(csv_cell(&t, 0, "none"), "");
        csv_free(&t);
    }
}
END_TEST

START_TEST(schema_lists_every_column_with_unit_and_meaning) {
    static const char *const tables[][2] = {
        {"runs", RUNS_HEADER}, {"curves", CURVES_HEADER}, {"evals", EVALS_HEADER}, {"perf", PERF_HEADER}};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        char *text = NULL, name[32], columns[4096] = "";
        size_t size;
        FILE *f = open_memstream(&text, &size);
        ck_ok(schema_print(tables[i][0], f, &problem));
        fclose(f);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
            ck_assert_int_eq(sscanf(line, "%31s", name), 1);
            ck_assert_uint_gt(strlen(line), 48); /* name, type, unit and something after them */
            strcat(strcat(columns, *columns ? "," : ""), name);
        }
        ck_assert_str_eq(strcat(columns, "\n"), tables[i][1]);
        free(text);
    }
    ck_assert_int_eq(schema_print("walks", stdout, &problem), ST_USAGE);
}
END_TEST

/* --- perf.csv and machines.csv ------------------------------------------------------------------------------------ */

START_TEST(the_latest_speed_of_a_cell_is_found) {
    struct perf_row row = {.sitting = "s",
                           .bench = "step bdlru:m=5,blocks=64",
                           .shape = "B=128,T=16",
                           .dtype = "fp32",
                           .pass = "step",
                           .samples = 30,
                           .time_ns = 1.5e7,
                           .time_ns_mad = 1e5,
                           .time_ns_p95 = 2e7,
                           .tok_per_s = 136533.3,
                           .threads = 2,
                           .commit = "abc",
                           .build_id = "=-O3, \"x\"",
                           .machine_id = "0123456789abcdef",
                           .started = "2024-01-01T00:00:00Z",
                           .cell_id = "c1"};
    struct perf_row got;
    ck_assert(!perf_latest(out, "c1", NULL, &got));
    ck_ok(perf_append(out, &row, &problem));
    strcpy(row.cell_id, "c2");
    ck_ok(perf_append(out, &row, &problem));
    strcpy(row.cell_id, "c1");
    row.tok_per_s = 140000;
    ck_ok(perf_append(out, &row, &problem));
    ck_assert(perf_latest(out, "c1", NULL, &got));
    ck_assert_double_eq(got.tok_per_s, 140000);
    ck_assert_double_eq(got.time_ns, 1.5e7);
    ck_assert_double_eq(got.time_ns_mad, 1e5);
    ck_assert_double_eq(got.time_ns_p95, 2e7);
    ck_assert_int_eq(got.samples, 30);
    ck_assert_int_eq(got.threads, 2);
    ck_assert_str_eq(got.bench, row.bench);
    ck_assert_str_eq(got.shape, row.shape);
    ck_assert_str_eq(got.build_id, row.build_id);
    ck_assert_str_eq(got.started, row.started);
    ck_assert(perf_latest(out, "c2", NULL, &got));
    ck_assert_double_eq(got.tok_per_s, 136533.3);
    ck_assert(!perf_latest(out, "c3", NULL, &got));
}
END_TEST

/* A quiet speed stands until a quiet one of the same program comes, or one of another program. */
START_TEST(a_noisy_speed_displaces_no_quiet_one_of_its_build) {
    static const struct {
        const char *commit;
        int64_t quiet;
        double tok_per_s, expected;
    } rows[] = {{"a", 0, 1, 1}, {"a", 0, 2, 2}, {"a", 1, 3, 3}, {"a", 0, 4, 3},
                {"a", 1, 5, 5}, {"b", 0, 6, 6}, {"a", 0, 7, 7}, {"b", 1, 8, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct perf_row row = {.cell_id = "c1", .threads = 1, .quiet = rows[i].quiet, .tok_per_s = rows[i].tok_per_s};
        struct perf_row got;
        strcpy(row.commit, rows[i].commit);
        ck_ok(perf_append(out, &row, &problem));
        ck_assert(perf_latest(out, "c1", NULL, &got));
        ck_assert_double_eq(got.tok_per_s, rows[i].expected);
    }
}
END_TEST

static void make_build(struct perf_row *row, const char *commit, const char *sources, const char *flags,
                       const char *compiler) {
    *row = (struct perf_row){.threads = 1};
    strcpy(row->commit, commit);
    strcpy(row->source_id, sources);
    strcpy(row->build_id, flags);
    strcpy(row->compiler, compiler);
}

/* The commit tells builds apart where no row has a hash of sources. */
START_TEST(a_build_is_its_sources_flags_and_compiler) {
    static const struct {
        const char *commit, *sources, *flags, *compiler;
        bool alike;
    } others[] = {{"a", "1", "-O3", "gcc", true},  {"b", "1", "-O3", "gcc", true},    {"a", "2", "-O3", "gcc", false},
                  {"a", "1", "-O2", "gcc", false}, {"a", "1", "-O3", "clang", false}, {"a", "", "-O3", "gcc", false},
                  {"a", "1", "-O3", "", false}};
    struct perf_row row, other;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        make_build(&row, "a", "1", "-O3", "gcc");
        make_build(&other, others[i].commit, others[i].sources, others[i].flags, others[i].compiler);
        ck_assert_int_eq(perf_is_alike(&row, &other), others[i].alike);
    }
    other = row;
    other.threads = 2;
    ck_assert(!perf_is_alike(&row, &other));
    make_build(&row, "a", "", "-O3", "");
    make_build(&other, "b", "", "-O3", "");
    ck_assert(!perf_is_alike(&row, &other));
    strcpy(other.commit, "a");
    ck_assert(perf_is_alike(&row, &other));
}
END_TEST

/* Another kernel or matrix library is another speed; of rows of earlier programs nobody knows it. */
START_TEST(a_speed_is_of_its_system) {
    static const struct {
        const char *a, *b;
        bool alike;
    } cases[] = {{"1", "1", true}, {"1", "2", false}, {"", "2", true}, {"1", "", true}, {"", "", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct perf_row a, b;
        make_build(&a, "a", "1", "-O3", "gcc");
        b = a;
        strcpy(a.env_epoch, cases[i].a);
        strcpy(b.env_epoch, cases[i].b);
        ck_assert_int_eq(perf_is_alike(&a, &b), cases[i].alike);
    }
}
END_TEST

START_TEST(eight_writers_of_perf_csv_lose_no_row) {
    size_t size;
    char path[PATH_BYTES],
        *text = slurp("tests/harness/store/short-perf.csv", &size); /* the first of them converts it */
    snprintf(path, sizeof path, "%s/perf.csv", out);
    spill(path, text, size);
    free(text);
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
    struct csv_table t;
    struct perf_row got;
    ck_ok(csv_read(&t, path, &problem));
    ck_assert_int_eq(t.rows, 202);
    csv_free(&t);
    ck_assert(perf_latest(out, "cell-7-24", NULL, &got));
}
END_TEST

static void look_up(int signal_number) {
    (void)signal_number;
}

/* It asks to stop, and the row that waits is written first. */
START_TEST(a_signal_during_the_wait_for_the_lock_loses_no_row) {
    char path[PATH_BYTES];
    struct perf_row row = {.cell_id = "c", .tok_per_s = 1};
    snprintf(path, sizeof path, "%s/perf.csv", out);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    ck_assert(fd >= 0 && flock(fd, LOCK_EX) == 0);
    struct sigaction action = {.sa_handler = look_up}, before;
    sigaction(SIGUSR1, &action, &before);
    pid_t pid = fork();
    if (pid == 0) {
        close(fd); /* through which it would hold the lock as well */
        _exit(perf_append(out, &row, NULL) != ST_OK);
    }
    for (int i = 0; i < 20; i++) { /* one of them falls into the wait */
        sleep_ms(10);
        kill(pid, SIGUSR1);
    }
    close(fd);
    ck_assert_int_eq(wait_for(pid), 0);
    sigaction(SIGUSR1, &before, NULL);
    ck_assert(perf_latest(out, "c", NULL, &row));
}
END_TEST

/* A file with fewer columns gets the others; one of another schema, or with an unknown column, is not touched. */
START_TEST(a_file_with_fewer_columns_goes_on) {
    struct csv_table t;
    struct perf_row row = {.cell_id = "new", .tok_per_s = 7}, got;
    char path[PATH_BYTES];
    size_t size;
    char *text = slurp("tests/harness/store/short-perf.csv", &size);
    snprintf(path, sizeof path, "%s/perf.csv", out);
    spill(path, text, size);
    ck_ok(csv_read(&t, path, &problem));
    char cell[2][RUN_ID_HEX];
    for (int i = 0; i < 2; i++) snprintf(cell[i], sizeof cell[i], "%s", csv_cell(&t, i, "cell_id"));
    double speed = strtod(csv_cell(&t, 1, "tok_per_s"), NULL);
    csv_free(&t);
    ck_ok(perf_append(out, &row, &problem));
    ck_file_starts("perf.csv", PERF_HEADER);
    ck_ok(csv_read(&t, path, &problem));
    ck_assert_int_eq(t.rows, 3);
    ck_assert_str_eq(csv_cell(&t, 0, "foreign"), "");
    ck_assert_str_eq(csv_cell(&t, 2, "schema"), "3");
    csv_free(&t);
    ck_assert(perf_latest(out, cell[1], NULL, &got));
    ck_assert(speed > 0 && got.tok_per_s == speed);
    ck_assert(perf_latest(out, cell[0], NULL, &got) && perf_latest(out, "new", NULL, &got));
    spill(path, "schema,later\n9,1\n", 17);
    ck_assert_int_eq(perf_append(out, &row, &problem), ST_DATA);
    ck_assert_msg(strstr(problem.text, "is of schema '9'; this program writes schema 3") != NULL, "%s", problem.text);
    free(text);
    text = slurp(path, &size);
    ck_assert_str_eq(text, "schema,later\n9,1\n");
    free(text);
    spill(path, "schema,later\n3,1\n", 17); /* of this schema, by a program that has come to have a column more */
    ck_assert_int_eq(perf_append(out, &row, &problem), ST_DATA);
    ck_assert_msg(strstr(problem.text, "has a column 'later'") != NULL, "%s", problem.text);
}
END_TEST

/* Whatever part of it a full disk or a killed writer left, nothing at all included: it is ours, and its whole rows and
 * the next one are there. */
START_TEST(a_table_that_was_cut_off_goes_on) {
    struct perf_row row = {.cell_id = "old", .tok_per_s = 7};
    struct csv_table t;
    char path[PATH_BYTES];
    size_t size, header = strlen(PERF_HEADER);
    for (int i = 0; i < 2; i++) ck_ok(perf_append(out, &row, &problem));
    snprintf(path, sizeof path, "%s/perf.csv", out);
    char *text = slurp(path, &size);
    size_t one = (size - header) / 2;
    strcpy(row.cell_id, "new");
    for (size_t left = 0; left <= size; left++) {
        spill(path, text, left);
        ck_ok(own_file_check(path, &problem));
        ck_ok(perf_append(out, &row, &problem));
        ck_ok(csv_read(&t, path, &problem));
        ck_assert_int_eq(t.rows, 1 + (left < header ? 0 : (int)((left - header) / one)));
        ck_assert_str_eq(csv_cell(&t, t.rows - 1, "cell_id"), "new");
        csv_free(&t);
    }
    free(text);
}
END_TEST

START_TEST(what_cannot_be_looked_at_is_no_foreign_file) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/afile", out);
    spill(path, "text", 4);
    snprintf(path, sizeof path, "%s/afile/perf.csv", out);
    ck_assert_int_eq(own_file_check(path, &problem), ST_USAGE);
    ck_assert_msg(strstr(problem.text, "cannot read ") && strstr(problem.text, "/afile/perf.csv: Not a directory"),
                  "%s", problem.text);
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

Suite *check_record_csv(void) {
    const TTest *const tests[] = {
        headers_are_golden,
        curve_and_evaluation_rows_are_golden,
        cells_of_runs_csv_come_back,
        text_cells_are_quoted_and_never_formulas,
        csv_files_that_are_none_are_refused_with_the_line,
        a_torn_last_row_is_left_out,
        schema_lists_every_column_with_unit_and_meaning,
        the_latest_speed_of_a_cell_is_found,
        a_noisy_speed_displaces_no_quiet_one_of_its_build,
        a_build_is_its_sources_flags_and_compiler,
        a_speed_is_of_its_system,
        eight_writers_of_perf_csv_lose_no_row,
        a_signal_during_the_wait_for_the_lock_loses_no_row,
        a_file_with_fewer_columns_goes_on,
        a_table_that_was_cut_off_goes_on,
        what_cannot_be_looked_at_is_no_foreign_file,
        the_machine_is_the_same_every_time_and_listed_once,
    };
    Suite *s = suite_create("record_csv");
    TCase *c = tcase_create("record_csv");
    tcase_add_checked_fixture(c, make_out, remove_out);
    tcase_set_timeout(c, 120);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) tcase_add_test(c, tests[i]);
    suite_add_tcase(s, c);
    return s;
}
