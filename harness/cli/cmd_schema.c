/* cmd_schema.c - `lrnn schema`: the columns of the tables we write. */
#include <stdio.h>

#include "harness/cli/cli.h"
#include "harness/store/record.h"
#include "harness/store/schema.h"

static enum status run(int argc, char **argv, struct error *e) {
    const char *what[1];
    struct cli cli = {.command = &command_schema, .positional = what, .max_positional = 1};
    TRY(cli_parse(&cli, argc, argv, e));
    if (cli.n_positional == 0)
        return fail(e, ST_USAGE, "schema: say which table; usage: lrnn %s", command_schema.usage);
    return schema_print(what[0], stdout, e);
}

const struct command command_schema = {
    .name = "schema",
    .usage = "schema runs|curves|evals|perf|limits|machines",
    .summary = "explain every column of a table: name, type, unit and meaning",
    .run = run,
};
