/* status.c - error text. */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/paragraph.h"

int status_exit_code(enum status status) {
    return status == ST_MEMORY ? ST_DEVICE : status == ST_HELP ? ST_OK : (int)status;
}

enum status fail(struct error *e, enum status status, const char *format, ...) {
    if (!e) return status;
    va_list args;
    va_start(args, format);
    e->status = status;
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    (void)text_shown(e->text, e->text, sizeof e->text); /* quoted text may contain any characters */
    return status;
}
