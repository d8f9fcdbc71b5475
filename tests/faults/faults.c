/* faults.c - a library to be preloaded into the program: it makes the Nth call of a kind fail, writes down what the
 * program does to files, moves the time of day about, and forbids sockets. Everything counts from main() on, so that
 * what libraries do before it is left alone.
 *
 * The environment says what is wanted:
 *   LRNN_FAIL=KIND:N     the Nth call of that kind fails, or with KIND:N+ that one and all after it, or with KIND:N!
 *                        the process is killed there; kinds below
 *   LRNN_FAIL_COUNT=F    at its end the program writes "KIND CALLS" lines into F
 *   LRNN_FILE_LOG=F      a log of calls that change files (file_log.h)
 *   LRNN_LINK_UNSURE=1   link() does its work and says EEXIST, as over NFS where the answer to its first try was lost
 *   LRNN_NO_LINKS=1      link() says EPERM, as file systems do that have none
 *   LRNN_NO_FOLDER_SYNC=1  fsync() of a folder says EINVAL, as file systems do that have no such notion
 *   LRNN_CLOCK_STEPS=N   each look at the time of day jumps by N days, to and fro
 *   LRNN_CLOCK_SPEED=N   durations are N times as long as they are
 *   LRNN_HOST=NAME       the machine has that name, as two machines do that share a folder
 *   LRNN_LOCALE=1        the locale of the environment is turned on before main(), as a library might
 *   LRNN_NO_SOCKET=1     socket() ends the process by SIGSYS, whoever calls it */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "tests/faults/file_log.h"

/* --- which call fails --------------------------------------------------------------------------------------------- */

enum kind { K_MALLOC, K_MMAP, K_OPEN, K_WRITE, K_FSYNC, K_LINK, K_RENAME, K_MKDIR, K_COUNT };
static const char *const kind_names[K_COUNT] = {"malloc", "mmap", "open", "write", "fsync", "link", "rename", "mkdir"};
static const int kind_errors[K_COUNT] = {ENOMEM, ENOMEM, ENOSPC, ENOSPC, EIO, EDQUOT, EIO, ENOSPC};

static atomic_bool counting;
static atomic_long calls[K_COUNT];
static int fail_kind = -1, log_fd = -1, fail_kills, link_unsure, no_links, no_folder_sync;
static long clock_speed = 1, clock_steps;
static long fail_from, fail_to;

/* Whether this call is one that fails; errno is set then. */
static bool fails(enum kind kind) {
    if (!counting) return false;
    long n = atomic_fetch_add(&calls[kind], 1) + 1;
    if ((int)kind != fail_kind || n < fail_from || n > fail_to) return false;
    if (fail_kills) kill(getpid(), SIGKILL);
    errno = kind_errors[kind];
    return true;
}

static void read_wish(const char *text) {
    const char *colon = strchr(text, ':');
    if (!colon) abort();
    for (int k = 0; k < K_COUNT; k++)
        if (strlen(kind_names[k]) == (size_t)(colon - text) && !strncmp(text, kind_names[k], (size_t)(colon - text)))
            fail_kind = k;
    if (fail_kind < 0) abort();
    char *end;
    fail_from = strtol(colon + 1, &end, 10);
    fail_to = *end == '+' ? INT32_MAX : fail_from;
    fail_kills = *end == '!';
}

static void write_counts(void) {
    char text[512];
    const char *path = getenv("LRNN_FAIL_COUNT");
    int used = 0, fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
    if (fd < 0) return;
    for (int k = 0; k < K_COUNT; k++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s %ld\n", kind_names[k], (long)calls[k]);
    if (syscall(SYS_write, fd, text, used) != used) abort();
    syscall(SYS_close, fd);
}

/* --- the start of main -------------------------------------------------------------------------------------------- */

static void forbid_sockets(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) abort();
}

static int (*program)(int, char **, char **);

static int note_object(struct dl_phdr_info *object, size_t size, void *context);

