/* device.c - see device.h. */
#include "library/device.h"

#include <stdlib.h>

#include "core/place_stream.h"

static struct cuda_device *devices; /* only grows */
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

static enum status open_device(const lrnn_call *call, struct cuda_device **d, struct error *e) {
    struct cuda_device *opened = calloc(1, sizeof *opened);
    if (!opened) return fail(e, ST_MEMORY, "no memory for a CUDA device");
    enum status status = place_open_stream(&opened->place, call->index, call->stream, e);
    if (status != ST_OK) {
        free(opened);
        return status;
    }
#ifdef LRNN_WITH_CUDA
    opened->copier = &copier_cuda;
#endif
    pthread_mutex_init(&opened->busy, NULL);
    opened->stream = call->stream;
    opened->next = devices;
    *d = devices = opened;
    return ST_OK;
}

enum status device_of(const lrnn_call *call, struct cuda_device **d, struct error *e) {
    enum status status = ST_OK;
    pthread_mutex_lock(&devices_lock);
    for (*d = devices; *d && ((*d)->place.index != call->index || (*d)->stream != call->stream);) *d = (*d)->next;
    if (!*d) status = open_device(call, d, e);
    pthread_mutex_unlock(&devices_lock);
    return status;
}
