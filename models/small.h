/* small.h - the small variants of every mixer: tests walk them, and the gate trains them. */
#ifndef LRNN_MODELS_SMALL_H
#define LRNN_MODELS_SMALL_H

/* The labels in `small` of every listed mixer (models/model.h), in the order of the list; ends with NULL. */
const char *const *small_models(void);

#endif
