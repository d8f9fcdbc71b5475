/* format_details.c - a sheet as a section of Markdown that is folded under its caption, for pages of many tables. */
#include "harness/table/html.h"
#include "harness/table/sheet.h"

static void write_sheet(const struct sheet *s, FILE *f) {
    struct sheet body = *s;
    body.caption = NULL;
    fputs("<details>\n<summary>", f);
    html_text(f, s->caption ? s->caption : "table");
    fputs("</summary>\n\n", f);
    format_md.write(&body, f);
    fputs("\n</details>\n", f);
}

const struct sheet_format format_details = {.name = "details", .write = write_sheet};
