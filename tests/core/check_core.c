/* check_core.c - arenas, option tables, parameters, schedules. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/label.h"
#include "core/params.h"
#include "core/schedule.h"
#include "tests/lib/support.h"

/* --- arena ------------------------------------------------------------------------------------------------------- */

START_TEST(arena_measures_what_it_then_hands_out) {
    struct arena a = {0};
    struct error e = {0};
    const size_t sizes[] = {1, 64, 65, 0, 1000};
    for (int i = 0; i < 5; i++) ck_assert_ptr_null(arena_alloc(&a, sizes[i]));
    size_t wanted = a.peak;
    ck_assert_uint_eq(wanted, 64 + 64 + 128 + 64 + 1024);
    ck_assert_int_eq(arena_reserve(&a, wanted, &e), ST_OK);
    for (int i = 0; i < 5; i++) {
        char *p = arena_alloc(&a, sizes[i]);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % ARENA_ALIGN, 0);
        for (size_t j = 0; j < sizes[i]; j++) ck_assert_int_eq(p[j], 0);
    }
    ck_assert_uint_eq(a.used, wanted);
    arena_free(&a);
    ck_assert_ptr_null(a.base);
}
END_TEST

START_TEST(arena_full_says_so_and_stays_usable) {
    struct arena a = {0};
    ck_assert_int_eq(arena_reserve(&a, 4096, NULL), ST_OK);
    ck_assert_ptr_nonnull(arena_alloc(&a, a.size - 128));
    size_t used = a.used;
    ck_assert_ptr_null(arena_alloc(&a, 129));
    ck_assert_uint_eq(a.used, used);
    ck_assert_uint_gt(a.peak, a.size); /* what was wanted */
    ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX));
    ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX - 200));
    ck_assert_ptr_nonnull(arena_alloc(&a, 128));
    ck_assert_ptr_null(arena_strdup(&a, "x"));
    arena_free(&a);
}
END_TEST

START_TEST(arena_release_gives_back_to_the_mark) {
    struct arena a = {0};
    ck_assert_int_eq(arena_reserve(&a, 1 << 16, NULL), ST_OK);
    char *name = arena_strdup(&a, "gates.weight");
    size_t mark = arena_mark(&a);
    char *first = arena_alloc(&a, 100);
    memset(first, 1, 100);
    arena_release(&a, mark);
    ck_assert_ptr_eq(arena_alloc(&a, 50), first);
    ck_assert_str_eq(name, "gates.weight");
    arena_free(&a);
}
END_TEST

START_TEST(arena_guards_find_an_overrun) {
    for (size_t n = 0; n < 6; n++) { /* after the first, a middle and the last allocation, of whole units and not */
        size_t bytes = n < 3 ? 128 : 101;
        struct arena a = {.guards = true};
        ck_assert_int_eq(arena_reserve(&a, 1 << 16, NULL), ST_OK);
        char *p[3];
        for (int i = 0; i < 3; i++) {
            p[i] = arena_alloc(&a, bytes);
            memset(p[i], 0x5a, bytes);
        }
        ck_assert(arena_guards_intact(&a));
        p[n % 3][bytes] = 1;
        ck_assert(!arena_guards_intact(&a));
        arena_free(&a);
    }
}
END_TEST

START_TEST(arena_fails_the_nth_allocation_on_request) {
    struct arena a = {0};
    ck_assert_int_eq(arena_reserve(&a, 1 << 16, NULL), ST_OK);
    a.fail_after = 3;
    ck_assert_ptr_nonnull(arena_alloc(&a, 8));
    ck_assert_ptr_nonnull(arena_alloc(&a, 8));
    size_t used = a.used;
    ck_assert_ptr_null(arena_alloc(&a, 8));
    ck_assert_uint_eq(a.used, used);
    ck_assert_ptr_nonnull(arena_alloc(&a, 8)); /* once */
    arena_free(&a);
}
END_TEST

