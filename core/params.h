/* params.h - the parameters of a model: one flat array of values, and arrays of gradients and moments of the same
 * length.
 *
 * Graphs (training, evaluation, one per length) share one struct params. A parameter has a contract: its name, and the
 * order of its elements in files (cases, export, import). In memory it may be stored transposed, so that scans read
 * neighbouring elements. `layout` says how, and no other part of the program needs to know. */
#ifndef LRNN_CORE_PARAMS_H
#define LRNN_CORE_PARAMS_H

#include "core/arena.h"
#include "core/philox.h"
#include "core/place.h"
#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LAYOUT_MAX_RANK 6

/* The storage of a tensor. Its axes in the contract have dims[0..rank-1]; stored axis a is contract axis order[a]. rank
 * == 0: it is stored as in the contract. */
struct layout {
    int rank;
    int64_t dims[LAYOUT_MAX_RANK];
    int order[LAYOUT_MAX_RANK];
};

enum init_kind {
    INIT_ZERO,
    INIT_CONST,   /* a */
    INIT_UNIFORM, /* U[a, b) */
    INIT_NORMAL,  /* N(a, b^2) */
    INIT_CUSTOM   /* draw(rng of that element, index of the element in the contract, a, b) */
};

struct init {
    enum init_kind kind;
    double a, b;
    double (*draw)(struct rng *r, int64_t element, double a, double b);
    const char
        /* share the random numbers of this parameter of the same scope (in LRU, gamma follows nu); or NULL */
        *draws_as;
};

/* The kind of a parameter. The net decides which kinds have weight decay, and at which rate each is trained
 * (backbone_param_rule). */
enum param_group {
    PARAM_WEIGHT,    /* maps, and everything that belongs to no other group */
    PARAM_VECTOR,    /* biases and gains */
    PARAM_EMBEDDING, /* the vectors of the tokens */
    PARAM_NORM,      /* weight and bias of the norms around the mixers */
    PARAM_STATE,     /* parameters of a state's dynamics: eigenvalues, step sizes, couplings */
    PARAM_FREE,      /* trained like weights, but without weight decay */
    PARAM_CONST,     /* exported and imported, but never trained: no gradient, no moments, not counted */
    PARAM_GROUP_COUNT
};
extern const char *const param_group_names[PARAM_GROUP_COUNT]; /* "weight", "vector", "embedding", ... */

struct param_spec {
    const char *name; /* the name in the contract, relative to the scope */
    int rank;
    int64_t dims[TENSOR_MAX_RANK];
    struct layout layout;
    struct init init;
    enum param_group group;
};

struct param {
    const char *name; /* full name, with the scope */
    struct param_spec spec;
    int64_t count;  /* number of elements */
    int64_t offset; /* index of its first element in the flat array; a multiple of 16 */
};

struct params {
    struct param *list;
    int n, capacity;
    int64_t floats;     /* length of the flat array, with padding */
    real *value, *grad; /* NULL until params_reserve; these and the moments are in the memory of the place */
    real *moment1, *moment2;
    const struct place *place; /* where the arrays are; set before params_reserve; NULL: the CPU */
    real *host;                /* a copy of one array in the host's memory (params_fetch); NULL on the CPU */
    struct arena names;        /* owns list and strings */
    struct arena arrays;       /* owns value, grad, moments */
    struct arena mirror;       /* owns `host` if the arrays are on a device */
};

enum status params_create(struct params *p, struct error *e);
void params_free(struct params *p);

/* Declares a parameter under the full name `name`, or finds the existing parameter of that name. The pointer is valid
 * until params_free. NULL after an error: the shape differs from the existing one, or params_reserve was called
 * before. */
struct param *params_declare(struct params *p, const char *name, const struct param_spec *spec, struct error *e);

struct param *params_find(const struct params *p, const char *name);

/* Allocates the arrays. With `training` there are also gradients and moments. ST_MEMORY names the bytes. */
enum status params_reserve(struct params *p, bool training, struct error *e);

/* Draws every parameter. The value of an element depends only on (seed, name, index of the element in the contract),
 * not on the layout, the order of declaration, or other parameters. */
void params_init(struct params *p, uint64_t seed);

/* params_fetch gives an array (value, grad or a moment) in host memory. On the CPU it is the array itself; on a device
 * it is a copy that is valid until the next call, and params_store writes the copy back. */
real *params_fetch(const struct params *p, real *array);
void params_store(const struct params *p, real *array);

/* Returns the number of trained parameters, without PARAM_CONST and padding. */
int64_t params_trained(const struct params *p);

/* These copy between a stored tensor (value or grad of this parameter) and the order of the contract. */
void param_to_contract(const struct param *param, const real *stored, double *contract);
void param_from_contract(const struct param *param, const double *contract, real *stored);

#ifdef __cplusplus
}
#endif
#endif
