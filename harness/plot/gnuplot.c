/* gnuplot.c - see gnuplot.h. */
#include "harness/plot/gnuplot.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file/name.h"
#include "core/label.h"
#include "core/paragraph.h"
#include "harness/store/files.h"
#include "harness/store/shell.h"

static const struct terminal {
    const char *name, *settings; /* %d is the height in points; 100 points are an inch of a PDF */
    enum figure_format format;
} terminals[] = {
    {"svg", "svg size 1200,%d noenhanced font 'DejaVu Sans,14' background '#ffffff'", FIGURE_SVG},
    {"png", "pngcairo size 1200,%d noenhanced font 'DejaVu Sans,12' background '#ffffff'", FIGURE_PNG},
    {"pdf", "pdfcairo size 12in,(%d/100.0)in noenhanced font 'DejaVu Sans,14' background '#ffffff'", FIGURE_PDF}};

#define N_TERMINALS (sizeof terminals / sizeof terminals[0])

enum status figure_formats_parse(const char *text, unsigned *formats, struct error *e) {
    *formats = 0;
    for (const char *at = text;; at++) {
        char name[16];
        size_t k = 0;
        if (text_part(&at, ",", name, sizeof name, NULL) != ST_OK) k = N_TERMINALS;
        while (k < N_TERMINALS && strcmp(terminals[k].name, name) != 0) k++;
        if (k == N_TERMINALS)
            return fail(e, ST_USAGE, "'%.60s' is no list of svg, png and pdf; write for example svg,pdf", text);
        *formats |= (unsigned)terminals[k].format;
        if (!*at) return ST_OK;
    }
}

/* --- text for gnuplot --------------------------------------------------------------------------------------------- */

#define TEXT_BYTES 2048 /* most bytes of a setting; longer texts are cut off */

/* Prints text in single quotes, in which gnuplot expands nothing, and ends the line. Quotes are doubled, and control
 * characters, which would end the line too, replaced. */
static void print_quoted(FILE *f, const char *format, va_list args) {
    char text[TEXT_BYTES];
    vsnprintf(text, sizeof text, format, args);
    fputs(" = '", f);
    for (const char *p = text; *p;) {
        int control = control_bytes(p);
        if (*p == '\'') fputc('\'', f);
        fputc(control ? ' ' : *p, f);
        p += control ? control : 1;
    }
    fputs("'\n", f);
}

void gnuplot_setting(FILE *f, const char *name, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs(name, f);
    print_quoted(f, format, args);
    va_end(args);
}

void gnuplot_element(FILE *f, const char *name, int index, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(f, "%s[%d]", name, index);
    print_quoted(f, format, args);
    va_end(args);
}

void gnuplot_number(FILE *f, double value, const char *end) {
    if (isfinite(value))
        fprintf(f, "%.9g%s", value, end);
    else
        fprintf(f, "NaN%s", end);
}

void gnuplot_row(FILE *f, int n, const double *values) {
    for (int i = 0; i < n; i++) gnuplot_number(f, values[i], i + 1 < n ? "\t" : "\n");
}

void gnuplot_end_block(FILE *f) {
    fputs("\n\n", f);
}

/* --- running it --------------------------------------------------------------------------------------------------- */

/* Returns the last line of gnuplot's output. */
static const char *last_words(const char *said) {
    const char *line = strrchr(said, '\n');
    return !*said ? "no reason given" : line ? line + 1 : said;
}

/* The files of a plot while it is made, all in TO. gnuplot runs in TO and gets their names without the folder. */
struct drawing {
    const struct figure *figure;
    const char *settings, *numbers;
    char data[PATH_BYTES], script[PATH_BYTES], picture[N_TERMINALS][PATH_BYTES + 8];
};

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool wanted(const struct figure *figure, size_t k) {
    unsigned formats = figure->formats ? figure->formats : FIGURE_SVG | FIGURE_PNG;
    return formats & (unsigned)terminals[k].format;
}

static size_t first_wanted(const struct figure *figure) {
    size_t first = 0;
    while (first < N_TERMINALS - 1 && !wanted(figure, first)) first++;
    return first;
}

/* Prints the lines that choose format and file of the k-th picture. */
static void print_terminal(FILE *f, const struct drawing *d, size_t k) {
    fputs("set terminal ", f);
    for (const char *c = terminals[k].settings; *c; c++) {
        if (*c == '%') {
            fprintf(f, "%d", d->figure->height);
            c++;
        } else {
            fputc(*c, f);
        }
    }
    fputc('\n', f);
    gnuplot_setting(f, "picture", "%s", base_name(d->picture[k]));
    fputs("set output picture\n", f);
}

/* Copies a shipped script into the script. */
static enum status add_shipped(FILE *f, const char *kind, struct error *e) {
    char shipped[PATH_BYTES], name[64], *body;
    size_t size;
    snprintf(name, sizeof name, "plots/%s.gp", kind);
    TRY(shipped_file_find(name, shipped, sizeof shipped, e));
    TRY(file_read(shipped, 1 << 20, &body, &size, e));
    fputs(body, f);
    free(body);
    return ST_OK;
}

/* Prints the script. It draws the first picture, then repeats it in the other formats. */
static enum status print_script(FILE *f, const struct drawing *d, struct error *e) {
    size_t first = first_wanted(d->figure);
    gnuplot_setting(f, "data", "%s", base_name(d->data));
    fputs(d->settings, f);
    print_terminal(f, d, first);
    TRY(add_shipped(f, "common", e));
    TRY(add_shipped(f, d->figure->kind, e));
    for (size_t k = first + 1; k < N_TERMINALS; k++) {
        if (!wanted(d->figure, k)) continue;
        print_terminal(f, d, k);
        fputs("replot\n", f);
    }
    fputs("set output\n", f);
    return ST_OK;
}

