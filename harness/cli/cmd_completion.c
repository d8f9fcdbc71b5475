/* cmd_completion.c - lrnn completion bash|zsh: what a shell needs to complete commands, names and flags. The words come
 * from the program when they are wanted, so that they are those of its tables. */
#include <stdio.h>
#include <string.h>

#include "harness/cli/cli.h"

static const char bash[] = "# lrnn completion bash: source <(lrnn completion bash)\n"
                           "_lrnn_names() { lrnn list \"$1\" | cut -d' ' -f1; }\n"
                           "# The choices of a flag, which stand in brackets behind it.\n"
                           "_lrnn_choices() {\n"
                           "    lrnn \"$1\" --help 2>/dev/null |\n"
                           "        sed -n \"s/^  \\(-[a-z], \\)\\{0,1\\}$2 .*(\\([a-z0-9-]*\\( "
                           "[a-z0-9-]*\\)\\{1,\\}\\)[^)]*).*/\\2/p\" 2>/dev/null\n"
                           "}\n"
                           "_lrnn() {\n"
                           "    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}"
                           " before=${COMP_WORDS[$((COMP_CWORD - 1))]} words\n"
                           "    case $before in\n"
                           "    --models) words=$(_lrnn_names models) ;;\n"
                           "    --task) words=$(_lrnn_names tasks) ;;\n"
                           "    --paper) words=$(_lrnn_names papers) ;;\n"
                           "    --*) words=$(_lrnn_choices \"$command\" \"$before\") ;;\n"
                           "    esac\n"
                           "    if [ \"$COMP_CWORD\" -eq 1 ] || [ \"$command\" = help ]; then\n"
                           "        words=$(lrnn --help | sed -n 's/^  \\([a-z]*\\) .*/\\1/p')\n"
                           "    elif [ \"${word#-}\" != \"$word\" ]; then\n"
                           "        words=$(lrnn \"$command\" --help 2>/dev/null |\n"
                           "            sed -n 's/^  \\(-[a-z], \\)\\{0,1\\}\\(-[a-z0-9-]*\\) .*/\\1\\2/p' | tr -d ,)\n"
                           "    elif [ \"${before#--}\" = \"$before\" ] || [ \"$words\" = \"yes no\" ]; then\n"
                           "        words=$(_lrnn_names models; _lrnn_names tasks; _lrnn_names papers)\n"
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
