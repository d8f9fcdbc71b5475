/* jax_handler.c - the ops of liblrnn as handlers of XLA's foreign function interface, for lrnn.jax: one for the CPU and
 * one for CUDA. `make jax` builds them against the header that jaxlib comes with.
 *
 * A call has these attributes: op, the op's name; pass, 0 forward and 1 backward; descriptor, the bytes of the op's
 * descriptor (include/lrnn.h) without addresses; at, for each buffer, operands first, the place in the descriptor where
 * its address belongs. Offsets may be int32, because JAX has no int64 unless it is asked for. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/lrnn.h"
#include "xla/ffi/api/c_api.h"

#define EXPORT         __attribute__((visibility("default")))
#define MAX_DESCRIPTOR 2048

/* A library, which the first call that needs it opens: cuBLAS and a device's start burden nobody else. */
static struct {
    char path[4096];
    _Atomic(void *) handle;
} libraries[2][2]; /* liblrnn.so, liblrnn-f64.so; for the CPU, for CUDA */

/* Names the library for calls of its precision and device. It belongs before the first call. */
EXPORT void lrnn_jax_name(const char *path, int is_double, int on_cuda);
void lrnn_jax_name(const char *path, int is_double, int on_cuda) {
    snprintf(libraries[is_double][on_cuda].path, sizeof libraries[is_double][on_cuda].path, "%s", path);
}

static XLA_FFI_Error *refuse(const XLA_FFI_CallFrame *f, const char *text) {
    XLA_FFI_Error_Create_Args args = {
        .struct_size = sizeof args, .message = text, .errc = XLA_FFI_Error_Code_INVALID_ARGUMENT};
    return f->api->XLA_FFI_Error_Create(&args);
}

/* Finds the library of a precision and a device, or opens it; NULL: done. Two threads that open it at once get the same
 * handle. */
static XLA_FFI_Error *find_library(const XLA_FFI_CallFrame *f, int is_double, int on_cuda, void **library) {
    const char *path = libraries[is_double][on_cuda].path;
    *library = libraries[is_double][on_cuda].handle;
    if (!*library) *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*library) {
        libraries[is_double][on_cuda].handle = *library;
        return NULL;
    }
    char text[8192];
    snprintf(text, sizeof text, "lrnn: cannot load %s for %s: %s", path, on_cuda ? "CUDA" : "the CPU", dlerror());
    return refuse(f, text);
}

/* The attribute of that name; NULL: there is none. */
static const void *attribute(const XLA_FFI_CallFrame *f, const char *name) {
    for (int64_t i = 0; i < f->attrs.size; i++)
        if (f->attrs.names[i]->len == strlen(name) && !memcmp(f->attrs.names[i]->ptr, name, strlen(name)))
            return f->attrs.attrs[i];
    return NULL;
}

/* Sets device and stream of a call on CUDA; NULL: done. Nothing is kept there, and backward computes values again: room
 * for them is measured when a function is traced, when JAX does not tell the device, for the kernels of the CPU. */
static XLA_FFI_Error *set_device(const XLA_FFI_CallFrame *f, lrnn_call *call) {
    XLA_FFI_Stream_Get_Args stream = {.struct_size = sizeof stream, .ctx = f->ctx};
    XLA_FFI_DeviceOrdinal_Get_Args device = {.struct_size = sizeof device, .ctx = f->ctx};
    if (call->offsets) return refuse(f, "lrnn.jax: offsets are on a CUDA device, and are taken on the CPU alone");
    XLA_FFI_Error *error = f->api->XLA_FFI_Stream_Get(&stream);
    if (!error) error = f->api->XLA_FFI_DeviceOrdinal_Get(&device);
    call->device = LRNN_CUDA;
    call->index = device.device_ordinal;
    call->stream = stream.stream;
    call->kept = NULL;
    call->kept_bytes = 0;
    return error;
}

/* Takes the call's workspace, on CUDA from XLA, which reuses it in the order of the stream; NULL: done. */
static XLA_FFI_Error *take_workspace(const XLA_FFI_CallFrame *f, lrnn_call *call) {
    if (call->device == LRNN_CPU) {
        call->workspace = aligned_alloc(64, (call->workspace_bytes + 64) / 64 * 64);
        return call->workspace ? NULL : refuse(f, "lrnn: no memory for the workspace");
    }
    if (call->workspace_bytes == 0) return NULL;
    XLA_FFI_DeviceMemory_Allocate_Args args = {
        .struct_size = sizeof args, .ctx = f->ctx, .size = call->workspace_bytes, .alignment = 64};
    XLA_FFI_Error *error = f->api->XLA_FFI_DeviceMemory_Allocate(&args);
    call->workspace = args.data;
    return error;
}

static XLA_FFI_Error *give_workspace_back(const XLA_FFI_CallFrame *f, const lrnn_call *call) {
    XLA_FFI_DeviceMemory_Free_Args args = {
        .struct_size = sizeof args, .ctx = f->ctx, .size = call->workspace_bytes, .data = call->workspace};
    if (call->device != LRNN_CPU) return call->workspace ? f->api->XLA_FFI_DeviceMemory_Free(&args) : NULL;
    free(call->workspace);
    return NULL;
}

