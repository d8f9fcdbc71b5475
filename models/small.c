/* small.c - see small.h. */
#include "models/small.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/model.h"

#define SMALL_MODELS_MAX 512

const char *const *small_models(void) {
    static char text[1 << 15];
    static const char *list[SMALL_MODELS_MAX];
    size_t used = 0;
    int n = 0;
    if (list[0]) return list;
    for (const struct model *const *m = model_list(); *m; m++) {
        int length = snprintf(text + used, sizeof text - used, "%s", (*m)->small ? (*m)->small : "");
        if (used + (size_t)length + 1 > sizeof text) abort();
        for (char *label = strtok(text + used, " "); label; label = strtok(NULL, " ")) {
            if (n == SMALL_MODELS_MAX - 1) abort();
            list[n++] = label;
        }
        used += (size_t)length + 1;
    }
    return list;
}