START_TEST(arena_refuses_an_impossible_size_by_name) {
    struct arena a = {0};
    struct error e = {0};
    ck_assert_int_eq(arena_reserve(&a, SIZE_MAX, &e), ST_MEMORY);
    ck_assert_ptr_nonnull(strstr(e.text, "18446744073709551615"));
    ck_assert_int_eq(arena_reserve(&a, (size_t)1 << 60, &e), ST_MEMORY);
    ck_assert_ptr_nonnull(strstr(e.text, "1099511627776 MB"));
    ck_assert_uint_gt(machine_memory_bytes(), 1 << 20);
}
END_TEST

/* --- options ----------------------------------------------------------------------------------------------------- */

struct settings {
    int64_t blocks, width;
    double rate, budget;
    bool selective;
    int gate;
    char folder[OPTION_TEXT];
    int64_t threads;
};

static const struct option table[] = {
    {"blocks", OPT_INT, offsetof(struct settings, blocks), "100k", 1, 1e6, NULL, "blocks", OPT_AXIS},
    {"width", OPT_INT, offsetof(struct settings, width), "auto", 1, 4096, NULL, "width", OPT_AUTO},
    {"learning-rate", OPT_REAL, offsetof(struct settings, rate), "1e-3", 0, 10, NULL, "rate", 0},
    {"budget", OPT_TIME, offsetof(struct settings, budget), "30m", 0, 1e7, NULL, "time", 0},
    {"selective", OPT_BOOL, offsetof(struct settings, selective), "yes", 0, 0, NULL, "selective", 0},
    {"gate", OPT_CHOICE, offsetof(struct settings, gate), "softmax", 0, 0, "softmax sigmoid relu none", "gate", 0},
    {"folder", OPT_TEXT_FIELD, offsetof(struct settings, folder), "results", 0, 0, NULL, "folder", 0},
    {"threads", OPT_INT, offsetof(struct settings, threads), "1", 1, 512, NULL, "threads", OPT_RUNTIME},
    {0}};

static struct settings defaults(void) {
    struct settings s;
    struct error e = {0};
    memset(&s, 0x77, sizeof s);
    ck_assert_msg(options_default(table, &s, &e) == ST_OK, "%s", e.text);
    return s;
}

/* Options out of a text of pairs, as commands and case files give them. */
static enum status parse(struct settings *s, const char *owner, const char *text, const char *separators,
                         struct error *e) {
    struct label label;
    TRY(label_parse_pairs(&label, owner, text, separators, e));
    return label_apply(&label, table, s, owner, e);
}

START_TEST(options_take_their_defaults) {
    struct settings s = defaults();
    ck_assert_int_eq(s.blocks, 100000);
    ck_assert_int_eq(s.width, 0);
    ck_assert_double_eq(s.rate, 1e-3);
    ck_assert_double_eq(s.budget, 1800);
    ck_assert(s.selective);
    ck_assert_int_eq(s.gate, 0);
    ck_assert_str_eq(s.folder, "results");
    ck_assert_int_eq(s.threads, 1);
}
END_TEST

