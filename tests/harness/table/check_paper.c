/* check_paper.c - the table of a plan: its rows and columns, the verdict of each cell, the formats, what is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/sheet/sheet.h"
#include "harness/store/csv.h"
#include "harness/store/machine.h"
#include "harness/store/record_files.h"
#include "tests/lib/own_plan.h"
#include "tests/testing.h"

START_TEST(a_cell_goes_from_not_run_to_its_verdict) {
    begin_plan(own_plan);
    expect(REPORT, 0);
    expect_text(out, "A table; profile smoke, 0 of 16 runs", "report");
    expect_text(out, "\nLRU!           s3  ", "report");
    expect_text(out, "  0.001     -         -   0/4      -  not run", "report");
    expect_text(out, "None of its runs is on record there; runs of another profile", "report");
    expect("report --paper %s/own.plan --out %s/nowhere", ST_DATA);
    expect_text(err, "there is no folder ", "report");
    expect("sweep %s/own.plan --shard 1/2 --out %s/r", 0);
    expect(REPORT " --format csv", 0);
    expect_text(out, ",4,0,14,14,14,unfinished,0,0,", "report"); /* below, and two of four runs are missing */
    expect_text(out, ",above,0,0,", "report");                   /* more runs cannot make it less */
    expect("sweep %s/own.plan --out %s/r --quiet", 0);
    expect_text(out, "A table; profile smoke, 16 of 16 runs", "sweep");
    ck_assert_msg(!strstr(out, "Bold"), "no terminal: %s", out);
    expect(REPORT " --format md", 0);
    expect_text(out, "** |\n", "the best mean, which is the last column");
    expect_text(out, "- Bold: the best of ours in its column.\n", "report");
    expect(REPORT " --format csv", 0);
    expect_text(out, ",4,4,0,14,14,14,below,0,0,", "report");
    expect_text(out, ",4,4,0,14,14,14,above,0,0,", "report");
    expect_text(out, ",4,4,0,14,14,14,,0,0,", "report"); /* the paper has no number */
    expect(REPORT " --task s4:n_train=200,n_val=20,n_test=20,length=4", 0);
    expect_text(out, "profile smoke, 8 of 8 runs", "report");
    expect(REPORT " --profile quick", 0);
    expect_text(out, "profile quick, 0 of 16 runs", "report");
    expect("sweep %s/own.plan --precision fp32 --out %s/r", 0); /* the same runs, and the command of their table */
    expect_text(err, "/own.plan --profile smoke --where precision=fp32\n", "sweep");
    expect("report %s/r --task lru --profile smoke", ST_DATA);
    expect_text(err, "lrnn bench makes some", "report");
    expect("report %s/r --task s3", ST_DATA);
    expect_text(err, "/r; it has --task 's3:length=4,", "report");
    expect("sweep %s/own.plan --grid model.m= --dry-run --out %s/r", ST_USAGE);
    expect_text(err, "--grid: model.m has no value", "sweep");
}
END_TEST

START_TEST(without_its_data_a_plan_says_where_the_records_are) {
    expect("report --paper slice-uea --out results/baseline", ST_DATA);
    expect_text(err, "`lrnn data import eigenworms FOLDER` makes it", "report");
    expect_text(err, "`lrnn report --out results/baseline` has the tables of all records there", "report");
}
END_TEST

START_TEST(a_note_stands_below_the_table_and_leaves_its_verdicts) {
    char text[1024];
    snprintf(text, sizeof text, "%snote=The width is ours\n", own_plan);
    begin_plan(text);
    expect("sweep %s/own.plan --quiet --seeds 1 --lr 0.01 --out %s/r", 0);
    ck_assert_msg(is_once("\nThe width is ours.\n"), "%s", out);
    expect_text(out, "above", "sweep");
    ck_assert_ptr_null(strstr(out, "~"));
}
END_TEST

/* The base names the paper's numbers; the plan names itself. */
START_TEST(a_plan_has_its_base_s_published_numbers) {
    char text[1024];
    snprintf(text, sizeof text, "%snote=Theirs alone\n", own_plan);
    begin_plan("base=base.plan\nprotocol=val-mean\n");
    write_text("base.plan", text);
    expect(REPORT, 0);
    expect_text(out, "own; profile smoke, 0 of 16 runs", "report");
    expect_text(out, "Cell by cell of own; profile smoke", "report");
    expect_text(out, "\nLRU! ", "the row as the paper calls it");
    expect_text(out, "- / 0.999", "report");
    ck_assert_ptr_null(strstr(out, "Theirs alone"));
    begin_plan("base=base.plan\nsource=Table 8\n");
    expect(REPORT, 0);
    ck_assert_ptr_null(strstr(out, "LRU!"));
    expect_text(out, "- / 0.5", "report");
}
END_TEST

