"""table.py - what loop.py found, as a table: the worst error of every mixer, and of every part of a run around it."""
COLUMNS = ("loss", "grad_norm", "lr", "weights", "scores")
WIDE_B_H, WIDE_T = 16, 32  # several (sequence, head) pairs per part of a kernel, several chunks of steps


def is_wide(row):
    return row["B"] * row["heads"] > WIDE_B_H and row["T"] > WIDE_T


def worst_rows(rows, names):
    """A row per name: runs, the largest B x H and T, the worst error of each column."""
    for name, of_name in names:
        of = [row for row in rows if of_name(row)]
        if of:
            sizes = [len(of), max(row["B"] * row["heads"] for row in of), max(row["T"] for row in of)]
            errors = [f"{max(row[key] for row in of):.1e}" for key in COLUMNS]
            yield [name, *(str(size) for size in sizes), *errors]


def in_order(values):
    return list(dict.fromkeys(values))


def markdown(heading, rows):
    lines = [[heading, "runs", "B x H", "T", "loss", "gradient norm", "rate", "weights", "scores"],
             ["---"] + ["--:"] * 8, *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def write_table(rows, bound):
    """Markdown: mixers, those of B x H > 16 and T > 32 again, then what stands around a mixer."""
    mixers = in_order(row["mixer"] for row in rows)
    parts = in_order(row["part"] for row in rows)
    by_mixer = [(mixer, lambda row, mixer=mixer: row["mixer"] == mixer) for mixer in mixers]
    wide = [(f"{mixer}, B x H > {WIDE_B_H}, T > {WIDE_T}",
             lambda row, mixer=mixer: row["mixer"] == mixer and is_wide(row)) for mixer in mixers]
    by_part = [(part, lambda row, part=part: row["part"] == part) for part in parts]
    above = sum(max(row[key] for key in COLUMNS) > bound for row in rows)
    commits = [row["commit"][:12] for row in rows]
    of_commits = ", ".join(f"{commits.count(commit)} of commit {commit}" for commit in in_order(commits))
    return (f"{len(rows)} runs, {above} above {bound:g} ({of_commits}).\n\n"
            + markdown("mixer", [*worst_rows(rows, by_mixer), *worst_rows(rows, wide)])
            + "\n" + markdown("part of the run", worst_rows(rows, by_part)))