/* Runs the op's function of the library; NULL: done. */
static XLA_FFI_Error *run(const XLA_FFI_CallFrame *f, void *library, const XLA_FFI_ByteSpan *op, int backward,
                          int on_cuda, char *descriptor) {
    lrnn_call *call = (lrnn_call *)(void *)descriptor;
    XLA_FFI_Error *error = on_cuda ? set_device(f, call) : NULL;
    if (error) return error;
    char name[80];
    const char *(*last_error)(void);
    lrnn_status (*measure)(const void *, lrnn_pass, size_t *), (*compute)(const void *);
    snprintf(name, sizeof name, "lrnn_%.*s_workspace", (int)op->len, op->ptr);
    *(void **)&measure = dlsym(library, name);
    snprintf(name, sizeof name, "lrnn_%.*s_%s", (int)op->len, op->ptr, backward ? "backward" : "forward");
    *(void **)&compute = dlsym(library, name);
    *(void **)&last_error = dlsym(library, "lrnn_last_error");
    if (!measure || !compute || !last_error) return refuse(f, "lrnn: the library has no such op");
    /* On CUDA kept is NULL. On the CPU, with offsets, a sequence may be longer than jax.py gives room for; both passes
     * find the same one, and neither then uses kept values. */
    size_t kept_bytes = 0;
    if (call->kept && measure(descriptor, LRNN_KEPT, &kept_bytes) != LRNN_OK) return refuse(f, last_error());
    if (kept_bytes > call->kept_bytes) call->kept = NULL;
    if (measure(descriptor, backward ? LRNN_BACKWARD : LRNN_FORWARD, &call->workspace_bytes) != LRNN_OK)
        return refuse(f, last_error());
    error = take_workspace(f, call);
    if (error) return error;
    lrnn_status status = compute(descriptor);
    if (status != LRNN_OK) error = refuse(f, last_error());
    XLA_FFI_Error *failure = give_workspace_back(f, call);
    return error ? error : failure;
}

/* The numbers of a buffer of int32 or int64 as int64; NULL: no memory. The caller frees them. */
static int64_t *offsets_of(const XLA_FFI_Buffer *b) {
    int64_t n = b->rank == 1 ? b->dims[0] : 0, *offsets = malloc((size_t)(n + 1) * sizeof *offsets);
    for (int64_t i = 0; i < n && offsets; i++)
        offsets[i] = b->dtype == XLA_FFI_DataType_S32 ? ((const int32_t *)b->data)[i] : ((const int64_t *)b->data)[i];
    return offsets;
}

static XLA_FFI_Error *handle(XLA_FFI_CallFrame *f, int on_cuda) {
    const XLA_FFI_Extension_Base *asked = f->extension_start;
    if (asked && asked->type == XLA_FFI_Extension_Metadata) {
        XLA_FFI_Metadata *about = ((const XLA_FFI_Metadata_Extension *)(const void *)asked)->metadata;
        about->api_version.major_version = XLA_FFI_API_MAJOR;
        about->api_version.minor_version = XLA_FFI_API_MINOR;
        return NULL;
    }
    const XLA_FFI_ByteSpan *op = attribute(f, "op");
    const XLA_FFI_Scalar *pass = attribute(f, "pass");
    const XLA_FFI_Array *bytes = attribute(f, "descriptor"), *at = attribute(f, "at");
    int64_t buffers = f->args.size + f->rets.size;
    _Alignas(16) char descriptor[MAX_DESCRIPTOR];
    if (!op || !pass || !bytes || !at || bytes->size > sizeof descriptor || (int64_t)at->size != buffers)
        return refuse(f, "lrnn: the attributes of the call are not those of lrnn.jax");
    memcpy(descriptor, bytes->data, bytes->size);
    int64_t *offsets = NULL;
    for (int64_t i = 0; i < buffers; i++) {
        const XLA_FFI_Buffer *b = i < f->args.size ? f->args.args[i] : f->rets.rets[i - f->args.size];
        int64_t place = ((const int64_t *)at->data)[i];
        if (place < 0 || (size_t)place + sizeof b->data > bytes->size) {
            free(offsets);
            return refuse(f, "lrnn: no such place");
        }
        const void *address = b->data;
        if (place == offsetof(lrnn_call, offsets) && !offsets && !on_cuda) address = offsets = offsets_of(b);
        memcpy(descriptor + place, &address, sizeof address);
    }
    void *library;
    XLA_FFI_Error *error = find_library(f, ((lrnn_call *)(void *)descriptor)->dtype == LRNN_F64, on_cuda, &library);
    if (!error) error = run(f, library, op, *(const int32_t *)pass->value != 0, on_cuda, descriptor);
    free(offsets);
    return error;
}

EXPORT XLA_FFI_Error *lrnn_jax(XLA_FFI_CallFrame *f);
XLA_FFI_Error *lrnn_jax(XLA_FFI_CallFrame *f) {
    return handle(f, 0);
}

EXPORT XLA_FFI_Error *lrnn_jax_cuda(XLA_FFI_CallFrame *f);
XLA_FFI_Error *lrnn_jax_cuda(XLA_FFI_CallFrame *f) {
    return handle(f, 1);
}