START_TEST(a_sweep_marks_cells_with_runs_of_another_build) {
    struct record_set set;
    struct error e;
    char folder[256], path[PATH_BYTES];
    begin_plan(own_plan);
    expect("sweep %s/own.plan --quiet --seeds 1 --lr 0.01 --out %s/r", 0);
    ck_assert_ptr_null(strstr(out, "another build"));
    snprintf(folder, sizeof folder, "%s/r", program_folder);
    ck_assert_msg(records_load(&set, folder, &e) == ST_OK, "%s", e.text);
    record_path(folder, set.list[0].run.run_id, path, sizeof path);
    ck_assert_int_eq(unlink(path), 0);
    strcpy(set.list[0].run.source_id, "0123456789abcdef");
    ck_assert_msg(record_write(folder, &set.list[0], NULL, &e) == ST_OK, "%s", e.text);
    records_free(&set);
    expect("sweep %s/own.plan --quiet --seeds 1 --lr 0.01 --out %s/r", 0);
    ck_assert_msg(is_once("] 1 of them by another build of the program; --force does them again\n"), "%s", out);
    expect(REPORT " --where 'seeds=1 lr=0.01'", 0); /* of somebody else's folder it would say nothing */
    ck_assert_ptr_null(strstr(out, "another build"));
}
END_TEST

/* An attempt that failed lowers the number, though the run was done again. */
START_TEST(an_attempt_that_was_set_aside_is_told) {
    struct record_set set;
    struct error e;
    char folder[256];
    begin_plan(own_plan);
    expect("sweep %s/own.plan --quiet --seeds 1 --lr 0.01 --out %s/r", 0);
    ck_assert_ptr_null(strstr(out, "attempt"));
    snprintf(folder, sizeof folder, "%s/r", program_folder);
    ck_assert_msg(records_load(&set, folder, &e) == ST_OK, "%s", e.text);
    for (int earlier = 1; earlier <= 2; earlier++) {
        struct run_record failed = set.list[0];
        failed.run.status = RUN_NAN;
        failed.run.attempt = earlier;
        ck_assert_int_eq(record_set_aside(folder, failed.run.run_id, earlier == 1 ? "replaced" : "retried", &e), ST_OK);
        ck_assert_msg(record_write(folder, &failed, NULL, &e) == ST_OK, "%s", e.text);
    }
    ck_assert_int_eq(record_set_aside(folder, set.list[0].run.run_id, "retried", &e), ST_OK);
    ck_assert_msg(record_write(folder, &set.list[0], NULL, &e) == ST_OK, "%s", e.text);
    records_free(&set);
    expect(REPORT " --where 'seeds=1 lr=0.01'", 0);
    ck_assert_msg(is_once("] 2 earlier attempts failed and count as chance\n"), "%s", out);
    ck_assert_ptr_null(strstr(out, "of them failed"));
    ck_assert_msg(is_once("#: 2 of 6 runs failed and count as chance.\n"), "%s", out); /* below the matrix */
    expect(REPORT " --where 'seeds=1 lr=0.01' --format csv", 0);
    ck_assert_msg(is_once(",1,1,2,14,14,14,"), "%s", out); /* done, planned, failed, steps */
}
END_TEST

/* The command line's models may lack the plan's options; an option that no model has is a slip. */
START_TEST(a_plans_options_hold_for_the_models_that_have_them) {
    char text[1024];
    snprintf(text, sizeof text, "%smodel.gate-init=5\n", own_plan);
    begin_plan(text);
    expect("sweep %s/own.plan --models lstm --dry-run --out %s/r", 0);
    ck_assert_ptr_null(strstr(out, "gate-init"));
    expect("sweep %s/own.plan --models 'lstm bdlru:m=1' --dry-run --out %s/r", 0);
    expect_text(out, "gate-init=5", "sweep");
    expect("sweep %s/own.plan --models lstm --grid model.gate-init=5 --dry-run --out %s/r", ST_USAGE);
    expect_text(err, "model.gate-init: no model here has an option of that name", "sweep");
    snprintf(text, sizeof text, "%smodel.gaet-init=5\n", own_plan);
    begin_plan(text);
    expect("sweep %s/own.plan --models lstm --dry-run --out %s/r", ST_USAGE);
    expect_text(err, "model.gaet-init: no model here has an option of that name", "sweep");
    begin_plan(own_plan);
    expect("sweep %s/own.plan s4:n_train=200,n_val=20,n_test=20,length=4 --dry-run --out %s/r", 0);
    expect("sweep %s/own.plan s4 parity --dry-run --out %s/r", ST_USAGE);
    expect_text(err, "the plan own has no task 'parity'; its tasks are s3:n_train=200,", "sweep");
}
END_TEST

