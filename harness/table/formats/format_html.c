/* format_html.c - sheets as one HTML page (html.h), each table in a box of its own that scrolls sideways on a narrow
 * screen. */
#include "harness/table/html.h"
#include "harness/table/sheet.h"

static void print_cell(FILE *f, const struct sheet *s, int i) {
    const struct sheet_cell *cell = &s->cells[i];
    bool right = s->columns[i % s->n_columns].align == SHEET_RIGHT;
    fputs(right ? "<td class=\"r\">" : "<td>", f);
    if (cell->strong) fputs("<strong>", f);
    if (cell->link) fputs("<a href=\"", f), html_text(f, cell->link), fputs("\">", f);
    html_text(f, cell->text);
    if (cell->link) fputs("</a>", f);
    if (cell->strong) fputs("</strong>", f);
    if (cell->n_notes) fprintf(f, "<sup>%d", cell->first_note);
    if (cell->n_notes > 1) fprintf(f, "-%d", cell->first_note + cell->n_notes - 1);
    fputs(cell->n_notes ? "</sup></td>" : "</td>", f);
}

static void print_table(FILE *f, const struct sheet *s) {
    fputs("<div class=\"box\"><table>\n<thead><tr>", f);
    for (int c = 0; c < s->n_columns; c++) {
        fputs(s->columns[c].align == SHEET_RIGHT ? "<th class=\"r\">" : "<th>", f);
        html_text(f, s->columns[c].heading);
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
        html_text(f, s->caption);
        fputs("</h2>\n", f);
    }
    print_table(f, s);
    if (s->n_notes) fputs("<ul>\n", f);
    for (int i = 0; i < s->n_notes; i++) {
        fputs("<li>", f);
        if (s->notes[i].number) fprintf(f, "<sup>%d</sup> ", s->notes[i].number);
        html_text(f, s->notes[i].text);
        fputs("</li>\n", f);
    }
    if (s->n_notes) fputs("</ul>\n", f);
    fputs("</section>\n", f);
}

static void begin(FILE *f) {
    html_begin(f, "lrnn report", "lrnn-bench");
}

const struct sheet_format format_html = {.name = "html", .write = write_sheet, .begin = begin, .end = html_end};
