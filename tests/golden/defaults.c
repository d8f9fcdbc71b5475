/* defaults.c - see defaults.h. */
#include "tests/golden/defaults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/numerics.h"
#include "models/model.h"
#include "tasks/task.h"

/* The default precision is the build's own, in every build. */
static void print_table(FILE *to, const char *owner, const char *version, const struct option *table) {
    for (const struct option *o = table; o->name; o++) {
        char value[OPTION_TEXT + 1];
        bool own = !strcmp(o->value, REAL_NAME);
        if (o->flags & (OPT_RUNTIME | OPT_HERE)) continue;
        if (option_canonical(o, owner, o->name, o->value, value, sizeof value, NULL) != ST_OK)
            snprintf(value, sizeof value, "%s", o->value);
        fprintf(to, "%s %s %s %s\n", owner, o->name, version, own ? "REAL" : *value ? value : "''");
    }
}

char *defaults_text(void) {
    char *text = NULL, version[32], owner[128];
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to) return NULL;
    print_table(to, "flag", NUMERICS_BASE, config_options);
    print_table(to, "flag", NUMERICS_BASE, backbone_options);
    for (const struct model *const *m = model_list(); *m; m++) {
        snprintf(version, sizeof version, "%d", (*m)->version > 1 ? (*m)->version : 1);
        snprintf(owner, sizeof owner, "model.%s", (*m)->name);
        print_table(to, owner, version, (*m)->options);
    }
    for (const struct task *const *t = task_list(); *t; t++) {
        snprintf(version, sizeof version, "%d", (*t)->version);
        snprintf(owner, sizeof owner, "task.%s", (*t)->name);
        print_table(to, owner, version, (*t)->options);
    }
    return fclose(to) == 0 ? text : NULL;
}

/* Gives the version and the value of the line of that owner and option; false: the text has none. */
static bool find(const char *text, const char *owner_and_option, char version[64], char value[300]) {
    size_t n = strlen(owner_and_option);
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        if (strncmp(at, owner_and_option, n) != 0 || at[n] != ' ') continue;
        const char *second = at + n + 1 + strcspn(at + n + 1, " ");
        snprintf(version, 64, "%.*s", (int)(second - at - (ptrdiff_t)n - 1), at + n + 1);
        snprintf(value, 300, "%.*s", (int)strcspn(second + 1, "\n"), second + 1);
        return true;
    }
    return false;
}

/* The file's text, "" where there is no file. */
static char *read_file(void) {
    char *text = calloc(1, 1 << 17);
    FILE *from = text ? fopen(DEFAULTS_FILE, "r") : NULL;
    if (from && fread(text, 1, (1 << 17) - 1, from) == 0) *text = 0;
    if (from) fclose(from);
    return text;
}

enum status defaults_compare(const char *now, const char *before, struct error *e) {
    char key[200], version[64], value[300], former_version[64], former[300];
    for (const char *at = now; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        size_t owner = strcspn(at, " "), option = strcspn(at + owner + 1, " ");
        snprintf(key, sizeof key, "%.*s", (int)(owner + 1 + option), at);
        if (!find(now, key, version, value) || !find(before, key, former_version, former)) continue;
        if (strcmp(value, former) != 0 && !strcmp(version, former_version))
            return fail(e, ST_FAIL,
                        "the default of %s is %s, in %s %s, under the same version %s: runs would have the ids of "
                        "earlier ones; raise `version` beside the model or task, or NUMERICS_BASE for a flag, then "
                        "make defaults",
                        key, value, DEFAULTS_FILE, former, version);
    }
    return ST_OK;
}

enum status defaults_check(struct error *e) {
    char *now = defaults_text(), *before = read_file();
    enum status status =
        now && before ? defaults_compare(now, before, e) : fail(e, ST_MEMORY, "no memory for defaults");
    if (status == ST_OK && strcmp(now, before) != 0)
        status = fail(e, ST_FAIL, "%s lacks an option, has one too many, or a former version; make defaults writes it",
                      DEFAULTS_FILE);
    free(now);
    free(before);
    return status;
}

enum status defaults_write(struct error *e) {
    char *now = defaults_text(), *before = read_file();
    enum status status =
        now && before ? defaults_compare(now, before, e) : fail(e, ST_MEMORY, "no memory for defaults");
    FILE *to = status == ST_OK ? fopen(DEFAULTS_FILE, "w") : NULL;
    if (status == ST_OK && !to) status = fail(e, ST_FAIL, "cannot write %s", DEFAULTS_FILE);
    if (to && fputs(now, to) < 0) status = fail(e, ST_FAIL, "cannot write %s", DEFAULTS_FILE);
    if (to && fclose(to) != 0) status = fail(e, ST_FAIL, "cannot write %s", DEFAULTS_FILE);
    free(now);
    free(before);
    return status;
}
