/* check_cli.c - the command line as its users meet it: exit codes, messages, help, data.
 *
 * Runs the program that LRNN names (and LRNN_F64), from the root of the repository. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "harness/cli/cli.h"
#include "harness/table/report.h"
#include "kernels/kernel.h"
#include "models/model.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#define CASE "tests/cases/00-bdlru-blocks3-m4.safetensors"

/* --- exit codes and messages -------------------------------------------------------------------------------------- */

/* A success prints nothing on stderr, an error nothing on stdout but one line "lrnn: ..." on stderr. */
static const struct {
    const char *arguments;
    int status;
    const char *text; /* in what it prints */
} calls[] = {
    {"train listops myosotis:levels=64", 2, "has 2^31 nodes or more"},
    {"train listops bdlru:m=2 --top-levels 2 --steps 1", 2, "--top-levels 2 is for --pool top, which reads a tree"},
    {"train digits:size=8 myosotis --pool top --top-levels 7 --backbone s5 --steps 1", 2,
     "--top-levels 7 are more than the levels of nodes that the tree has above its 64 leaves; take fewer"},
    {"train listops bdlru:m=2 --pool top --steps 1", 2, "--pool top reads the root of a tree, and bdlru has none"},
    {"train s3 lstm --steps 0", 2, "steps=0 (command line): expected a whole number from 1 to 1000000000000, or auto"},
    {"train s3 lstm --epochs 0", 2, "epochs=0 (command line): expected a whole number from 1 to"},
    {"train s3 lstm --eval-every 0", 2, "eval-every=0 (command line): expected a whole number from 1 to"},
    {"train s3 lstm --threads 0", 2, "threads=0 (command line): expected a whole number from 1 to"},
    {"train s3 lstm --log-steps ''", 2, "train: log-steps is empty, as a shell's unset variable makes it; name it"},
    {"train s3 lstm --out ''", 2,
     "train: out is empty, as a shell's unset variable makes it; name it, or leave it out"},
    {"train s3 lstm --out=", 2, "train: out is empty"},
    {"train s3 lstm -c ''", 2, "train: c is empty"},
    {"train s3 lstm --from ''", 2, "train: from is empty"},
    {"bench s3 --out ''", 2, "bench: out is empty"},
    {"doctor --out ''", 2, "doctor: out is empty"},
    {"status --out ''", 2, "status: out is empty"},
    {"plot --out ''", 2, "plot: out is empty"},
    {"report --to ''", 2, "report: to is empty"},
    {"perf layers --out ''", 2, "perf layers: out is empty"},
    {"report ''", 2, "report: a word is empty, as a shell's unset variable makes it; usage: lrnn report [FOLDER]"},
    {"status ''", 2, "status: a word is empty"},
    {"compare '' ''", 2, "compare: a word is empty"},
    {"store check ''", 2, "store check: a word is empty"},
    {"sweep s3 '' --dry-run", 2, "sweep: a word is empty"},
    {"info ''", 2, "info: a word is empty"},
    {"train s3 lstm -j2", 2, "train: unknown flag '-j2'; `lrnn train --help` lists the flags"},
    {"train s3 lstm --n 2", 2, "train: unknown flag '--n'; `lrnn train --help` lists the flags"},
    {"sweep s3 --sed 2", 2, "sweep: unknown flag '--sed'; did you mean '--seeds'?"},
    {"sweep s3 --seed 2", 2, "a sweep has seeds 1..n: use --seeds n"},
    {"bench s3 --seeds 0", 2, "seeds=0 (command line): expected a whole number from 1 to 100000, auto, or a list"},
    {"bench s3 --limit 0", 2,
     "limit=0 (command line): expected a time from 0.001 to 1000000000 s, such as 90s, 30m or 2h, or auto"},
    {"bench s3 --limit 0s --dry-run", 2, "limit=0s (command line): expected a time"},
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
    {"info bdlru", 0, "  weight     yes  1         layers.0.mixer.gates.weight  [1920][128]\n"},
    {"info lru", 0, "  state      yes  1         layers.0.mixer.nu"},
    {"info lru --backbone s5 --layers 2", 0, "  const      never trained  layers.1.norm.mean"},
    {"info lru --backbone s5 --ssm-lr-factor 0.25", 0, "  state      no   0.25      layers.0.mixer.nu"},
    {"info lru --backbone s5 --layer-scale 1", 2, "--layer-scale 1 is for --backbone mad-lm and vision"},
    {"info s5", 0, "\n\ns5: every prefix product"}, /* a mixer, and a task */
    {"info bdlru --task s3", 0, "length=16 vocab=6\n"},
    {"info bdlru --task compression:vocab=16", 0, "  weight     yes  1         decoder."},
    {"info bdlru --task s3 --length 8", 2, "--task has a length and a vocabulary of its own"},
    {"info bdlru --task s33", 2, "unknown task 's33'"},
    {"info hlru-decoder", 0, "hlru-decoder: BD-LRU and H-LRU, Table 2: S3 (250) by the MLP"},
    {"help hlru-decoder", 0, "  mlp                    none,gelu,swiglu\n"},
    {"info hlru-decoder --json", 2, "--task, --json and --decay-all are for models, and 'hlru-decoder' is none"},
    {"info 2602.12021", 0, "2602.12021: Improved state mixing in higher-order and block diagonal linear recurrent"},
    {"help 2602.12021", 0, "\n  hlru-table2           BD-LRU and H-LRU, Table 2: word problems of S3, S4 and S5\n"},
    {"info 2602.12021 --json", 2, "--task, --json and --decay-all are for models, and '2602.12021' is none"},
    {"info s3 --json", 2, "--task, --json and --decay-all are for models, and 's3' is none"},
    {"info scan_block --task s3", 2, "are for models, and 'scan_block' is none"},
    {"info bdlur", 2, "unknown name 'bdlur'; did you mean 'bdlru'?"},
    {"info bdlru:blocs=3", 2, "has no option 'blocs'; did you mean 'blocks'?"},
    {"info bdlru:q=3", 2, "model bdlru has no option 'q'; `lrnn info bdlru` lists what there is"},
    {"data show s3:q=3", 2, "task s3 has no option 'q'; `lrnn info s3` lists what there is"},
    {"info bdlru:m=0", 2, "m=0 (model bdlru): expected a whole number from 1 to"},
    {"info bdlru:m=five", 2, "m=five (model bdlru): expected a whole number"},
    {"info bdlru --dim 12x", 2, "dim=12x (command line): expected a whole number from 1 to"},
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
    {"info scan_block:m=3", 2, "info: 'scan_block' has no options"},
    {"info:x bdlru", 2, "unknown command 'info:x'"},
    {"info scan_block_cpu", 0, "a kernel of scan_block"},
    {"data", 2, "data: say what"},
    {"data shwo s3", 2, "unknown command 'data shwo'; did you mean 'data show'?"},
    {"data show", 2, "data show: say which task"},
    {"data show s33", 2, "unknown task 's33'; did you mean 's3'?"},
    {"data show s3 --split valid", 2, "split=valid (command line): expected one of: train val test extra"},
    {"data show s3 --first -1", 2, "first=-1 (command line): expected a whole number"},
    {"data show s3 --count 0", 2, "count=0 (command line): expected a whole number"},
    {"data show s3 --split test --first 1999 --count 2", 2, "has 2000 test examples"},
    {"data show s3 --first 10000", 2, "has 10000 train examples"},
    {"data show s3 --order 20", 2, "is past the last epoch, 19: a run of 1580 steps with 79 steps per epoch"},
    {"data show s3 --order 1 --epochs 1", 2, "is past the last epoch, 0"},
    {"data show s3 --order 2 --batch 100 --steps 200", 2, "is past the last epoch, 1"},
    {"data show s3 --order first", 2, "--order first is not an epoch"},
    {"data show s3 --order -1", 2, "--order -1 is not an epoch"},
    {"data show s3 --order 0 --steps 0", 2, "steps=0 (command line): expected a whole number"},
    {"data show s3 --order 0 --split val", 2, "--split is of examples, and --order of a whole epoch of training"},
    {"data show s3 --order 0 --png x", 2, "--png is of examples, and --order of a whole epoch of training"},
    {"data show s3 --order ''", 2, "data show: order is empty"},
    {"data show s3 --png ''", 2, "data show: png is empty"},
    {"data show s3 --batch 3", 2, "data show: --batch is of a run whose order is asked for"},
    {"data show s3 --steps 3", 2, "data show: --steps is of a run whose order is asked for"},
    {"data show s3 --json", 2, "data show: --json is of --stats"},
    {"data show s3 --stats --png x", 2, "data show: --png is a picture of the examples, and --stats are numbers"},
    {"data show s3 --stats=no", 0, "{\"index\":0,\"input\":["},
    {"data show s3 --split extra", 2, "takes no strings of another length besides"},
    {"data show a5-slice:length=4,n_train=100 --split extra --first 3600", 2, "has 3600 extra examples"},
    {"data show a5-slice:length=4,n_train=100 --split extra", 0, "{\"index\":0,\"input\":["},
    {"data show s3:length=2", 2, "has only 36 sequences"},
    {"data stats s3 --count 600", 0, "chance     0.1667"},
    {"data show s3 --stats --count 600", 0, "chance     0.1667"},
    {"data show s3 --stats=yes --count 600", 0, "chance     0.1667"},
    {"data show --stats parity --split val --json", 0, "\"chance\":0.5"},
    {"import README.md", 5, "README.md: this is no safetensors file, which begins with the length of its header"},
    {"verify", 2, "verify: say which case files"},
    {"verify --kernel scan_blok_cpu x", 2, "unknown kernel 'scan_blok_cpu'; did you mean 'scan_block_cpu'?"},
    {"verify --device gpu " CASE, 2, "unknown device 'gpu'"},
    {"verify --device cuda:999 " CASE, 6, "--device cuda"},
    {"perf", 2, "perf: say what"},
    {"perf op", 2, "a name is missing"},
    {"perf op scan_blok", 2, "unknown op 'scan_blok'; did you mean 'scan_block'?"},
    {"perf op linear --kernel linera_cpu", 2, "linear has no kernel 'linera_cpu'"},
    {"perf op scan_block --m 65", 2, "m=65 (command line): expected a whole number from 1 to 64"},
    {"perf op scan_outer --variant 4", 2, "scan_outer has no variant 4, expected 0 to 3"},
    {"perf op scan_diag --heads 9 --vocab 3", 2, "perf op: scan_diag has no --vocab; its sizes are --batch --length"},
    {"perf crossover scan_outer --vocab 3", 2, "perf crossover: scan_outer has no --vocab; its sizes are --batch"},
    {"perf crossover", 2, "a name is missing"},
    {"perf crossover embedding", 2, "embedding has 1 CPU kernel beside the reference, expected two"},
    {"perf crossover scan_outer --from 8 --to 7", 2, "from=8 is longer than to=7"},
    {"perf launches --device cpu", 2, "--device cpu launches nothing"},
    {"perf step bdlru --device cuda", 2, "perf step measures the CPU; `lrnn perf device` measures a CUDA device"},
    {"perf step bdlur", 2, "unknown model 'bdlur'"},
    {"perf step bdlru --length 1000000000", 2, "length 1000000000"},
    {"export 0 x --as mllog --last", 2, "--initial and --last are of weights; a curve is whole"},
    {"rerun --help", 0, "usage: lrnn rerun RUN [--out FOLDER] [--threads N] [--keep]"},
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

/* Writes the text as the page has it: a \ before each -. */
static void escape(const char *text, char *to, size_t size) {
    size_t n = 0;
    for (; *text && n + 2 < size; text++) {
        if (*text == '-') to[n++] = '\\';
        to[n++] = *text;
    }
    to[n] = 0;
}

/* Every flag that the help of a command names stands in its section of the page; a group has one a sub-command. */
static void expect_flags(const char *page, const struct command *c) {
    char arguments[128], usage[320], heading[352];
    snprintf(arguments, sizeof arguments, "%s --help all", c->name);
    expect_status(run(arguments), 0, arguments);
    bool group = strstr(out, "WHAT --help` lists the flags") != NULL;
    escape(c->usage, usage, sizeof usage);
    snprintf(heading, sizeof heading, "\n.SS lrnn %s\n", usage);
    const char *section = strstr(page, heading), *next = section ? strstr(section + 1, "\n.SS ") : NULL;
    ck_assert_msg(group || section, "no section of %s", c->name);
    for (const char *at = strstr(out, "\n  -"); at && section; at = strstr(at + 1, "\n  -")) {
        char flag[80], line[192], wanted[208];
        const char *end = at + 3 + strcspn(at + 3, " ");
        if (end[-1] == ',') end += 1 + strcspn(end + 1, " "); /* "-j, --jobs" */
        snprintf(flag, sizeof flag, "%.*s", (int)(end - at - 3), at + 3);
        escape(flag, line, sizeof line);
        snprintf(wanted, sizeof wanted, "\n.B %s\n", line);
        const char *found = strstr(section, wanted);
        ck_assert_msg(found && (!next || found < next), "%s lacks %s", c->name, flag);
    }
}

START_TEST(the_man_page_has_every_command_and_flag) {
    static const char *const macros[] = {".TH ", ".SH ", ".SS ", ".TP", ".PP", ".B ", ".BR ", ".I ", ".nf", ".fi"};
    expect_status(run("man"), 0, "man");
    char *page = strdup(out);
    ck_assert_ptr_nonnull(page);
    ck_assert_int_eq(strncmp(page, ".TH LRNN 1 ", 11), 0);
    for (const char *line = page; *line; line += strcspn(line, "\n") + 1) {
        bool known = *line != '.' && *line != '\'';
        for (size_t i = 0; i < sizeof macros / sizeof *macros && !known; i++)
            known = strncmp(line, macros[i], strlen(macros[i])) == 0;
        ck_assert_msg(known, "a line that troff does not know: %.60s", line);
    }
    for (const struct command *const *c = cli_commands(); *c; c++)
        if (!(*c)->hidden) expect_flags(page, *c);
    ck_assert_ptr_nonnull(strstr(page, "\n.SS lrnn perf op OP"));
    ck_assert_ptr_null(strstr(page, "lrnn template"));
    static const char *const others[] = {"limits.csv", "machines.csv", "slurm/",
                                         "rerun/",     "NO_COLOR",     "OMP_NUM_THREADS"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) expect_text(page, others[i], "man");
    free(page);
}
END_TEST

/* One table, which help, the man page and the page of the design have. */
START_TEST(exit_codes_are_told_in_the_same_words) {
    size_t size;
    char *design = slurp("docs/design.md", &size), *section = strstr(design, "\n## Exit codes\n");
    ck_assert_ptr_nonnull(section);
    for (char *c = section; *c; c++)
        if (*c == '\n') *c = ' ';
    for (const struct exit_code *c = cli_exit_codes; c->code; c++) {
        char line[160];
        snprintf(line, sizeof line, "\n  %-11s %s\n", c->code, c->meaning);
        expect_status(run("--help"), 0, "--help");
        expect_text(out, line, "--help");
        snprintf(line, sizeof line, "\n.B %s\n%s\n", c->code, c->meaning);
        expect_status(run("man"), 0, "man");
        expect_text(out, line, "man");
        snprintf(line, sizeof line, "%s %s", c->code, c->meaning);
        expect_text(section, line, "docs/design.md");
    }
    free(design);
}
END_TEST

START_TEST(a_hidden_command_works_and_is_not_listed) {
    expect_status(run("--help"), 0, "--help");
    ck_assert_ptr_null(strstr(out, "template"));
    expect_status(run("template word --times 2"), 0, "template");
    ck_assert_str_eq(out, "word\nword\n");
    expect_status(run("template --times 0"), ST_USAGE, "template");
    expect_text(err, "times=0 (command line): expected a whole number from 1 to 1000", "template");
}
END_TEST

START_TEST(report_help_names_every_report_but_the_template) {
    expect_status(run("report --help"), 0, "report --help");
    expect_text(out, "(term md details latex csv json html)", "report --help");
    for (const struct report *const *r = report_list(); *r; r++) {
        char line[64];
        snprintf(line, sizeof line, "\n  %s ", (*r)->name);
        ck_assert_msg(!strstr(out, line) == (*r)->hidden, "%s in\n%s", (*r)->name, out);
    }
    expect_status(run("report --what tabels"), ST_USAGE, "report --what tabels");
    expect_text(err, "unknown report 'tabels'; did you mean 'tables'?", "report --what tabels");
    expect_status(run("report --what xyzzyx"), ST_USAGE, "report --what xyzzyx");
    const char *names = strstr(err, "unknown report 'xyzzyx'; there are: tables ");
    ck_assert_msg(names && !strstr(names, "template"), "%s", err);
    expect_status(run("report --format tex"), ST_USAGE, "report --format tex");
    expect_text(err, "format=tex (command line): expected one of: term md details latex csv", "report --format tex");
}
END_TEST

static const char *const printing[] = {"list", "list models", "--help", "schema runs", "data show s5 --count 4096"};

/* Tests the output that is left in the buffer when the program ends: little, much, or nothing after failed writes. */
START_TEST(full_output_is_an_error) {
    char command[512];
    snprintf(command, sizeof command, "%s %s >/dev/full 2>%s/err", named_program("LRNN", "./lrnn"), printing[_i],
             program_folder);
    size_t size;
    int status = system(command);
    snprintf(command, sizeof command, "%s/err", program_folder);
    err = slurp(command, &size);
    ck_assert_int_eq(WEXITSTATUS(status), 1);
    expect_text(err, "cannot write to standard output", "list");
}
END_TEST

START_TEST(a_line_of_json_that_cannot_be_written_is_no_lack_of_memory) {
    struct error e;
    ck_assert_ptr_nonnull(freopen("/dev/full", "w", stdout));
    setvbuf(stdout, NULL, _IONBF, 0);
    ck_assert_int_eq(cli_print_json(json_pack("{s:i}", "a", 1), &e), ST_FAIL);
    ck_assert_msg(strstr(e.text, "cannot write to standard output: No space left") != NULL, "%s", e.text);
    ck_assert_int_eq(cli_print_json(NULL, &e), ST_MEMORY);
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

/* A binary alone knows them. */
START_TEST(plans_are_part_of_the_program) {
    char *program = realpath(named_program("LRNN", "./lrnn"), NULL);
    char command[1024];
    size_t size;
    ck_assert_ptr_nonnull(program);
    snprintf(command, sizeof command,
             "cd %s && cp %s ./moved && ./moved sweep hlru-fig2 --profile smoke --dry-run "
             ">out.txt 2>err.txt",
             program_folder, program);
    free(program);
    ck_assert_int_eq(WEXITSTATUS(system(command)), 0);
    snprintf(command, sizeof command, "%s/out.txt", program_folder);
    char *said = slurp(command, &size);
    expect_text(said, "bdlru", "sweep");
    free(said);
}
END_TEST

/* Rows of published.csv that belong to one paper do not all stand together there. */
START_TEST(each_paper_is_listed_once) {
    expect_status(run("list papers"), 0, "list papers");
    char *list = strdup(out), *state = NULL, *seen[64];
    int n = 0;
    for (char *line = strtok_r(list, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
        line[strcspn(line, " ")] = 0;
        for (int i = 0; i < n; i++) ck_assert_msg(strcmp(line, seen[i]) != 0, "%s is listed twice:\n%s", line, out);
        ck_assert_int_lt(n, 64);
        seen[n++] = line;
    }
    expect_text(out, "2505.17761 ", "list papers");
    free(list);
}
END_TEST

/* The loader says what it would load and ends. Half a gigabyte of cuBLAS took .4 s of each start, of any command. */
START_TEST(no_command_waits_for_libraries_of_a_device) {
    char traced[2048];
    int n = snprintf(traced, sizeof traced, "LD_TRACE_LOADED_OBJECTS=1 %s", named_program("LRNN", "./lrnn"));
    ck_assert_int_lt(n, (int)sizeof traced);
    expect_status(run_program(program_folder, traced, "--version"), 0, "--version");
    expect_text(out, "libc.so", "the libraries of lrnn");
    ck_assert_msg(!strstr(out, "cublas"), "%s", out);
}
END_TEST

START_TEST(doctor_looks_at_the_folder) {
    char arguments[128];
    snprintf(arguments, sizeof arguments, "doctor --out %s/new/results", program_folder);
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "has what the program was built to use: ", arguments);
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

static TCase *new_case(Suite *s, const char *name) {
    TCase *t = tcase_create(name);
    tcase_add_checked_fixture(t, program_begin, program_end);
    suite_add_tcase(s, t);
    return t;
}

/* Profile quick of s5 ends its runs early, one later than the others; a command line that says how long a run is is not
 * cut short by it. */
START_TEST(a_length_on_the_command_line_replaces_the_profiles) {
    static const struct {
        const char *length, *first, *second;
    } cases[] = {
        {"", "steps 5000\n", "steps 2500\n"},
        {" --epochs 30", "steps 23460\n", "steps 23460\n"},
        {" --steps 20000", "steps 20000\n", "steps 20000\n"},
        {" --steps 20000 --stop-after 10", "steps 10\n", "steps 10\n"},
        {" --epochs 30,40", "steps 31280\n", "steps 23460\n"}, /* the longer is done first */
        {" --limit 9m", "steps 156400 or those of its time\n", "steps 156400 or those of its time\n"},
        {" --budget 9m", "steps 156400 or those of its time\n", "steps 156400 or those of its time\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[128];
        snprintf(line, sizeof line, "bench s5 --dry-run%s", cases[i].length);
        expect_status(run(line), 0, line);
        const char *first = strstr(out, " steps "), *second = first ? strstr(first + 1, " steps ") : NULL;
        ck_assert_msg(first && second && !strncmp(first + 1, cases[i].first, strlen(cases[i].first)), "%s: %s", line,
                      out);
        ck_assert_msg(!strncmp(second + 1, cases[i].second, strlen(cases[i].second)), "%s: %s", line, out);
    }
}
END_TEST

Suite *check_cli(void) {
    Suite *s = suite_create("cli");
    TCase *t = new_case(s, "messages");
    tcase_add_loop_test(t, exit_codes_and_messages, 0, (int)(sizeof calls / sizeof calls[0]));
    tcase_add_test(t, auto_is_said_by_its_word);
    tcase_add_test(t, every_command_has_help);
    tcase_add_test(t, the_man_page_has_every_command_and_flag);
    tcase_add_test(t, exit_codes_are_told_in_the_same_words);
    tcase_add_test(t, a_hidden_command_works_and_is_not_listed);
    tcase_add_test(t, report_help_names_every_report_but_the_template);
    tcase_add_loop_test(t, full_output_is_an_error, 0, (int)(sizeof printing / sizeof *printing));
    tcase_add_test(t, a_line_of_json_that_cannot_be_written_is_no_lack_of_memory);
    tcase_add_test(t, models_listed_can_be_described);
    tcase_add_test(t, plans_are_part_of_the_program);
    tcase_add_test(t, each_paper_is_listed_once);
    tcase_add_test(t, no_command_waits_for_libraries_of_a_device);
    tcase_add_test(t, doctor_looks_at_the_folder);
    tcase_add_test(t, a_length_on_the_command_line_replaces_the_profiles);
    t = new_case(s, "data");
    tcase_add_test(t, data_show_prints_json_lines);
    tcase_add_test(t, data_order_is_a_permutation_of_its_own);
    tcase_add_test(t, data_stats_counts_every_target);
    return s;
}
