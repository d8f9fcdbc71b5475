/* check_twins.c - test graphs of TUDataset that are isomorphic to a training graph: whether two graphs are one, and how
 * many a fold has, against paths whose twins are found by reading them from either end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/philox.h"
#include "tasks/data/file_entries.h"
#include "tasks/data/tud_files.h"
#include "tasks/graph/isomorphic.h"
#include "tests/lib/program.h"
#include "tests/tasks/task_examples.h"

static bool are_equal(const int32_t (*a)[2], const uint64_t *of_a, const int32_t (*b)[2], const uint64_t *of_b, int n,
                      int edges) {
    uint64_t colour[2][6], scratch[6];
    int32_t work[24];
    memcpy(colour[0], of_a, sizeof *of_a * (size_t)n);
    memcpy(colour[1], of_b, sizeof *of_b * (size_t)n);
    const struct coloured_graph one = {n, edges, a, colour[0]}, other = {n, edges, b, colour[1]};
    bool same_hash = graph_refine(&one, scratch) == graph_refine(&other, scratch);
    bool same = graph_isomorphic(&one, &other, work);
    ck_assert(same_hash || !same); /* equal graphs have equal numbers */
    return same;
}

/* Two triangles and a ring of six are the same to refined colours. */
START_TEST(graphs_are_told_apart_exactly) {
    static const int32_t ring[][2] = {{0, 1}, {0, 5}, {1, 2}, {2, 3}, {3, 4}, {4, 5}},
                         other_ring[][2] = {{0, 2}, {0, 3}, {1, 4}, {1, 5}, {2, 4}, {3, 5}},
                         triangles[][2] = {{0, 1}, {0, 2}, {1, 2}, {3, 4}, {3, 5}, {4, 5}};
    static const uint64_t plain[6] = {1, 1, 1, 1, 1, 1}, one_off[6] = {1, 1, 1, 1, 2, 1}, also[6] = {2, 1, 1, 1, 1, 1};
    ck_assert(are_equal(ring, plain, other_ring, plain, 6, 6));
    ck_assert(!are_equal(ring, plain, triangles, plain, 6, 6));
    ck_assert(!are_equal(ring, plain, other_ring, one_off, 6, 6));
    ck_assert(are_equal(ring, one_off, other_ring, also, 6, 6));
}
END_TEST

enum { PATHS_OF_FOUR = 40, FOLDS = 10 };

static int by_nodes(const void *a, const void *b) {
    const int32_t *x = a, *y = b;
    return x[0] != y[0] ? x[0] - y[0] : x[1] - y[1];
}

/* Paths of four nodes of three kinds, each numbered in an order of its own; kinds[g]: along the path. */
static void write_paths(int kinds[PATHS_OF_FOUR][4]) {
    struct entry_pack pack = {.set = {.kind = TUD_KIND, .width = 3, .labels = 2}};
    struct error e = {ST_OK, ""};
    char path[CACHE_PATH];
    struct rng r = rng_at(7, STREAM_DATA, 0);
    for (int g = 0; g < PATHS_OF_FOUR; g++) {
        int32_t at[4], number[11] = {0}, (*edge)[2] = (int32_t(*)[2])(number + 5);
        for (int i = 0; i < 4; i++) at[i] = (int32_t)permute_index(7, STREAM_TABLE, (uint64_t)g, (uint64_t)i, 4);
        for (int i = 0; i < 4; i++) number[1 + at[i]] = kinds[g][i] = (int)(3 * rng_uniform(&r));
        for (int i = 0; i < 3; i++) {
            edge[i][0] = at[i] < at[i + 1] ? at[i] : at[i + 1];
            edge[i][1] = at[i] < at[i + 1] ? at[i + 1] : at[i];
        }
        qsort(edge, 3, sizeof *edge, by_nodes);
        memcpy(entry_pack_add(&pack, SPLIT_TRAIN, g % 2, 4, sizeof number, &e), number, sizeof number);
    }
    ck_assert_int_eq(cache_path("mutag", "records", path, &e), ST_OK);
    ck_assert_msg(entry_pack_write(&pack, path, &e) == ST_OK, "%s", e.text);
    entry_pack_free(&pack);
}

