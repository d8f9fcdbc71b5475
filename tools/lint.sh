#!/bin/sh
# lint.sh FILE... - prints each finding in the output of clang-tidy, cppcheck and shellcheck once, on one line; exit 1
# if there is one. `make lint` calls it.
set -u
found=$(cat "$@" | sed "s|^$PWD/||; s|^\./||" | grep -E '^[^ :]+:[0-9]+:[0-9]+: .* \[[A-Za-z0-9.,-]+\]$' | sort -u)
[ -n "$found" ] || exit 0
printf '%s\n' "$found"
echo "make lint: $(printf '%s\n' "$found" | wc -l) findings; clang-tidy's way to each is in FILE.tidy beside FILE.o" >&2
exit 1
