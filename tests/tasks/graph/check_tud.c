/* check_tud.c - graphs in TUDataset's format: files that Python wrote (tests/data/make.py) come out of the reader
 * number by number, and everything else is answered with one sentence. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/data/datasets.h"
#include "tasks/data/tud_files.h"
#include "tests/lib/program.h"
#include "tests/tasks/task_examples.h"

/* --- what Python wrote, as the task gives it ---------------------------------------------------------------------- */

enum { GRAPHS = 26, FOLDS = 10 };

static const struct set {
    const char *task;
    int attributes, kinds, rank[2]; /* rank: of the labels in make.py's order */
} sets[] = {
    {"tud", 0, 7, {1, 0}}, {"nci1", 0, 37, {0, 1}}, {"proteins", 1, 3, {0, 1}}, {"tud:set=ptc-fm", 0, 18, {0, 1}}};

static bool has_edge(const struct links_view *l, int tail, int head) {
    int32_t a, b;
    int found = 0;
    for (int64_t e = 0; e < l->size.edges; e++) found += links_edge(l, e, &a, &b) && a == tail && b == head;
    return found == 1;
}

static double feature_of(const struct set *s, int k, int node, int c) {
    if (c < s->attributes) return ((k * 37 + node * 11 + c * 5) % 64 - 20) / 8.0;
    return c - s->attributes == (k * 5 + node * 3) % s->kinds;
}

/* Whether the example is graph k: a path, each third one a ring. */
static bool is_graph(const struct set *s, const struct task_shape *shape, int k, const struct example *x) {
    int nodes = 3 + k % 4, C = s->attributes + s->kinds, edges = 0, pairs = 0;
    struct links_view l = {x->links, shape->links, x->length, false};
    int32_t a, b;
    bool same = x->length == nodes && x->targets[0] == s->rank[k * 7 / 3 % 2];
    for (int node = 0; node < nodes && same; node++)
        for (int c = 0; c < C; c++)
            same = same && fabs((double)x->values[node * C + c] - feature_of(s, k, node, c)) < 1e-6;
    for (int64_t e = 0; e < l.size.edges; e++) edges += links_edge(&l, e, &a, &b);
    for (int64_t p = 0; p < l.size.pairs; p++) pairs += links_pair(&l, p, &a, &b);
    for (int node = 0; node + 1 < nodes; node++) same = same && has_edge(&l, node, node + 1);
    if (k % 3 == 0) same = same && has_edge(&l, 0, nodes - 1);
    return same && edges == nodes - (k % 3 != 0) && pairs == nodes - 2;
}

static int find_graph(const struct set *s, const struct task_shape *shape, const struct example *x) {
    for (int k = 0; k < GRAPHS; k++)
        if (is_graph(s, shape, k, x)) return k;
    return -1;
}

/* Stratified: of either label, 14 and 12 graphs, a fold's test has one or two. */
START_TEST(folds_divide_the_graphs_of_the_files) {
    const struct set *s = &sets[_i];
    int tested[GRAPHS] = {0}, validated[GRAPHS] = {0};
    for (int fold = 0; fold < FOLDS; fold++) {
        int seen[GRAPHS] = {0}, of_label[2] = {0};
        char text[64];
        struct task_choice c;
        snprintf(text, sizeof text, "%s%cfold=%d", s->task, strchr(s->task, ':') ? ',' : ':', fold);
        open_task(&c, text, (uint64_t)fold);
        struct example x = new_example(&c.shape);
        ck_assert(c.shape.channels == s->attributes + s->kinds && c.shape.T == 6 && c.shape.vocab_out == 2);
        ck_assert(fabs(c.shape.floor - 14.0 / 26) < 1e-12);
        for (int split = 0; split < SPLIT_COUNT; split++)
            for (int64_t i = 0; i < c.shape.examples[split]; i++) {
                fill_example(&c, (enum split)split, i, -7, &x);
                int k = find_graph(s, &c.shape, &x);
                ck_assert_msg(k >= 0, "%s: split %d, example %d is none of its graphs", text, split, (int)i);
                seen[k]++;
                tested[k] += split == SPLIT_TEST;
                validated[k] += split == SPLIT_VAL;
                of_label[x.targets[0]] += split == SPLIT_TEST;
            }
        for (int k = 0; k < GRAPHS; k++) ck_assert_int_eq(seen[k], 1);
        for (int label = 0; label < 2; label++) ck_assert(of_label[label] == 1 || of_label[label] == 2);
        free_example(&x);
    }
    for (int k = 0; k < GRAPHS; k++) ck_assert(tested[k] == 1 && validated[k] == 1);
}
END_TEST