static bool has_edge(const struct links_view *l, int tail, int head) {
    int32_t a, b;
    int found = 0;
    for (int64_t e = 0; e < l->size.edges; e++) found += links_edge(l, e, &a, &b) && a == tail && b == head;
    return found == 1;
}

/* The kinds along a path that an example is, from its end with the lower number. */
static void walk_path(const struct task_shape *shape, const struct example *x, int kinds[4]) {
    struct links_view l = {x->links, shape->links, x->length, false};
    int at = 0, before = -1;
    for (int v = 3; v >= 0; v--) {
        int degree = 0;
        for (int u = 0; u < 4; u++) degree += has_edge(&l, v, u) || has_edge(&l, u, v);
        if (degree == 1) at = v;
    }
    for (int i = 0; i < 4; i++) {
        int next = -1;
        for (int c = 0; c < 3; c++)
            if (x->values[at * 3 + c] > 0) kinds[i] = c;
        for (int u = 0; u < 4; u++)
            if (u != before && (has_edge(&l, at, u) || has_edge(&l, u, at))) next = u;
        before = at;
        at = next;
    }
}

/* Two paths are one graph if their kinds are the same from either end. */
START_TEST(test_graphs_with_a_twin_in_training_are_counted) {
    int made[PATHS_OF_FOUR][4], all = 0;
    write_paths(made);
    for (int fold = 0; fold < FOLDS; fold++) {
        int kinds[PATHS_OF_FOUR][4], twins = 0;
        char text[64], said[256] = "", expected[128];
        struct task_choice kept, rest;
        snprintf(text, sizeof text, "mutag:fold=%d", fold);
        open_task(&kept, text, 1);
        struct example x = new_example(&kept.shape);
        int64_t n = kept.shape.examples[SPLIT_TRAIN], tested = kept.shape.examples[SPLIT_TEST];
        for (int64_t i = 0; i < n + tested; i++) {
            fill_example(&kept, i < n ? SPLIT_TRAIN : SPLIT_TEST, i < n ? i : i - n, -7, &x);
            walk_path(&kept.shape, &x, kinds[i]);
            bool twin = false;
            for (int64_t k = 0; k < n && i >= n; k++) {
                bool same = true, turned = true;
                for (int c = 0; c < 4; c++) {
                    same = same && kinds[i][c] == kinds[k][c];
                    turned = turned && kinds[i][c] == kinds[k][3 - c];
                }
                twin = twin || same || turned;
            }
            twins += twin;
        }
        FILE *f = fmemopen(said, sizeof said, "w");
        kept.task->notes(kept.inst, f);
        fclose(f);
        snprintf(expected, sizeof expected, "  twins      %d of %d test graphs of fold %d are", twins, (int)tested,
                 fold);
        expect_text(said, expected, text);
        snprintf(text, sizeof text, "mutag:fold=%d,twins=drop", fold);
        if (twins < tested) open_task(&rest, text, 1);
        if (twins < tested) ck_assert_int_eq(rest.shape.examples[SPLIT_TEST], tested - twins);
        all += twins;
        free_example(&x);
    }
    ck_assert(all > 10 && all < PATHS_OF_FOUR); /* the check is of both kinds */
}
END_TEST

Suite *check_twins(void);
Suite *check_twins(void) {
    Suite *suite = suite_create("twins");
    TCase *c = tcase_create("twins");
    tcase_add_checked_fixture(c, reserve_task_host, free_task_host);
    tcase_add_checked_fixture(c, import_data, drop_data);
    tcase_add_test(c, graphs_are_told_apart_exactly);
    tcase_add_test(c, test_graphs_with_a_twin_in_training_are_counted);
    suite_add_tcase(suite, c);
    return suite;
}