START_TEST(pairs_set_options_of_every_type) {
    struct settings s = defaults();
    struct error e = {0};
    const char *text =
        "blocks=1M,width=64,learning-rate=2.5e-2,budget=2h,selective=no,gate=relu,folder=/tmp/a b,threads=512";
    ck_assert_msg(parse(&s, "model x", text, ",", &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(s.blocks, 1000000);
    ck_assert_int_eq(s.width, 64);
    ck_assert_double_eq(s.rate, 2.5e-2);
    ck_assert_double_eq(s.budget, 7200);
    ck_assert(!s.selective);
    ck_assert_int_eq(s.gate, 2);
    ck_assert_str_eq(s.folder, "/tmp/a b");
    ck_assert_int_eq(s.threads, 512);
    ck_assert_int_eq(parse(&s, "model x", "width=auto budget=90s  blocks=7", " ", &e), ST_OK);
    ck_assert_int_eq(s.width, 0);
    ck_assert_double_eq(s.budget, 90);
    ck_assert_int_eq(s.blocks, 7);
    ck_assert_int_eq(parse(&s, "model x", NULL, ",", &e), ST_OK);
    ck_assert_int_eq(parse(&s, "model x", "", ",", &e), ST_OK);
    ck_assert_int_eq(s.blocks, 7);
}
END_TEST

START_TEST(options_reject_what_is_not_a_value) {
    static const struct {
        const char *text, *names; /* what the sentence must contain */
    } bad[] = {
        {"blocks=0", "blocks=0"},
        {"blocks=1000001", "1 to 1"},
        {"blocks=", "blocks="},
        {"blocks=5x", "5x"},
        {"blocks= 5", "whole number"},
        {"blocks=1.5", "1.5"},
        {"blocks=auto", "auto"},
        {"blocks=99999999999999999999", "99999999999999999999"},
        {"blocks=10000000000G", "10000000000G"},
        {"width=4097", "4096"},
        {"width=0", "width=0 (model x): expected a whole number from 1 to 4096, or auto"},
        {"learning-rate=nan", "nan"},
        {"learning-rate=inf", "inf"},
        {"learning-rate=1e-3x", "1e-3x"},
        {"learning-rate=-1", "from 0 to 1"},
        {"learning-rate=1e-400", "learning-rate=1e-400 (model x): expected a number from 0 to 10"},
        {"blocks=1\n2", "blocks=1?2 (model x): expected a whole number"},
        {"blo\tcks\033=1", "no option 'blo?cks?'"},
        {"budget=3d", "30m"},
        {"budget=1e8s", "budget=1e8s (model x): expected a time from 0 to 10000000 s, such as 90s, 30m or 2h"},
        {"budget=m", "30m"},
        {"selective=true", "expected yes or no, got 'true'"},
        {"gate=soft", "softmax sigmoid relu none"},
        {"gate=", "softmax"},
        {"gate=softmax sigmoid", "softmax"},
        {"blocks", "name=value"},
        {"=5", "no option ''"},
        {"threads=0", "512"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct settings s = defaults();
        struct error e = {0};
        ck_assert_msg(parse(&s, "model x", bad[i].text, ",", &e) == ST_USAGE, "'%s' was taken", bad[i].text);
        ck_assert_msg(strstr(e.text, bad[i].names) != NULL, "'%s': \"%s\" lacks \"%s\"", bad[i].text, e.text,
                      bad[i].names);
        ck_assert_msg(strstr(e.text, "model x") != NULL, "'%s': \"%s\" lacks the owner", bad[i].text, e.text);
        struct settings same = defaults();
        ck_assert_mem_eq(&s.blocks, &same.blocks, sizeof s.blocks);
    }
    static const char *const named[] = {"blocks", "learning-rate", "budget", "selective", "gate", "no-such"};
    char longer[OPTION_TEXT + 16] = "folder=", line[OPTION_TEXT + 16];
    memset(longer + 7, 'a', OPTION_TEXT);
    struct settings s = defaults();
    struct error e = {0};
    ck_assert_int_eq(parse(&s, "model x", longer, ",", &e), ST_USAGE);
    ck_assert_ptr_nonnull(strstr(e.text, "255"));
    for (int i = 0; i < 6; i++) { /* of what is long the beginning is quoted, and the sentence goes on */
        snprintf(line, sizeof line, "%s=%.200s", named[i], longer + 7);
        ck_assert_int_eq(parse(&s, "model x", line, ",", &e), ST_USAGE);
        ck_assert_msg(strlen(e.text) < 160, "%s", e.text);
    }
    ck_assert_int_eq(options_set(table, &s, "model x", longer, "1", &e), ST_USAGE);
    ck_assert_msg(strlen(e.text) < 160, "%s", e.text);
}
END_TEST

START_TEST(a_number_has_one_text_whatever_its_sign_of_zero) {
    static const char *const texts[][3] = {
        {"learning-rate", "0", "-0"}, {"learning-rate", "0", "-0.0e3"}, {"budget", "0", "-0s"}};
    for (int i = 0; i < 3; i++)
        for (int k = 1; k < 3; k++) {
            char canonical[OPTION_TEXT + 1];
            struct error e = {0};
            ck_assert_msg(option_canonical(table, "x", texts[i][0], texts[i][k], canonical, sizeof canonical, &e) ==
                              ST_OK,
                          "%s", e.text);
            ck_assert_str_eq(canonical, "0");
        }
}
END_TEST

START_TEST(options_name_the_nearest) {
    static const struct {
        const char *given, *near; /* NULL: too far from everything to be named */
    } names[] = {{"block", "blocks"},
                 {"bloks", "blocks"},
                 {"gates", "gate"},
                 {"lr", NULL},
                 {"learning_rate", "learning-rate"},
                 {"learn", "learning-rate"},
                 {"selctive", "selective"},
                 {"zzzzzz", NULL}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct settings s = defaults();
        struct error e = {0};
        char want[80];
        ck_assert_int_eq(options_set(table, &s, "model x", names[i].given, "1", &e), ST_USAGE);
        snprintf(want, sizeof want, "did you mean '%s'", names[i].near ? names[i].near : "");
        if (names[i].near)
            ck_assert_msg(strstr(e.text, want) != NULL, "%s: %s", names[i].given, e.text);
        else
            ck_assert_msg(strstr(e.text, "did you mean") == NULL, "%s: %s", names[i].given, e.text);
        ck_assert_ptr_nonnull(strstr(e.text, names[i].given));
    }
}
END_TEST

START_TEST(options_reject_a_name_given_twice) {
    struct settings s = defaults();
    struct error e = {0};
    ck_assert_int_eq(parse(&s, "model x", "blocks=2,gate=relu,blocks=2", ",", &e), ST_USAGE);
    ck_assert_ptr_nonnull(strstr(e.text, "'blocks' is given twice"));
}
END_TEST

START_TEST(options_format_reads_back_the_same) {
    struct settings s = defaults(), back = defaults();
    struct error e = {0};
    char text[1024], again[1024], cut[8];
    ck_assert_int_eq(parse(&s, "x", "blocks=12,learning-rate=0.1,budget=0.3,gate=none,selective=no", ",", &e), ST_OK);
    int n = options_format(table, &s, ",", 0, text, sizeof text);
    ck_assert_str_eq(
        text, "blocks=12,width=auto,learning-rate=0.1,budget=0.3,selective=no,gate=none,folder=results,threads=1");
    ck_assert_int_eq(n, (int)strlen(text));
    ck_assert_msg(parse(&back, "x", text, ",", &e) == ST_OK, "%s", e.text);
    options_format(table, &back, ",", 0, again, sizeof again);
    ck_assert_str_eq(again, text);
    ck_assert_int_eq(options_format(table, &s, ",", 0, cut, sizeof cut), n); /* as snprintf */
    ck_assert_str_eq(cut, "blocks=");
    options_format(table, &s, " ", OPT_RUNTIME | OPT_AXIS, text, sizeof text);
    ck_assert_str_eq(text, "width=auto learning-rate=0.1 budget=0.3 selective=no gate=none folder=results");
}
END_TEST

START_TEST(numbers_format_shortest_and_read_back) {
    char text[40];
    struct rng r = rng_at(1, STREAM_TEST, 0);
    for (int i = 0; i < 2000; i++) {
        uint64_t bits = rng_u64(&r);
        double v, back;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v)) continue;
        format_double(v, text, sizeof text);
        ck_assert(parse_double(text, &back));
        ck_assert_mem_eq(&v, &back, sizeof v);
    }
    format_double(0.1, text, sizeof text);
    ck_assert_str_eq(text, "0.1");
    format_double(128, text, sizeof text);
    ck_assert_str_eq(text, "128");
    int64_t n;
    ck_assert(parse_int64("-9223372036854775808", &n) && n == INT64_MIN);
    ck_assert(!parse_int64("9223372036854775808", &n));
    ck_assert(parse_int64("3G", &n) && n == 3000000000);
    static const char *const bad[] = {"", "k", "M", "-", "3kk", "3 ", " 3", "0x10", "1e3", "3K", "--3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!parse_int64(bad[i], &n), "'%s' was taken", bad[i]);
}
END_TEST

/* --- parameters -------------------------------------------------------------------------------------------------- */

static struct param *declare(struct params *p, const char *name, struct param_spec spec) {
    struct error e = {0};
    const char *last = strrchr(name, '/'); /* "scope/name": the part after the slash is the name within the scope */
    char full[64];
    snprintf(full, sizeof full, "%s", name);
    if (last) full[last - name] = '.';
    spec.name = last ? last + 1 : name;
    struct param *param = params_declare(p, full, &spec, &e);
    ck_assert_msg(param != NULL, "%s", e.text);
    return param;
}

/* bdlru's gates: contract [block][row][gate][D], stored [row][gate][block][D]. */
static struct param_spec gates_spec(int64_t N, int64_t m, int64_t D) {
    return (struct param_spec){.rank = 2,
                               .dims = {N * m * (m + 1), D},
                               .layout = {4, {N, m, m + 1, D}, {1, 2, 0, 3}},
                               .init = {.kind = INIT_NORMAL, .b = 1}};
}

START_TEST(layout_stores_transposed_and_reads_back) {
    enum { N = 5, m = 3, D = 4, COUNT = N * m * (m + 1) * D };
    struct params p;
    ck_assert_int_eq(params_create(&p, NULL), ST_OK);
    struct param *w = declare(&p, "gates.weight", gates_spec(N, m, D));
    double contract[COUNT], back[COUNT];
    real stored[COUNT];
    for (int i = 0; i < COUNT; i++) contract[i] = i;
    param_from_contract(w, contract, stored);
    for (int k = 0; k < N; k++)
        for (int i = 0; i < m; i++)
            for (int j = 0; j <= m; j++)
                for (int d = 0; d < D; d++)
                    ck_assert_double_eq(stored[((i * (m + 1) + j) * N + k) * D + d],
                                        ((k * m + i) * (m + 1) + j) * D + d);
    param_to_contract(w, stored, back);
    ck_assert_mem_eq(back, contract, sizeof back);
    params_free(&p);
}
END_TEST

START_TEST(params_that_disagree_are_refused) {
    struct params p;
    struct error e = {0};
    ck_assert_int_eq(params_create(&p, NULL), ST_OK);
    struct param_spec spec = {.name = "w", .rank = 2, .dims = {3, 4}};
    struct param *w = declare(&p, "w", spec);
    ck_assert_ptr_eq(declare(&p, "w", spec), w); /* the same: found */
    spec.dims[1] = 5;
    ck_assert_ptr_null(params_declare(&p, "w", &spec, &e));
    ck_assert_ptr_nonnull(strstr(e.text, "'w'"));
    struct param_spec odd = {.name = "v", .rank = 1, .dims = {7}, .layout = {2, {2, 3}, {1, 0}}};
    ck_assert_ptr_null(params_declare(&p, "v", &odd, &e));
    ck_assert_ptr_nonnull(strstr(e.text, "layout"));
    ck_assert_int_eq(params_reserve(&p, false, &e), ST_OK);
    struct param_spec late = {.name = "late", .rank = 1, .dims = {7}};
    ck_assert_ptr_null(params_declare(&p, "late", &late, &e));
    ck_assert_ptr_nonnull(strstr(e.text, "reserved"));
    ck_assert_ptr_null(p.grad); /* no training: values alone */
    params_free(&p);
}
END_TEST

START_TEST(too_many_parameters_are_told_what_to_lower) {
    struct params p;
    struct error e = {0};
    struct param_spec spec = {.name = "w", .rank = 1, .dims = {1}};
    ck_assert_int_eq(params_create(&p, NULL), ST_OK);
    p.capacity = 2;
    declare(&p, "w0", spec);
    declare(&p, "w1", spec);
    ck_assert_ptr_null(params_declare(&p, "w2", &spec, &e));
    ck_assert_int_eq(e.status, ST_USAGE);
    ck_assert_str_eq(e.text, "a net has at most 2 parameter tensors, and 'w2' is one more; lower --layers");
    params_free(&p);
}
END_TEST

/* A machine that overcommits would reserve them, and run out of memory later. */
START_TEST(more_parameters_than_the_machine_has_memory_for_are_refused) {
    struct params p;
    struct error e = {0};
    size_t machine = machine_memory_bytes();
    char needed[32], has[32];
    ck_assert_int_eq(params_create(&p, NULL), ST_OK);
    declare(&p, "w", (struct param_spec){.name = "w", .rank = 1, .dims = {(int64_t)(machine / sizeof(real)) + 1}});
    ck_assert_int_eq(params_reserve(&p, false, &e), ST_MEMORY);
    snprintf(needed, sizeof needed, "%zu MB", ((size_t)p.floats * sizeof(real) + ARENA_ALIGN) >> 20);
    snprintf(has, sizeof has, "has %zu MB", machine >> 20);
    ck_assert_msg(strstr(e.text, needed) && strstr(e.text, has), "%s", e.text);
    ck_assert_ptr_null(p.value);
    params_free(&p);
}
END_TEST

/* Values of one parameter in contract order after declaring, in this order, the names given. */
static void drawn(const char *first, struct param_spec first_spec, const char *second, struct param_spec second_spec,
                  uint64_t seed, const char *wanted, double *values) {
    struct params p;
    ck_assert_int_eq(params_create(&p, NULL), ST_OK);
    if (first) declare(&p, first, first_spec);
    if (second) declare(&p, second, second_spec);
    ck_assert_int_eq(params_reserve(&p, true, NULL), ST_OK);
    params_init(&p, seed);
    const struct param *param = params_find(&p, wanted);
    ck_assert_ptr_nonnull(param);
    ck_assert_int_eq(param->offset % 16, 0);
    param_to_contract(param, p.value + param->offset, values);
    params_free(&p);
}

START_TEST(init_depends_on_seed_name_and_element_alone) {
    struct param_spec gates = gates_spec(5, 3, 4), plain = gates;
    plain.layout = (struct layout){0};
    double alone[240], after[240], before[240], unlaid[240], other_name[240], other_seed[240];
    drawn("g", gates, NULL, gates, 1, "g", alone);
    drawn("x", plain, "g", gates, 1, "g", after);
    drawn("g", gates, "x", plain, 1, "g", before);
    drawn("g", plain, NULL, plain, 1, "g", unlaid);
    drawn("g2", plain, NULL, plain, 1, "g2", other_name);
    drawn("g", plain, NULL, plain, 2, "g", other_seed);
    ck_assert_mem_eq(alone, after, sizeof alone);
    ck_assert_mem_eq(alone, before, sizeof alone);
    ck_assert_mem_eq(alone, unlaid, sizeof alone);
    for (int i = 0; i < 240; i++) {
        ck_assert_double_ne(alone[i], other_name[i]);
        ck_assert_double_ne(alone[i], other_seed[i]);
    }
}
END_TEST

static double draw_one(struct rng *r, int64_t element, double a, double b) {
    return a + b * (rng_uniform(r) + (double)element);
}

START_TEST(draws_as_shares_the_numbers_of_its_scope) {
    struct param_spec nu = {.rank = 1, .dims = {8}, .init = {.kind = INIT_CUSTOM, .b = 1, .draw = draw_one}};
    struct param_spec gamma = {
        .rank = 1, .dims = {8}, .init = {.kind = INIT_CUSTOM, .b = 1, .draw = draw_one, .draws_as = "nu"}};
    double first[8], shared[8], elsewhere[8];
    drawn("a/nu", nu, "a/gamma", gamma, 3, "a.nu", first);
    drawn("a/nu", nu, "a/gamma", gamma, 3, "a.gamma", shared);
    drawn("a/nu", nu, "b/gamma", gamma, 3, "b.gamma", elsewhere);
    ck_assert_mem_eq(first, shared, sizeof first);
    for (int i = 0; i < 8; i++) ck_assert_double_ne(first[i], elsewhere[i]);
    for (int i = 0; i < 8; i++) ck_assert(first[i] >= i && first[i] < i + 1);
}
END_TEST

START_TEST(init_follows_its_distribution) {
    enum { COUNT = 20000 };
    static double u[COUNT], z[COUNT], c[COUNT];
    struct param_spec uniform = {.rank = 1, .dims = {COUNT}, .init = {.kind = INIT_UNIFORM, .a = -2, .b = 4}};
    struct param_spec normal = {.rank = 1, .dims = {COUNT}, .init = {.kind = INIT_NORMAL, .a = 1, .b = 3}};
    struct param_spec constant = {.rank = 1, .dims = {COUNT}, .init = {.kind = INIT_CONST, .a = 0.5}};
    drawn("u", uniform, NULL, uniform, 1, "u", u);
    drawn("z", normal, NULL, normal, 1, "z", z);
    drawn("c", constant, NULL, constant, 1, "c", c);
    double mean_u = 0, mean_z = 0, square_z = 0;
    for (int i = 0; i < COUNT; i++) {
        expect_near(u[i], 1, 3, "an element of U[-2,4)"); /* the upper end can be reached by rounding to float */
        expect_near(c[i], 0.5, 0, "a constant element");
        mean_u += u[i] / COUNT;
        mean_z += z[i] / COUNT;
        square_z += (z[i] - 1) * (z[i] - 1) / COUNT;
    }
    /* four standard errors: sd of U[-2,4) is sqrt(3); of the square of N(0,9) it is 9 sqrt(2) */
    ck_assert_double_lt(fabs(mean_u - 1), 4 * sqrt(3.0 / COUNT));
    ck_assert_double_lt(fabs(mean_z - 1), 4 * 3 / sqrt(COUNT));
    ck_assert_double_lt(fabs(square_z - 9), 4 * 9 * sqrt(2.0 / COUNT));
}
END_TEST

START_TEST(constants_are_not_counted_as_trained) {
    struct params p;
    ck_assert_int_eq(params_create(&p, NULL), ST_OK);
    declare(&p, "w", (struct param_spec){.rank = 2, .dims = {3, 7}});
    declare(&p, "b", (struct param_spec){.rank = 1, .dims = {5}, .group = PARAM_STATE});
    declare(&p, "mask", (struct param_spec){.rank = 1, .dims = {9}, .group = PARAM_CONST});
    ck_assert_int_eq(params_trained(&p), 26);
    ck_assert_int_ge(p.floats, 35);
    params_free(&p);
}
END_TEST

/* --- schedules --------------------------------------------------------------------------------------------------- */

START_TEST(schedules_follow_their_formulas) {
    struct schedule constant = {.kind = SCHEDULE_CONSTANT, .lr = 3e-3, .warmup = 4};
    for (int s = 0; s < 4; s++) ck_assert_double_eq_tol(schedule_rate(&constant, s), 3e-3 * s / 4, 1e-15);
    ck_assert_double_eq(schedule_rate(&constant, 0), 0);
    ck_assert_double_eq(schedule_rate(&constant, 4), 3e-3);
    ck_assert_double_eq(schedule_rate(&constant, 1000000), 3e-3);

    struct schedule cosine = {.kind = SCHEDULE_COSINE, .lr = 1, .lr_min = 0.1, .warmup = 10, .total = 110};
    ck_assert_double_eq_tol(schedule_rate(&cosine, 9), 0.9, 1e-15);
    ck_assert_double_eq_tol(schedule_rate(&cosine, 10), 1, 1e-15);
    ck_assert_double_eq_tol(schedule_rate(&cosine, 60), 0.55, 1e-15);
    ck_assert_double_eq_tol(schedule_rate(&cosine, 110), 0.1, 1e-15);
    ck_assert_double_eq_tol(schedule_rate(&cosine, 5000), 0.1, 1e-15);
    for (int s = 10; s < 110; s++) ck_assert_double_gt(schedule_rate(&cosine, s), schedule_rate(&cosine, s + 1));

    struct schedule epochs = {.kind = SCHEDULE_COSINE_EPOCH, .lr = 1, .lr_min = 0, .total = 100, .steps_per_epoch = 25};
    for (int s = 0; s < 100; s++) { /* as torch's CosineAnnealingLR stepped once an epoch, T_max = 4 */
        int epoch = s / 25;
        ck_assert_double_eq_tol(schedule_rate(&epochs, s), 0.5 * (1 + cos(acos(-1) * epoch / 4)), 1e-15);
    }
    epochs.warmup = 50; /* two epochs of warm-up, then a cosine over the other two */
    static const double rates[] = {0, 0.5, 1, 0.5};
    for (int s = 0; s < 100; s++) ck_assert_double_eq_tol(schedule_rate(&epochs, s), rates[s / 25], 1e-15);
    epochs.warmup_least = 1e-6; /* of the first epoch alone: the second has half the peak */
    for (int s = 0; s < 25; s++) ck_assert_double_eq_tol(schedule_rate(&epochs, s), 1e-6, 1e-20);
    for (int s = 25; s < 100; s++) ck_assert_double_eq_tol(schedule_rate(&epochs, s), rates[s / 25], 1e-15);
}
END_TEST

Suite *check_core(void);
Suite *check_core(void) {
    Suite *suite = suite_create("core");
    TCase *tests = tcase_create("core");
    tcase_add_test(tests, arena_measures_what_it_then_hands_out);
    tcase_add_test(tests, arena_full_says_so_and_stays_usable);
    tcase_add_test(tests, arena_release_gives_back_to_the_mark);
    tcase_add_test(tests, arena_guards_find_an_overrun);
    tcase_add_test(tests, arena_fails_the_nth_allocation_on_request);
    tcase_add_test(tests, arena_refuses_an_impossible_size_by_name);
    tcase_add_test(tests, options_take_their_defaults);
    tcase_add_test(tests, pairs_set_options_of_every_type);
    tcase_add_test(tests, options_reject_what_is_not_a_value);
    tcase_add_test(tests, a_number_has_one_text_whatever_its_sign_of_zero);
    tcase_add_test(tests, options_name_the_nearest);
    tcase_add_test(tests, options_reject_a_name_given_twice);
    tcase_add_test(tests, options_format_reads_back_the_same);
    tcase_add_test(tests, numbers_format_shortest_and_read_back);
    tcase_add_test(tests, layout_stores_transposed_and_reads_back);
    tcase_add_test(tests, params_that_disagree_are_refused);
    tcase_add_test(tests, too_many_parameters_are_told_what_to_lower);
    tcase_add_test(tests, more_parameters_than_the_machine_has_memory_for_are_refused);
    tcase_add_test(tests, init_depends_on_seed_name_and_element_alone);
    tcase_add_test(tests, draws_as_shares_the_numbers_of_its_scope);
    tcase_add_test(tests, init_follows_its_distribution);
    tcase_add_test(tests, constants_are_not_counted_as_trained);
    tcase_add_test(tests, schedules_follow_their_formulas);
    suite_add_tcase(suite, tests);
    return suite;
}
