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

static bool is_control(char c) {
    return (unsigned char)c < 0x20 || c == 0x7f;
}

/* Returns the bytes of the word at the start of the text, and how many columns they take. */
static int word_bytes(const char *text, int *columns) {
    int n = 0;
    for (*columns = 0; text[n] && text[n] != ' ' && !is_control(text[n]); n++) *columns += takes_a_column(text[n]);
    return n;
}

void paragraph_print(FILE *f, int width, int column, int indent, const char *text) {
    for (bool first = true; *text; first = false) {
        int spaces = 0, columns;
        while (text[spaces] == ' ' || (text[spaces] && is_control(text[spaces]))) spaces++;
        int bytes = word_bytes(text + spaces, &columns);
        if (width && !first && column > indent && column + spaces + columns > width) {
            fprintf(f, "\n%*s", indent, "");
            column = indent;
        } else {
            fprintf(f, "%*s", spaces, "");
            column += spaces;
        }
        fprintf(f, "%.*s", bytes, text + spaces);
        column += columns;
        text += spaces + bytes;
    }
}
