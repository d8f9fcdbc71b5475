/* place_stream.c - the functions of place_stream.h in a build without CUDA; others are in core/cuda/place_cuda.cu. */
#include "core/place_stream.h"

#ifndef LRNN_WITH_CUDA
enum status place_open_stream(struct place *p, int index, void *stream, struct error *e) {
    (void)p, (void)index, (void)stream;
    return fail(e, ST_USAGE, "this library was built without CUDA; `make CUDA=1 library` builds one that has it");
}

int place_enter(const struct place *p) {
    (void)p;
    return 0;
}

enum status place_leave(const struct place *p, int before, struct error *e) {
    (void)p, (void)before, (void)e;
    return ST_OK;
}
#endif