/* A short profile draws what the paper's profile imports: its table asks for no file. */
START_TEST(a_short_profile_needs_no_data_of_the_papers) {
    expect("report --paper myosotis-images --profile quick --out results/baseline", 0);
    expect_text(out, "~ the paper's setting differs, so there is no diff: ", "report");
    expect("report --paper myosotis-images --profile quick --task digits --format csv --out results/baseline", 0);
    expect_text(out, ",digits,", "report"); /* the paper's profile has no such task */
    ck_assert_ptr_null(strstr(out, ",0,0,"));
    ck_assert_int_eq(setenv("LRNN_CACHE", program_folder, 1), 0); /* whatever the user has */
    expect("report --paper myosotis-images --out results/baseline", ST_DATA);
    expect_text(err, "/mnist.images; `lrnn data urls mnist` says where its files are", "report");
}
END_TEST

START_TEST(rows_and_columns_are_options_or_flags) {
    begin_plan(
        "title=T\npaper=0\nsource=F\nprofile=smoke\ntasks=s3:n_train=200,n_val=20,n_test=20,length=4\nseeds=1\n"
        "epochs=1\nmodels=hlru:channels=4\nmodel.m=1..2\nmodel.gate=softmax,none\nlayers=1..2\nrows=model.gate layers\n"
        "columns=model.m\n");
    expect("sweep %s/own.plan --quiet --out %s/r", 0);
    expect_text(out, "profile smoke, 8 of 8 runs", "sweep");
    expect_text(out, "\nhlru gate=none layers=2 ", "sweep");
}
END_TEST

/* Tasks of one name keep their options in labels, and a task whose name is its own has none. */
START_TEST(labels_tell_tasks_of_one_name_apart) {
    begin_plan("title=T\nprofile=smoke\ntasks=s3:length=4 s3:length=6 s4:length=4,n_train=200\nmodels=lstm\n");
    expect(REPORT " --columns bogus", ST_USAGE);
    expect_text(err, "there are: model, s3:length=4, s3:length=6, s4;", "report");
    expect(REPORT, 0);
    expect_text(out, "\nTasks: s3:length=4 s3:length=6 s4:length=4,n_train=200.\n", "report");
}
END_TEST

/* A paper may call by one name what differs in an option that it does not name: no cell has runs of both. */
START_TEST(models_of_one_published_name_have_rows_of_their_own) {
    static const char two[] = "title=T\npaper=1234.5678\nsource=Table 9\nprofile=smoke\ntasks=s3 s4\nseeds=1\nlr=0.01\n"
                              "models=lru:state=4 lru:state=8 lstm:hidden=4\n";
    char text[512];
    begin_plan(two);
    expect(REPORT " --format csv", 0);
    expect_text(out, ",LRU! (lru:state=4),s3,0.001,", "report");
    expect_text(out, ",LRU! (lru:state=8),s4,0.999,", "report");
    expect_text(out, ",lstm:hidden=4,s3,,", "report");
    ck_assert_ptr_null(strstr(out, ",LRU!,"));
    expect(REPORT " --where 'models=lru:state=4' --format csv", 0);
    expect_text(out, ",LRU!,s3,0.001,", "report");
    snprintf(text, sizeof text, "%srows=model task\ncolumns=model.state\n", two); /* of both, each in its column */
    begin_plan(text);
    expect(REPORT " --format csv", 0);
    expect_text(out, ",LRU! task=s3,8,0.001,", "report");
}
END_TEST

