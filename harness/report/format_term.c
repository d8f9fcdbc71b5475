/* text.c - see report_text.h. */
#include "harness/report/text.h"

#include <string.h>

void print_plain(FILE *f, const char *text) {
    for (const char *p = text; *p; p++) fputc((unsigned char)*p < 0x20 || *p == 0x7f ? ' ' : *p, f);
}

void print_md(FILE *f, const char *text) {
    for (const char *p = text; *p; p++) {
        if (strchr("\\|`*_<>[]$", *p)) fputc('\\', f);
        fputc((unsigned char)*p < 0x20 ? ' ' : *p, f);
    }
}

void print_latex(FILE *f, const char *text) {
    for (const char *p = text; *p; p++) {
        if (strchr("&%$#_{}", *p))
            fprintf(f, "\\%c", *p);
        else if (*p == '\\')
            fputs("\\textbackslash{}", f);
        else if (*p == '~')
            fputs("\\textasciitilde{}", f);
        else if (*p == '^')
            fputs("\\textasciicircum{}", f);
        else if (*p == '<' || *p == '>' || *p == '|')
            fprintf(f, "$%c$", *p);
        else
            fputc((unsigned char)*p < 0x20 ? ' ' : *p, f);
    }
}

/* Width on a terminal: UTF-8 continuation bytes take no column. */
int width_of(const char *text) {
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

void print_padded(FILE *f, const char *text, int width, bool left, const char *separator) {
    int padding = width - width_of(text);
    fputs(separator, f);
    if (!left) fprintf(f, "%*s", padding > 0 ? padding : 0, "");
    print_plain(f, text);
    if (left) fprintf(f, "%*s", padding > 0 ? padding : 0, "");
}
