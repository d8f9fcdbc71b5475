/* scratch.c - a temporary folder of a test's own. */
#include "tests/lib/scratch.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/testing.h"

#define SCRATCH_PATH_BYTES 4096

void scratch_make(char path[SCRATCH_BYTES]) {
    strcpy(path, "/tmp/lrnn-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(path));
}

/* The path of the folder's next entry; false at the end. */
static bool next_entry(DIR *d, const char *folder, char path[SCRATCH_PATH_BYTES], const char **name, bool *is_folder) {
    for (struct dirent *entry; (entry = readdir(d));) {
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(path, SCRATCH_PATH_BYTES, "%s/%s", folder, entry->d_name);
        *name = strrchr(path, '/') + 1;
        *is_folder = lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
        return true;
    }
    return false;
}

void scratch_remove(const char *folder) {
    char path[SCRATCH_PATH_BYTES];
    const char *name;
    bool is_folder;
    DIR *d = opendir(folder);
    while (d && next_entry(d, folder, path, &name, &is_folder)) {
        if (is_folder)
            scratch_remove(path);
        else
            unlink(path);
    }
    if (d) closedir(d);
    rmdir(folder);
}

int scratch_count(const char *folder, const char *part) {
    char path[SCRATCH_PATH_BYTES];
    const char *name;
    bool is_folder;
    int n = 0;
    DIR *d = opendir(folder);
    while (d && next_entry(d, folder, path, &name, &is_folder))
        n += is_folder ? scratch_count(path, part)
                       : strstr(name, part) && (!*part || !strstr(name, ".tmp") || strstr(part, ".tmp"));
    if (d) closedir(d);
    return n;
}

char *slurp(const char *path, size_t *size) {
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "cannot open %s", path);
    ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
    long end = ftell(f);
    ck_assert_int_ge(end, 0);
    rewind(f);
    char *bytes = malloc((size_t)end + 1);
    ck_assert_ptr_nonnull(bytes);
    *size = fread(bytes, 1, (size_t)end, f);
    ck_assert_uint_eq(*size, (size_t)end);
    bytes[end] = 0;
    fclose(f);
    return bytes;
}

void spill(const char *path, const void *bytes, size_t size) {
    FILE *f = fopen(path, "w");
    ck_assert_msg(f != NULL, "cannot write %s", path);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}
