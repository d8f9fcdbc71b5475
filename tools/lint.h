/* lint.h - for clang-tidy alone (make lint): the analyzer sees one file at a time and would think that fail() may
 * return ST_OK, and then follow paths that cannot happen. */
#include "core/status.h"

#define fail(e, status, ...) ((fail)(e, status, __VA_ARGS__), (status))
