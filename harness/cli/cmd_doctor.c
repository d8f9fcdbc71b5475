/* cmd_doctor.c - `lrnn doctor`: checks build, machine and files, and says what to do if something is missing. */
#include <errno.h>
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/file/name.h"
#include "core/file/png.h"
#include "core/place.h"
#include "harness/cli/cli.h"
#include "harness/store/files.h"
#include "harness/store/machine.h"
#include "harness/store/record.h"
#include "harness/store/version.h"
#include "kernels/lib/gemm.h"
#include "kernels/lib/processor.h"

#define LEAST_DISK_MB    100.0
#define LEAST_MEMORY_GIB 0.5

struct doctor_flags {
    char out[OPTION_TEXT];
};

static const struct option flags[] = {
    {"out", OPT_TEXT_FIELD, offsetof(struct doctor_flags, out), "results", 0, 0, NULL, "folder of results to look at",
     OPT_FILLED},
    {0},
};

/* Verdicts of a line: fine; missing, but not needed; the program does not work. */
enum verdict { GOOD, NOTE, BAD };

/* Prints a line, and counts it in *bad if it is BAD. */
static void say(int *bad, enum verdict verdict, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void say(int *bad, enum verdict verdict, const char *what, const char *format, ...) {
    static const char *const marks[] = {"ok", "note", "BAD"};
    va_list args;
    va_start(args, format);
    printf("%-5s %-12s ", marks[verdict], what);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
    *bad += verdict == BAD;
}

/* --- the program -------------------------------------------------------------------------------------------------- */

static void check_program(int *bad) {
    char names[PROCESSOR_TEXT];
    const struct build_info *b = build_info();
    say(bad, GOOD, "program", "lrnn %s, commit %.12s%s, %s", b->version, b->commit,
        b->dirty ? " with local changes" : "", b->real_name);
    say(bad, GOOD, "compiler", "%s", b->compiler);
    say(bad, GOOD, "flags", "%s", b->flags);
    processor_names(processor_used(), names); /* the processor has all, or the program would not have started */
    say(bad, GOOD, "processor", "has what the program was built to use: %s", *names ? names : "no more than all have");
}

/* --- the machine -------------------------------------------------------------------------------------------------- */

static void check_machine(int *bad) {
    struct machine m;
    machine_read(&m);
    say(bad, GOOD, "machine", "%s, %lld cores, %s, %s", m.cpu, (long long)m.cores, m.os, m.kernel);
    if (m.governor[0]) say(bad, strcmp(m.governor, "powersave") == 0 ? NOTE : GOOD, "governor", "%s", m.governor);
    say(bad, GOOD, "threads", "%d by default; --threads N and OMP_NUM_THREADS change it", omp_get_max_threads());
    if (m.ram_gib > 0 && m.ram_gib < LEAST_MEMORY_GIB)
        say(bad, BAD, "memory", "%.1f GiB; at least %.1f GiB is needed", m.ram_gib, LEAST_MEMORY_GIB);
    else
        say(bad, GOOD, "memory", "%.0f GiB", m.ram_gib);
    real a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4];
    real_gemm(false, false, 2, 2, 2, 1, a, 2, b, 2, false, c, 2);
    bool right = c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50;
    say(bad, right ? GOOD : BAD, "products", "%s%s", gemm_about(),
        right ? "" : "; a 2 x 2 product came out wrong, install the library anew (bootstrap.sh names it)");
    say(bad, GOOD, "images", "%s", png_versions());
    struct error e = {ST_OK, ""};
    struct place place;
    struct place_info info = {0};
    if (place_open(&place, "cuda", &e) != ST_OK || place_describe(&place, &info, &e) != ST_OK)
        say(bad, NOTE, "CUDA", "%s; everything runs on the CPU", e.text);
    else
        say(bad, GOOD, "CUDA", "%s, compute capability %d.%d, %zu MB of %zu MB free, %s", info.name, info.major,
            info.minor, info.free >> 20, info.memory >> 20, info.driver);
    char text[PLACE_NOTE];
    if (e.status == ST_OK && place_code_note(&info, text)) say(bad, NOTE, "kernels", "%s", text);
    place_close(&place);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static bool in_path(const char *program) {
    const char *path = getenv("PATH");
    for (const char *at = path ? path : ""; *at;) {
        char file[PATH_BYTES];
        size_t n = strcspn(at, ":");
        snprintf(file, sizeof file, "%.*s/%s", (int)n, at, program);
        if (n && access(file, X_OK) == 0) return true;
        at += n + (at[n] == ':');
    }
    return false;
}

/* Tries whether a file can be made in the folder. */
static bool can_write(const char *folder) {
    char name[PATH_BYTES];
    snprintf(name, sizeof name, "%.4000s/.doctor-XXXXXX", folder);
    int fd = mkstemp(name);
    if (fd < 0) return false;
    bool written = write(fd, "x", 1) == 1;
    int reason = errno;
    close(fd);
    unlink(name);
    errno = reason;
    return written;
}

static void check_results(int *bad, const char *out) {
    char folder[PATH_BYTES], above[PATH_BYTES];
    struct stat s;
    struct statvfs disk;
    snprintf(folder, sizeof folder, "%s", out);
    while (stat(folder, &s) != 0 && errno == ENOENT && strcmp(folder, ".") != 0 && strcmp(folder, "/") != 0) {
        path_folder(folder, above, sizeof above);
        snprintf(folder, sizeof folder, "%s", above);
    }
    const char *new = strcmp(folder, out) == 0 ? "" : " (not there yet; the folder above it was tried)";
    if (can_write(folder))
        say(bad, GOOD, "results", "%s can be written%s", out, new);
    else
        say(bad, BAD, "results", "%s cannot be written: %s; use --out with another folder", folder, strerror(errno));
    if (statvfs(folder, &disk) != 0) {
        say(bad, NOTE, "disk", "free space under %s is unknown: %s", folder, strerror(errno));
        return;
    }
    double free_mb = (double)disk.f_bavail * (double)disk.f_frsize / 1e6;
    if (free_mb < LEAST_DISK_MB)
        say(bad, BAD, "disk", "%.0f MB free; at least %.0f MB are needed", free_mb, LEAST_DISK_MB);
    else
        say(bad, GOOD, "disk", "%.1f GB free", free_mb / 1e3);
}

static void check_files(int *bad, const char *out) {
    char path[PATH_BYTES];
    if (in_path("gnuplot"))
        say(bad, GOOD, "gnuplot", "found");
    else
        say(bad, NOTE, "gnuplot", "not found: no plots; apt-get install gnuplot-nox, or ./bootstrap.sh");
    if (shipped_file_find("results/published.csv", path, sizeof path, NULL) == ST_OK)
        say(bad, GOOD, "published", "%s", path);
    else
        say(bad, NOTE, "published", "results/published.csv not found: tables lack the papers' numbers");
    check_results(bad, out);
}

static enum status run(int argc, char **argv, struct error *e) {
    struct doctor_flags f;
    int bad = 0;
    struct flag_set set = {flags, &f};
    struct cli cli = {.command = &command_doctor, .sets = &set, .n_sets = 1};
    TRY(options_default(flags, &f, e));
    TRY(cli_parse(&cli, argc, argv, e));
    check_program(&bad);
    check_machine(&bad);
    check_files(&bad, f.out);
    if (bad) return fail(e, ST_FAIL, "%d finding%s above must be mended first", bad, bad == 1 ? "" : "s");
    printf("this machine is ready\n");
    return ST_OK;
}

const struct command command_doctor = {
    .name = "doctor",
    .usage = "doctor [flags]",
    .summary = "check whether this machine has everything that lrnn needs",
    .run = run,
};
