/* plot_name.c - see plot_name.h. */
#include "harness/plot/plot_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The k-th way to name a table's files: the task's name, with its options, its profile, or both. */
static void name_files(const struct report_table *t, int k, char stem[PLOT_STEM_BYTES]) {
    struct label label;
    bool whole = k & 2 || label_parse(&label, "task", t->task, NULL) != ST_OK;
    snprintf(stem, PLOT_STEM_BYTES, "%.150s%s%s", whole ? t->task : label_name(&label), k & 1 ? "-" : "",
             k & 1 ? t->profile : "");
    for (char *p = stem; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._=,+", *p)) *p = '-';
    if (*stem == '.') *stem = '-';
}

void plot_table_hash(const struct report_table *t, char hash[PLOT_HASH_BYTES]) {
    char text[RECORD_TEXT + 64], hex[RUN_ID_HEX];
    snprintf(text, sizeof text, "%s %s", t->task, t->profile);
    record_hash(text, hex);
    snprintf(hash, PLOT_HASH_BYTES, "%.6s", hex);
}

void plot_stem(const struct report_tables *tables, int i, const char *kind, char stem[PLOT_STEM_BYTES]) {
    bool alone = false;
    char other[PLOT_STEM_BYTES], hash[PLOT_HASH_BYTES];
    for (int k = 0; k < 4 && !alone; k++) {
        alone = true;
        name_files(&tables->list[i], k, stem);
        for (int j = 0; j < tables->n; j++) {
            name_files(&tables->list[j], k, other);
            alone = alone && (i == j || strcmp(stem, other) != 0);
        }
    }
    size_t used = strlen(stem);
    plot_table_hash(&tables->list[i], hash);
    snprintf(stem + used, PLOT_STEM_BYTES - used, "%s%s-%s", alone ? "" : "-", alone ? "" : hash, kind);
}
