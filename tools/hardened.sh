#!/usr/bin/env bash
# hardened.sh PROGRAM - checks P17 of docs/trust.md: the program may be loaded anywhere, its tables of functions are
# read-only before main begins, the stack cannot be executed, functions with arrays have canaries, and copies into
# arrays of known size are checked. The check of the processor before main (kernels/lib/processor.c), which ends the
# program if instructions are missing, must be there and use none of these instructions itself.
set -euo pipefail

program=$1
tried=0
missing=0

# verdict WHAT COMMAND...: prints one line, and counts a failure if the command fails.
verdict() {
    local what=$1 says=yes
    shift
    "$@" || says=no
    printf '%-48s %s\n' "$what" $says
    tried=$((tried + 1))
    [ $says = yes ] || missing=$((missing + 1))
}

# has WHAT PATTERN READELF_FLAG: passes if a line of readelf matches.
has() {
    verdict "$1" matches "$2" "$3"
}

matches() {
    readelf -W "$2" "$program" | grep -E -- "$1" >/dev/null
}

# The code of the named functions, except those that the compiler inlined.
code_of() {
    for name in "$@"; do objdump -d --no-show-raw-insn --disassemble="$name" "$program"; done
}

# There may be no instruction of AVX (names with v), SSSE3, SSE4, BMI and the like.
runs_anywhere() {
    local looks later='v[a-z]|p(abs|blend|shufb|(ins|ext)r[bdq]|mov[sz]x|m(ax|in)(s[bd]|u[wd]))'
    later+='|sh[lr]x|sarx|rorx|andn |bextr|bzhi|lzcnt|popcnt|movbe'
    looks=$(code_of look_before_main processor_{has,used,names,require} read_leaves join_text)
    [ "$(grep -c '^[0-9a-f]* <.*>:$' <<<"$looks")" -ge 4 ] && ! grep -E "[[:space:]]($later)" <<<"$looks"
}

has 'loaded at any address (PIE)' 'Type: +DYN' -h
has 'tables of functions read-only (RELRO)' 'GNU_RELRO' -l
has 'all of them resolved at the start (BIND_NOW)' 'BIND_NOW|Flags:.* NOW' -d
has 'stack not executable' 'GNU_STACK.* RW ' -l
has 'canaries' '__stack_chk_fail' --dyn-syms
has 'checked copies (FORTIFY_SOURCE)' '__(memcpy|memset|snprintf|vsnprintf|printf|fprintf|read)_chk' --dyn-syms
has 'a look at the processor before main' 'look_before_main' -s
verdict 'which any processor can run' runs_anywhere
printf '%d passed, %d failed\n' $((tried - missing)) "$missing"
[ "$missing" -eq 0 ]
