/* status.c - error text. */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

enum status fail(struct error *e, enum status status, const char *format, ...) {
    if (!e) return status;
    va_list args;
    va_start(args, format);
    e->status = status;
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    return status;
}
