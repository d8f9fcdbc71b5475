/* device.h - CUDA devices of calls: for each device and stream of the caller a place, opened by the first call there
 * and kept until the process ends. */
#ifndef LRNN_LIBRARY_DEVICE_H
#define LRNN_LIBRARY_DEVICE_H

#include <pthread.h>

#include "library/copy.h"

struct cuda_device {
    struct place place;
    const struct copier *copier;
    pthread_mutex_t busy; /* held while a call queues its work */
    void *stream;
    struct cuda_device *next;
};

/* Finds the device of a call, or opens it, which waits for the stream and takes 32 MB of device memory. Errors:
 * ST_DEVICE (a library without CUDA, no driver, no such device), ST_MEMORY. */
enum status device_of(const lrnn_call *call, struct cuda_device **d, struct error *e);

#endif
