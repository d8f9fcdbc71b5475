/* version.c - the only file that gets the facts of the build from the Makefile, so that a new commit recompiles only
 * this. */
#include "harness/store/version.h"

#include <string.h>

#include "core/real.h"
#include "harness/store/record.h"

const struct build_info *build_info(void) {
    static const struct build_info info = {
        .version = BUILD_VERSION,
        .commit = BUILD_COMMIT,
        .dirty = BUILD_DIRTY,
        .sources = BUILD_SOURCES,
        .flags = BUILD_FLAGS,
        .compiler = BUILD_COMPILER,
        .real_name = REAL_NAME,
    };
    return &info;
}

bool build_made(const struct run *run) {
    const struct build_info *b = build_info();
    return !strcmp(run->source_id, b->sources) && !strcmp(run->build_id, b->flags) &&
           !strcmp(run->compiler, b->compiler);
}
