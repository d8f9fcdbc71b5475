/* cmd_completion.c - lrnn completion bash|zsh: what a shell needs to complete commands, names and flags. The words come
 * from the program when they are wanted, so that they are those of its tables. */
#include <stdio.h>
#include <string.h>

#include "harness/cli/cli.h"

/* Of the program that is completed, by the path that it was called by; one that is none is lrnn of the PATH. */
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
    "# What the words of a usage stand for, up to its flags: \"show|stats\" for themselves.\n"
    "_lrnn_words() {\n"
    "    local word usage=$(_lrnn_help \"$1\" \"$2\" | sed -n '1s/^usage: lrnn //p')\n"
    "    usage=${usage#\"${2% }\"}\n"
    "    for word in $(echo \"${usage%%-*}\" | sed 's/\\[flags\\]//; s/[][|.]/ /g'); do\n"
    "        case $2:$word in\n"
    "        *:TASK) _lrnn_names \"$1\" tasks ;;\n"
    "        *:MODEL) _lrnn_names \"$1\" models ;;\n"
    "        *:PLAN) _lrnn_names \"$1\" papers ;;\n"
    "        data*:NAME) \"$1\" data list | sed -n 's/^\\([a-z][a-z0-9_-]*\\).*/\\1/p' ;;\n"
    "        *:NAME*) _lrnn_names \"$1\" models; _lrnn_names \"$1\" tasks; _lrnn_names \"$1\" ops ;;\n"
    "        *:[a-z]*) echo \"$word\" ;;\n"
    "        esac\n"
    "    done\n"
    "}\n"
    "_lrnn() {\n"
    "    local lrnn=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[$((COMP_CWORD - 1))]} words\n"
    "    local command=$(_lrnn_command \"${COMP_WORDS[@]:0:$((COMP_CWORD < 3 ? COMP_CWORD : 3))}\")\n"
    "    lrnn=${lrnn/#\\~\\//$HOME/}\n"
    "    type -P \"$lrnn\" >/dev/null || lrnn=lrnn\n"
    "    case $before in\n"
    "    --models) words=$(_lrnn_names \"$lrnn\" models) ;;\n"
    "    --task) words=$(_lrnn_names \"$lrnn\" tasks) ;;\n"
    "    --paper) words=$(_lrnn_names \"$lrnn\" papers) ;;\n"
    "    --*) words=$(_lrnn_choices \"$lrnn\" \"$command\" \"$before\") ;;\n"
    "    esac\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ] || [ \"$command\" = help ]; then\n"
    "        words=$(\"$lrnn\" --help | sed -n 's/^  \\([a-z]*\\) .*/\\1/p')\n"
    "    elif [ \"${word#-}\" != \"$word\" ]; then\n"
    "        words=$(_lrnn_help \"$lrnn\" \"$command\" |\n"
    "            sed -n 's/^  \\(-[a-z], \\)\\{0,1\\}\\(-[a-z0-9-]*\\) .*/\\1\\2/p' | tr -d ,)\n"
    "    elif [ \"${before#--}\" = \"$before\" ] || [ \"$words\" = \"yes no\" ]; then\n"
    "        words=$(_lrnn_words \"$lrnn\" \"$command\")\n"
    "    fi\n"
    "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
    "}\n"
    "complete -o default -F _lrnn lrnn ./lrnn\n";
/* What bashcompinit defines calls compdef, which is there once compinit has run, as not every shell's start has it. */
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
