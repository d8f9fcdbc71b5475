# layout.awk - a C program that prints the place and bytes of each field of lrnn.h's structures, and the values of its
# enumerations, one a line. Fields `reserved` may become others, and are left out.
#
#     awk -f tests/library/layout.awk HEADER >layout.c
BEGIN {
    RS = "\001" # the whole file at once
    print "#include <stddef.h>\n#include <stdio.h>\n#include <lrnn.h>\nint main(void) {"
}
{
    text = $0
    while ((at = index(text, "/*")) > 0) {
        rest = substr(text, at + 2)
        text = substr(text, 1, at - 1) substr(rest, index(rest, "*/") + 2)
    }
    count = split(text, parts, /typedef (struct|enum) /)
    for (i = 2; i <= count; i++) {
        name = parts[i]
        sub(/[ \n].*/, "", name)
        body = parts[i]
        sub(/^[^{]*{/, "", body)
        sub(/}.*/, "", body)
        lines = split(body, declarations, ";")
        for (j = 1; j <= lines; j++) {
            words = split(declarations[j], names, ",")
            for (k = 1; k <= words; k++) {
                field = names[k]
                gsub(/\[[0-9]*\]|^[ \n]+|[ \n]+$/, "", field)
                if (field ~ /=/) {
                    sub(/[ =].*/, "", field)
                    printf "    printf(\"%s %%d\\n\", (int)%s);\n", field, field
                    continue
                }
                sub(/.*[ *\n]/, "", field)
                if (field == "" || field == "reserved") continue
                printf "    printf(\"%s.%s %%zu %%zu\\n\", offsetof(%s, %s), sizeof((%s *)0)->%s);\n", name, field,
                    name, field, name, field
            }
        }
    }
}
END { print "    return 0;\n}" }
