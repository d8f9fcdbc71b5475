/* own_npz.c - fuzz target: whatever the bytes, the reader of own arrays refuses them with one sentence or hands on
 * examples that lie in its arrays. */
#include "tasks/own/own_file.h"
#include "tests/fuzz/own.h"

FUZZ(own_npz) {
    check_own_file(data, size, "ARRAYS.npz");
    return 0;
}
