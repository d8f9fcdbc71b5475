/* own_jsonl.c - fuzz target: whatever the bytes, the reader of own examples refuses them with one sentence or hands on
 * examples that lie in its arrays. */
#include "tasks/own/own_file.h"
#include "tests/fuzz/own.h"

FUZZ(own_jsonl) {
    check_own_file(data, size, "LINES.jsonl");
    return 0;
}
