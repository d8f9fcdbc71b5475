/* cmd_completion.c - lrnn completion bash|zsh: what a shell needs to complete commands, names and flags. The words come
 * from the program when they are wanted, so that they are those of its tables. */
#include <stdio.h>
#include <string.h>

#include "harness/cli/cli.h"

/* Names the program that is completed by the path of its call; without a path it is lrnn of the PATH. */
static const char bash[] =
    "# lrnn completion bash: source <(lrnn completion bash)\n"
    "# \"data show\" of `lrnn data show ...`, \"train\" of `lrnn train ...`: what --help and a usage are asked of.\n"
    "_lrnn_command() {\n"
    "    case $2 in\n"
    "    data|perf|store) echo \"$2\" \"$3\" ;;\n"
    "    *) echo \"$2\" ;;\n"
    "    esac\n"
    "}\n"
    "_lrnn_help() { \"$1\" $2 --help 2>/dev/null; }\n"
    "_lrnn_names() { \"$1\" list \"$2\" | sed -n 's/^\\([a-z][^ ]*\\).*/\\1/p'; }\n"
    "# The choices of a flag, which stand in brackets behind it; the reports have a list of their own.\n"
    "_lrnn_choices() {\n"
    "    if [ \"$3\" = --what ]; then\n"
    "        _lrnn_help \"$1\" \"$2\" | sed -n '/^reports$/,$s/^  \\([a-z]*\\) .*/\\1/p'\n"
    "    fi\n"
    "    _lrnn_help \"$1\" \"$2\" |\n"
    "        sed -n \"s/^  \\(-[a-z], \\)\\{0,1\\}$3 .*(\\([a-z0-9-]*\\( [a-z0-9-]*\\)\\{1,\\}\\)[^)]*).*/\\2/p\" "
    "2>/dev/null\n"
    "}\n"
    "# How many words stand before the cursor, flags and their values left out, and this one.\n"
    "_lrnn_place() {\n"
    "    local help=$(_lrnn_help \"$1\" \"$2\") n=1 value= word\n"
    "    shift 2\n"
    "    for word in \"$@\"; do\n"
    "        case $value$word in\n"
    "        value*) value= ;;\n"
    "        --|-*=*) ;;\n"
    "        -*) echo \"$help\" | grep -q -e \"^  $word .*(yes no\" 2>/dev/null || value=value ;;\n"
    "        *) n=$((n + 1)) ;;\n"
    "        esac\n"
    "    done\n"
    "    echo $n\n"
    "}\n"
    "# What the word at that place of a usage stands for, up to its flags: \"show|stats\" for themselves.\n"
    "_lrnn_words() {\n"
    "    local word kind place=0 usage=$(_lrnn_help \"$1\" \"$2\" | sed -n '1s/^usage: lrnn //p')\n"
    "    usage=${usage#\"${2% }\"}\n"
    "    for word in $(echo \"${usage%%-*}\" | sed 's/\\[flags\\]//; s/[][]//g'); do\n"
    "        place=$((place + 1))\n"
    "        [ \"${word%...}\" = \"$word\" ] || [ \"$place\" -gt \"$3\" ] || place=$3\n"
    "        [ \"$place\" -eq \"$3\" ] || continue\n"
    "        for kind in $(echo \"$word\" | tr '|.' '  '); do\n"
    "            case $2:$kind in\n"
    "            *:COMMAND) \"$1\" --help | sed -n 's/^  \\([a-z]*\\) .*/\\1/p' ;;\n"
    "            help:WHAT) _lrnn_words \"$1\" \"$4\" 1 ;;\n"
    "            *:TASK) _lrnn_names \"$1\" tasks ;;\n"
    "            *:MODEL) _lrnn_names \"$1\" models ;;\n"
    "            *:OP) _lrnn_names \"$1\" ops ;;\n"
    "            *:PLAN) _lrnn_names \"$1\" papers ;;\n"
    "            data*:NAME) \"$1\" data list | sed -n 's/^\\([a-z][a-z0-9_-]*\\).*/\\1/p' ;;\n"
    "            *:NAME*) for kind in models tasks ops kernels papers; do _lrnn_names \"$1\" $kind; done ;;\n"
    "            *:[a-z]*) echo \"$kind\" ;;\n"
    "            esac\n"
    "        done\n"
    "    done\n"
    "}\n"
    "_lrnn() {\n"
    "    local lrnn=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[$((COMP_CWORD - 1))]}\n"
    "    local words place first=2\n"
    "    local command=$(_lrnn_command \"${COMP_WORDS[@]:0:$((COMP_CWORD < 3 ? COMP_CWORD : 3))}\")\n"
    "    case $command in *\" \"[a-z]*) first=3 ;; esac\n"
    "    lrnn=${lrnn/#\\~\\//$HOME/}\n"
    "    command -v \"$lrnn\" >/dev/null 2>&1 || lrnn=lrnn\n"
    "    case $before in\n"
    "    --models) words=$(_lrnn_names \"$lrnn\" models) ;;\n"
    "    --task) words=$(_lrnn_names \"$lrnn\" tasks) ;;\n"
    "    --paper) words=$(_lrnn_names \"$lrnn\" papers) ;;\n"
    "    --*) words=$(_lrnn_choices \"$lrnn\" \"$command\" \"$before\") ;;\n"
    "    esac\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        words=$(\"$lrnn\" --help | sed -n 's/^  \\([a-z]*\\) .*/\\1/p')\n"
    "    elif [ \"${word#-}\" != \"$word\" ]; then\n"
    "        words=$(_lrnn_help \"$lrnn\" \"$command\" |\n"
    "            sed -n 's/^  \\(-[a-z], \\)\\{0,1\\}\\(-[a-z0-9-]*\\) .*/\\1\\2/p' | tr -d ,)\n"
    "    elif [ \"${before#--}\" = \"$before\" ] || [ \"$words\" = \"yes no\" ]; then\n"
    "        place=$(_lrnn_place \"$lrnn\" \"$command\" \"${COMP_WORDS[@]:$first:$((COMP_CWORD - first))}\")\n"
    "        words=$(_lrnn_words \"$lrnn\" \"$command\" \"$place\" \"${COMP_WORDS[2]}\")\n"
    "    fi\n"
    "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
    "}\n"
    "complete -o default -F _lrnn lrnn ./lrnn lrnn-f64 ./lrnn-f64\n";
/* Functions of bashcompinit call compdef, which is there once compinit has run, as not every shell's start has it. */
static const char zsh[] = "# lrnn completion zsh: source <(lrnn completion zsh)\n"
                          "(( $+functions[compdef] )) || { autoload -U compinit && compinit -i }\n"
                          "autoload -U +X bashcompinit && bashcompinit\n";

static enum status run(int argc, char **argv, struct error *e) {
    const char *shell = NULL;
    struct cli cli = {.command = &command_completion, .positional = &shell, .max_positional = 1};
    TRY(cli_parse(&cli, argc, argv, e));
    if (!shell || (strcmp(shell, "bash") != 0 && strcmp(shell, "zsh") != 0))
        return fail(e, ST_USAGE, "completion: say for which shell, bash or zsh");
    if (!strcmp(shell, "zsh")) fputs(zsh, stdout);
    fputs(bash, stdout);
    return ST_OK;
}

const struct command command_completion = {
    .name = "completion",
    .usage = "completion bash|zsh",
    .summary = "what a shell needs to complete commands, names and flags",
    .run = run,
};