/* A plan whose table could not be made is refused alike by the report, a dry run and before anything is trained. */
START_TEST(what_makes_no_table_is_said_before_anything_runs) {
    static const struct {
        const char *line, *message;
    } bad[] = {{"columns=lenght", "own: 'lenght' of its columns is neither task, an option of a task or model"},
               {"columns=model", "own: 'model' of its columns is neither task"},
               {"rows=model lenght", "own: 'lenght' of its rows is neither model, task"},
               {"columns=task.nope", "own: 'task.nope' of its columns is neither task"},
               {"rows=model.nope", "own: 'model.nope' of its rows is neither model, task"},
               {"columns=task model.m", "own: columns=task model.m: one key tells columns apart"},
               {"columns=mlp dim", "own: columns=mlp dim: one key tells columns apart"},
               {"protocol=best", "own: unknown protocol 'best'; did you mean 'best-of-grid'?"},
               {"columns=lr", "own: 'lr' of its columns tells no cells apart"},
               {"rows=seed", "own: 'seed' of its rows tells no cells apart"},
               {"rows=model lr", "own: 'lr' of its rows tells no cells apart, since a cell's number is made of all"},
               {"lengths=8,x", "own: lengths=8,x is not a list"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[256], path[256];
        snprintf(text, sizeof text,
                 "title=T\npaper=2602.12021\nsource=Table 2\nprofile=smoke\ntasks=s3\nmodels=lstm\n%s\n", bad[i].line);
        begin_plan(text);
        expect(REPORT, ST_USAGE);
        expect_text(err, bad[i].message, "report");
        expect("sweep %s/own.plan --dry-run --out %s/n", ST_USAGE);
        expect_text(err, bad[i].message, "sweep --dry-run");
        expect("sweep %s/own.plan --out %s/n", ST_USAGE);
        expect_text(err, bad[i].message, "sweep");
        snprintf(path, sizeof path, "%s/n", program_folder);
        ck_assert_int_ne(access(path, F_OK), 0);
    }
    begin_plan("title=T\npaper=2602.12021\nsource=Table 2\nprofile=smoke\ntasks=s3\nmodels=lstm\noverall=nope\n");
    expect(REPORT, 0);
    expect_text(err, "own: overall=nope: no number of 2602.12021 is called that; the mean of ours stands alone",
                "report");
    /* Models or tasks of the command line may lack what tells rows apart. */
    expect("sweep hlru-fig3 --profile smoke --models lstm --dry-run --out %s/n", 0);
}
END_TEST

/* Nothing is trained: no record, a row of perf.csv, a table of speeds, which any model can be in that fits. */
START_TEST(a_plan_of_speeds_trains_nothing) {
    begin_plan("title=Fast\npaper=0\nsource=F\nprofile=smoke\nmeasure=speed\ntasks=s3:n_train=200,n_val=20,n_test=20\n"
               "task.length=4\nmodels=lstm:hidden=4\nseeds=1\ncolumns=task.length\n");
    expect(REPORT, 0);
    expect_text(out, "Fast; profile smoke, 0 of 1 measured", "report");
    expect("sweep %s/own.plan --dry-run --out %s/r", 0);
    expect_text(err, "the speed of 1 model, one after the other, about ", "sweep");
    expect("sweep %s/own.plan --shard 1/2 --out %s/r", ST_USAGE);
    expect_text(err, "own measures speed, each model alone on one machine: it has no shards", "sweep");
    expect("sweep %s/own.plan --slurm 1 --out %s/r", ST_USAGE);
    expect_text(err, "own measures speed, each model alone on one machine: there is nothing to share", "sweep");
    expect("sweep %s/own.plan --quiet --out %s/r", 0);
    expect_text(out, "Fast; profile smoke, 1 of 1 measured", "sweep");
    expect_text(out, "Tokens a second of training steps", "sweep");
    ck_assert_int_eq(scratch_count(program_folder, ".json"), 0);
    ck_assert_int_eq(scratch_count(program_folder, "perf.csv"), 1);
    expect("sweep %s/own.plan --out %s/r", 0);
    expect_text(err, "profile smoke: the speed of every model is in ", "sweep");
    expect_text(err, "\nspeeds in ", "sweep");
    expect_text(err, "lrnn plot throughput --out ", "sweep");
    expect_text(err, "again: lrnn report --out ", "sweep");
    expect(REPORT " --format csv", 0);
    expect_text(out, ",1,1,0,", "report");
    expect_text(out, ",published_spread_kind,quiet,sees_future,speed_of,flags\n", "report");
    ck_assert_msg(strstr(out, ",,,1,0,") || strstr(out, ",,,0,0,"), "%s", out); /* as quiet as the machine was */
    expect("sweep %s/own.plan --quiet --dim 12 --out %s/r", 0);
    expect_text(out, "~ the paper's setting differs, so there is no diff: ", "sweep");
    begin_plan("title=Fast\npaper=0\nsource=F\nprofile=smoke\nmeasure=speed\ntasks=s3:n_train=200,n_val=20,n_test=20\n"
               "task.length=4,6\nmodels=lstm:hidden=4\nseeds=1\ncolumns=task.length\n");
    expect("plot throughput --paper %s/own.plan --out %s/r", ST_USAGE); /* of two lengths one is measured */
    expect_text(err, "perf.csv has no speed of 1 of the 2 runs of own; lrnn sweep ", "plot");
    expect("sweep %s/own.plan --quiet --out %s/r", 0);
    expect("plot throughput --paper %s/own.plan --out %s/r --to %s/p --format svg", 0);
    expect("plot throughput --out %s/r --to %s/q --format svg", 0); /* there are no records, and none are needed */
    ck_assert_int_eq(scratch_count(program_folder, "throughput.svg"), 2);
    expect("plot throughput --paper %s/own.plan --out '%s/my r'", ST_USAGE);
    expect_text(err, "/my r' measures them", "plot");
    expect("plot throughput --paper %s/own.plan --where dim=8 --out %s/r", ST_USAGE);
    expect_text(err, "perf.csv has no speed of 2 of the 2 runs of own; lrnn sweep ", "plot");
    begin_plan("title=T\npaper=0\nsource=F\nprofile=smoke\ntasks=s3\nmodels=lstm\nmeasure=loss\n");
    expect(REPORT, ST_USAGE);
    expect_text(err, "expected accuracy or speed, got 'loss'", "report");
}
END_TEST

/* Writes another machine's id into the rows of perf.csv, from a row on. */
static void move_to_another_machine(int from) {
    char path[SCRATCH_BYTES + 32];
    struct csv_table t;
    struct machine here;
    machine_read(&here);
    snprintf(path, sizeof path, "%s/r/perf.csv", program_folder);
    size_t size;
    char *text = slurp(path, &size), *line = text;
    for (int row = 0; row < from && line; row++) line = strchr(line, '\n') + 1;
    for (char *at = line; (at = strstr(at, here.id)) != NULL;) memset(at, '0', 8);
    spill(path, text, size);
    free(text);
    ck_assert_int_eq(csv_read(&t, path, NULL), ST_OK);
    ck_assert_int_eq(t.rows, 2);
    csv_free(&t);
}

/* Speeds of two machines stand beside each other, and say so. */
START_TEST(speeds_say_of_which_machine_they_are) {
    begin_plan("title=Fast\npaper=0\nsource=F\nprofile=smoke\nmeasure=speed\ntasks=s3:n_train=200,n_val=20,n_test=20\n"
               "task.length=4\nmodels=lstm:hidden=4 lru\nseeds=1\ncolumns=task.length\n");
    expect("sweep %s/own.plan --threads 1 --quiet --out %s/r", 0);
    expect_text(out, "Measured: 1 thread, fp32, cpu, machine ", "sweep");
    ck_assert_ptr_null(strstr(out, "several machines"));
    move_to_another_machine(2);
    expect(REPORT, 0);
    expect_text(out, "Measured: of several machines, thread counts, precisions or devices, which the footnotes name",
                "report");
    expect_text(out, "1 thread, fp32, cpu, machine 00000000", "report");
    ck_assert_ptr_null(strstr(out, "this one"));
    expect(REPORT " --format md", 0);
    ck_assert_ptr_null(strstr(out, "Bold"));
    expect(REPORT " --format csv", 0);
    expect_text(out, ",\"1 thread, fp32, cpu, machine 00000000\",\n", "report");
    move_to_another_machine(1);
    expect(REPORT, 0);
    expect_text(out, "Measured: 1 thread, fp32, cpu, machine 00000000.", "report");
    ck_assert_ptr_null(strstr(out, "this one"));
}
END_TEST

/* --- a column for each length of the test sequences --------------------------------------------------------------- */

static const char two_sizes[] =
    "title=Arrows\npaper=1234.5678\nsource=Table 9\nprofile=smoke\nlengths=24,48\n"
    "tasks=arrow:size=24,patch=6,n_train=64,n_val=16,n_test=40\nseeds=2\nlr=0.002\nepochs=1\n"
    "models=plstm2d:heads=1,mode=PD@positions=learnt plstm2d:heads=1,mode=PD@positions=none "
    "full-attention:heads=2\n";

static const char size_numbers[] =
    "paper,arxiv,table,row,task,model,metric,value\n"
    "P,1234.5678,Table 9,Grid,arrow,plstm2d:mode=PD@positions=learnt,acc_24,0.001\n"
    "P,1234.5678,Table 9,Grid,arrow,plstm2d:mode=PD@positions=learnt,acc_48,0.999\n"
    "P,1234.5678,Table 9,Bare,arrow,plstm2d:mode=PD,acc_24,0.125\n" /* asks for less: where positions are not learnt */
    "P,1234.5678,Table 9,Bare,arrow,plstm2d:mode=PD,acc,0.25\n"
    "P,1234.5678,Table 9,Bare,arrow,plstm2d:mode=PD,least,3\n";

/* The cell at `at` of the line of CSV that begins so; NAN: it is empty. */
static double csv_number(const char *text, const char *begin, int at) {
    const char *line = strstr(text, begin);
    double value;
    ck_assert_msg(line != NULL, "no line '%s' in\n%s", begin, text);
    for (; at > 0; at--) {
        bool quoted = *line == '"';
        if (quoted) line = strchr(line + 1, '"');
        line = strchr(line, ',') + 1;
    }
    return sscanf(line, "%lf", &value) == 1 ? value : NAN;
}

/* 24 pixels a side are 16 patches, 48 are 64: the numbers equal the report by length. */
START_TEST(each_length_has_a_column_of_its_own) {
    double small, large;
    begin_plan(two_sizes);
    write_text("r/published.csv", size_numbers);
    expect("sweep %s/own.plan --quiet --out %s/r", 0);
    expect_text(out, "Arrows; profile smoke, 6 of 6 runs", "sweep"); /* each counts once */
    expect_text(out, " arrow at 24 ", "sweep");
    expect_text(out, "\nTasks: arrow:size=24,patch=6,n_train=64,n_val=16,n_test=40.\n", "sweep");
    expect_text(out, "\nGrid ", "sweep");
    expect_text(out, "\nBare ", "sweep");
    expect_text(out, "accuracy of the test sequences of length N alone", "sweep");
    expect(REPORT " --format csv", 0);
    const char *grid = "own,smoke,val-mean,Grid,arrow at ";
    char first[160], second[160];
    snprintf(first, sizeof first, "%s24", grid);
    snprintf(second, sizeof second, "%s48", grid);
    ck_assert_double_eq(csv_number(out, first, 5), 0.001);
    ck_assert_double_eq(csv_number(out, second, 5), 0.999);
    small = csv_number(out, first, 6);
    large = csv_number(out, second, 6);
    expect_text(out, ",above,0,0,", "report");
    expect_text(out, ",below,0,0,", "report");
    snprintf(first, sizeof first, "own,smoke,val-mean,Bare,%s24", strstr(grid, "arrow"));
    ck_assert_double_eq(csv_number(out, first, 5), 0.125);
    expect("report --what lengths --format csv --where 'model=plstm2d positions=learnt' --out %s/r", 0);
    ck_assert_double_eq(csv_number(strstr(out, ",16,16,"), ",16,16,", 3), small);
    ck_assert_double_eq(csv_number(strstr(out, ",64,64,"), ",64,64,", 3), large);
    /* the first row above a bound, in the column of the longest sequences alone */
    for (int i = 0; i < 2; i++) {
        char text[sizeof two_sizes + 20], line[160];
        snprintf(text, sizeof text, "%sleast=%s\n", two_sizes, i ? ".999" : ".001");
        write_text("own.plan", text);
        expect(REPORT, 0);
        snprintf(line, sizeof line, "at 48          3  %s", i ? "none " : "Grid ");
        const char *table = strstr(out, "First of these rows above"), *found = table ? strstr(table, line) : NULL;
        ck_assert_msg(found && strstr(table, "at 24 ") > found, "no '%s' as the only row in\n%s", line, out);
    }
}
END_TEST

START_TEST(lengths_that_are_none_are_refused) {
    static const char *const bad[] = {"24,", "0", "x", "24,-48", "1,2,3,4,5,6,7,8,9"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[256];
        snprintf(text, sizeof text, "title=T\npaper=0\nsource=F\nprofile=smoke\ntasks=s3\nmodels=lstm\nlengths=%s\n",
                 bad[i]);
        begin_plan(text);
        expect(REPORT, ST_USAGE);
        expect_text(err, "is not a list of at most 8 whole numbers, such as 192,384", bad[i]);
    }
    begin_plan("title=T\npaper=0\nsource=F\nprofile=smoke\ntasks=s3\nmodels=lstm\nlengths=8\nmeasure=speed\n");
    expect(REPORT, ST_USAGE);
    expect_text(err, "own: lengths=8, but speed is that of training", "report");
    begin_plan("title=T\npaper=0\nsource=F\nprofile=smoke\ntasks=s3\nmodels=lstm\nleast=90\n");
    expect(REPORT, ST_USAGE);
    expect_text(err, "own: least=90: expected an accuracy from 0 to below 1, such as .9", "report");
}
END_TEST

START_TEST(the_table_comes_in_every_format) {
    begin_plan(own_plan);
    for (const struct sheet_format *const *f = sheet_formats(); *f; f++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments, REPORT " --format %s", "%s", "%s", (*f)->name);
        expect(arguments, 0);
        expect_text(out, (*f)->for_programs ? "best-of-grid" : "not run", arguments);
    }
    expect(REPORT " --format latex", 0);
    expect_text(out, "\\label{tab:own}\n\\resizebox{", "latex");
    expect_text(out, "\\caption{Cell by cell of A table; profile smoke}\n\\label{tab:own-cells}\n", "latex");
    expect_text(out, "\\begin{tabular}{lrrr}\n\\toprule\nmodel & ", "latex");
    expect(REPORT " --format html", 0);
    expect_text(out, "<section id=\"own\">\n<h2>A table; profile smoke", "html");
    expect_text(out, "</html>\n", "html");
}
END_TEST

