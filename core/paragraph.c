/* paragraph.c - see paragraph.h. */
#include "core/paragraph.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static struct winsize terminal_size(FILE *f) {
    struct winsize size, none = {0};
    int fd = fileno(f);
    return fd >= 0 && isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size : none;
}

int terminal_width(FILE *f) {
    return terminal_size(f).ws_col;
}

int terminal_height(FILE *f) {
    return terminal_size(f).ws_row;
}

bool terminal_has_codes(FILE *f) {
    const char *term = getenv("TERM");
    int fd = fileno(f);
    return fd >= 0 && isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

bool terminal_has_bold(FILE *f) {
    const char *plain = getenv("NO_COLOR");
    return terminal_has_codes(f) && !(plain && *plain);
}

static bool takes_a_column(char c) {
    return ((unsigned char)c & 0xC0) != 0x80;
}

int text_width(const char *text) {
    int n = 0;
    for (; *text; text++) n += takes_a_column(*text);
    return n;
}

/* Bidi marks are U+061C, U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069; U+2028 and U+2029 end lines. */
int control_bytes(const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    if (c[0] < 0x20 || c[0] == 0x7f) return c[0] != 0;
    if ((c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) || (c[0] == 0xd8 && c[1] == 0x9c)) return 2;
    if (c[0] != 0xe2) return 0;
    bool general = c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae));
    return general || (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9) ? 3 : 0;
}

const char *text_shown(const char *text, char *out, size_t size) {
    char *to = out;
    while (*text && to + 1 < out + size) {
        int control = control_bytes(text);
        *to++ = control ? '?' : *text;
        text += control ? control : 1;
    }
    *to = 0;
    return out;
}

/* Returns the bytes of the blanks and control characters at the start of the text, and their number. */
static int blank_bytes(const char *text, int *blanks) {
    int n = 0;
    for (*blanks = 0; text[n]; ++*blanks) {
        int bytes = text[n] == ' ' ? 1 : control_bytes(text + n);
        if (!bytes) break;
        n += bytes;
    }
    return n;
}

/* Returns the bytes of the word at the start of the text, and how many columns they take. */
static int word_bytes(const char *text, int *columns) {
    int n = 0;
    for (*columns = 0; text[n] && text[n] != ' ' && !control_bytes(text + n); n++) *columns += takes_a_column(text[n]);
    return n;
}

void paragraph_print(FILE *f, int width, int column, int indent, const char *text) {
    for (bool first = true; *text; first = false) {
        int spaces, columns;
        text += blank_bytes(text, &spaces);
        int bytes = word_bytes(text, &columns);
        if (width && !first && column > indent && column + spaces + columns > width) {
            fprintf(f, "\n%*s", indent, "");
            column = indent;
        } else {
            fprintf(f, "%*s", spaces, "");
            column += spaces;
        }
        fprintf(f, "%.*s", bytes, text);
        column += columns;
        text += bytes;
    }
}
