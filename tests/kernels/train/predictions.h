/* predictions.h - what cross_entropy predicts from logits that are not finite, by any of its kernels. */
#ifndef LRNN_TESTS_KERNELS_TRAIN_PREDICTIONS_H
#define LRNN_TESTS_KERNELS_TRAIN_PREDICTIONS_H

#include "core/place.h"

/* Fails unless the kernel predicts NO_CLASS in the rows of such a logit, and in no other. place NULL: the CPU. */
void expect_no_class(const char *kernel, const struct place *place);

#endif
