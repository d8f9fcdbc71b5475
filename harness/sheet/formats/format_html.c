/* format_html.c - sheets as one HTML page without external files, dark if the reader's system is. Each table scrolls
 * sideways on a narrow screen. */
#include "core/paragraph.h"
#include "harness/sheet/sheet.h"

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"generator\" content=\"lrnn report\">\n<title>lrnn-bench</title>\n<style>\n"
    ":root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --line: #c8c8c8; --faint: #595959; "
    "--link: #0a5ea8; }\n"
    "@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #161616; --line: #4a4a4a; "
    "--faint: #a8a8a8; --link: #7cc0ff; } }\n"
    "body { color: var(--ink); background: var(--paper); font: 15px/1.45 system-ui, sans-serif; margin: 1rem auto; "
    "max-width: 76rem; padding: 0 .75rem; overflow-wrap: anywhere; }\n"
    "h1 { font-size: 1.35rem; margin: .5rem 0; }\n"
    "h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }\n.box { overflow-x: auto; }\na { color: var(--link); }\n"
    "table { border-collapse: collapse; font-variant-numeric: tabular-nums; }\n"
    "th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--line); text-align: left; "
    "overflow-wrap: break-word; }\n"
    "th { border-bottom-width: 2px; }\nth, .r { white-space: nowrap; }\n.r { text-align: right; }\nul { color: "
    "var(--faint); padding-left: 1.2rem; }\n"
    "</style>\n</head>\n<body>\n";

void print_html_text(FILE *f, const char *text) {
    for (const char *p = text; *p; p++) {
        int bytes = utf8_bytes(p), control = control_bytes(p);
        if (control) {
            fputc(' ', f);
            p += control - 1;
        } else if (bytes != 1) {
            fprintf(f, "%.*s", bytes ? bytes : 3, bytes ? p : "\xEF\xBF\xBD");
            p += bytes ? bytes - 1 : 0;
        } else if (*p == '&')
            fputs("&amp;", f);
        else if (*p == '<')
            fputs("&lt;", f);
        else if (*p == '>')
            fputs("&gt;", f);
        else if (*p == '"')
            fputs("&quot;", f);
        else
            fputc(*p, f);
    }
}

static void print_cell(FILE *f, const struct sheet *s, int i) {
    const struct sheet_cell *cell = &s->cells[i];
    bool right = s->columns[i % s->n_columns].align == SHEET_RIGHT;
    fputs(right ? "<td class=\"r\">" : "<td>", f);
    if (cell->strong) fputs("<strong>", f);
    print_html_text(f, cell->text);
    if (cell->strong) fputs("</strong>", f);
    if (cell->n_notes) fprintf(f, "<sup>%d", cell->first_note);
    if (cell->n_notes > 1) fprintf(f, "-%d", cell->first_note + cell->n_notes - 1);
    fputs(cell->n_notes ? "</sup></td>" : "</td>", f);
}

static void print_table(FILE *f, const struct sheet *s) {
    fputs("<div class=\"box\"><table>\n<thead><tr>", f);
    for (int c = 0; c < s->n_columns; c++) {
        fputs(s->columns[c].align == SHEET_RIGHT ? "<th class=\"r\">" : "<th>", f);
        print_html_text(f, s->columns[c].heading);
        fputs("</th>", f);
    }
    fputs("</tr></thead>\n<tbody>\n", f);
    for (int i = 0; i < s->n_cells; i++) {
        if (i % s->n_columns == 0) fputs("<tr>", f);
        print_cell(f, s, i);
        if ((i + 1) % s->n_columns == 0) fputs("</tr>\n", f);
    }
    fputs("</tbody>\n</table></div>\n", f);
}

static void write_sheet(const struct sheet *s, FILE *f) {
    fputs("<section", f);
    if (s->name) fprintf(f, " id=\"%s\"", s->name);
    fputs(">\n", f);
    if (s->caption) {
        fputs("<h2>", f);
        print_html_text(f, s->caption);
        fputs("</h2>\n", f);
    }
    print_table(f, s);
    if (s->n_notes) fputs("<ul>\n", f);
    for (int i = 0; i < s->n_notes; i++) {
        fputs("<li>", f);
        if (s->notes[i].number) fprintf(f, "<sup>%d</sup> ", s->notes[i].number);
        print_html_text(f, s->notes[i].text);
        fputs("</li>\n", f);
    }
    if (s->n_notes) fputs("</ul>\n", f);
    fputs("</section>\n", f);
}

static void end(FILE *f) {
    fputs("</body>\n</html>\n", f);
}

static void begin(FILE *f) {
    fputs(head, f);
}

const struct sheet_format format_html = {.name = "html", .write = write_sheet, .begin = begin, .end = end};
