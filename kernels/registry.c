/* registry.c - the ops and kernels of the rooms' lists as tables. */
#include <string.h>

#include "kernels/kernel.h"
#include "kernels/twins.h"

#include "kernels/list.def"
#undef OP
#undef KERNEL
#undef KERNEL_CUDA

static const struct op *const ops[] = {
#define OP(name) &op_##name,
#define KERNEL(name)
#define KERNEL_CUDA(name)
#include "kernels/list.def"
#undef OP
#undef KERNEL
#undef KERNEL_CUDA
    NULL,
};

static const struct kernel *const kernels[] = {
#define OP(name)
#define KERNEL(name) &kernel_##name,
#ifdef LRNN_WITH_CUDA
#define KERNEL_CUDA(name) &kernel_##name,
#else
#define KERNEL_CUDA(name)
#endif
#include "kernels/list.def"
#undef OP
#undef KERNEL
#undef KERNEL_CUDA
    NULL,
};

/* Every op, followed by its CUDA kernels, which other builds do not have. */
static const struct {
    const struct op *op; /* NULL: a CUDA kernel of the op before */
} twins[] = {
#define OP(name) {&op_##name},
#define KERNEL(name)
#define KERNEL_CUDA(name) {NULL},
#include "kernels/list.def"
#undef OP
#undef KERNEL
#undef KERNEL_CUDA
};

bool op_has_cuda_twin(const struct op *op) {
    size_t n = sizeof twins / sizeof *twins, i = 0;
    while (i < n && twins[i].op != op) i++;
    return i + 1 < n && !twins[i + 1].op;
}

const struct op *const *op_list(void) {
    return ops;
}

const struct kernel *const *kernel_list(void) {
    return kernels;
}

const struct op *op_find(const char *name) {
    for (const struct op *const *op = ops; *op; op++)
        if (strcmp((*op)->name, name) == 0) return *op;
    return NULL;
}

const struct kernel *kernel_find(const char *name) {
    for (const struct kernel *const *kernel = kernels; *kernel; kernel++)
        if (strcmp((*kernel)->name, name) == 0) return *kernel;
    return NULL;
}

const struct kernel *kernel_reference(const struct op *op) {
    for (const struct kernel *const *kernel = kernels; *kernel; kernel++)
        if ((*kernel)->op == op && (*kernel)->reference) return *kernel;
    return NULL;
}
