/* check_attacks_again.c - a second round of legal ways to make a table, a figure or an export say something false:
 * plots, pages, LaTeX, HTML, CSV, two folders compared, plans that are based on a paper's, numbers side by side. */
#include "tests/harness/table/attack.h"

#define BD5       "run bdlru:m=5;gelu 0.001 1 0.5 0.5 | "
#define BD5_AGAIN "run bdlru:m=5;gelu 0.001 2 0.5 0.5 | "
#define S3        "run bdlru:m=5;gelu 0.001 1 0.5 0.5 | task s3 | key task.group=s3 | "
#define SHORT     "run bdlru:m=5;gelu 0.001 1 0.5 0.5 | task s5:length=8 | key task.length=8 | "
#define OWN                                                                                                            \
    "file published.csv arxiv,table,task,model,metric,value,protocol/"                                                 \
    "2602.12021,Table 2,s5,bdlru:m=5,acc,0.1,"
#define UNLIKE "~ the paper's setting differs, so there is no diff: "

static const struct attack attacks[] = {
    /* figures: what a table has below it stands below the picture */
    {"draws bf16", BD5 "key precision=bf16", "plot accuracy", "foot[1] = 'All rows: precision=bf16.", ""},
    {"draws the rate that it picked", BD5 "run bdlru:m=5;gelu 0.003 1 0.1 0.1", "plot table where=lr=0.001",
     "Of all runs those alone with --where ''lr=0.001''", ""},
    {"draws numbers of its own as the paper's", BD5 OWN, "plot table", "published.csv in the folder of the records",
     ""},
    {"draws the paper's number beside another width", BD5 "key dim=64", "plot accuracy", "published[1] = NaN", ""},
    {"draws a mean beside the best of fifteen", BD5, "plot accuracy",
     "published_title = 'published (test, the best of theirs)'", ""},
    {"draws runs that were cut off", BD5 "cut 200", "plot table", "name[1] = 'bdlru:m=5 *' | ; * cut off", ""},
    {"draws what saw later inputs", BD5 "key bidirectional=yes | key allow-non-causal=yes", "plot accuracy",
     "name[1] = 'bdlru:m=5^' | ; ^ saw later inputs", ""},
    {"draws runs of mixed builds", BD5 "mark mixed", "plot cost", "went on from a checkpoint of another build", ""},
    {"draws what was drawn again", BD5 BD5_AGAIN "mark replaced", "plot heat", "1 of 2 runs were done again (--force)",
     ""},
    {"draws speeds of two machines as one",
     BD5 "file perf.csv shape,tok_per_s,machine_id/a B8 T64,1,aaaaaaaa/a B8 T512,2,aaaaaaaa/b B8 T64,1,bbbbbbbb/"
         "b B8 T512,9,bbbbbbbb",
     "plot throughput", "'a on aaaaaaaa' | 'b on bbbbbbbb'", ""},
    {"draws the failed seeds away", BD5 BD5_AGAIN "fail nan", "plot accuracy",
     "name[1] = 'bdlru:m=5 #' | # 1 of 2 runs failed | mean (failed: chance)", ""},
    /* formats */
    {"typesets bf16", BD5 SHORT "all key precision=bf16", "settings latex", "All rows: precision=bf16.", ""},
    {"typesets what saw later inputs", BD5 "key bidirectional=yes | key allow-non-causal=yes", "tables latex",
     "bdlru:m=5\\textasciicircum{} | could see the inputs after each position", ""},
    {"typesets the picked rate", BD5 SHORT, "layers latex where=lr=0.001",
     "Of all runs those alone with -{}-where 'lr=0.001'", ""},
    {"makes a page of another width", BD5 "key dim=64", "tables html", "1.000~ | there is no diff: dim=64 (128 there)",
     ""},
    {"makes Markdown of a dirty build", BD5 "mark dirty", "tables md", "whose sources differed from their commit", ""},
    {"folds the notes away", BD5 "key precision=bf16", "tables details", "All rows: precision=bf16.", ""},
    {"exports another width as JSON", BD5 "key dim=64", "tables json",
     "\"published_setting\":\"other\" | \"published_differs\":\"dim=64 (128 there)\" | \"delta\":null", ""},
    {"exports tasks side by side", BD5 "key dim=64 | " S3 "key dim=64", "across csv", ",other,dim=64", ",same,"},
    {"exports settings in bf16", BD5 SHORT "all key precision=bf16", "settings csv", ",precision=bf16\n", ""},
    {"exports layers in bf16", BD5 SHORT "all key precision=bf16", "layers csv", ",precision=bf16\n", ""},
    /* pages */
    {"shows a page of a dirty build", BD5 "mark dirty", "site", "whose sources differed from their commit", ""},
    {"shows a page of the picked rate", BD5 "run bdlru:m=5;gelu 0.003 1 0.1 0.1", "site where=lr=0.001",
     "Of all runs those alone with --where 'lr=0.001'", ""},
    {"shows a page of numbers of its own", BD5 OWN, "site", "published.csv in the folder of the records", ""},
    {"shows a page of what saw later inputs", BD5 "key bidirectional=yes | key allow-non-causal=yes", "site",
     "have the mark ^ could see the inputs after each position", ""},
    /* fewer columns, another order */
    {"names one column, and no failed run", BD5 BD5_AGAIN "fail nan", "tables term columns=acc", "counted as chance",
     ""},
    {"names the published number alone", BD5 "key model.gate=none", "tables term columns=published",
     UNLIKE "model.gate=none (softmax there)", ""},
    {"names no speed's place", BD5 "speed 1000 2 bf16 aaaaaaaa1 cpu", "tables term columns=tok/s",
     "tok/s: 2 threads, bf16, cpu, machine aaaaaaaa", "this one"},
    /* two folders */
    {"compares with a dirty build", BD5 BD5 "mark dirty", "compare term",
     "1 of 2 runs were made by a program whose sources differed", ""},
    {"compares in bf16", BD5 BD5 "all key precision=bf16", "compare term", "All rows: precision=bf16.", ""},
    {"compares with a failed run", BD5 BD5 "fail oom", "compare term", "0.0083# | -0.4917# | 1 of 2 runs failed", ""},
    {"compares with half a run", BD5 BD5 "cut 100", "compare csv", ",n_cut_off_b,n_failed_b | ,0,0,1,0\n", ""},
    /* how a number is made */
    {"reports on seeds of its own", "runs 3 bdlru:m=5;gelu 0.001 0.5 0.5", "tables term confirm=1",
     "Each row reports its 1 largest seeds; the others chose the rate", ""},
    {"gives one rate a single lucky seed, side by side",
     "runs 3 bdlru:m=5;gelu 0.001 0.5 0.5 | run bdlru:m=5;gelu 0.003 1 0.9 0.9 | " S3, "across term",
     "The grid is not complete: the rates have different numbers of seeds.", ""},
    {"calls one seed a mean", BD5 S3, "across term",
     "Mean over the seeds at the learning rate that validation chose, 1 seed", ""},
    {"names the steps of a schedule that nobody goes to the end of", BD5 "key stop-after=100 | cut 100 | " S3,
     "across term", "at most 100 of 300 steps", "s5: test token accuracy, chance 0.0083, at most 300 steps"},
    {"takes the best beside a paper's mean", BD5 S3 OWN "val-mean", "across term protocol=best-of-grid",
     "no best of their runs, and ours are", ""},
    {"takes the best of more runs than the paper, side by side", "runs 16 bdlru:m=5;gelu 0.001 0.5 0.5 | " S3,
     "across term protocol=best-of-grid", "(best of 16, paper: of 15)", ""},
    {"has a decay whose runs failed win",
     "run lru;gelu 0.001 1 0.004 0.004 | run lru;gelu 0.001 1 0.9 0.9 | key decay=0.1 | fail nan | "
     "run lru;gelu 0.001 1 0.004 0.004 | task s5:length=8 | key task.length=8",
     "settings csv", ",base,0.004,2,", ""},
    {"has a mean of kinds of runs", "runs 5 bdlru:m=5;gelu 0.001 0.5 0.5", "tables term protocol=iqm",
     "acc (protocol iqm): the interquartile mean", ""},
    {"validates on one example", BD5 "task s5:n_val=1 | key task.n_val=1", "tables term", UNLIKE "task.n_val=1 (", ""},
    {"scales the branches", BD5 "key layer-scale=1", "tables term", UNLIKE "layer-scale=1 (0 there)", ""},
    {"looks at the validation after each step", BD5 "key eval-every=1", "tables term", "eval-every=1", ""},
    {"mixes runs of former numerics in", BD5 "mark outdated", "tables term",
     "bdlru:m=5 numerics=0 | numerics=N: the program's numbers have changed since these runs", ""},
    /* plans of the reader's */
    {"makes a mean of a paper's best",
     "file own.plan base=hlru-table2/models=bdlru:m=5/tasks=s3-250/lr=0.001/seeds=1/protocol=val-mean | "
     "run bdlru:m=5;gelu 0.001 1 0.1 0.1 | task s3-250 | plan own.plan",
     "paper own.plan term", UNLIKE "the paper's number is the best of its runs", "below"},
    {"judges by one of fifteen runs",
     "file own.plan base=hlru-table2/models=bdlru:m=5/tasks=s3-250/lr=0.001/seeds=1 | "
     "run bdlru:m=5;gelu 0.001 1 0.1 0.1 | task s3-250 | plan own.plan",
     "paper own.plan csv", ",unfinished,0,0,", "below"},
    {"says in a plan of its own that nothing differs",
     "file own.plan base=hlru-table2/models=bdlru:m=5/tasks=s3-250/lr=0.001/seeds=1/mlp=none/table=ours | "
     "run bdlru:m=5;gelu 0.001 1 0.1 0.1 | task s3-250 | plan own.plan",
     "paper own.plan term", UNLIKE "mlp=none (gelu there)", "below"},
    {"asks for a table in bf16", "run bdlru:m=5;gelu 0.001 1 0.1 0.1 | task s3-250 | plan hlru-table2 model.m=5",
     "paper hlru-table2 term tasks=s3-250 where=precision=bf16", "precision=bf16, 0 of 210 runs", ""},
};
#define N_ATTACKS ((int)(sizeof attacks / sizeof *attacks))
_Static_assert(N_ATTACKS == 48, "the attacks are counted in docs/trust.md");

START_TEST(each_attack_of_the_second_round_fails) {
    attack_try(&attacks[_i]);
}
END_TEST

Suite *check_attacks_again(void);
Suite *check_attacks_again(void) {
    return attack_suite("attacks_again", each_attack_of_the_second_round_fails, N_ATTACKS);
}