START_TEST(misuse_is_refused) {
    begin_plan(own_plan);
    expect("report --paper hlru-table2 --protocol iqm", ST_USAGE);
    expect_text(err, "report --paper has no use for --protocol; it takes paper out ", "report");
    expect("report --html %s/pages --format csv", ST_USAGE);
    expect_text(err, "report --html has no use for --format; it takes html history out ", "report");
    expect("sweep hlru-table2 --protocol iqm --dry-run --out %s/r", ST_USAGE);
    expect_text(err, "hlru-table2 says itself how a cell's number is made", "sweep");
    expect("report --paper s3", ST_USAGE);
    expect_text(err, "that is a task; `lrnn list papers` names the plans", "report");
    expect("report --paper no-such", ST_USAGE);
    expect_text(err, "neither a task nor a plan 'no-such'", "report");
    expect(REPORT " --what lengths", ST_USAGE);
    expect_text(err, "report --paper has no use for --what", "report");
    expect(REPORT " --profile mad", ST_USAGE);
    expect_text(err, "unknown profile 'mad'; of ", "report");
    write_text("r/published.csv", "a,b\n1\n"); /* damaged: ours alone */
    expect(REPORT, 0);
    expect_text(err, "no published numbers beside ours", "report");
}
END_TEST

START_TEST(columns_and_order_are_the_readers) {
    expect("report results/baseline --task s3 --columns model,acc --sort acc --format csv", ST_USAGE);
    expect_text(err, "no column 'acc'; there are: schema, cell_id", "report");
    expect("report results/baseline --task s3 --columns model,acc --sort -acc --format md", 0);
    expect_text(out, "| model | acc |\n|:--|--:|\n", "report");
    const char *first = strstr(out, "|--:|\n| ");
    double before = -1;
    int rows = 0;
    for (const char *at = first ? first + 6 : ""; *at == '|'; at = strchr(at, '\n') + 1, rows++) {
        const char *cell = strstr(at + 1, "| ");
        double value = strtod(cell + 2 + strspn(cell + 2, "*"), NULL);
        ck_assert_msg(value >= before, "%g after %g", value, before);
        before = value;
        if (strncmp(strchr(at, '\n') + 1, "|", 1) != 0) break;
    }
    ck_assert_int_gt(rows, 2);
    expect("report results/baseline --task s3 --columns model,model", ST_USAGE);
    expect_text(err, "column 'model' is named twice", "report");
    expect("report results/baseline --task s3 --sort speed", ST_USAGE);
    expect_text(err, "no column 'speed'; there are: model, params", "report");
}
END_TEST

