/* check_config.c - config files, and what a resolved run is called: its label, its identity, its cell. */
#include <stdlib.h>
#include <string.h>

#include "harness/study/study.h"
#include "harness/study/row_key.h"
#include "tests/lib/support.h"

static struct config defaults(void) {
    struct config c;
    struct error e = {0};
    ck_assert_int_eq(config_default(&c, &e), ST_OK);
    ck_assert_int_eq(config_set(&c, "dim", "16", &e), ST_OK);
    return c;
}

static struct setup *setup_of(const char *model, int64_t seed) {
    struct config c = defaults();
    struct error e = {0};
    c.seed = seed;
    struct setup *s = setup_make(&c, "s3:n_train=100,n_val=10,n_test=10", model, &e);
    ck_assert_msg(s != NULL, "%s: %s", model, e.text);
    return s;
}

static void drop(struct setup *s) {
    setup_free(s);
}

/* --- config files ------------------------------------------------------------------------------------------------- */

START_TEST(task_and_model_are_collected_line_by_line) {
    struct config c = defaults();
    struct error e = {0};
    char task[LABEL_TEXT] = "", model[LABEL_TEXT] = "";
    const char *text =
        "# a run\ntask.n_val=7\ntask=s3:length=8\n\n  task.n_test=9\nmodel = bdlru \nmodel.m=3\r\nlr\t= 0.5\n";
    ck_assert_msg(config_read_text(text, "the text", &c, task, model, &e) == ST_OK, "%s", e.text);
    ck_assert_str_eq(task, "s3:n_val=7,length=8,n_test=9");
    ck_assert_str_eq(model, "bdlru:m=3");
    ck_assert_double_eq(c.lr, 0.5);
}
END_TEST

