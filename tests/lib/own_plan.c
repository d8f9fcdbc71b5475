/* own_plan.c - see own_plan.h. */
#include "tests/lib/own_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/testing.h"

const char own_plan[] = "title=A table\npaper=1234.5678\nsource=Table 9\nprofile=smoke\n"
                        "tasks=s3:n_train=200,n_val=20,n_test=20,length=4 s4:n_train=200,n_val=20,n_test=20,length=4\n"
                        "models=lru:state=4 lstm:hidden=4\nseeds=2\nepochs=2\nlr=0.01,0.02\nprotocol=best-of-grid\n"
                        "overall=all\n";

static const char published[] = "paper,arxiv,table,row,task,model,metric,value\n"
                                "P,1234.5678,Table 9,LRU!,s3,lru,acc_32,0.7\n" /* at another length */
                                "P,1234.5678,Table 9,LRU!,s3,lru,acc,0.001\n"
                                "P,1234.5678,Table 9,LRU!,s4,lru,acc,0.999\n"
                                "P,1234.5678,Table 9,LRU!,all,lru,acc,0.5\n"
                                "P,1234.5678,Table 8,LSTM,s3,lstm,acc,0.5\n";

void write_text(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", program_folder, name);
    spill(path, text, strlen(text));
}

void expect(const char *format, int status) {
    char arguments[2048];
    /* cppcheck-suppress wrongPrintfScanfArgNum ; formats have one to three */
    snprintf(arguments, sizeof arguments, format, program_folder, program_folder, program_folder);
    expect_status(run(arguments), status, arguments);
}

void begin_plan(const char *text) {
    char path[256];
    write_text("own.plan", text);
    snprintf(path, sizeof path, "mkdir -p %s/r", program_folder);
    ck_assert_int_eq(system(path), 0);
    write_text("r/published.csv", published);
}

bool is_once(const char *text) {
    const char *at = strstr(out, text);
    return at && !strstr(at + 1, text);
}
