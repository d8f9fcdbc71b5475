/* html.c - see html.h. */
#include "harness/table/html.h"

#include <stdbool.h>

#include "harness/table/sheet.h"

static const char head[] = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                           "<meta name=\"generator\" content=\"";
static const char style[] =
    "</title>\n<style>\n"
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
    /* below 66rem a picture's text would be smaller than 12px */
    "img { width: 100%; min-width: 66rem; max-width: 75rem; height: auto; background: #fff; border-radius: 4px; "
    "margin: .5rem 0; }\n"
    "pre { overflow-x: auto; border: 1px solid var(--line); padding: .6rem; border-radius: 4px; white-space: pre-wrap; "
    "}\n"
    ".curve { width: 100%; max-width: 34rem; height: auto; color: var(--ink); font-size: 13px; }\n"
    "</style>\n</head>\n<body>\n";

static void print_escaped(FILE *f, const char *text, bool lines) {
    for (const char *p = text; *p; p++) {
        int bytes = utf8_bytes(p);
        if (bytes != 1) {
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
            fputc(((unsigned char)*p < 0x20 && !(lines && *p == '\n')) || *p == 0x7f ? ' ' : *p, f);
    }
}

void html_text(FILE *f, const char *text) {
    print_escaped(f, text, false);
}

void html_lines(FILE *f, const char *text) {
    print_escaped(f, text, true);
}

void html_begin(FILE *f, const char *generator, const char *title) {
    fputs(head, f);
    html_text(f, generator);
    fputs("\">\n<title>", f);
    html_text(f, title);
    fputs(style, f);
}

void html_end(FILE *f) {
    fputs("</body>\n</html>\n", f);
}
