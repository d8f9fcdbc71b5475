/* words.c - fuzz target: whatever is typed as a task, a model, seeds, values, a filter, a share of a sweep or as flags,
 * it is refused with one sentence or understood. The first byte chooses what it is. */
#include "core/values.h"
#include "harness/cli/cli.h"
#include "harness/study/config.h"
#include "harness/study/request.h"
#include "harness/rows/filter.h"
#include "harness/pool/sweep.h"
#include "models/model.h"
#include "tasks/task.h"
#include "tests/fuzz/fuzz.h"

static enum status as_task(const char *text, struct error *e) {
    static struct task_choice choice;
    return task_parse(&choice, text, e);
}

static enum status as_model(const char *text, struct error *e) {
    static struct model_choice choice;
    return model_parse(&choice, text, e);
}

static enum status as_seeds(const char *text, struct error *e) {
    struct texts seeds = {0};
    enum status status = seeds_parse(text, "the text", &seeds, e);
    for (int i = 0; status == ST_OK && i < seeds.n; i++)
        if (*seeds.list[i] == '-') abort();
    texts_free(&seeds);
    return status;
}

static enum status as_values(const char *text, struct error *e) {
    struct texts values = {0};
    enum status status = values_expand("lr", text, &values, e);
    texts_free(&values);
    return status;
}

static enum status as_filter(const char *text, struct error *e) {
    static struct filter filter;
    const struct report_filter asked = {.where = text};
    return filter_read(&filter, &asked, e);
}

static enum status as_shard(const char *text, struct error *e) {
    int64_t shard = 0, shards = 0;
    TRY(shard_parse(text, &shard, &shards, e));
    if (shard < 1 || shard > shards) abort();
    return ST_OK;
}

static enum status as_pairs(const char *text, struct error *e) {
    static struct label label;
    static char again[LABEL_TEXT];
    TRY(label_parse_pairs(&label, "owner", text, " ,", e));
    return label_format(&label, again, sizeof again, e);
}

/* A command line, its words between blanks; --help would print. */
static enum status as_flags(const char *text, struct error *e) {
    static const struct command command = {.name = "fuzz", .usage = "fuzz", .summary = "nothing"};
    static struct config config;
    char *copy = fuzz_text(text, strlen(text)), *words[65] = {(char *)"fuzz"}, *rest = NULL;
    const char *positional[4];
    const struct flag_set sets[] = {{backbone_options, &config}, {config_options, &config}};
    struct cli cli = {.command = &command, .sets = sets, .n_sets = 2, .positional = positional, .max_positional = 4};
    int n = 1;
    for (char *w = strtok_r(copy, " ", &rest); w && n < 64; w = strtok_r(NULL, " ", &rest))
        if (!strstr(w, "help") && strcmp(w, "-h") != 0) words[n++] = w;
    enum status status = config_default(&config, e);
    if (status == ST_OK) status = cli_parse(&cli, n, words, e);
    free(copy);
    return status;
}

static enum status (*const grammars[])(const char *text, struct error *e) = {
    as_task, as_model, as_seeds, as_values, as_filter, as_shard, as_pairs, as_flags,
};
#define N_GRAMMARS (sizeof grammars / sizeof *grammars)

/* Letters of the corpus' files: t m s v f h p a; any other byte is taken by its number. */
static size_t grammar_of(uint8_t byte) {
    const char *letters = "tmsvfhpa", *at = byte ? strchr(letters, byte) : NULL;
    return at ? (size_t)(at - letters) : byte % N_GRAMMARS;
}

FUZZ(words) {
    struct error e = {ST_OK, ""};
    if (size < 1) return 0;
    char *text = fuzz_text(data + 1, size - 1);
    text[strcspn(text, "\r\n")] = 0; /* what was typed comes back in the sentence */
    enum status status = grammars[grammar_of(data[0])](text, &e);
    if (status != ST_OK) {
        if (status != ST_USAGE && status != ST_DATA) abort();
        fuzz_sentence(&e);
    }
    free(text);
    return 0;
}
