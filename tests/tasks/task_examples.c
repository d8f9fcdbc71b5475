/* task_examples.c - see task_examples.h. */
#include "tests/tasks/task_examples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tasks/data/datasets.h"

#define GUARD 0x5a5a5a /* exact in a float too */

struct arena task_host;

void reserve_task_host(void) {
    struct error e;
    ck_assert_int_eq(arena_reserve(&task_host, (size_t)128 << 20, &e), ST_OK);
}

void free_task_host(void) {
    arena_free(&task_host);
}

void open_task(struct task_choice *choice, const char *text, uint64_t seed) {
    struct error e = {ST_OK, ""};
    enum status status = task_parse(choice, text, &e);
    if (status == ST_OK) status = task_open(choice, seed, &task_host, &e);
    ck_assert_msg(status == ST_OK, "%s: %s", text, e.text);
}

char data_folder[SCRATCH_BYTES];

static void say_nothing(struct import_log *log, const char *path, int64_t bytes, const char sha256[SHA256_HEX],
                        const struct dataset_file *released) {
    (void)log, (void)path, (void)bytes, (void)sha256, (void)released;
}

void import_data(void) {
    scratch_make(data_folder);
    ck_assert_int_eq(setenv("LRNN_CACHE", data_folder, 1), 0);
    char own[SCRATCH_BYTES + 16];
    snprintf(own, sizeof own, "%s/own.jsonl", data_folder);
    size_t size;
    char *text = slurp("tests/data/own/own.jsonl", &size);
    spill(own, text, size);
    free(text);
    for (const struct dataset *const *d = dataset_list(); *d; d++) {
        struct import_log log = {.read = say_nothing};
        struct error e = {ST_OK, ""};
        char folder[100];
        snprintf(folder, sizeof folder, "tests/data/%s", (*d)->name);
        if (access(folder, F_OK) != 0) continue; /* another size of one that is there */
        ck_assert_msg(dataset_import(*d, folder, true, &log, &e) == ST_OK, "%s", e.text);
    }
}

void drop_data(void) {
    scratch_remove(data_folder);
}

void tasks_begin(void) {
    reserve_task_host();
    import_data();
}

void tasks_end(void) {
    drop_data();
    free_task_host();
}

struct example new_example(const struct task_shape *s) {
    struct example x = {.length = 0};
    int64_t T = s->T_eval > s->T ? s->T_eval : s->T, targets = s->per_sequence ? 1 : T;
    if (s->vocab_in > 0)
        x.tokens = malloc((size_t)(T * task_documents(s) + 1) * sizeof *x.tokens);
    else
        x.values = malloc((size_t)(T * task_documents(s) * s->channels + 1) * sizeof *x.values);
    x.targets = malloc((size_t)(targets + 1) * sizeof *x.targets);
    if (s->links.edges) x.links = malloc((size_t)(links_words(s->links) + 1) * sizeof *x.links);
    ck_assert(x.targets && (x.tokens || x.values) && (x.links || s->links.edges == 0));
    return x;
}

void free_example(struct example *x) {
    free(x->tokens);
    free(x->values);
    free(x->targets);
    free(x->links);
}

void fill_example(const struct task_choice *c, enum split split, int64_t index, int32_t dirt, struct example *x) {
    const struct task_shape *s = &c->shape;
    int64_t T = task_documents(s) * task_length(s, split), targets = task_targets(s, split), values = T * s->channels;
    for (int64_t t = 0; x->tokens && t < T; t++) x->tokens[t] = dirt;
    for (int64_t t = 0; x->values && t < values; t++) x->values[t] = (real)dirt;
    for (int64_t t = 0; t < targets; t++) x->targets[t] = IGNORED;
    if (x->tokens) x->tokens[T] = GUARD;
    if (x->values) x->values[values] = GUARD;
    int64_t words = links_words(s->links);
    for (int64_t i = 0; i < words; i++) x->links[i] = IGNORED;
    if (x->links) x->links[words] = GUARD;
    x->targets[targets] = GUARD;
    x->length = -1;
    x->second = 0;
    task_fill(c, split, index, x);
    ck_assert_msg((!x->tokens || x->tokens[T] == GUARD) && (!x->values || x->values[values] == (real)GUARD) &&
                      x->targets[targets] == GUARD && (!x->links || x->links[words] == GUARD),
                  "%s writes past its rows", c->name);
}

bool same_example(const struct task_shape *s, enum split split, const struct example *a, const struct example *b) {
    size_t T = (size_t)(task_documents(s) * task_length(s, split)), targets = (size_t)task_targets(s, split);
    if (a->length != b->length || a->second != b->second ||
        memcmp(a->targets, b->targets, targets * sizeof *a->targets) != 0)
        return false;
    if (a->links && memcmp(a->links, b->links, (size_t)links_words(s->links) * sizeof *a->links) != 0) return false;
    if (a->tokens) return memcmp(a->tokens, b->tokens, T * sizeof *a->tokens) == 0;
    return memcmp(a->values, b->values, T * (size_t)s->channels * sizeof *a->values) == 0;
}

int64_t examples_to_check(int64_t usual) {
    const char *wanted = getenv("CHECK_EXAMPLES");
    return wanted ? strtoll(wanted, NULL, 10) : usual;
}

void labels_checked(const char *task, int64_t examples, int64_t labels) {
    if (getenv("CHECK_EXAMPLES"))
        printf("%-60s %lld examples, %lld labels, 0 wrong\n", task, (long long)examples, (long long)labels);
}

int64_t spread(const struct task_shape *s, enum split split, int k, int count) {
    return (s->examples[split] - 1) * k / (count - 1);
}

void check_task_refused(const char *text, const char *words) {
    struct task_choice c;
    struct error e = {ST_OK, ""};
    enum status status = task_parse(&c, text, &e);
    if (status == ST_OK) status = task_open(&c, 1, &task_host, &e);
    ck_assert_msg(status == ST_USAGE && e.status == ST_USAGE, "%s: status %d", text, status);
    ck_assert(!strchr(e.text, '\n'));
    char copy[512];
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok(copy, "|"); word; word = strtok(NULL, "|"))
        ck_assert_msg(strstr(e.text, word) != NULL, "%s: no \"%s\" in \"%s\"", text, word, e.text);
}
