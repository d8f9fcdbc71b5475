/* gate_history.c - a gate's result as a line of the history (harness/store/history.h), and as a badge; see gate.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/gate/gate.h"
#include "harness/rows/stats.h"
#include "harness/store/clock.h"
#include "harness/store/history.h"
#include "harness/store/record_json.h"
#include "harness/store/version.h"

static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *figure_of_row(const struct gate_row *row) {
    const struct baseline_figure *made = &row->made;
    json_t *seeds = json_array(), *values = json_array();
    for (int i = 0; i < made->n; i++) {
        json_array_append_new(seeds, json_integer(made->seed[i]));
        json_array_append_new(values, number(made->value[i]));
    }
    return json_pack("{so ss so so so so ss so ss so so}", "name", json_from_text(row->name), "figure",
                     *made->figure ? made->figure : row->figure, "value",
                     number(made->n ? stats_mean(made->value, made->n) : row->value), "judged", number(row->value),
                     "low", number(row->low), "high", number(row->high), "sense", sense_names[row->sense], "bound",
                     number(row->bound), "verdict", row->compared ? verdict_names[row->verdict] : "not compared",
                     "seeds", seeds, "values", values);
}

/* Traces are counted: each alone has no figure. */
static json_t *figure_of_traces(const struct gate_result *r) {
    int same = 0, all = 0;
    enum verdict worst = VERDICT_SAME;
    for (int i = 0; i < r->n; i++) {
        if (strcmp(r->rows[i].kind, "trace") != 0 || !r->rows[i].compared) continue;
        all++;
        same += r->rows[i].verdict == VERDICT_SAME;
        if (r->rows[i].verdict > worst) worst = r->rows[i].verdict;
    }
    if (!all) return NULL;
    return json_pack("{ss ss si si ss si ss}", "name", "golden traces", "figure", "same", "value", same, "judged", same,
                     "sense", ">=", "bound", all, "verdict", verdict_names[worst]);
}

enum status gate_history(const struct gate_result *r, const char *name, enum verdict worst, const char *path,
                         struct error *e) {
    const struct build_info *b = build_info();
    struct machine m;
    char date[32];
    machine_read(&m);
    time_now_text(date, sizeof date);
    json_t *figures = json_array(), *traces = figure_of_traces(r);
    if (traces) json_array_append_new(figures, traces);
    for (int i = 0; i < r->n; i++)
        if (*r->rows[i].figure) json_array_append_new(figures, figure_of_row(&r->rows[i]));
    json_t *line =
        json_pack("{si ss ss sb ss ss ss ss so ss so}", "gate", HISTORY_VERSION, "date", date, "commit", b->commit,
                  "dirty", b->dirty, "version", b->version, "machine", m.id, "epoch", m.env_epoch, "real", REAL_NAME,
                  "name", json_from_text(name), "verdict", verdict_names[worst], "figures", figures);
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(10)) : NULL;
    enum status status = text ? history_append(path, text, e) : fail(e, ST_MEMORY, "no memory for a line of %s", path);
    free(text);
    json_decref(line);
    return status;
}

/* --- badge -------------------------------------------------------------------------------------------------------- */

/* Two fields, "gate" and the verdict; text is 11 pixels high and at most 7 wide a letter, which textLength fixes, so
 * that no font of the reader's overflows a field. */
enum status gate_badge(enum verdict worst, const char *path, struct error *e) {
    static const char *const words[] = {"passing", "improved", "undecided", "regressed"};
    static const char *const colours[] = {"#2e7d32", "#2e7d32", "#8a6d00", "#c62828"};
    struct printed svg;
    const char *word = words[worst];
    int left = 40, text = 7 * (int)strlen(word), width = left + text + 12;
    TRY(printed_begin(&svg, path, e));
    fprintf(svg.f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"20\" role=\"img\" aria-label=\"gate: %s\">"
            "<title>gate: %s</title><rect width=\"%d\" height=\"20\" rx=\"3\" fill=\"#444\"/>"
            "<path d=\"M%d 0H%da3 3 0 0 1 3 3V17a3 3 0 0 1-3 3H%dZ\" fill=\"%s\"/>"
            "<g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">"
            "<text x=\"6\" y=\"14\" textLength=\"28\">gate</text>"
            "<text x=\"%d\" y=\"14\" textLength=\"%d\">%s</text></g></svg>\n",
            width, word, word, width, left, width - 3, left, colours[worst], left + 6, text, word);
    return printed_write(&svg, ST_OK, path, e);
}
