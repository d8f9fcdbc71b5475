/* registry.c - the list of mixers and the reading of "bdlru:m=5,blocks=32". */
#include <string.h>

#include "core/label.h"
#include "models/model.h"

#define MODEL(name) extern const struct model model_##name;
#include "models/list.def"
#undef MODEL

#define MODEL(name) &model_##name,
static const struct model *const list[] = {
#include "models/list.def"
    NULL};
#undef MODEL

const struct model *const *model_list(void) {
    return list;
}

const struct model *model_find(const char *name) {
    for (const struct model *const *m = list; *m; m++)
        if (!strcmp((*m)->name, name)) return *m;
    return NULL;
}

/* Whether `word` is one of `words`, in which blanks separate words. */
static bool has_word(const char *words, const char *word) {
    size_t n = strlen(word);
    for (const char *at = strstr(words, word); at; at = strstr(at + 1, word))
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
    return false;
}

bool model_exempts(const struct model *m, const struct param *p) {
    const char *mixer = strstr(p->name, ".mixer"), *own = mixer ? strchr(mixer + 1, '.') : NULL;
    return p->spec.group == PARAM_STATE || (own && m->undecayed && has_word(m->undecayed, own + 1));
}

static const char *name_of(const void *models, int i) {
    return ((const struct model *const *)models)[i]->name;
}

enum status model_parse(struct model_choice *choice, const char *text, struct error *e) {
    struct label label;
    char owner[80];
    TRY(label_parse(&label, "model", text, e));
    const char *name = label_name(&label);
    choice->model = model_find(name);
    if (!choice->model) {
        const char *near = nearest_name(name, (int)(sizeof list / sizeof *list) - 1, name_of, list);
        if (near) return fail(e, ST_USAGE, "unknown model '%.60s'; did you mean '%s'?", name, near);
        return fail(e, ST_USAGE, "unknown model '%.60s'; `lrnn list models` names them", name);
    }
    snprintf(owner, sizeof owner, "model %s", choice->model->name);
    memset(choice->inst, 0, sizeof choice->inst);
    choice->tokens = 0;
    choice->dims = (struct dims){0};
    TRY(options_default(choice->model->options, choice->inst, e));
    return label_apply(&label, choice->model->options, choice->inst, owner, e);
}

enum status model_fit(struct model_choice *choice, const struct dims *d, struct error *e) {
    const struct model *model = choice->model;
    choice->tokens = d->T;
    choice->dims = *d;
    if (model->nodes) TRY(model->nodes(choice->inst, d->T, &choice->dims.T, e));
    return model->check(choice->inst, &choice->dims, e);
}
