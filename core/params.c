/* params.c - the flat array of parameters; see params.h. */
#include "core/params.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define NAMES_BYTES ((size_t)8 << 20) /* address space for names and the list; it is committed as it is used */
#define MAX_PARAMS  16384             /* the largest net (most layers, bidirectional) has 11 525 */
#define PARAM_ALIGN 16                /* floats: one cache line */

const char *const param_group_names[PARAM_GROUP_COUNT] = {"weight", "vector", "embedding", "norm",
                                                          "state",  "free",   "const"};

enum status params_create(struct params *p, struct error *e) {
    *p = (struct params){.capacity = MAX_PARAMS};
    TRY(arena_reserve(&p->names, NAMES_BYTES, e));
    p->list = arena_alloc(&p->names, MAX_PARAMS * sizeof *p->list);
    return ST_OK;
}

void params_free(struct params *p) {
    arena_free(&p->names);
    arena_free(&p->arrays);
    arena_free(&p->mirror);
    *p = (struct params){0};
}

struct param *params_find(const struct params *p, const char *name) {
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->list[i].name, name)) return &p->list[i];
    return NULL;
}

struct param *params_declare(struct params *p, const char *name, const struct param_spec *spec, struct error *e) {
    struct param *known = params_find(p, name);
    if (known) {
        size_t bytes = (size_t)spec->rank * sizeof *spec->dims;
        if (known->spec.rank == spec->rank && !memcmp(known->spec.dims, spec->dims, bytes)) return known;
        fail(e, ST_FAIL, "parameter '%s' is declared twice with different shapes", name);
        return NULL;
    }
    int64_t count = 1, viewed = 1;
    for (int i = 0; i < spec->rank; i++) count *= spec->dims[i];
    for (int i = 0; i < spec->layout.rank; i++) viewed *= spec->layout.dims[i];
    if (p->value || (spec->layout.rank && viewed != count)) {
        fail(e, ST_FAIL, "parameter '%s' of %" PRId64 " elements cannot be declared: %s", name, count,
             p->value ? "memory is already reserved" : "its layout has another number of elements");
        return NULL;
    }
    if (p->n == p->capacity) {
        fail(e, ST_USAGE, "a net has at most %d parameter tensors, and '%s' is one more; lower --layers", p->capacity,
             name);
        return NULL;
    }
    struct param *param = &p->list[p->n];
    *param = (struct param){.name = arena_strdup(&p->names, name), .spec = *spec, .count = count, .offset = p->floats};
    if (!param->name) {
        fail(e, ST_FAIL, "no room for the name of parameter '%s'", name);
        return NULL;
    }
    p->n++;
    p->floats += (count + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN;
    return param;
}

enum status params_reserve(struct params *p, bool training, struct error *e) {
    size_t bytes = (size_t)p->floats * sizeof(real);
    size_t arrays = training ? 4 : 1;
    TRY(place_reserve(p->place, &p->arrays, arrays * (bytes + ARENA_ALIGN), e));
    if (p->place && p->place->device != DEVICE_CPU) {
        TRY(arena_reserve(&p->mirror, bytes + ARENA_ALIGN, e));
        p->host = arena_alloc(&p->mirror, bytes);
    }
    p->value = arena_alloc(&p->arrays, bytes);
    if (!training) return ST_OK;
    p->grad = arena_alloc(&p->arrays, bytes);
    p->moment1 = arena_alloc(&p->arrays, bytes);
    p->moment2 = arena_alloc(&p->arrays, bytes);
    return ST_OK;
}

real *params_fetch(const struct params *p, real *array) {
    if (!p->host) return array;
    place_get(p->place, p->host, array, (size_t)p->floats * sizeof(real));
    return p->host;
}

void params_store(const struct params *p, real *array) {
    if (p->host) place_put(p->place, array, p->host, (size_t)p->floats * sizeof(real));
}

int64_t params_trained(const struct params *p) {
    int64_t n = 0;
    for (int i = 0; i < p->n; i++)
        if (p->list[i].spec.group != PARAM_CONST) n += p->list[i].count;
    return n;
}

/* Returns the index in the stored tensor of element `i` in the order of files. */
static int64_t stored_index(const struct layout *l, int64_t i) {
    int64_t index[LAYOUT_MAX_RANK] = {0}, stored = 0;
    for (int a = l->rank - 1; a >= 0; a--) {
        index[a] = i % l->dims[a];
        i /= l->dims[a];
    }
    for (int a = 0; a < l->rank; a++) stored = stored * l->dims[l->order[a]] + index[l->order[a]];
    return stored;
}

void param_to_contract(const struct param *param, const real *stored, double *contract) {
    const struct layout *l = &param->spec.layout;
    for (int64_t i = 0; i < param->count; i++) contract[i] = stored[l->rank ? stored_index(l, i) : i];
}

void param_from_contract(const struct param *param, const double *contract, real *stored) {
    const struct layout *l = &param->spec.layout;
    for (int64_t i = 0; i < param->count; i++) stored[l->rank ? stored_index(l, i) : i] = (real)contract[i];
}

static double draw(const struct init *init, struct rng *r, int64_t element) {
    switch (init->kind) {
    case INIT_CONST:
        return init->a;
    case INIT_UNIFORM:
        return init->a + (init->b - init->a) * rng_uniform(r);
    case INIT_NORMAL:
        return init->a + init->b * rng_normal(r);
    case INIT_CUSTOM:
        return init->draw(r, element, init->a, init->b);
    default:
        return 0;
    }
}

/* Returns the key of a parameter's random numbers: a hash of the run's seed and the parameter's name. If draws_as is
 * given, that name in the same scope is used instead, so that the two share their numbers. */
static uint64_t init_key(const struct param *param, uint64_t seed) {
    char name[512];
    int scope = (int)(strlen(param->name) - strlen(param->spec.name));
    const char *last = param->spec.init.draws_as ? param->spec.init.draws_as : param->spec.name;
    int n = snprintf(name, sizeof name, "%.*s%s", scope, param->name, last);
    return XXH3_64bits_withSeed(name, (size_t)n, seed);
}

void params_init(struct params *p, uint64_t seed) {
    real *value = params_fetch(p, p->value);
    memset(value, 0, (size_t)p->floats * sizeof(real));
    for (int i = 0; i < p->n; i++) {
        const struct param *param = &p->list[i];
        const struct layout *l = &param->spec.layout;
        uint64_t key = init_key(param, seed);
        for (int64_t j = 0; j < param->count; j++) {
            struct rng r = rng_at(key, STREAM_INIT, (uint64_t)j);
            value[param->offset + (l->rank ? stored_index(l, j) : j)] = (real)draw(&param->spec.init, &r, j);
        }
    }
    params_store(p, p->value);
}
