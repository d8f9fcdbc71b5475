/* pathfinder_list.c - fuzz target: whatever the bytes, a list of images is refused with one sentence that names
 * its line, or gives names that stay below the folder and labels that are 0 or 1. */
#include "tasks/data/pathfinder_files.h"
#include "tests/fuzz/fuzz.h"

FUZZ(pathfinder_list) {
    const char *at = (const char *)data, *end = at + size;
    struct pathfinder_line line;
    struct error e = {ST_OK, ""};
    for (int64_t n = 1; at < end; n++) {
        const char *before = at;
        if (pathfinder_list_next(&at, end, "LIST", n, &line, &e) != ST_OK) {
            if (e.status != ST_DATA || strncmp(e.text, "LIST, line ", 11) != 0 || strchr(e.text, '\n')) abort();
            return 0;
        }
        if (at <= before || at > end || (line.label != 0 && line.label != 1)) abort();
        if (!line.folder[0] || !line.file[0] || line.folder[0] == '/' || strstr(line.folder, "..")) abort();
    }
    return 0;
}