/* The id of a table's row is one that `lrnn show` finds; nobody gets ids who has not asked for them. */
START_TEST(rows_and_cells_name_their_runs) {
    char arguments[256], id[16];
    expect("report results/baseline --task s3 --profile quick --columns model,run", 0);
    ck_assert_msg(!strstr(out, "acc:") && !strstr(out, "best of"), "a note on what is not shown: %s", out);
    ck_assert_int_eq(sscanf(strstr(out, "\nlstm "), "\nlstm %9s", id), 1);
    ck_assert_uint_eq(strlen(id), 8);
    snprintf(arguments, sizeof arguments, "show %s --out results/baseline", id);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "lstm", arguments);
    expect("report results/baseline --task s3 --profile quick", 0);
    ck_assert_ptr_null(strstr(out, id));
    begin_plan(own_plan);
    expect("sweep %s/own.plan --quiet --out %s/r", 0);
    ck_assert_ptr_null(strstr(out, "  run\n"));
    expect(REPORT " --format csv --columns run_ids --task s4:n_train=200,n_val=20,n_test=20,length=4", 0);
    ck_assert_uint_eq(strcspn(strchr(out, '\n') + 1, "\n"), 4 * 33 - 1);
    snprintf(id, sizeof id, "%.8s", strchr(out, '\n') + 1);
    expect(REPORT " --columns bogus", ST_USAGE);
    expect_text(err, ", mean; row, column, published, ours, interval, runs, steps, verdict, run\n", "report");
    expect("report results/baseline --task s3 --profile quick --columns +run --format md", 0);
    expect_text(out, "| published | diff | run |\n", "report");
    expect(REPORT " --columns row,run --format html", 0);
    expect_text(out, id, "report");
}
END_TEST

