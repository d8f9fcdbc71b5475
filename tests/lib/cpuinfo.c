/* cpuinfo.c - see cpuinfo.h. */
#include "tests/lib/cpuinfo.h"

#include <stdio.h>
#include <string.h>

#include "tests/testing.h"

bool cpuinfo_has(const char *flag) {
    static char line[1 << 14];
    bool has = false;
    FILE *file = fopen("/proc/cpuinfo", "r");
    ck_assert_ptr_nonnull(file);
    while (!has && fgets(line, sizeof line, file)) {
        char *state = NULL;
        for (char *word = strtok_r(line, " \n", &state); word && !has; word = strtok_r(NULL, " \n", &state))
            has = strcmp(word, flag) == 0;
    }
    fclose(file);
    return has;
}
