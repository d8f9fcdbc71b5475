#!/usr/bin/env bash
# hardened.sh PROGRAM: whether the linker and the compiler did what docs/promises.md (P17) says: the program may be
# loaded anywhere, its tables of functions are read-only before main begins, the stack is not executed, functions with
# arrays have canaries, and copies into arrays of known size are checked.
set -euo pipefail

program=$1
missing=0

# has WHAT PATTERN READELF_FLAG: one line each, and a failure where nothing matches.
has() {
    if readelf -W "$3" "$program" | grep -E -- "$2" >/dev/null; then
        printf '%-48s yes\n' "$1"
    else
        printf '%-48s no\n' "$1"
        missing=$((missing + 1))
    fi
}

has 'loaded at any address (PIE)' 'Type: +DYN' -h
has 'tables of functions read-only (RELRO)' 'GNU_RELRO' -l
has 'all of them resolved at the start (BIND_NOW)' 'BIND_NOW|Flags:.* NOW' -d
has 'stack not executable' 'GNU_STACK.* RW ' -l
has 'canaries' '__stack_chk_fail' --dyn-syms
has 'checked copies (FORTIFY_SOURCE)' '__(memcpy|memset|snprintf|vsnprintf|printf|fprintf|read)_chk' --dyn-syms
printf '%d passed, %d failed\n' $((6 - missing)) "$missing"
[ "$missing" -eq 0 ]
