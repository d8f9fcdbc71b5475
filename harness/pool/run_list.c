/* run_list.c - see run_list.h. */
#include "harness/pool/run_list.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "harness/study/row_key.h"
#include "harness/run/reuse.h"
#include "harness/store/record_json.h"

/* Steps that a time is turned into are timed when the runs are done, not to list them. */
static bool is_timed(const struct setup *s, bool timed) {
    return timed || s->spec.config.budget > 0;
}

/* "layers=2 dim=64": in which flags the runs differ, but for the MLP and what the label of the model has. */
enum status run_list_print(const struct plan *plan, const struct label *axes, bool timed, bool retry, struct error *e) {
    struct label differing;
    TRY(plan_differing_flags(plan, axes, &differing, e));
    for (int i = 0; i < plan->n; i++) {
        const struct setup *s = plan->setups[i];
        printf("%s %s %s lr %g", s->id.run_id, s->spec.task.name, s->id.model_label, s->spec.config.lr);
        for (int k = 0; k < differing.n; k++) {
            char value[OPTION_TEXT + 1];
            option_format_value(row_key_flag(label_key(&differing, k)), &s->spec.config, value, sizeof value);
            printf(" %s %s", label_key(&differing, k), *value ? value : "none");
        }
        printf(" seed %" PRId64 " steps %" PRId64 "%s%s\n", s->spec.config.seed, s->shapes.steps,
               is_timed(s, timed) ? " or those of its time" : "", reuse_is_there(s, retry) ? ", on record" : "");
    }
    return ST_OK;
}

/* An object a line; "steps" null: those of its time. */
enum status run_list_json(const struct plan *plan, bool timed, bool retry, struct error *e) {
    for (int i = 0; i < plan->n; i++) {
        const struct setup *s = plan->setups[i];
        json_t *steps = is_timed(s, timed) ? json_null() : json_integer(s->shapes.steps);
        json_t *line = json_pack("{s:s s:o s:o s:f s:I s:o s:b s:o}", "run_id", s->id.run_id, "task",
                                 json_from_text(s->spec.task.name), "model", json_from_text(s->id.model_label), "lr",
                                 s->spec.config.lr, "seed", (json_int_t)s->spec.config.seed, "steps", steps,
                                 "on_record", reuse_is_there(s, retry), "config", json_from_text(s->id.config_text));
        if (!line) return fail(e, ST_MEMORY, "no memory for a list of %d runs", plan->n);
        json_dumpf(line, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(line);
    }
    return ST_OK;
}
