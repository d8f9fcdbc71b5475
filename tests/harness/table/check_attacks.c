/* check_attacks.c - 36 legal ways to make a table say something false, by the nine kinds of what was wrong: what it
 * says in place of that. */
#include "tests/harness/table/attack.h"

#define BD5       "run bdlru:m=5;gelu 0.001 1 0.5 0.5 | "
#define BD5_AGAIN "run bdlru:m=5;gelu 0.001 2 0.5 0.5 | "
#define UNLIKE    "1.000~ | ~ the paper's setting differs, so there is no diff: "
#define TOY       "base=hlru-table2/models=bdlru:m=5/tasks=s3-250/lr=0.001/seeds=1/"

static const struct attack attacks[] = {
    /* 1. what all rows share is said */
    {"runs everything in bf16", BD5 BD5_AGAIN "all key precision=bf16", "tables term", "All rows: precision=bf16.", ""},
    {"runs everything on a device", BD5 "key device=cuda", "tables term", "All rows: device=cuda.", ""},
    {"runs everything by reference kernels", BD5 "key kernel=reference", "tables term", "All rows: kernel=reference.",
     ""},
    {"runs everything in double", BD5 "key dtype=fp64", "tables term", "All rows: dtype=fp64.", ""},
    {"trains with dropout", BD5 "key dropout=0.1", "tables term",
     UNLIKE "dropout=0.1 (0 there). | All rows: dropout=0.1.", ""},
    {"begins from weights of a file", BD5 "key from-xxh3=ab", "tables term", UNLIKE "from-xxh3=ab (none there)", ""},
    {"goes on with another build", BD5 BD5_AGAIN "mark mixed", "tables term",
     "1 of 2 runs went on from a checkpoint of another build (--force-resume)", ""},
    {"builds from sources that are in no commit", BD5 "mark dirty", "tables term",
     "1 of 1 runs were made by a program whose sources differed from their commit.", ""},
    {"exports bf16 as CSV", BD5 "key precision=bf16", "tables csv", ",precision=bf16,", ""},
    /* 2. a number stands beside a paper's in its setting alone */
    {"takes the gate away", BD5 "key model.gate=none", "tables term", UNLIKE "model.gate=none (softmax there)",
     "-0.500"},
    {"makes gates that see no input", BD5 "key model.selective=no", "tables term", UNLIKE "model.selective=no", ""},
    {"leaves the model one block", BD5 "key model.blocks=1", "tables term", UNLIKE "model.blocks=1 (64 there)", ""},
    {"tests on one example", BD5 "task s5:n_test=1 | key task.n_test=1", "tables term", UNLIKE "task.n_test=1 (", ""},
    {"trains on sequences of four", BD5 "key task.length=4", "tables term", UNLIKE "task.length=4 (16 there)", ""},
    {"trains on ten examples", BD5 "key task.n_train=10", "tables term", UNLIKE "task.n_train=10 (100000 there)", ""},
    {"takes the MLP that a plan of ours tries",
     "run bdlru:m=5;swiglu 0.001 1 0.5 0.5 | task s3-250 | key task.group=s3 | key task.n_train=250 | key mlp=swiglu | "
     "key steps=400",
     "tables term", UNLIKE "mlp=swiglu (gelu there)", ""},
    {"halves the width, tasks side by side", BD5 "key dim=64 | " BD5 "task s3 | key task.group=s3 | key dim=64",
     "across term", "/ 1.000~ | dim=64 (128 there)", ""},
    {"bases a plan of toy sizes on the paper's",
     "file own.plan " TOY "dim=8 | run bdlru:m=5;gelu 0.001 1 0.1 0.1 | task s3-250 | plan own.plan",
     "paper own.plan csv", ",0.1, | ,0,1,", "below"},
    {"leaves columns out of the mean", BD5 "task s3 | plan hlru-table2 model=bdlru model.m=5",
     "paper hlru-table2 term tasks=s3+s4", "BD-LRU m5            0.500 / 1.000  - / 1.000", "mean"},
    {"takes the best of more runs than the paper", "runs 16 bdlru:m=5;gelu 0.001 0.5 0.5", "tables term",
     "0.5000 (16, paper: of 15)", ""},
    /* 3. what could see the future is marked */
    {"lets attention look ahead", "run full-attention:heads=2;gelu 0.001 1 1 1 | key allow-non-causal=yes",
     "tables term", "full-attention:heads=2^ | 1 of 1 runs have the mark ^ could see the inputs after each position",
     ""},
    {"adds a mixer on the reversed sequence", BD5 "key bidirectional=yes | key allow-non-causal=yes", "each term",
     "bdlru:m=5^ | have the mark ^ could see", ""},
    {"exports it as CSV", BD5 "key bidirectional=yes | key allow-non-causal=yes", "tables csv", "bdlru:m=5^", ""},
    /* 4. failed runs never win */
    {"has chance win over a healthy rate",
     "runs 2 lru;gelu 0.001 0.004 0.004 | run lru;gelu 0.003 1 0.9 0.9 | fail nan | run lru;gelu 0.003 2 0.9 0.9 | "
     "fail nan",
     "tables term", "123k    320  0.001  300/300", ""},
    {"has chance be the best", "run lru;gelu 0.001 1 0.004 0.004 | run lru;gelu 0.003 1 0.9 0.9 | fail nan",
     "tables term", "0.0040 (2)", ""},
    {"draws a failed run as one that learnt nothing", BD5 BD5_AGAIN "fail nan", "plot heat",
     "2\t1\tNaN\tfailed | # 1 of 2 runs failed", ""},
    /* 5. speeds side by side are of one place */
    {"measures on two machines",
     BD5 "speed 1000 2 fp32 aaaaaaaa1 cpu | run lru;gelu 0.001 1 0.5 0.5 | speed 2000 2 fp32 bbbbbbbb1 cpu",
     "tables term", "tok/s of 2 threads, fp32, cpu, machine aaaaaaaa | machine bbbbbbbb", "tok/s: 2 threads"},
    {"measures with more threads",
     BD5 "speed 1000 1 fp32 aaaaaaaa1 cpu | run lru;gelu 0.001 1 0.5 0.5 | speed 2000 8 fp32 aaaaaaaa1 cpu",
     "tables term", "tok/s of 1 thread, | tok/s of 8 threads,", ""},
    {"measures one model in bf16",
     BD5 "speed 1000 1 fp32 aaaaaaaa1 cpu | run lru;gelu 0.001 1 0.5 0.5 | speed 2000 1 bf16 aaaaaaaa1 cpu",
     "tables term", "1 thread, bf16, cpu", ""},
    /* 6. the paper's digits are as printed, and whose they are is said */
    {"rounds the paper's number",
     BD5 "file published.csv arxiv,table,task,model,metric,value/"
         "2602.12021,Table 2,s5,bdlru:m=5,acc,0.370",
     "tables term", "      0.370  +0.130", ""},
    {"brings numbers of its own",
     BD5 "file published.csv arxiv,table,task,model,metric,value/"
         "2602.12021,Table 2,s5,bdlru:m=5,acc,0.1",
     "tables term", "The papers' numbers are of published.csv in the folder of the records, not the program's.", ""},
    /* 7. what the reader chose is echoed */
    {"picks a rate", BD5 "run bdlru:m=5;gelu 0.003 1 0.1 0.1", "tables term where=lr=0.001",
     "Of all runs those alone with --where 'lr=0.001'.", ""},
    {"picks a seed", BD5 BD5_AGAIN, "each term where=seed=1", "those alone with --where 'seed=1'.", ""},
    {"draws again until it fits", BD5 "mark replaced", "tables term",
     "1 of 1 runs were done again (--force); their earlier results are in no number here.", ""},
    /* 8. what the paper leaves open stands below its table */
    {"prints a figure as if the paper said all", BD5, "paper hlru-fig2 md",
     "the paper leaves settings open; ours are: the base configuration", ""},
    /* 9. a run that was killed is told of */
    {"kills what does not look well", BD5 "lost s5 bdlru:m=5 lr 0.001 seed 2", "tables term",
     "1 run began, but the process was killed; no number includes it. lrnn status names it.", ""},
};
#define N_ATTACKS ((int)(sizeof attacks / sizeof *attacks))
_Static_assert(N_ATTACKS == 36, "the attacks are counted in docs/trust.md");

START_TEST(each_attack_of_the_first_round_fails) {
    attack_try(&attacks[_i]);
}
END_TEST

Suite *check_attacks(void);
Suite *check_attacks(void) {
    return attack_suite("attacks", each_attack_of_the_first_round_fails, N_ATTACKS);
}
