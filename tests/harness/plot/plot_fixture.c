/* plot_fixture.c - see plot_fixture.h. */
#include "tests/harness/plot/plot_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/store/files.h"

void ck_is_image(const char *name) {
    char path[PATH_BYTES], *bytes;
    size_t size;
    snprintf(path, sizeof path, "%s/%s", fixture_folder, name);
    ck_ok(file_read(path, 1 << 24, &bytes, &size, &fixture_problem));
    ck_assert_uint_gt(size, 5000);
    if (strstr(name, ".png"))
        ck_assert_int_eq(memcmp(bytes, "\x89PNG\r\n\x1a\n", 8), 0);
    else
        ck_assert(strstr(bytes, "<svg") && strstr(bytes, "</svg>"));
    free(bytes);
}

char *kept(const char *name) {
    char path[PATH_BYTES];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", fixture_folder, name);
    return slurp(path, &size);
}

enum status plot(const struct report_filter *filter, const char *kind) {
    const struct plot_view view = {.x = PLOT_STEPS};
    return report_plot_view(&fixture_set, filter, kind, &view, fixture_folder, fixture_folder, &fixture_problem);
}
