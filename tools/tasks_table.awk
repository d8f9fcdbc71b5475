# tasks_table.awk - one short test example of each sequence task as a Markdown table: its inputs, its targets with a dot
# where nothing is scored, chance and the best trivial answer. $LRNN names the program, by default ./lrnn.
#
#     awk -f tools/tasks_table.awk

# The task's name, then options that make an example short; they do not change what it is.
function row(name, options,   task, line, input, target, stats, chance, trivial) {
    task = name (options == "" ? "" : ":" options)
    (program " data show " task " --split test --count 1") | getline line
    if (line !~ /"input":/) { print "tasks_table.awk: no example of " task > "/dev/stderr"; exit 1 }
    input = list(line, "input")
    target = list(line, "target")
    gsub(/-100/, ".", target)
    stats = program " data stats " task " --split test --count 1"
    while ((stats | getline line) > 0) {
        if (line ~ /^  chance/) { split(line, part, " "); chance = part[2] }
        if (line ~ /^  floor/) { split(line, part, " "); trivial = part[2] }
    }
    close(stats)
    printf "| `%s` | %s | %s | %s | %s |\n", task, input, target, chance, trivial
}
function list(line, key,   at) {
    at = index(line, "\"" key "\":[")
    line = substr(line, at + length(key) + 4)
    line = substr(line, 1, index(line, "]") - 1)
    gsub(/,/, " ", line)
    return line
}
BEGIN {
    program = ENVIRON["LRNN"] == "" ? "./lrnn" : ENVIRON["LRNN"]
    print "| task | input | target | chance | trivial |"
    print "|:--|:--|:--|--:|--:|"
    row("s3", "length=8,n_train=1000")
    row("s5", "length=8,n_train=100,n_val=10,n_test=10,generators=two")
    row("word-problem", "group=q8,length=8,n_train=1000")
    row("parity", "eval_min_length=8,eval_max_length=8")
    short = "eval_min_length=8,eval_max_length=8,min_length=3"
    row("reverse-string", short)
    row("stack-manipulation", short)
    row("modular-arithmetic-brackets", short)
    row("solve-equation", short)
    row("duplicate-string", short)
    row("missing-duplicate", short)
    row("odds-first", short)
    row("binary-addition", short)
    row("binary-multiplication", short)
    row("bucket-sort", short)
    row("majority", short)
    row("flip-flop", "length=16")
    row("flip-flop-sparse", "length=16")
    row("dyck", "kinds=3,depth=4,eval_length=12")
    row("regbench", "symbols=6,min_states=3,max_states=4,max_word=6,length=20")
    row("mqar", "length=16,pairs=2,vocab=20,filler=zero")
    row("mqar-forgetting", "length=20,pairs=2,updates=1,vocab=24")
    row("mqar-compositional", "length=24,vocab=30")
    row("copy", "eval_length=6,min_length=3,letters=9")
    row("ngram-lookup", "eval_length=12,min_length=8,ngram=2,answer=2,letters=9")
    row("ngram-prefix", "eval_length=12,min_length=8,ngram=2,answer=2,letters=9")
    row("phone-book", "entries=3,names=4,digits=2")
}