static int started(int argc, char **argv, char **environment) {
    const char *wish = getenv("LRNN_FAIL"), *log = getenv("LRNN_FILE_LOG");
    if (wish) read_wish(wish);
    if (log) log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    const char *steps = getenv("LRNN_CLOCK_STEPS");
    if (steps) clock_steps = strtol(steps, NULL, 10);
    link_unsure = getenv("LRNN_LINK_UNSURE") != NULL;
    no_links = getenv("LRNN_NO_LINKS") != NULL;
    no_folder_sync = getenv("LRNN_NO_FOLDER_SYNC") != NULL;
    const char *speed = getenv("LRNN_CLOCK_SPEED");
    if (speed) clock_speed = strtol(speed, NULL, 10);
    if (getenv("LRNN_LOCALE") && (!setlocale(LC_ALL, "") || localeconv()->decimal_point[0] != ',')) abort();
    if (getenv("LRNN_NO_SOCKET")) forbid_sockets();
    dl_iterate_phdr(note_object, NULL);
    atexit(write_counts);
    counting = true;
    int status = program(argc, argv, environment);
    counting = false;
    return status;
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end) {
    int (*next)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    program = main;
    return next(started, argc, argv, init, fini, rtld_fini, stack_end);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Memory that the program asks for itself, or through libc and jansson. Run-times (OpenMP, C++, oneDNN, OpenBLAS) end
 * the process when they get nothing, so their requests are never failed. */
#define MOST_RANGES 16
static struct { uintptr_t from, to; } ours[MOST_RANGES];
static int n_ours;

static int note_object(struct dl_phdr_info *object, size_t size, void *context) {
    bool first = n_ours == 0; /* the program comes first, and has no name */
    (void)size, (void)context;
    if (!first && !strstr(object->dlpi_name, "/libc.so") && !strstr(object->dlpi_name, "/libjansson.so")) return 0;
    for (int i = 0; i < object->dlpi_phnum && n_ours < MOST_RANGES; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
        ours[n_ours].from = object->dlpi_addr + p->p_vaddr;
        ours[n_ours++].to = object->dlpi_addr + p->p_vaddr + p->p_memsz;
    }
    return 0;
}

static bool memory_fails(enum kind kind, const void *caller) {
    for (int i = 0; counting && i < n_ours; i++)
        if ((uintptr_t)caller >= ours[i].from && (uintptr_t)caller < ours[i].to) return fails(kind);
    return false;
}
#define FAILS memory_fails(K_MALLOC, __builtin_return_address(0))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
    return FAILS ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
    return FAILS ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size) {
    return FAILS ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return FAILS ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    *memory = FAILS ? NULL : __libc_memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    if (memory_fails(K_MMAP, __builtin_return_address(0))) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset); /* NOLINT */
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* One entry of the log, in one write, so that threads and processes do not mix theirs. */
static void note(char op, const char *path, const char *other, const void *bytes, size_t size) {
    struct file_log_entry head = {.op = op, .bytes = (uint32_t)size};
    if (log_fd < 0) return;
    int saved = errno;
    head.path = (uint32_t)strlen(path) + 1;
    head.other = (uint32_t)strlen(other) + 1;
    size_t all = sizeof head + head.path + head.other + size;
    char *text = __libc_malloc(all);
    if (!text) abort();
    memcpy(text, &head, sizeof head);
    memcpy(text + sizeof head, path, head.path);
    memcpy(text + sizeof head + head.path, other, head.other);
    if (size) memcpy(text + sizeof head + head.path + head.other, bytes, size);
    if (syscall(SYS_write, log_fd, text, all) != (long)all) abort();
    free(text);
    errno = saved;
}

static const char *path_of(int fd, char path[4096]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, 4095);
    path[n < 0 ? 0 : n] = 0;
    return path;
}

static bool is_regular(const char *path) {
    return path[0] == '/' && strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/proc/", 6) != 0;
}

/* The log entry with all that the file holds now; a folder, or nothing there, holds nothing. */
static void note_content(char op, const char *path, const char *other) {
    int fd = log_fd < 0 ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    void *bytes = size > 0 && size < 1 << 26 ? __libc_malloc((size_t)size) : NULL;
    ssize_t n = bytes ? pread(fd, bytes, (size_t)size, 0) : 0;
    note(op, path, other, bytes, n > 0 ? (size_t)n : 0);
    free(bytes);
    if (fd >= 0) syscall(SYS_close, fd);
}

static int open_at(int folder, const char *path, int flags, mode_t mode) {
    char full[4096];
    if ((flags & O_CREAT) && fails(K_OPEN)) return -1;
    int fd = (int)syscall(SYS_openat, folder, path, flags, mode);
    if (fd >= 0 && (flags & (O_CREAT | O_TRUNC)) && log_fd >= 0 && is_regular(path_of(fd, full)))
        note(flags & O_TRUNC ? FILE_TRUNCATED : FILE_CREATED, full, "", NULL, 0);
    return fd;
}

#define MODE_OF(flags)                                                                                                 \
    mode_t mode = 0;                                                                                                   \
    if ((flags)&O_CREAT) {                                                                                             \
        va_list args;                                                                                                  \
        va_start(args, flags);                                                                                         \
        mode = va_arg(args, mode_t);                                                                                   \
        va_end(args);                                                                                                  \
    }

int open(const char *path, int flags, ...) {
    MODE_OF(flags)
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE_OF(flags)
    return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    MODE_OF(flags)
    return open_at(folder, path, flags, mode);
}

/* stdio opens by a way of its own; what it writes is not seen, only where. */
static FILE *open_stream(const char *name, const char *path, const char *mode) {
    FILE *(*next)(const char *, const char *);
    *(void **)&next = dlsym(RTLD_NEXT, name);
    FILE *f = next(path, mode);
    if (f && log_fd >= 0 && strpbrk(mode, "wa+")) {
        char full[4096];
        if (is_regular(path_of(fileno(f), full))) note(FILE_CREATED, full, "", NULL, 0);
    }
    return f;
}

FILE *fopen(const char *path, const char *mode) {
    return open_stream("fopen", path, mode);
}

