/* plan_file.c - fuzz target: whatever the bytes, the reader refuses them with one sentence or gives keys that it
 * finds again, each with a value. */
#include "harness/study/plan_file.h"
#include "tests/fuzz/fuzz.h"

FUZZ(plan_file) {
    static const char *const profiles[] = {"", "quick", "paper"};
    struct error e = {ST_OK, ""};
    struct plan_file p;
    struct label settings;
    if (plan_file_parse(&p, "FILE", (const char *)data, size, &e) != ST_OK) {
        if (e.status != ST_USAGE || !strstr(e.text, "FILE") || strchr(e.text, '\n')) abort();
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        if (plan_file_settings(&p, profiles[i], &settings, &e) != ST_OK) continue; /* too long together */
        for (int k = 0; k < settings.n; k++) {
            const char *value = plan_file_get(&p, profiles[i], label_key(&settings, k));
            if (!value || !*value || strcmp(value, label_value(&settings, k)) != 0) abort();
        }
    }
    return 0;
}