static void expect_title(const char *name, const char *title) {
    char path[512];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", program_folder, name);
    char *picture = slurp(path, &size);
    expect_text(picture, title, name);
    free(picture);
}

/* The plan's smoke profile is not the task's, so that its runs are custom by themselves. */
START_TEST(pictures_are_called_what_the_table_is_called) {
    begin_plan("title=T\npaper=0\nsource=F\nprofile=smoke\ntasks=s3:n_train=200,n_val=20,n_test=20,length=4\nseeds=1\n"
               "epochs=1\nlr=0.5\nmodels=lstm:hidden=4\nprotocol=best-of-grid\n");
    expect("sweep %s/own.plan --quiet --out %s/r", 0);
    expect_text(out, "T; profile smoke, 1 of 1 runs", "sweep");
    expect_title("r/s3-accuracy.svg", ",n_test=20 of own, profile smoke: accuracy over training<");
    expect_title("r/s3-table.svg", ">best-of-grid<");
    expect("plot table --paper %s/own.plan --out %s/r --to %s/p --format svg", 0);
    expect_title("p/s3-table.svg", ">best-of-grid<");
    expect("plot accuracy --paper %s/own.plan --out %s/r --to %s/p --format svg", 0);
    expect_title("p/s3-accuracy.svg", ",n_test=20 of own, profile smoke: accuracy over training<");
    /* some of its runs belong to a profile, others have its options */
    expect("plot accuracy --paper hlru-decoder --out results/baseline --to %s/d --format svg", 0);
    expect_title("d/s3-250-accuracy.svg", "s3-250 of hlru-decoder, profile paper: accuracy over training<");
    expect("plot accuracy --out %s/r --to %s/q --format svg", 0);
    expect_title("q/s3-accuracy.svg", ",n_test=20, profile custom: accuracy over training<");
    expect("plot accuracy --paper %s/own.plan --profile quick --out %s/r --to %s/p", ST_DATA);
    expect_text(err, "there is no finished run in", "plot");
    expect("plot accuracy --paper %s/own.plan --where dim=4 --out %s/r", ST_DATA);
    expect_text(err, "there is no finished run in", "plot");
    expect(REPORT " --where epochs=1", 0); /* the plan's own value */
    expect_text(out, "T; profile smoke, epochs=1, 1 of 1 runs", "report");
    expect(REPORT " --where 'epochs=2 seeds=3'", 0);
    expect_text(out, "T; profile smoke, epochs=2 seeds=3, 0 of 3 runs", "report");
    expect(REPORT " --where seed=2", ST_USAGE);
    expect_text(err, "--where seed: with --paper it is seeds=3 (1 to 3), or a list", "report");
    expect(REPORT " --where no-such=2", ST_USAGE);
    expect_text(err, "--where no-such: with --paper it takes flags of `lrnn sweep`", "report");
    expect("plot accuracy --paper s3 --out %s/r", ST_USAGE);
    expect_text(err, "that is a task; `lrnn list papers` names the plans", "plot");
}
END_TEST

