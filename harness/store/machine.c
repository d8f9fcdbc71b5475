/* machine.c - describes this machine; see machine.h.
 *
 * The id hashes facts that stay: processor, cores, memory in whole GiB. Clock rates are left out, because they vary and
 * would make one machine look like many. Facts that may change, such as the kernel or a library, are hashed to an
 * epoch. */
#include "harness/store/machine.h"

#include <gnu/libc-version.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/arena.h"
#include "kernels/lib/gemm.h"

static void hash_text(const char *text, char hex[17]) {
    snprintf(hex, 17, "%016llx", (unsigned long long)XXH3_64bits(text, strlen(text)));
}

/* Gives the rest of the first line that begins with `key`, without separator, blanks and quotes; "": there is no such
 * line. */
static void value_in_file(const char *path, const char *key, char separator, char *value, size_t size) {
    char line[512];
    value[0] = 0;
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        char *start = separator ? strchr(line, separator) : line;
        if (!start) continue;
        start += separator != 0;
        start += strspn(start, " \t\"");
        start[strcspn(start, "\"\n")] = 0;
        snprintf(value, size, "%s", start);
        break;
    }
    if (f) fclose(f);
}

/* Adds family and model of the processor. Virtual machines use one name for several generations, whose speeds differ by
 * a factor of three. */
static void add_generation(struct machine *m) {
    char family[16], model[16];
    size_t used = strlen(m->cpu);
    value_in_file("/proc/cpuinfo", "cpu family", ':', family, sizeof family);
    value_in_file("/proc/cpuinfo", "model\t", ':', model, sizeof model);
    if (family[0] && model[0]) snprintf(m->cpu + used, sizeof m->cpu - used, ", family %s model %s", family, model);
}

void machine_read(struct machine *m) {
    *m = (struct machine){0};
    struct utsname name;
    uname(&name);
    value_in_file("/proc/cpuinfo", "model name", ':', m->cpu, sizeof m->cpu);
    if (!m->cpu[0]) snprintf(m->cpu, sizeof m->cpu, "%s", name.machine); /* other architectures have no such line */
    add_generation(m);
    m->cores = sysconf(_SC_NPROCESSORS_ONLN);
    m->ram_gib = (double)(((machine_memory_bytes() >> 20) + 512) >> 10);
    snprintf(m->kernel, sizeof m->kernel, "%.40s %.80s", name.sysname, name.release);
    value_in_file("/etc/os-release", "PRETTY_NAME", '=', m->os, sizeof m->os);
    value_in_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "", 0, m->governor, sizeof m->governor);
    snprintf(m->libc, sizeof m->libc, "glibc %s", gnu_get_libc_version());
    snprintf(m->blas, sizeof m->blas, "%s", gemm_about());

    char facts[1024];
    snprintf(facts, sizeof facts, "%s|%lld|%.0f", m->cpu, (long long)m->cores, m->ram_gib);
    hash_text(facts, m->id);
    snprintf(facts, sizeof facts, "%s|%s|%s|%s|%s", m->kernel, m->os, m->governor, m->libc, m->blas);
    hash_text(facts, m->env_epoch);
}