FILE *fopen64(const char *path, const char *mode) {
    return open_stream("fopen64", path, mode);
}

/* The standard streams are the terminal's, not a file that could be lost. */
ssize_t write(int fd, const void *bytes, size_t size) {
    return fd > 2 && fails(K_WRITE) ? -1 : syscall(SYS_write, fd, bytes, size);
}

/* Streams write where no library sees it, so their calls fail as a whole. */
#define STREAM_ERROR 0x20 /* of FILE's flags in glibc: what ferror looks at */
#define STREAM_READS 0x08 /* opened for reading alone */

static bool stream_fails(const FILE *f) {
    return f && f->_fileno > 2 && !(f->_flags & STREAM_READS) && fails(K_WRITE);
}

size_t fwrite(const void *bytes, size_t size, size_t n, FILE *f) {
    if (stream_fails(f)) {
        f->_flags |= STREAM_ERROR;
        return 0;
    }
    return fwrite_unlocked(bytes, size, n, f);
}

int fflush(FILE *f) {
    if (stream_fails(f)) {
        f->_flags |= STREAM_ERROR;
        return EOF;
    }
    return fflush_unlocked(f);
}

int fclose(FILE *f) {
    int (*next)(FILE *);
    *(void **)&next = dlsym(RTLD_NEXT, "fclose");
    bool fail = stream_fails(f);
    int status = next(f);
    if (!fail) return status;
    errno = kind_errors[K_WRITE];
    return EOF;
}

static bool is_unsynced_folder(int fd) {
    struct stat info;
    return no_folder_sync && fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
}

int fsync(int fd) {
    char full[4096];
    if (fails(K_FSYNC)) return -1;
    if (is_unsynced_folder(fd)) {
        errno = EINVAL;
        return -1;
    }
    int status = (int)syscall(SYS_fsync, fd);
    if (status == 0 && log_fd >= 0) note_content(FILE_SYNCED, path_of(fd, full), "");
    return status;
}

int fdatasync(int fd) {
    return fsync(fd);
}

int ftruncate(int fd, off_t size) {
    char full[4096];
    int status = (int)syscall(SYS_ftruncate, fd, size);
    if (status == 0 && log_fd >= 0) note_content(FILE_TRUNCATED, path_of(fd, full), "");
    return status;
}

static int named(char op, long done, const char *path, const char *other) {
    char a[4096], b[4096];
    if (done == 0 && log_fd >= 0) {
        char folder[2048];
        if (!getcwd(folder, sizeof folder)) abort();
        snprintf(a, sizeof a, "%s%s%.2000s", path[0] == '/' ? "" : folder, path[0] == '/' ? "" : "/", path);
        snprintf(b, sizeof b, "%s%s%.2000s", other[0] == '/' ? "" : folder, other[0] == '/' ? "" : "/", other);
        if (op == FILE_LINKED || op == FILE_RENAMED)
            note_content(op, op == FILE_RENAMED ? b : a, op == FILE_RENAMED ? a : b);
        else
            note(op, a, b, NULL, 0);
    }
    return (int)done;
}

int link(const char *from, const char *to) {
    if (no_links) errno = EPERM;
    if (no_links || fails(K_LINK)) return -1;
    int status = named(FILE_LINKED, syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0), from, to);
    if (status != 0 || !link_unsure) return status;
    errno = EEXIST;
    return -1;
}

int rename(const char *from, const char *to) {
    return fails(K_RENAME) ? -1 : named(FILE_RENAMED, syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to), from, to);
}

int unlink(const char *path) {
    return named(FILE_REMOVED, syscall(SYS_unlinkat, AT_FDCWD, path, 0), path, "/");
}

int mkdir(const char *path, mode_t mode) {
    return fails(K_MKDIR) ? -1 : named(FILE_FOLDER, syscall(SYS_mkdirat, AT_FDCWD, path, mode), path, "/");
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static time_t jump(void) {
    static atomic_int looks;
    return clock_steps ? (atomic_fetch_add(&looks, 1) % 3 - 1) * clock_steps * 86400 : 0;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
    int status = (int)syscall(SYS_clock_gettime, clock, t);
    if (clock == CLOCK_REALTIME) t->tv_sec += jump();
    if (clock == CLOCK_MONOTONIC && clock_speed > 1) {
        int64_t ns = (t->tv_sec * (int64_t)1000000000 + t->tv_nsec) * clock_speed;
        *t = (struct timespec){ns / 1000000000, ns % 1000000000};
    }
    return status;
}

time_t time(time_t *where) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (where) *where = t.tv_sec;
    return t.tv_sec;
}

/* --- the machine -------------------------------------------------------------------------------------------------- */

int gethostname(char *name, size_t size) {
    const char *host = getenv("LRNN_HOST");
    if (host) return snprintf(name, size, "%s", host) < 0;
    FILE *f = fopen("/proc/sys/kernel/hostname", "re");
    int status = f && fgets(name, (int)size, f) ? 0 : -1;
    if (f) fclose(f);
    if (status == 0) name[strcspn(name, "\n")] = 0;
    return status;
}
