/* config.c - fuzz target: whatever the bytes, a config file is refused with one sentence, or its task and model are
 * labels that can be read. */
#include "harness/plan/config.h"
#include "tests/fuzz/fuzz.h"

FUZZ(config) {
    static struct config config;
    static struct label label;
    static char names[2][LABEL_TEXT];
    struct error e = {ST_OK, ""};
    char *text = fuzz_text(data, size);
    names[0][0] = names[1][0] = 0;
    if (config_default(&config, &e) != ST_OK) abort();
    if (config_read_text(text, "FILE", &config, names[0], names[1], &e) != ST_OK)
        fuzz_sentence(&e);
    else
        for (int i = 0; i < 2; i++)
            if (names[i][0] && label_parse(&label, "task", names[i], &e) != ST_OK) abort();
    free(text);
    return 0;
}