START_TEST(what_is_wrong_in_a_config_file_is_named_by_its_line) {
    char long_line[1100];
    memset(long_line, '#', sizeof long_line - 1);
    long_line[sizeof long_line - 1] = 0;
    const char *const cases[][2] = {
        {"task=s3\ntask.length=8\ntask.length=9\n", "the text line 3: 'length' is given twice"},
        {"task.length=8\ntask=s3:length=9\n", "the text line 2: 'length' is given twice"},
        {"model=bdlru:m\n", "the text line 1: model bdlru: 'm' is not of the form name=value"},
        {"\nlr=fast\n", "lr=fast (the text line 2): expected a number from 0 to 1000000, got 'fast'"},
        {"model=plstm-graph\nmodel.edges=0-1,1-2\n", "plstm-graph: '0-1,1-2' holds a comma"},
        {"lr\n", "the text line 1: 'lr' is not of the form key=value"},
        {"lr=0.1\nlr=0.2\n", "the text line 2: 'lr' is given twice"},
        {"task=s3\ntask=s4\n", "the text line 2: 'task' is given twice"},
        {"out=\n", "the text line 1: out is empty"},
        {long_line, "the text line 1 is longer than 1022 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config c = defaults();
        struct error e = {0};
        char task[LABEL_TEXT] = "", model[LABEL_TEXT] = "";
        ck_assert_int_eq(config_read_text(cases[i][0], "the text", &c, task, model, &e), ST_USAGE);
        ck_assert_msg(strstr(e.text, cases[i][1]) != NULL, "\"%s\" lacks \"%s\"", e.text, cases[i][1]);
    }
}
END_TEST

/* --- labels and identities ---------------------------------------------------------------------------------------- */

START_TEST(a_label_says_what_differs_and_how_large_the_mixer_is) {
    static const char *const cases[][2] = {
        {"bdlru", "bdlru:blocks=64,m=5;swiglu"},
        {"bdlru:gate=relu,m=2", "bdlru:blocks=64,m=2,gate=relu;swiglu"},
        {"hlru:gate=softmax,m=3", "hlru:channels=128,m=3;swiglu"},
        {"slice:structure=block", "slice;swiglu"},
        {"slice:block=8", "slice:block=8;swiglu"},
        {"lstm:hidden=8", "lstm:hidden=8;swiglu"}, /* asked for; where it follows from the sizes it is left out */
        {"lstm:hidden=auto", "lstm;swiglu"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct setup *s = setup_of(cases[i][0], 1);
        ck_assert_str_eq(s->id.model_label, cases[i][1]);
        drop(s);
    }
}
END_TEST

START_TEST(a_cell_is_a_run_without_its_seed) {
    struct setup *a = setup_of("lstm", 1), *b = setup_of("lstm", 2), *c = setup_of("lru", 1);
    ck_assert_str_ne(a->id.run_id, b->id.run_id);
    ck_assert_str_eq(a->id.cell_id, b->id.cell_id);
    ck_assert_str_ne(a->id.cell_id, c->id.cell_id);
    ck_assert_ptr_nonnull(strstr(b->id.text, "\nseed=2\n"));
    drop(a);
    drop(b);
    drop(c);
}
END_TEST

static struct setup *pairs_of(const char *options) {
    struct config c = defaults();
    struct error e = {0};
    char task[LABEL_TEXT];
    snprintf(task, sizeof task, "pairs:min_length=12,max_length=20,passage=4%s", options);
    struct setup *s = setup_make(&c, task, "lstm", &e);
    ck_assert_msg(s != NULL, "%s: %s", task, e.text);
    return s;
}

/* Nor has it another name, and what is stored reads back as that run, as does what earlier programs stored. */
START_TEST(what_auto_stands_for_is_no_other_run) {
    struct error e = {0};
    struct setup *plain = pairs_of(""), *said = pairs_of(",differ=4"), *other = pairs_of(",differ=3");
    ck_assert_str_eq(said->id.run_id, plain->id.run_id);
    ck_assert_str_eq(said->spec.task.name, plain->spec.task.name);
    ck_assert_str_eq(said->id.config_text, plain->id.config_text);
    ck_assert_str_ne(other->id.run_id, plain->id.run_id);
    ck_assert_str_ne(other->spec.task.name, plain->spec.task.name);
    ck_assert_ptr_null(strstr(plain->id.text, "\ntask.differ="));
    ck_assert_ptr_nonnull(strstr(plain->id.config_text, "\ntask.differ=auto\n"));
    char *earlier = strdup(plain->id.config_text), *value = strstr(earlier, "differ=auto") + strlen("differ=");
    memcpy(value, "0004", 4);
    struct setup *stored = setup_stored(earlier, "run", 1, &e);
    ck_assert_msg(stored != NULL, "%s", e.text);
    ck_assert_str_eq(stored->id.run_id, plain->id.run_id);
    ck_assert_str_eq(stored->spec.task.name, plain->spec.task.name);
    free(earlier);
    drop(stored);
    drop(other);
    drop(said);
    drop(plain);
}
END_TEST

/* A run of s3 in a net with one more flag of it. */
static struct setup *in_net(const char *model, const char *backbone, const char *flag, const char *value) {
    struct config c = defaults();
    struct error e = {0};
    ck_assert_int_eq(config_set(&c, "backbone", backbone, &e), ST_OK);
    ck_assert_int_eq(config_set(&c, flag, value, &e), ST_OK);
    struct setup *s = setup_make(&c, "s3:n_train=100,n_val=10,n_test=10", model, &e);
    ck_assert_msg(s != NULL, "%s: %s", model, e.text);
    return s;
}

static void expect_asked(struct setup *const *setups, int n, const char *given, const char *refusal) {
    struct error e = {0};
    struct label asked;
    ck_assert_int_eq(label_parse_pairs(&asked, "the test", given, " ", &e), ST_OK);
    enum status status = setup_check_asked(setups, n, given ? &asked : NULL, &e);
    ck_assert_int_eq(status, refusal ? ST_USAGE : ST_OK);
    if (refusal) ck_assert_msg(strstr(e.text, refusal) != NULL, "%s", e.text);
}

/* Nor is one net several runs by a flag that has nothing to act on in it. Where it was asked for and has nowhere
 * anything to act on it is refused; in a sweep over nets of which some have, it is not. */
START_TEST(a_flag_without_anything_to_act_on_makes_no_other_run) {
    static const char *const nets[] = {"slice-paper", "s5", "stacked", "slice-glu", "slice-xlstm", "xlstm"};
    static const char *const flags[][3] = {
        {"mlp", "gelu", "--mlp chooses the MLP of --backbone mad-lm and vision, and"},
        {"mlp", "none", "has its own or none; leave it out"},
        {"norm", "layernorm", "--norm chooses the norms of"},
        {"pool", "last", "and s3:n_train=100,n_val=10,n_test=10 has one label per position"}};
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
        for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
            struct setup *plain = in_net("lstm", nets[i], "mlp", "swiglu");
            struct setup *both[2] = {in_net("lstm", nets[i], flags[k][0], flags[k][1]),
                                     in_net("lstm", "mad-lm", flags[k][0], flags[k][1])};
            char given[64];
            snprintf(given, sizeof given, "dim=16 %s=%s", flags[k][0], flags[k][1]);
            ck_assert_str_eq(both[0]->id.run_id, plain->id.run_id);
            ck_assert_str_eq(both[0]->id.config_text, plain->id.config_text);
            ck_assert_str_eq(both[0]->id.model_label, "lstm;none");
            ck_assert_ptr_null(strstr(plain->id.text, "\nmlp=")); /* as runs on record have it */
            expect_asked(both, 1, NULL, flags[k][2]);
            expect_asked(both, 1, given, flags[k][2]);
            expect_asked(both, 1, "dim=16", NULL); /* a profile or a plan has set it */
            expect_asked(both, 2, given, k == 3 ? flags[k][2] : NULL);
            expect_asked(&plain, 1, NULL, NULL);
            drop(plain);
            drop(both[0]);
            drop(both[1]);
        }
    struct setup *transformer = in_net("attention", "slice-paper", "mlp", "none");
    ck_assert_str_eq(transformer->id.model_label, "attention;gelu");
    drop(transformer);
}
END_TEST

START_TEST(what_a_net_does_not_have_tells_no_rows_apart) {
    static const struct {
        const char *model, *backbone;
        bool kept;
    } cases[] = {{"lstm", "mad-lm", true},       {"lstm", "vision", true},   {"lstm", "s5", false},
                 {"lstm", "slice", false},       {"lstm", "stacked", false}, {"lstm", "slice-paper", false},
                 {"mlstm", "slice-paper", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct setup *s = in_net(cases[i].model, cases[i].backbone, "mlp", "swiglu");
        struct label key;
        struct error e = {0};
        ck_assert_int_eq(row_key(s->id.text, &key, &e), ST_OK);
        ck_assert_int_eq(label_get(&key, "mlp") != NULL, cases[i].kept);
        ck_assert_int_eq(label_get(&key, "norm") != NULL, cases[i].kept);
        ck_assert_ptr_nonnull(label_get(&key, "pool"));
        drop(s);
    }
}
END_TEST

/* --- lengths ------------------------------------------------------------------------------------------------------ */

static void expect_fit(const struct model_choice *fitted, int64_t B, int64_t T, int64_t nodes) {
    ck_assert_int_eq(fitted->tokens, T);
    ck_assert_int_eq(fitted->dims.B, B);
    ck_assert_int_eq(fitted->dims.T, nodes);
    ck_assert_int_eq(fitted->dims.D, 16);
}

START_TEST(every_length_of_a_run_is_fitted_once) {
    static const struct {
        const char *task, *model;
        int64_t train[2], eval[2], extra[2]; /* tokens and nodes */
    } cases[] = {
        {"s3:n_train=100,n_val=10,n_test=10", "lstm", {16, 16}, {16, 16}, {0, 0}},
        {"a5-slice:length=5,n_train=100,n_val=10", "bdlru:m=2", {5, 5}, {5, 5}, {2, 2}},
        {"parity:n_train=100,n_val=10,n_test=10", "lru", {40, 40}, {256, 256}, {0, 0}},
        {"s3:n_train=100,n_val=10,n_test=10", "myosotis:heads=4,arity=2", {16, 31}, {16, 31}, {0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config c = defaults();
        struct error e = {0};
        struct setup *s = setup_make(&c, cases[i].task, cases[i].model, &e);
        ck_assert_msg(s != NULL, "%s: %s", cases[i].model, e.text);
        expect_fit(&s->shapes.model, 128, cases[i].train[0], cases[i].train[1]);
        expect_fit(&s->shapes.eval_model, 128, cases[i].eval[0], cases[i].eval[1]);
        if (cases[i].extra[0]) expect_fit(&s->shapes.second_model, 12, cases[i].extra[0], cases[i].extra[1]);
        ck_assert_int_eq(s->spec.model.tokens, 0);
        drop(s);
    }
}
END_TEST

/* --- what does not fit -------------------------------------------------------------------------------------------- */

#define TEXTS 16 /* options of 255 characters: more than a configuration may have */

static struct option wordy_options[TEXTS + 1];

/* The options of a model, the first n with one long text, the others with an empty one. */
static void fill_options(unsigned char *inst, int n) {
    static char names[TEXTS][8];
    memset(inst, 0, MODEL_INST_BYTES);
    memset(inst, 'v', OPTION_TEXT - 1);
    for (int i = 0; i < TEXTS; i++) {
        size_t offset = i < n ? 0 : OPTION_TEXT;
        snprintf(names[i], sizeof names[i], "k%d", i);
        wordy_options[i] = (struct option){names[i], OPT_TEXT_FIELD, offset, "", 0, 0, NULL, "text", 0};
    }
}

static enum status wordy_check(void *inst, const struct dims *d, struct error *e) {
    (void)inst, (void)d, (void)e;
    return ST_OK;
}

/* An identity map: where a part of the program has a raised version, a run's version follows from its graphs. */
static struct tensor *wordy_build(const void *inst, struct graph *g, struct tensor *x) {
    (void)inst, (void)g;
    return x;
}

/* Resolves a run of a model with n long texts among its options. */
static enum status resolve_wordy(int n, struct error *e) {
    static const struct model wordy = {.name = "wordy",
                                       .options = wordy_options,
                                       .inst_bytes = MODEL_INST_BYTES,
                                       .causal = true,
                                       .check = wordy_check,
                                       .build = wordy_build};
    struct setup *s = calloc(1, sizeof *s);
    ck_assert_ptr_nonnull(s);
    s->spec.config = defaults();
    s->spec.model.model = &wordy;
    fill_options(s->spec.model.inst, n);
    enum status status = task_parse(&s->spec.task, "s3", e);
    if (status == ST_OK) status = setup_resolve(s, e);
    drop(s);
    return status;
}

#define S3           "s3:n_train=100,n_val=10,n_test=10"
#define NEEDS_CAUSAL "task " S3 " needs a causal mixer and "
#define SEES_LATER   ": it sees later inputs; take another (`lrnn info MODEL` says whether it is causal)"

/* A net that sees later tokens would look up what it is asked for. Its setup can be made, for measurements and records;
 * nothing trains it. */
START_TEST(a_net_that_its_task_is_not_for_is_refused) {
    static const struct {
        const char *task, *model, *options[4]; /* names and values */
        const char *says;                      /* NULL: it is taken */
    } cases[] = {
        {S3, "full-attention", {NULL}, NEEDS_CAUSAL "full-attention is not" SEES_LATER},
        {S3, "lstm", {"bidirectional", "yes"}, NEEDS_CAUSAL "a bidirectional one is not" SEES_LATER},
        {S3, "lstm", {NULL}, NULL},
        {"compression",
         "lstm",
         {"backbone", "slice"},
         "task compression is decoded from one vector per sequence; that needs --backbone mad-lm"},
        {"compression", "lstm", {"backbone", "mad-lm"}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config c = defaults();
        struct error e = {0};
        for (const char *const *o = cases[i].options; o < cases[i].options + 4 && *o; o += 2)
            ck_assert_int_eq(config_set(&c, o[0], o[1], &e), ST_OK);
        struct setup *s = setup_make(&c, cases[i].task, cases[i].model, &e);
        bool taken = s && setup_check_asked(&s, 1, NULL, &e) == ST_OK;
        ck_assert_msg(taken == (cases[i].says == NULL), "case %zu: %s", i, e.text);
        if (s) drop(s);
        if (!cases[i].says) continue;
        ck_assert_int_eq(e.status, ST_USAGE);
        ck_assert_str_eq(e.text, cases[i].says);
    }
}
END_TEST

START_TEST(an_identity_that_does_not_fit_is_refused) {
    struct error e = {0};
    ck_assert_int_eq(resolve_wordy(TEXTS, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "the configuration of the run is longer than 4095 characters") != NULL, "%s", e.text);
}
END_TEST

START_TEST(a_label_that_does_not_fit_into_a_record_is_refused) {
    struct error e = {0};
    ck_assert_msg(resolve_wordy(1, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(resolve_wordy(3, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "'wordy:...' with its options is longer than 511 characters") != NULL, "%s", e.text);
}
END_TEST

START_TEST(a_profile_name_that_does_not_fit_into_a_record_is_refused) {
    struct config c = defaults();
    struct error e = {0};
    memset(c.profile, 'p', 32);
    c.profile[32] = 0;
    ck_assert_ptr_null(setup_make(&c, "s3", "lstm", &e));
    ck_assert_msg(strstr(e.text, "longer than the 31 characters") != NULL, "%s", e.text);
}
END_TEST

/* --- schedules ---------------------------------------------------------------------------------------------------- */

/* Two steps per epoch: a warm-up of three would leave the second epoch between two rates. */
START_TEST(a_warmup_under_a_schedule_of_epochs_is_of_whole_epochs) {
    static const struct {
        const char *schedule, *warmup;
        bool taken;
    } cases[] = {{"cosine-epoch", "3", false}, {"cosine-epoch", "4", true}, {"mad-cosine", "1", false},
                 {"mad-cosine", "0", true},    {"cosine", "3", true},       {"constant", "3", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config c = defaults();
        struct error e = {0};
        c.batch = 50;
        ck_assert_int_eq(config_set(&c, "schedule", cases[i].schedule, &e), ST_OK);
        ck_assert_int_eq(config_set(&c, "warmup", cases[i].warmup, &e), ST_OK);
        struct setup *s = setup_make(&c, "s3:n_train=100,n_val=10,n_test=10", "lstm", &e);
        ck_assert_msg((s != NULL) == cases[i].taken, "%s %s: %s", cases[i].schedule, cases[i].warmup, e.text);
        if (s) drop(s);
        if (cases[i].taken) continue;
        ck_assert_int_eq(e.status, ST_USAGE);
        ck_assert_msg(strstr(e.text, i ? "take --warmup 2 or" : "take --warmup 4 or") != NULL, "%s", e.text);
    }
}
END_TEST

/* Whether or not it is of steps or epochs; one that is constant has no floor. */
START_TEST(a_cosine_never_rises) {
    static const struct {
        const char *schedule, *lr, *floor, *refusal;
    } cases[] = {
        {"cosine", "5e-6", "1e-5", "--lr 5e-06 is below --lr-min 1e-05, to which the cosine would rise; lower"},
        {"cosine-epoch", "5e-6", "1e-5", "--lr 5e-06 is below --lr-min 1e-05"},
        {"mad-cosine", "5e-7", "0", "--lr 5e-07 is below 1e-06, to which the cosine of --schedule mad-cosine"},
        {"cosine", "1e-5", "1e-5", NULL},
        {"constant", "5e-6", "1e-5", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config c = defaults();
        struct error e = {0};
        c.batch = 50;
        ck_assert_int_eq(config_set(&c, "schedule", cases[i].schedule, &e), ST_OK);
        ck_assert_int_eq(config_set(&c, "lr", cases[i].lr, &e), ST_OK);
        ck_assert_int_eq(config_set(&c, "lr-min", cases[i].floor, &e), ST_OK);
        struct setup *s = setup_make(&c, "s3:n_train=100,n_val=10,n_test=10", "lstm", &e);
        ck_assert_msg((s != NULL) == !cases[i].refusal, "%s %s: %s", cases[i].schedule, cases[i].lr, e.text);
        if (s) drop(s);
        if (!cases[i].refusal) continue;
        ck_assert_int_eq(e.status, ST_USAGE);
        ck_assert_msg(strstr(e.text, cases[i].refusal) != NULL, "%s", e.text);
    }
}
END_TEST

START_TEST(more_steps_than_a_run_may_have_are_refused) {
    struct config c = defaults();
    struct error e = {0};
    c.batch = 1;
    c.epochs = 1000000000;
    ck_assert_ptr_null(setup_make(&c, "parity:n_train=1000000000000", "lstm", &e)); /* 1e21 are past 64 bits */
    ck_assert_int_eq(e.status, ST_USAGE);
    ck_assert_msg(strstr(e.text, "--epochs 1000000000 of 1000000000000 steps each are more than the 1000000000000") !=
                      NULL,
                  "%s", e.text);
    c.steps = 10;
    struct setup *s = setup_make(&c, "parity:n_train=1000000000000", "lstm", &e);
    ck_assert_msg(s != NULL, "%s", e.text);
    drop(s);
}
END_TEST

Suite *check_config(void);
Suite *check_config(void) {
    Suite *suite = suite_create("config");
    TCase *tests = tcase_create("config");
    tcase_add_test(tests, task_and_model_are_collected_line_by_line);
    tcase_add_test(tests, what_is_wrong_in_a_config_file_is_named_by_its_line);
    tcase_add_test(tests, a_label_says_what_differs_and_how_large_the_mixer_is);
    tcase_add_test(tests, a_cell_is_a_run_without_its_seed);
    tcase_add_test(tests, what_auto_stands_for_is_no_other_run);
    tcase_add_test(tests, a_flag_without_anything_to_act_on_makes_no_other_run);
    tcase_add_test(tests, what_a_net_does_not_have_tells_no_rows_apart);
    tcase_add_test(tests, every_length_of_a_run_is_fitted_once);
    tcase_add_test(tests, a_net_that_its_task_is_not_for_is_refused);
    tcase_add_test(tests, an_identity_that_does_not_fit_is_refused);
    tcase_add_test(tests, a_label_that_does_not_fit_into_a_record_is_refused);
    tcase_add_test(tests, a_warmup_under_a_schedule_of_epochs_is_of_whole_epochs);
    tcase_add_test(tests, a_cosine_never_rises);
    tcase_add_test(tests, a_profile_name_that_does_not_fit_into_a_record_is_refused);
    tcase_add_test(tests, more_steps_than_a_run_may_have_are_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
