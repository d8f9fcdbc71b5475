/* process.c - see process.h. */
#include "tests/lib/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/lib/scratch.h"
#include "tests/testing.h"

void sleep_ms(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR) continue;
}

long patience_ms(void) {
    const char *text = getenv("CK_TIMEOUT_MULTIPLIER");
    double times = text ? strtod(text, NULL) : 1;
    return (long)(60000 * (times > 0 ? times : 1));
}

int wait_for(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

pid_t first_child(pid_t parent) {
    char path[64];
    int found = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    for (long ms = 0; ms < patience_ms() && !found; ms++) {
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%d", &found) != 1) found = 0;
        if (f) fclose(f);
        if (!found) sleep_ms(1);
    }
    ck_assert_msg(found > 0, "process %d has no child", (int)parent);
    return found;
}

void wait_for_files(const char *folder, const char *part, int n) {
    int found = scratch_count(folder, part);
    for (long ms = 0; found < n && ms < patience_ms(); ms++) {
        sleep_ms(1);
        found = scratch_count(folder, part);
    }
    ck_assert_msg(found >= n, "%s holds %d files named *%s*, %d were waited for", folder, found, part, n);
}
