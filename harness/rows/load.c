/* load.c - see load.h. */
#include "harness/rows/load.h"

#include <stdio.h>

#include "harness/study/profile.h"

static enum status name_profile(struct run_record *r, struct error *e) {
    struct label key;
    struct error why;
    struct run *run = &r->run;
    if (row_key(r->identity, &key, &why) != ST_OK)
        return fail(e, ST_DATA, "the identity in the record of run %s cannot be read: %.800s", run->run_id, why.text);
    struct profile_question question = {.name = run->profile,
                                        .task = run->task,
                                        .suite = run->suite,
                                        .key = &key,
                                        .lr = run->lr,
                                        .n_train = run->n_train};
    if (!profile_holds(&question)) snprintf(run->profile, sizeof run->profile, "%s", PROFILE_CUSTOM);
    return ST_OK;
}

enum status report_load(struct record_set *set, const char *out, struct error *e) {
    TRY(records_load(set, out, e));
    for (int i = 0; i < set->n; i++) {
        enum status status = name_profile(&set->list[i], e);
        if (status == ST_OK) continue;
        records_free(set);
        return status;
    }
    return ST_OK;
}
