/* config.c - fuzz target: whatever the bytes, a config file is refused with one sentence, or what it says of task and
 * model is a text that ends. */
#include "harness/study/study.h"
#include "tests/fuzz/fuzz.h"

FUZZ(config) {
    static struct config config;
    static char names[2][LABEL_TEXT];
    struct error e = {ST_OK, ""};
    char *text = fuzz_text(data, size);
    names[0][0] = names[1][0] = 0;
    if (config_default(&config, &e) != ST_OK) abort();
    if (config_read_text(text, "FILE", &config, names[0], names[1], &e) != ST_OK)
        fuzz_sentence(&e);
    else
        for (int i = 0; i < 2; i++)
            if (!memchr(names[i], 0, LABEL_TEXT)) abort();
    free(text);
    return 0;
}