/* Gives the path of the first picture. gnuplot's files have names made from it, and an error to write them names it,
 * because the user asked for no other file. */
static enum status first_picture(const struct figure *figure, const char *to, char path[PATH_BYTES], struct error *e) {
    return path_format(path, PATH_BYTES, e, "%s/%s.%s", to, figure->stem, terminals[first_wanted(figure)].name);
}

static enum status write_script(struct drawing *d, const char *to, struct error *e) {
    char target[PATH_BYTES];
    struct printed script;
    TRY(first_picture(d->figure, to, target, e));
    TRY(printed_begin(&script, target, e));
    TRY(printed_end(&script, print_script(script.f, d, e), target, e));
    enum status status = temporary_write(target, script.text, script.size, d->script, e);
    free(script.text);
    return status;
}

/* Gives the path of the k-th picture. ST_USAGE: a file there was not written by this program. */
static enum status find_place(const struct figure *figure, size_t k, const char *to, char path[PATH_BYTES],
                              struct error *e) {
    TRY(path_format(path, PATH_BYTES, e, "%s/%s.%s", to, figure->stem, terminals[k].name));
    return own_file_check(path, e);
}

static enum status missing(struct error *e) {
    return fail(e, ST_FAIL,
                "plots need gnuplot, which is not installed: run ./bootstrap.sh, or apt-get install gnuplot-nox");
}

enum status gnuplot_find(struct error *e) {
    static const char *const arguments[] = {"gnuplot", "--version", NULL};
    struct program_words words;
    int code;
    return program_run(arguments, NULL, NULL, &words, &code, NULL) == ST_DATA ? missing(e) : ST_OK;
}

enum status gnuplot_check(const struct figure *figure, const char *to, struct error *e) {
    char path[PATH_BYTES];
    for (size_t k = 0; k < N_TERMINALS; k++)
        if (wanted(figure, k)) TRY(find_place(figure, k, to, path, e));
    return ST_OK;
}

static enum status finish(const struct drawing *d, const char *to, struct error *e) {
    char path[PATH_BYTES];
    for (size_t k = 0; k < N_TERMINALS; k++) {
        if (!wanted(d->figure, k)) continue;
        TRY(find_place(d->figure, k, to, path, e));
        TRY(own_file_mark(d->picture[k], path, e));
        if (d->figure->told) fprintf(d->figure->told, "%s\n", path);
    }
    return ST_OK;
}

static enum status draw(struct drawing *d, const char *to, struct error *e) {
    TRY(write_script(d, to, e));
    const char *const arguments[] = {"gnuplot", "-d", base_name(d->script), NULL}; /* -d: ignore the user's settings */
    struct program_words words;
    int code;
    struct error why;
    enum status status = program_run(arguments, to, NULL, &words, &code, &why);
    if (status == ST_DATA) return missing(e);
    if (status != ST_OK) return fail(e, status, "%s", why.text);
    if (code != 0)
        return fail(e, ST_FAIL, "gnuplot could not draw %s/%s (exit %d): %.500s", to, d->figure->stem, code,
                    last_words(words.complained));
    return finish(d, to, e);
}

#define HEIGHT      750
#define NAME_HEIGHT 21

int figure_height(int names, int longest) {
    if (longest > FIGURE_WIDE) return HEIGHT - 100 + NAME_HEIGHT * (names + 1); /* 100 points suffice for a few names */
    return names < 18 ? HEIGHT : 250 + 28 * names;
}

void gnuplot_longest(FILE *f, int longest) {
    fprintf(f, "longest = %d\nbelow = %d\n", longest, longest > FIGURE_WIDE);
}

static enum status draw_into(struct drawing *d, const char *to, struct error *e) {
    char target[PATH_BYTES];
    TRY(first_picture(d->figure, to, target, e));
    TRY(temporary_write(target, d->numbers, strlen(d->numbers), d->data, e));
    for (size_t k = 0; k < N_TERMINALS; k++)
        snprintf(d->picture[k], sizeof d->picture[k], "%s.%s", d->data, terminals[k].name);
    enum status status = draw(d, to, e);
    unlink(d->data);
    if (*d->script) unlink(d->script);
    for (size_t k = 0; k < N_TERMINALS; k++) unlink(d->picture[k]);
    return status;
}

enum status gnuplot_draw(const struct figure *figure, void (*print)(FILE *settings, FILE *numbers, const void *context),
                         const void *context, const char *to, struct error *e) {
    bool is_new = access(to, F_OK) != 0;
    struct printed settings = {0}, numbers = {0};
    struct drawing *d = calloc(1, sizeof *d);
    enum status status = d ? make_folder(to, e) : fail(e, ST_MEMORY, "no memory to plot");
    if (status == ST_OK) status = printed_begin(&settings, "a plot", e);
    if (status == ST_OK) status = printed_begin(&numbers, "a plot", e);
    if (status == ST_OK) print(settings.f, numbers.f, context);
    status = printed_end(&settings, status, "a plot", e);
    status = printed_end(&numbers, status, "a plot", e);
    if (status == ST_OK) {
        *d = (struct drawing){.figure = figure, .settings = settings.text, .numbers = numbers.text};
        status = draw_into(d, to, e);
    }
    free(d);
    free(settings.text);
    free(numbers.text);
    if (status != ST_OK && is_new) rmdir(to);
    return status;
}
