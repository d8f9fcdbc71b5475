/* script.c - see script.h. */
#include "harness/site/script.h"

#include <inttypes.h>
#include <math.h>

#include "harness/sheet/sheet.h"

static void put_key(FILE *f, const char *key) {
    if (!key) return;
    print_json_text(f, key);
    fputc(':', f);
}

void put_text(FILE *f, const char *key, const char *text) {
    put_key(f, key);
    print_json_text(f, text);
    fputc(',', f);
}

void put_int(FILE *f, const char *key, int64_t value) {
    put_key(f, key);
    fprintf(f, "%" PRId64 ",", value);
}

void put_real(FILE *f, const char *key, double value) {
    put_key(f, key);
    fprintf(f, isfinite(value) ? "%.7g," : "null,", value);
}

void put_pairs(FILE *f, const char *key, const struct label *pairs) {
    put_open(f, key, '{');
    for (int i = 0; i < pairs->n; i++) put_text(f, label_key(pairs, i), label_value(pairs, i));
    put_close(f, '}');
}

void put_open(FILE *f, const char *key, char bracket) {
    put_key(f, key);
    fputc(bracket, f);
}

void put_close(FILE *f, char bracket) {
    fprintf(f, "%c,\n", bracket);
}
