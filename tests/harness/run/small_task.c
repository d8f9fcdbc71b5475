/* small_task.c - see small_task.h. */
#include "tests/harness/run/small_task.h"

#include <stdio.h>
#include <string.h>

/* Options that make a task short; a task that is not named here has its defaults. */
static const struct sized {
    const char *task, *options, *model; /* NULL: the model of all others */
} sized[] = {
    {"word-problem", "group=s5", NULL},
    {"parity", "eval_max_length=64", NULL},
    {"even-pairs", "eval_max_length=64", NULL},
    {"cycle-navigation", "eval_max_length=64", NULL},
    {"modular-arithmetic", "eval_max_length=64", NULL},
    {"chomsky", "eval_max_length=48", NULL},
    {"flip-flop", "length=64", NULL},
    {"dyck", "length=24,eval_length=48", NULL},
    {"regbench", "length=64", NULL},
    {"copy", "max_length=16,eval_length=32", NULL},
    {"phone-book", "entries=6", NULL},
    {"listops", "min_length=20,max_length=64,depth=4", NULL},
    {"lra-text", "length=64,least=1", NULL},
    {"lra-retrieval", "length=64", NULL},
    {"digits", "size=12", "plstm2d:heads=2"},
    {"shapes", "size=12", NULL},
    {"smnist", "patch=2", NULL},
    {"scifar", "patch=4", NULL},
    {"pathfinder", "size=16", NULL},
    {"arrow", "size=24", NULL},
    {"brackets", "min_length=32,max_length=128", NULL},
    {"pairs", "min_length=32,max_length=64,passage=8", NULL},
    {"uea", "set=heartbeat", NULL},
    {"molecules", "", "plstm-graph:heads=2"},
    {"tud", "", "plstm-graph:heads=2"},
};

void small_task(const struct task *task, char text[SMALL_TASK_TEXT], const char **model) {
    static const char *const counts[][2] = {{"n_train", "1000"}, {"n_val", "32"}, {"n_test", "8"}};
    const char *options = "";
    *model = "bdlru:m=2,blocks=16";
    for (size_t i = 0; i < sizeof sized / sizeof *sized; i++) {
        if (strcmp(sized[i].task, task->name) != 0) continue;
        options = sized[i].options;
        if (sized[i].model) *model = sized[i].model;
    }
    int n = snprintf(text, SMALL_TASK_TEXT, "%s:%s", task->name, options);
    for (size_t i = 0; i < 3 && !task->data; i++)
        if (option_find(task->options, counts[i][0]))
            n += snprintf(text + n, SMALL_TASK_TEXT - (size_t)n, "%s%s=%s", text[n - 1] == ':' ? "" : ",", counts[i][0],
                          counts[i][1]);
    if (text[n - 1] == ':') text[n - 1] = 0;
}