/* A set whose hash is right and whose graphs are none, and one that ten folds cannot be made of. */
static void expect_set_refused(struct entry_pack *pack, const char *says) {
    char path[CACHE_PATH];
    struct task_choice c;
    struct error e = {ST_OK, ""};
    ck_assert_int_eq(cache_path("mutag", "records", path, &e), ST_OK);
    ck_assert_msg(entry_pack_write(pack, path, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(task_parse(&c, "mutag", &e), ST_OK);
    ck_assert_int_eq(task_open(&c, 1, &task_host, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, says), "'%s' is not '%s'", e.text, says);
    entry_pack_free(pack);
}

START_TEST(entries_that_are_no_graphs_are_refused) {
    static const struct {
        int32_t number[8]; /* attributes, labels of two nodes, two edges */
        int n;
        const char *says;
    } bad[] = {{{0}, 0, "graph 0: expected features as `lrnn data import` stores them, found others"},
               {{-1, 0, 0}, 3, "expected features as"},
               {{4, 0, 0}, 3, "expected features as"},
               {{0, 0}, 2, "expected nodes and edges as"},
               {{0, 0, 0, 0}, 4, "expected nodes and edges as"},
               {{0, 0, 3}, 3, "expected labels of nodes as"},
               {{0, -1, 0}, 3, "expected labels of nodes as"},
               {{0, 0, 0, 0, 2}, 5, "expected edges as"},
               {{0, 0, 0, 1, 1}, 5, "expected edges as"},
               {{0, 0, 0, -1, 1}, 5, "expected edges as"},
               {{0, 0, 0, 0, 1, 0, 1}, 7, "expected edges as"},
               {{0, 0, 2, 0, 1}, 5, "mutag: expected at least 10 graphs of each label, found 1 of label 0"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct entry_pack pack = {.set = {.kind = TUD_KIND, .width = 3, .labels = 2}};
        struct error e = {ST_OK, ""};
        uint8_t *to = entry_pack_add(&pack, SPLIT_TRAIN, 0, 2, 4 * bad[i].n, &e);
        memcpy(to, bad[i].number, 4 * (size_t)bad[i].n);
        expect_set_refused(&pack, bad[i].says);
    }
}
END_TEST

/* --- the reader on text ------------------------------------------------------------------------------------------- */

/* Two graphs: a path of three nodes and an edge. */
static const char *const small[TUD_FILES] = {[TUD_INDICATOR] = "1\n1\n1\n2\n2\n",
                                             [TUD_GRAPH_LABELS] = "1\n-1\n",
                                             [TUD_EDGES] = "2, 1\n1, 2\n2, 3\n3, 2\n5, 4\n4, 5\n",
                                             [TUD_NODE_LABELS] = "3\n5\n3\n4\n3\n",
                                             [TUD_ATTRIBUTES] = "0.5, -1\n1, 2\n3, 4\n5, 6\n7, 8\n",
                                             [TUD_EDGE_LABELS] = "0\n0\n1\n1\n0\n0\n"};

/* sizes NULL: the texts' sizes. A NULL text is a missing file. */
static enum status read_texts(const char *const text[TUD_FILES], const size_t *sizes, struct entry_pack *pack,
                              struct error *e) {
    static const char *const names[TUD_FILES] = {"GRAPHS", "LABELS", "EDGES", "KINDS", "ATTRIBUTES", "BONDS"};
    struct byte_source source[TUD_FILES] = {{0}}, *file[TUD_FILES] = {NULL};
    char sha[SHA256_HEX];
    enum status status = ST_OK;
    *pack = (struct entry_pack){.set = {.kind = TUD_KIND}};
    *e = (struct error){ST_OK, ""};
    for (int i = 0; i < TUD_FILES && status == ST_OK; i++) {
        if (!text[i]) continue;
        file[i] = &source[i];
        status = source_open_memory(file[i], text[i], sizes ? sizes[i] : strlen(text[i]), names[i], e);
    }
    if (status == ST_OK) status = tud_read(file, pack, e);
    for (int i = 0; i < TUD_FILES; i++) {
        if (status == ST_OK && file[i]) status = source_end(file[i], sha, e);
        source_close(&source[i]);
    }
    return status;
}

/* The small set with another text in the place of one of its files. */
static void expect_refused(enum tud_file file, const char *text, const char *says) {
    const char *texts[TUD_FILES];
    struct entry_pack pack;
    struct error e;
    memcpy(texts, small, sizeof texts);
    texts[file] = text;
    enum status status = read_texts(texts, NULL, &pack, &e);
    ck_assert_msg(status == ST_DATA && strstr(e.text, says) && !strchr(e.text, '\n'), "%.40s: %d, '%s' is not '%s'",
                  text, status, e.text, says);
    entry_pack_free(&pack);
}

static void expect_small(const char *const texts[TUD_FILES]) {
    static const struct {
        int32_t attributes;
        float attribute[6];
        int32_t kind[3], edge[4];
    } first = {2, {0.5f, -1, 1, 2, 3, 4}, {0, 2, 0}, {0, 1, 1, 2}};
    static const struct {
        int32_t attributes;
        float attribute[4];
        int32_t kind[2], edge[2];
    } second = {2, {5, 6, 7, 8}, {1, 0}, {0, 1}};
    struct entry_pack pack;
    struct error e;
    ck_assert_msg(read_texts(texts, NULL, &pack, &e) == ST_OK, "%s", e.text);
    ck_assert(pack.set.n[SPLIT_TRAIN] == 2 && pack.set.width == 5 && pack.set.labels == 2 && pack.set.longest == 3);
    ck_assert(pack.row[0].label == 1 && pack.row[0].length == 3 && pack.row[1].label == 0 && pack.row[1].length == 2);
    ck_assert(pack.row[1].offset == sizeof first && pack.used == sizeof first + sizeof second);
    ck_assert(memcmp(pack.payload, &first, sizeof first) == 0);
    ck_assert(memcmp(pack.payload + sizeof first, &second, sizeof second) == 0);
    entry_pack_free(&pack);
}

/* Lines of another end, blanks, empty lines at the end, loops and edges that come again make no difference. */
START_TEST(graphs_are_read_however_they_are_written) {
    static const char *const other[TUD_FILES] = {[TUD_INDICATOR] = "1\r\n1\r\n1\r\n2\r\n2",
                                                 [TUD_GRAPH_LABELS] = " +7\n-3.0 \n\n \n",
                                                 [TUD_EDGES] =
                                                     "3,2\r\n1 ,\t2\r\n2,2\r\n2,1\r\n2,3\r\n4,5\r\n1,2\r\n5,4\r\n",
                                                 [TUD_NODE_LABELS] = "-1\n1\n-1\n0\n-1\n",
                                                 [TUD_ATTRIBUTES] = "5e-1,-1.000\n1,2\n3,4\n5,6\n7,8\n",
                                                 [TUD_EDGE_LABELS] = "0\n0\n9\n0\n1\n1\n1\n1\n"};
    expect_small(small);
    expect_small(other);
}
END_TEST

/* Nodes without labels and attributes all have label 0, the one there is. */
START_TEST(what_a_set_does_not_have_is_left_out) {
    static const int32_t plain[] = {0, 0, 0, 0, 0, 1, 1, 2}, alone[] = {0, 0, 0};
    const char *texts[TUD_FILES] = {small[TUD_INDICATOR], small[TUD_GRAPH_LABELS], small[TUD_EDGES]};
    struct entry_pack pack;
    struct error e;
    ck_assert_msg(read_texts(texts, NULL, &pack, &e) == ST_OK, "%s", e.text);
    ck_assert(pack.set.width == 1 && memcmp(pack.payload, plain, sizeof plain) == 0);
    entry_pack_free(&pack);
    texts[TUD_ATTRIBUTES] = small[TUD_ATTRIBUTES];
    ck_assert_msg(read_texts(texts, NULL, &pack, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(pack.set.width, 2);
    entry_pack_free(&pack);
    texts[TUD_ATTRIBUTES] = NULL;
    texts[TUD_EDGES] = "1, 2\n2, 1\n";
    ck_assert_msg(read_texts(texts, NULL, &pack, &e) == ST_OK, "%s", e.text);
    ck_assert(pack.row[1].length == 2 && memcmp(pack.payload + pack.row[1].offset, alone, sizeof alone) == 0);
    entry_pack_free(&pack);
}
END_TEST

START_TEST(what_is_no_graph_is_named_by_file_and_line) {
    static const struct {
        enum tud_file file;
        const char *text, *says;
    } bad[] = {
        {TUD_INDICATOR, "", "GRAPHS, line 1: expected the number of a graph, found the end of the file"},
        {TUD_INDICATOR, "2\n", "GRAPHS, line 1: expected graph 1, found 2"},
        {TUD_INDICATOR, "1\n3\n", "GRAPHS, line 2: expected graph 1 or 2, found 3"},
        {TUD_INDICATOR, "1\n2\n1\n", "GRAPHS, line 3: expected graph 2 or 3, found 1"},
        {TUD_INDICATOR, "1\nx\n", "GRAPHS, line 2: expected the number of a graph, found 'x'"},
        {TUD_INDICATOR, "0\n", "GRAPHS, line 1: expected the number of a graph, found '0'"},
        {TUD_INDICATOR, "1 1\n", "GRAPHS, line 1: expected the end of the line, found '1'"},
        {TUD_INDICATOR, "1\n\n1\n", "GRAPHS, line 3: expected the end of the file after an empty line, found '1'"},
        {TUD_INDICATOR, "1\n1\n1\n2\n", "KINDS, line 5: expected 4 lines, one per node, found more"},
        {TUD_GRAPH_LABELS, "", "LABELS, line 1: expected 2 lines, one per graph, found the end of the file"},
        {TUD_GRAPH_LABELS, "1\n", "LABELS, line 2: expected 2 lines, one per graph, found the end of the file"},
        {TUD_GRAPH_LABELS, "1\n2\n1\n", "LABELS, line 3: expected 2 lines, one per graph, found more"},
        {TUD_GRAPH_LABELS, "1\n1\n", "LABELS, line 2: expected graphs of at least two labels, found 1 alone"},
        {TUD_GRAPH_LABELS, "1\n0.5\n", "line 2: expected the label of a graph, a whole number, found '0.5'"},
        {TUD_GRAPH_LABELS, "1\n?\n", "LABELS, line 2: expected the label of a graph, a whole number, found '?'"},
        {TUD_GRAPH_LABELS, "1\n9999999999\n", "expected the label of a graph, a whole number, found '9999999999'"},
        {TUD_NODE_LABELS, "3\n5\n", "KINDS, line 3: expected 5 lines, one per node, found the end of the file"},
        {TUD_NODE_LABELS, "3\nNaN\n", "KINDS, line 2: expected the label of a node, a whole number, found 'NaN'"},
        {TUD_NODE_LABELS, "3\n5\n3\n4\n9000\n",
         "KINDS, line 5: expected labels within 4096 of each other, found 3 and 9000"},
        {TUD_NODE_LABELS, "3, 1\n", "KINDS, line 1: expected the end of the line, found ', 1'"},
        {TUD_ATTRIBUTES, "1, 2\n3\n", "ATTRIBUTES, line 2: expected 2 attributes as on line 1, found 1"},
        {TUD_ATTRIBUTES, "1\n3, 4\n", "ATTRIBUTES, line 2: expected 1 attributes as on line 1, found 2"},
        {TUD_ATTRIBUTES, "1, ?\n", "line 1: expected an attribute (missing ones are not read), found '?'"},
        {TUD_ATTRIBUTES, "nan, 1\n", "line 1: expected an attribute (missing ones are not read), found 'nan, 1'"},
        {TUD_ATTRIBUTES, "1, \n", "ATTRIBUTES, line 1: expected a finite number, found the end of the line"},
        {TUD_ATTRIBUTES, "1, x\n", "ATTRIBUTES, line 1: expected a finite number, found 'x'"},
        {TUD_ATTRIBUTES, "1, 1e99\n", "ATTRIBUTES, line 1: expected a finite number"},
        {TUD_ATTRIBUTES, "1 2\n", "ATTRIBUTES, line 1: expected the end of the line, found '2'"},
        {TUD_ATTRIBUTES, "1\n2\n", "ATTRIBUTES, line 3: expected 5 lines, one per node, found the end of the file"},
        {TUD_ATTRIBUTES, "1\n2\n3\n4\n5\n6\n", "ATTRIBUTES, line 6: expected 5 lines, one per node, found more"},
        {TUD_EDGES, "", "EDGES, line 1: expected an edge, found the end of the file"},
        {TUD_EDGES, "6, 1\n", "EDGES, line 1: expected a node from 1 to 5, found '6, 1'"},
        {TUD_EDGES, "1, 2\n2, 0\n", "EDGES, line 2: expected a node from 1 to 5, found '0'"},
        {TUD_EDGES, "1; 2\n", "EDGES, line 1: expected a comma after the first node of an edge, found '; 2'"},
        {TUD_EDGES, "1\n", "line 1: expected a comma after the first node of an edge, found the end of the line"},
        {TUD_EDGES, "1,\n", "EDGES, line 1: expected a node from 1 to 5, found the end of the line"},
        {TUD_EDGES, "1, 2, 3\n", "EDGES, line 1: expected the end of the line, found ', 3'"},
        {TUD_EDGES, "one, 2\n", "EDGES, line 1: expected a node from 1 to 5, found 'one, 2'"},
        {TUD_EDGES, "1, 2\n2, 1\n1, 4\n4, 1\n",
         "EDGES, line 3: expected an edge within a graph, found one from node 1 of graph 1 to node 4 of graph 2"},
        {TUD_EDGES, "1, 2\n2, 1\n3, 2\n1, 1\n1, 1\n1, 1\n",
         "EDGES, line 3: expected each edge in both directions, found 3, 2 without 2, 3"},
        {TUD_EDGES, "4, 5\n1, 1\n1, 1\n1, 1\n1, 1\n1, 1\n",
         "EDGES, line 1: expected each edge in both directions, found 4, 5 without 5, 4"},
        {TUD_EDGES, "1, 1\n", "BONDS, line 2: expected 1 lines, one per line of the edges, found more"},
        {TUD_EDGE_LABELS, "0\n",
         "BONDS, line 2: expected 6 lines, one per line of the edges, found the end of the file"},
        {TUD_EDGE_LABELS, "0\n-\n", "BONDS, line 2: expected the label of an edge, a whole number, found '-'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) expect_refused(bad[i].file, bad[i].text, bad[i].says);
}
END_TEST

/* Whatever is missing at the end of a file, but the end of its last line, is missed. */
START_TEST(files_cut_anywhere_are_refused) {
    for (int cut = 0; cut < TUD_FILES; cut++)
        for (size_t n = 0; n < strlen(small[cut]); n++) {
            const char *texts[TUD_FILES];
            size_t sizes[TUD_FILES];
            struct entry_pack pack;
            struct error e;
            for (int i = 0; i < TUD_FILES; i++) sizes[i] = i == cut ? n : strlen(small[i]);
            char *bytes = malloc(n + 1); /* its own size, so that a read past the end is seen */
            memcpy(bytes, small[cut], n);
            memcpy(texts, small, sizeof texts);
            texts[cut] = bytes;
            enum status status = read_texts(texts, sizes, &pack, &e);
            bool whole = n + 1 == strlen(small[cut]);
            if (status != (whole ? ST_OK : ST_DATA) || (!whole && !strstr(e.text, ", line ")))
                ck_abort_msg("%zu bytes of file %d: %d, '%s'", n, cut, status, e.text);
            entry_pack_free(&pack);
            free(bytes);
        }
}
END_TEST

/* --- many lines --------------------------------------------------------------------------------------------------- */

enum { PATHS = 1500 };

/* Text that grows; it is long enough for all that is put into it. */
struct page {
    char *at;
    size_t n, room;
};

__attribute__((format(printf, 2, 3))) static void put(struct page *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    p->n += (size_t)vsnprintf(p->at + p->n, p->room - p->n, format, args);
    va_end(args);
    if (p->n >= p->room) ck_abort_msg("%zu bytes have no room", p->n); /* an assertion that holds takes its time */
}

/* Writes paths of 2 to 8 nodes, more than a window of each file, with `end` after each line. `last_first`: the edges of
 * the last graph stand first. Edge `fault`, from 1 in the order of the file, reads `instead`. */
static void put_paths(struct page file[TUD_FILES], const char *end, bool last_first, int fault, const char *instead) {
    int first[PATHS + 1] = {1}, line = 0;
    for (int i = 0; i < TUD_FILES; i++) file[i] = (struct page){malloc(1 << 20), 0, 1 << 20};
    for (int g = 0; g < PATHS; g++) {
        first[g + 1] = first[g] + 2 + g % 7;
        put(&file[TUD_GRAPH_LABELS], "%d%s", g % 3, end);
        for (int node = first[g]; node < first[g + 1]; node++) {
            put(&file[TUD_INDICATOR], "%d%s", g + 1, end);
            put(&file[TUD_NODE_LABELS], "%d%s", node % 5, end);
            put(&file[TUD_ATTRIBUTES], "%d.%0*d, -%d%s", node * 7 % 1000, 1 + node % 12, node * 3, node, end);
        }
    }
    for (int k = 0; k < PATHS; k++)
        for (int g = last_first ? PATHS - 1 - k : k, node = first[g + 1] - 1; node > first[g]; node--)
            for (int down = 0; down < 2; down++) {
                put(&file[TUD_EDGE_LABELS], "%d%s", node % 4, end);
                if (++line == fault)
                    put(&file[TUD_EDGES], "%s%s", instead, end);
                else
                    put(&file[TUD_EDGES], "%d, %d%s", node - !down, node - down, end);
            }
}

static enum status read_paths(struct page file[TUD_FILES], struct entry_pack *pack, struct error *e) {
    const char *texts[TUD_FILES];
    for (int i = 0; i < TUD_FILES; i++) texts[i] = file[i].at;
    enum status status = read_texts(texts, NULL, pack, e);
    for (int i = 0; i < TUD_FILES; i++) free(file[i].at);
    return status;
}

/* Lines without a trailing blank are read many at a time; graphs in the order of the files are sorted one by one. */
START_TEST(many_lines_are_the_same_graphs_however_they_are_read) {
    struct page file[TUD_FILES];
    struct entry_pack plain, other;
    struct error e;
    put_paths(file, "\n", false, 0, "");
    ck_assert_msg(read_paths(file, &plain, &e) == ST_OK, "%s", e.text);
    ck_assert(plain.set.n[SPLIT_TRAIN] == PATHS && plain.set.longest == 8 && plain.set.width == 7);
    for (int form = 1; form < 4; form++) {
        put_paths(file, form % 2 ? " \r\n" : "\n", form >= 2, 0, "");
        ck_assert_msg(read_paths(file, &other, &e) == ST_OK, "%s", e.text);
        ck_assert(other.used == plain.used && memcmp(other.payload, plain.payload, (size_t)plain.used) == 0);
        entry_pack_free(&other);
    }
    entry_pack_free(&plain);
}
END_TEST

START_TEST(a_fault_among_many_lines_is_named_by_its_own) {
    static const struct {
        const char *instead, *says;
    } bad[] = {
        {"1, 2x", "expected the end of the line, found 'x"},
        {"1, 7496", "expected a node from 1 to 7495, found '7496"},
        {"1, 7495", "expected an edge within a graph, found one from node 1 of graph 1 to node 7495 of graph 1500"},
        {"7495, 7494", "expected each edge in both directions, found "}};
    static const int at[] = {1, 2, 255, 256, 257, 258, 4000, 7777, 11989, 11990};
    for (size_t i = 0; i < 2 * sizeof bad / sizeof *bad; i++)
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            struct page file[TUD_FILES];
            struct entry_pack pack;
            struct error e;
            char says[200];
            put_paths(file, i % 2 ? "\t\n" : "\n", false, at[k], bad[i / 2].instead);
            ck_assert_int_eq(read_paths(file, &pack, &e), ST_DATA);
            bool pair = i / 2 == 3; /* of that pair the line that has lost its other one is named */
            snprintf(says, sizeof says, "EDGES, line %d: %s", pair ? at[k] - 1 + 2 * (at[k] % 2) : at[k],
                     bad[i / 2].says);
            ck_assert_msg(strstr(e.text, says), "'%s' is not '%s'", e.text, says);
            entry_pack_free(&pack);
        }
}
END_TEST

/* --- limits ------------------------------------------------------------------------------------------------------- */

/* `n` times what `format` makes of the numbers from 1 on; the caller frees it. */
static char *lines(const char *format, int n) {
    size_t room = (size_t)n * 16 + 1, used = 0;
    char *text = malloc(room);
    *text = 0;
    for (int i = 1; i <= n; i++) used += (size_t)snprintf(text + used, room - used, format, i); /* NOLINT: a literal */
    return text;
}

/* Each of n nodes with each other one, both ways; the caller frees it. */
static char *all_pairs(int n) {
    size_t room = (size_t)n * (size_t)n * 12 + 1, used = 0;
    char *text = malloc(room);
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= n; j++) used += (size_t)snprintf(text + used, room - used, "%d,%d\n", i, j);
    return text;
}

/* A set of one graph of n nodes and another of one node. */
static void expect_too_large(int n, char *edges, const char *says) {
    char *ones = lines("1\n", n), graphs[1 << 14];
    const char *texts[TUD_FILES] = {graphs, small[TUD_GRAPH_LABELS], edges};
    struct entry_pack pack;
    struct error e;
    snprintf(graphs, sizeof graphs, "%s2\n", ones);
    ck_assert_int_eq(read_texts(texts, NULL, &pack, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, says), "'%s' is not '%s'", e.text, says);
    entry_pack_free(&pack);
    free(ones);
    free(edges);
}

START_TEST(what_is_too_large_is_refused) {
    expect_too_large(TUD_GRAPH_NODES + 1, lines("", 0),
                     "GRAPHS, line 4097: expected at most 4096 nodes of a graph, found more");
    expect_too_large(200, all_pairs(200),
                     "EDGES, line 2: expected at most 16384 edges of a graph, found 19900 of "
                     "graph 1");
    expect_too_large(118, all_pairs(118),
                     "EDGES, line 2: expected at most 262144 pairs of consecutive edges of a "
                     "graph, found 266916 of graph 1");
    char *many = lines("%d\n", TUD_LABELS + 1), *wide = lines("%d,", TUD_FEATURES + 1);
    const char *texts[TUD_FILES] = {many, many, "1, 1\n"};
    struct entry_pack pack;
    struct error e;
    ck_assert_int_eq(read_texts(texts, NULL, &pack, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "LABELS, line 1025: expected at most 1024 different labels, found more"), "%s",
                  e.text);
    entry_pack_free(&pack);
    expect_refused(TUD_ATTRIBUTES, wide, "ATTRIBUTES, line 1: expected at most 4096 attributes of a node");
    free(many);
    free(wide);
}
END_TEST

/* --- the command line --------------------------------------------------------------------------------------------- */

/* Copies a file of the set into the test's folder, all but its last bytes. */
static void copy_file(const char *end, size_t less) {
    char from[100], to[300];
    size_t size;
    snprintf(from, sizeof from, "tests/data/mutag/MUTAG_%s.txt", end);
    snprintf(to, sizeof to, "%s/MUTAG_%s.txt", program_folder, end);
    char *bytes = slurp(from, &size);
    spill(to, bytes, size - less);
    free(bytes);
}

START_TEST(graphs_are_imported_whole_or_not_at_all) {
    static const char *const ends[] = {"A", "graph_indicator", "graph_labels", "node_labels"};
    char text[300];
    snprintf(text, sizeof text, "data import mutag %s", program_folder);
    for (int i = 0; i < 4; i++) copy_file(ends[i], 0);
    expect_status(run(text), 5, "four files of five");
    expect_text(err, "cannot find MUTAG_edge_labels.txt in", "four files of five");
    copy_file("edge_labels", 2);
    expect_status(run(text), 5, "a line less");
    expect_text(err,
                "MUTAG_edge_labels.txt, line 196: expected 196 lines, one per line of the edges, found the end of the "
                "file",
                "a line less");
    ck_assert_int_eq(scratch_count(program_folder, ".records"), 0);
    copy_file("edge_labels", 0);
    expect_status(run(text), 0, text);
    expect_text(out, "26 training, 0 validation and 0 test graphs of at most 6, width 7, 2 labels", text);
    copy_file("A", 3);
    expect_status(run(text), 5, "half an edge");
    ck_assert_int_eq(scratch_count(program_folder, ".records"), 1);
    expect_status(run("data verify mutag"), 0, "data verify");
    expect_text(out, "mutag: whole, 26 training", "data verify");
    expect_status(run("data urls ptc-fm"), 0, "data urls");
    expect_text(out, "PTC_FM_edge_labels.txt", "data urls");
    free_output();
}
END_TEST

/* The run that was trained, as its record has it, where the files are not. */
static void expect_shown_without_data(void) {
    char text[200];
    json_t *line = parse_line(out);
    snprintf(text, sizeof text, "show %s --out %s/r", json_string_value(json_object_get(line, "run_id")),
             program_folder);
    json_decref(line);
    ck_assert_int_eq(setenv("LRNN_CACHE", "/nowhere", 1), 0);
    expect_status(run(text), 0, text);
    expect_text(out, "again: not here: run", text);
    expect_text(out, "proteins: there is no /nowhere/proteins.records", text);
    expect_text(out, "task             proteins:fold=9", text);
    expect_text(out, "step, loss, accuracy in validation", text);
    ck_assert_int_eq(setenv("LRNN_CACHE", program_folder, 1), 0);
}

/* From the files to a run, and what is asked for when they are not there. */
START_TEST(graphs_are_shown_and_trained_on) {
    char text[300];
    expect_status(run("data show tud"), 5, "data show tud");
    expect_text(err, "`lrnn data import mutag FOLDER` makes it", "data show tud");
    expect_status(run("data import proteins tests/data/proteins"), 0, "data import");
    expect_status(run("data show proteins:fold=3"), 0, "data show");
    expect_text(out, "\"edges\":[[0,1],", "data show");
    expect_status(run("data stats proteins --split test"), 0, "data stats");
    expect_text(out, "proteins, test examples 0 to 2 of 3", "data stats");
    snprintf(text, sizeof text,
             "train proteins:fold=9 plstm-graph:heads=2,mode=PD,direction=both --degree-code yes --dim 4 --steps 2 "
             "--batch 8 --json --out %s/r",
             program_folder);
    expect_status(run(text), 0, text);
    expect_shown_without_data();
    expect_status(run("bench proteins --profile smoke --steps 2 --dry-run"), 0, "bench");
    expect_status(run("bench proteins --profile paper --dry-run"), 0, "bench");
    expect_text(err, "50 runs", "bench");
    free_output();
}
END_TEST

Suite *check_tud(void);
Suite *check_tud(void) {
    Suite *suite = suite_create("tud");
    TCase *reader = tcase_create("reader");
    tcase_add_test(reader, graphs_are_read_however_they_are_written);
    tcase_add_test(reader, what_a_set_does_not_have_is_left_out);
    tcase_add_test(reader, what_is_no_graph_is_named_by_file_and_line);
    tcase_add_test(reader, files_cut_anywhere_are_refused);
    tcase_add_test(reader, many_lines_are_the_same_graphs_however_they_are_read);
    tcase_add_test(reader, a_fault_among_many_lines_is_named_by_its_own);
    tcase_add_test(reader, what_is_too_large_is_refused);
    suite_add_tcase(suite, reader);
    TCase *task = tcase_create("task");
    tcase_add_checked_fixture(task, reserve_task_host, free_task_host);
    tcase_add_checked_fixture(task, import_data, drop_data);
    tcase_add_loop_test(task, folds_divide_the_graphs_of_the_files, 0, (int)(sizeof sets / sizeof *sets));
    tcase_add_test(task, entries_that_are_no_graphs_are_refused);
    suite_add_tcase(suite, task);
    TCase *command = tcase_create("command line");
    tcase_add_checked_fixture(command, program_begin_without_data, program_end);
    tcase_set_timeout(command, 60);
    tcase_add_test(command, graphs_are_imported_whole_or_not_at_all);
    tcase_add_test(command, graphs_are_shown_and_trained_on);
    suite_add_tcase(suite, command);
    return suite;
}
