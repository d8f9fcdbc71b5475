/* record.c - see record.h. */
#include "harness/store/record.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

const char *const run_status_names[RUN_STATUS_COUNT + 1] = {"ok",      "diverged", "nan",   "oom",
                                                            "timeout", "killed",   "error", NULL};

void record_hash(const char *text, char hex[RUN_ID_HEX]) {
    record_hash_bytes(text, strlen(text), hex);
}

void record_hash_bytes(const void *bytes, size_t size, char hex[RUN_ID_HEX]) {
    XXH128_hash_t hash = XXH3_128bits(bytes, size);
    snprintf(hex, RUN_ID_HEX, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

void record_hash_label(const struct label *l, char hex[RUN_ID_HEX]) {
    record_hash_bytes(l->text, l->used, hex);
}

void record_path(const char *out, const char *run_id, char *path, size_t size) {
    snprintf(path, size, "%s/runs/%.2s/%s.json", out, run_id, run_id);
}

const char *run_products(const struct run *run) {
    const char *comma = strrchr(run->kernel, ',');
    return comma ? comma + 1 + strspn(comma + 1, " ") : "";
}

enum status run_mixer(const struct run *run, struct label *mixer, struct error *e) {
    char text[sizeof run->layers];
    const char *at = run->layers;
    TRY(text_part(&at, ";", text, sizeof text, e));
    return label_parse(mixer, "model", text, e);
}
