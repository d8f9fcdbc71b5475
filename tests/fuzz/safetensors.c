/* safetensors.c - fuzz target: whatever the bytes, the parser refuses them with one sentence or gives an index
 * that can be read to its end. */
#include "core/file/safetensors.h"
#include "tests/fuzz/fuzz.h"

FUZZ(safetensors) {
    struct safetensors st;
    struct error e = {ST_OK, ""};
    if (safetensors_parse(&st, data, size, "FILE", &e) != ST_OK) {
        if (e.status != ST_DATA || strncmp(e.text, "FILE: ", 6) != 0 || strchr(e.text, '\n')) abort();
        return 0;
    }
    volatile double sum = 0;
    for (int i = 0; i < st.n; i++) {
        const struct st_tensor *t = &st.tensors[i];
        if (!safetensors_find(&st, t->name)) abort();
        for (int64_t j = 0; j < t->count; j++) sum = sum + st_value(t, j);
    }
    for (int i = 0; i < st.n_metadata; i++)
        if (!safetensors_metadata(&st, st.metadata[i].key)) abort();
    safetensors_free(&st);
    return 0;
}
