/* check_completion.c - what `lrnn completion` gives a shell. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/not_run.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

START_TEST(a_shell_completes_commands_names_and_flags) {
    char command[4096 + 2 * PATH_MAX], program[PATH_MAX], baseline[PATH_MAX];
    ck_assert(realpath(named_program("LRNN", "./lrnn"), program) && realpath("results/baseline", baseline));
    expect_status(run("completion bash"), 0, "completion bash");
    snprintf(
        command, sizeof command,
        "cd %s && mkdir -p bin && ln -sf %s bin/lrnn && PATH=$PWD/bin:$PATH bash -c '. ./out; "
        "ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _lrnn; echo ${COMPREPLY[*]}; }; "
        "ask lrnn swe; ask lrnn train --bet; ask lrnn train s3 bdl; ask lrnn bench -j; ask lrnn bench --jo; "
        "ask lrnn report --format j; ask lrnn report --paper hlru-table; ask lrnn help swe; "
        "ask lrnn sweep --dry-run hlru-fig2; ask lrnn bench --dim 1; ask lrnn plot a; ask lrnn data du; "
        "ask lrnn data dump --fo; ask lrnn data dump s3; ask lrnn perf step bdl; ask lrnn store m; "
        "ask lrnn list p; ask lrnn schema per; ask lrnn report --what l; ask lrnn plot --format p; "
        "ask lrnn show bdl; ask lrnn info scan_block_r; ask lrnn bench bdl; "
        "ask lrnn data urls mni; ask lrnn data ./no x; ask lrnn no/such x; ask \"~/lrnn\" tra; "
        "ask lrnn train bdl; ask lrnn train --json s3 bdl; ask lrnn train --dim 64 s3 bdl; ask lrnn perf s; "
        "ask lrnn perf op scan_blo; ask lrnn perf op bdl; ask lrnn perf op s3; ask lrnn help s3; "
        "ask lrnn help perf la; ask lrnn info hlru-table; ask lrnn sweep hlru-fig2 s3-2; ask lrnn train s3 bdlru:g; "
        "ask lrnn train s3 bdlru:m=2,gate=s; ask lrnn train s3:min; "
        "mkdir -p r/runs/01; named() { echo \" \\\"run_id\\\": \\\"$1\\\",\"; }; "
        "named 0123456789abcdef0123456789abcdef >r/runs/01/0123456789abcdef0123456789abcdef.json; "
        "named 0abcdef9876543210123456789abcdef | gzip >r/runs/0a.gz; ask lrnn show --out r 0; "
        "line() { COMP_LINE=$1; COMP_POINT=${#1}; _lrnn; echo ${COMPREPLY[*]}; }; "
        "ask lrnn report --out %s --task s3 --columns model,para; "
        "line \"lrnn train s3 bdlru:m=3,gate=s\"; line \"lrnn bench s3 --models \\\"bdlru:m=3 lst\"; COMP_LINE=; "
        "PATH=/usr/bin:/bin; ask ./bin/lrnn tra' >said 2>&1",
        program_folder, program, baseline);
    ck_assert_int_eq(system(command), 0);
    char *said = slurp(strcat(strcpy(command, program_folder), "/said"), &(size_t){0});
    static const char answers[] =
        "sweep\n--beta1 --beta2\nbdlru\n-j\n--jobs\njson\nhlru-table1 hlru-table2\nsweep\nhlru-fig2\n\naccuracy\ndump\n"
        "--format\ns3 s3-250\nbdlru\nmerge\npapers\nperf\nlayers lengths\npng "
        "pdf\n\nscan_block_ref\n\nmnist\n\n\ntrain\n"
        "\nbdlru\nbdlru\nstep\nscan_block\n\n\ns3 s3-250\nlayers launches\nhlru-table1 hlru-table2\ns3-250\n"
        "bdlru:gate= bdlru:gate-init=\nbdlru:m=2,gate=softmax bdlru:m=2,gate=sigmoid\ns3:min_length=\n0abcdef9 "
        "01234567\n"
        "model,params\nsoftmax sigmoid\nlstm\ntrain\n";
    ck_assert_str_eq(said, answers);
    free(said);
    expect_status(run("completion fish"), 2, "");
    expect_text(err, "say for which shell, bash or zsh", "completion fish");
}
END_TEST

/* Runs zsh, if there is one, without start files and with nothing loaded that completes. */
START_TEST(zsh_loads_its_completion) {
    char command[1024 + PATH_MAX], program[PATH_MAX];
    size_t size;
    if (system("command -v zsh >/dev/null 2>&1") != 0) {
        not_run("completion", "zsh_loads_its_completion", "there is no zsh");
        return;
    }
    ck_assert_ptr_nonnull(realpath(named_program("LRNN", "./lrnn"), program));
    expect_status(run("completion zsh"), 0, "completion zsh");
    snprintf(command, sizeof command,
             "cd %s && mkdir -p bin && ln -sf %s bin/lrnn && HOME=$PWD PATH=$PWD/bin:$PATH zsh -f -c '. ./out && "
             "echo $_comps[lrnn] && emulate -L sh && COMP_WORDS=(lrnn swe) && COMP_CWORD=1 && _lrnn && "
             "echo \"${COMPREPLY[*]}\"' >said 2>&1",
             program_folder, program);
    ck_assert_int_eq(system(command), 0);
    snprintf(command, sizeof command, "%s/said", program_folder);
    char *said = slurp(command, &size);
    ck_assert_msg(strstr(said, "-F _lrnn\n") && strstr(said, " sweep ") && !strstr(said, "option"), "%s", said);
    free(said);
}
END_TEST

Suite *check_completion(void);
Suite *check_completion(void) {
    Suite *suite = suite_create("completion");
    TCase *c = tcase_create("completion");
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, a_shell_completes_commands_names_and_flags);
    tcase_add_test(c, zsh_loads_its_completion);
    suite_add_tcase(suite, c);
    return suite;
}