Suite *check_paper(void) {
    Suite *suite = suite_create("paper");
    TCase *c = tcase_create("paper");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, a_cell_goes_from_not_run_to_its_verdict);
    tcase_add_test(c, without_its_data_a_plan_says_where_the_records_are);
    tcase_add_test(c, a_note_stands_below_the_table_and_leaves_its_verdicts);
    tcase_add_test(c, a_plan_has_its_base_s_published_numbers);
    tcase_add_test(c, a_sweep_marks_cells_with_runs_of_another_build);
    tcase_add_test(c, an_attempt_that_was_set_aside_is_told);
    tcase_add_test(c, a_plans_options_hold_for_the_models_that_have_them);
    tcase_add_test(c, a_short_profile_needs_no_data_of_the_papers);
    tcase_add_test(c, rows_and_columns_are_options_or_flags);
    tcase_add_test(c, labels_tell_tasks_of_one_name_apart);
    tcase_add_test(c, models_of_one_published_name_have_rows_of_their_own);
    tcase_add_test(c, what_makes_no_table_is_said_before_anything_runs);
    tcase_add_test(c, a_plan_of_speeds_trains_nothing);
    tcase_add_test(c, speeds_say_of_which_machine_they_are);
    tcase_add_test(c, each_length_has_a_column_of_its_own);
    tcase_add_test(c, lengths_that_are_none_are_refused);
    tcase_add_test(c, the_table_comes_in_every_format);
    tcase_add_test(c, misuse_is_refused);
    tcase_add_test(c, columns_and_order_are_the_readers);
    tcase_add_test(c, rows_and_cells_name_their_runs);
    tcase_add_test(c, pictures_are_called_what_the_table_is_called);
    suite_add_tcase(suite, c);
    return suite;
}
