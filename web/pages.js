// pages.js - the pages of `lrnn report --html`, each a function of what the address says: its title and its parts.
"use strict";

// --- the matrix -----------------------------------------------------------------------------------------------------

const SIZES = [["", "any size"], ["100000", "at most 100k"], ["300000", "at most 300k"], ["1000000", "at most 1M"]];
const groupOf = task => task.label.split(":")[0];
const options = (values, all) => [["", all], ...values.map(value => [value, value])];

function passes(row, q) {
    return (!q.get("family") || familyOf(row.mixer) === q.get("family")) &&
        (!q.get("group") || taskOf(row).suite === q.get("group")) &&
        (!q.get("profile") || row.profile === q.get("profile")) && (!q.get("precision") ||
            row.precision === q.get("precision")) &&
        (!q.get("size") || row.params <= +q.get("size")) && (!q.get("seeds") || row.seeds >= +q.get("seeds"));
}

function filters(q) {
    const values = key => distinct(index.rows.map(row => row[key])).sort();
    return h("form", {class: "filters", "aria-label": "Filters", submit: event => event.preventDefault()},
        picker("Mixers", "family", [["", "all"], ...index.mixers.map(m => [m.name, m.title])], q.get("family") || ""),
        picker("Tasks", "group", options(distinct(index.tasks.map(t => t.suite)), "all groups"), q.get("group") || ""),
        picker("Profile", "profile", options(values("profile"), "any"), q.get("profile") || ""),
        picker("Precision", "precision", options(values("precision"), "any"), q.get("precision") || ""),
        picker("Size", "size", SIZES, q.get("size") || ""),
        picker("Seeds", "seeds", [["", "rows of 3 or more first"], ["1", "any number"], ["3", "3 or more"],
            ["5", "5 or more"]], q.get("seeds") || ""),
        picker("Sort", "sort", [["", "as the program lists them"], ["name", "by name"], ["tasks", "by number of tasks"],
            ["params", "by size, the smallest first"], ...index.tasks.map(t => [t.stem, `by ${taskName(t)}`])],
                q.get("sort") || ""));
}

// Toggles a word of a list in the address.
function toggle(key, word) {
    const words = new Set((state().get(key) || "").split(" ").filter(w => w));
    words.has(word) ? words.delete(word) : words.add(word);
    choose({[key]: [...words].join(" ")});
}

function matrixCell(row, of, task, variants, seen) {
    if (!row) return h("td", {class: "none"}, "");
    const marks = marksOf(row, of), shade = Math.max(0, Math.min(1, (row.acc - task.chance) / (1 - task.chance)));
    marks.forEach(mark => seen.add(mark));
    const said = [score(row.acc), plural(row.seeds, "seed"), ...marks.map(mark => MARKS[mark])].join("; ");
    const title = `${rowName(row)} on ${task.label}` +
        (row.low === null ? "" : `, ${index.level * 100} % interval ${interval(row.low, row.high)}`) +
        `, ${row.solved} solved it, ${count(row.params)} parameters, profile ${row.profile}, ${row.precision}` +
        (variants > 1 ? `; one of ${variants} settings` : "");
    return h("td", {style: `--v:${shade.toFixed(3)}`, class: row.seeds < 3 ? "few" : undefined},
        h("a", {href: rowLink(row), title, "aria-label": said}, score(row.acc), h("small", {},
            plural(row.seeds, "seed"), marks.length > 0 && h("b", {}, ` ${marks.join("")}`))));
}

function drawIndex(q) {
    const rows = index.rows.filter(row => passes(row, q));
    const opened = new Set((q.get("open") || "").split(" ")), openedTasks = new Set((q.get("tasks") || "").split(" "));
    const byTask = new Map(index.tasks.map(task => [task, []]));
    rows.forEach(row => byTask.get(taskOf(row)).push(row));
    const columns = []; // a group of tasks is one column, its task with the most rows, until it is opened
    const size = task => byTask.get(task).length, fullest = tasks => [...tasks].sort((a, b) => size(b) - size(a));
    for (const suite of distinct(index.tasks.map(t => t.suite)))
        for (const group of distinct(fullest(index.tasks.filter(t => t.suite === suite)).map(groupOf))) {
            const tasks = fullest(index.tasks.filter(t => groupOf(t) === group && t.suite === suite && size(t)));
            (openedTasks.has(group) ? tasks : tasks.slice(0, 1)).forEach((task, i) =>
                columns.push({task, group, suite, more: i === 0 ? tasks.length - 1 : 0, of: usual(byTask.get(task))}));
        }
    const best = list => standing(list, row => !q.get("seeds") && row.seeds < 3);
    const cell = ({label, member}, task) => byTask.get(task).filter(row =>
        (member ? row.mixer : familyOf(row.mixer)) === label);
    let lines = index.mixers.map(m => m.name).filter(name => rows.some(row => familyOf(row.mixer) === name));
    const sort = q.get("sort"), sortTask = index.tasks.find(task => task.stem === sort);
    const keys = {name: name => nameOf(name).toLowerCase(), tasks: name =>
        -distinct(rows.filter(r => familyOf(r.mixer) === name).map(r => r.task)).length,
        params: name => Math.min(...rows.filter(r => familyOf(r.mixer) === name).map(r => r.params))};
    const key = sortTask ? name => -(best(cell({label: name}, sortTask))?.acc ?? -1) : keys[sort];
    if (key) lines = lines.map(name => [key(name), name]).sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1
        : 0)).map(pair => pair[1]);
    const seen = new Set(), shown = [];
    for (const name of lines) {
        const members = distinct(rows.filter(row => familyOf(row.mixer) === name).map(row => row.mixer))
            .sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
        shown.push({label: name, members});
        if (opened.has(name)) members.forEach(label => shown.push({label, member: true}));
    }
    const suites = distinct(columns.map(c => c.suite));
    const head = h("thead", {},
        h("tr", {}, h("td", {}), suites.map(suite => h("th", {scope: "colgroup",
            colspan: columns.filter(c => c.suite === suite).length}, suite))),
        h("tr", {}, h("th", {scope: "col"}, "Mixer"), columns.map(c => h("th", {scope: "col", title: c.task.label,
            abbr: openedTasks.has(c.group) ? taskName(c.task) : c.group},
            link(taskLink(c.task), openedTasks.has(c.group) ? taskName(c.task) : c.group),
            (c.more > 0) && h("button", {type: "button", "aria-expanded": `${openedTasks.has(c.group)}`,
                "data-tasks": c.group,
                "aria-label": `${c.group}: all ${c.more + 1} tasks`, click: () => toggle("tasks", c.group)},
                    openedTasks.has(c.group) ? "less" : `+${c.more}`)))));
    const body = h("tbody", {}, shown.map(({label, members, member}) => h("tr", {class: member ? "member" : undefined},
        h("th", {scope: "row"}, link(address("mixer", {mixer: familyOf(label), of: member && stemOf(label)}),
            nameOf(label)),
            !member && members.length > 1 && h("button", {type: "button", "aria-expanded": `${opened.has(label)}`,
                "data-open": label,
                "aria-label": `${nameOf(label)}: all ${members.length} settings`, click: () => toggle("open", label)},
                    opened.has(label) ? "less" : `${members.length}`)),
        columns.map(c => {
            const list = cell({label, member}, c.task);
            return matrixCell(best(list), c.of, c.task, list.length, seen);
        }))));
    const every = () => ({heads: ["mixer", ...columns.map(c => c.task.label)],
        rows: shown.map(s => [nameOf(s.label), ...columns.map(c => score(best(cell(s, c.task))?.acc))]),
        from: shown.map(s => columns.map(c => best(cell(s, c.task))).filter(row => row))});
    return ["Results", [
        h("p", {class: "lead"},
            `Each cell is the test score of a mixer on a task, with the number of seeds below it: ` +
            `${index.phrase.toLowerCase()} (${index.protocol}). `,
            "The learning rate was chosen by the best mean validation score. Of several settings of a mixer the one " +
            "with the best validation is shown, those with three or more seeds first. " +
            "The stronger its shade, the closer a cell is to 1; without shade it is at chance. A dashed cell rests " +
            "on fewer than three seeds."),
        filters(q), rows.length === 0 && h("p", {}, "No row passes these filters."),
        h("div", {class: "box matrix", tabindex: 0, role: "region", "aria-label": "Mixers by tasks"},
            h("table", {}, h("caption", {},
                `${plural(lines.length, "mixer")} by ${plural(columns.length, "task")}, ${plural(rows.length, "row")}`),
                head, body)),
        legendOf(seen), exports("matrix", every, recordsUnder), brokenNote()]];
}

function brokenNote() {
    if (!index.broken.length) return null;
    return h("section", {}, h("h2", {}, "Left out"), h("p", {},
        `${plural(index.broken.length, "record")} could not be read, and no number here rests on them:`),
        h("ul", {}, index.broken.map(text => h("li", {}, text))));
}

// --- a task ---------------------------------------------------------------------------------------------------------

const recordsOf = (file, row, key = "chosen") => {
    const from = key === "chosen" ? row.more.chosen : row.more.first, n = key === "chosen" ? row.chosen_n
        : row.more.all;
    return file.runs.run_id.slice(from, from + n);
};

// A task's file, with its rows and columns as pages use them.
async function taskFile(task) {
    const file = await load(`task-${task.stem}`);
    if (file.joined) return file;
    for (const column of Object.values(file.runs))
        for (let i = 1; i < file.curves.length; i++) if (!(i in column)) column[i] = column[i - 1];
            // a hole: as before it
    file.joined = index.rows.filter(row => taskOf(row) === task);
    file.joined.forEach((row, i) => {
        row.more = file.rows[i];
        row.chosen_n = 0;
        for (let k = row.more.chosen; k < row.more.first + row.more.all &&
            file.runs.lr[k] === file.runs.lr[row.more.chosen]; k++) row.chosen_n++;
    });
    return file;
}

// The records that rows of any tasks rest on.
const recordsUnder = async rows =>
    (await Promise.all(rows.map(async row => recordsOf(await taskFile(taskOf(row)), row)))).flat();

// A task's file for a page of that task: its rows are named by what they are unlike most of them.
async function ownFile(task) {
    const file = await taskFile(task);
    const keys = distinct(file.joined.flatMap(row => pairsOf(row.setting.trim().replace(/ /g, ",")).map(pair =>
        pair[0])))
        .filter((key, _, all) => key !== "steps" || !all.includes("epochs")); // steps follow from epochs
    file.usual = keys.map(key => [key, commonest(file.joined.map(row => row.more.own[key]))]).filter(pair =>
        pair[1] !== undefined);
    for (const row of file.joined) row.told = file.usual.map(([key, value]) =>
        [key, row.more.own[key], value]).filter(t => t[1] !== undefined && t[1] !== t[2]);
    return file;
}

const rowColumns = () => [
    {title: "mixer", value: rowName, cell: row => [link(rowLink(row), nameOf(row.mixer)),
        settingOf(row) && h("small", {}, settingOf(row))]},
    {title: "score", value: row => row.acc, help: index.phrase, text: row => score(row.acc, 4) + marksOf(row).join("")},
    {title: "interval", number: true, help: "of the score over seeds; with too few seeds there is none",
        value: row => row.low, text: row => interval(row.low, row.high)},
    {title: "solved", number: true,
        help: "seeds that reached the task's threshold out of all seeds, with the exact 95 % interval of this fraction",
        value: row => row.solved / row.seeds,
        text: row => `${row.solved}/${row.seeds} (${interval(row.solved_low, row.solved_high)})`},
    {title: "parameters", least: true, value: row => row.params, text: row => count(row.params)},
    {title: "paper", number: true, help: "the published number; ~ it is of another setting",
        value: row => (row.published ? parseFloat(row.published) : null), text: row => row.published || "-"},
    {title: "difference", value: row => row.delta,
    help: "ours minus the paper's; (best): the paper prints its best run, so our best run is compared, not the mean",
    text: row => signed(row.delta) + (row.delta_of_best && row.delta !== null ? " (best)" : "")},
    {title: "steps", value: row => row.steps, text: row => `${count(row.steps)}/${count(row.max_steps)}`},
    {title: "state", least: true, help: "floats per sequence and layer", value: row => row.state,
    text: row => count(row.state)},
    {title: "FLOPs per token", least: true, value: row => row.flops, text: row => count(row.flops)},
    {title: "tokens/s", value: row => row.speed, text: row => (row.speed === null ? "-" : count(row.speed) +
        (row.disturbed ? "!" : "")),
        cell: row => (row.speed === null ? "-" : h("span", {title: row.speed_at}, count(row.speed),
            row.disturbed && "!"))},
    {title: "rate", value: row => row.lr, text: row => `${row.lr}`, help: "the learning rate that validation chose"},
    {title: "grid", help: "runs of all rates and seeds", value: row => row.grid},
    {title: "profile", value: row => row.profile},
    {title: "precision", value: row => row.precision},
];

// Rows of which none has both a higher score and a lower cost.
function front(rows, cost, sign) {
    return rows.filter(row => !rows.some(other => other !== row && sign * (other[cost] - row[cost]) <= 0 &&
        other.acc >= row.acc &&
        (other.acc > row.acc || other[cost] !== row[cost]))).sort((a, b) => a[cost] - b[cost]);
}

function costFigure(task, file, rows, cost, label, sign) {
    const known = rows.filter(row => row[cost] > 0);
    if (known.length < 2) return null;
    const families = distinct(known.map(row => familyOf(row.mixer))), edge = front(known, cost, sign);
    const point = row => [row[cost], row.acc, row.low ?? undefined, row.high ?? undefined,
        `${rowName(row)}: ${label} ${count(row[cost])}, score ${score(row.acc)}`, recordsOf(file, row)];
    return figure(`Score against ${label}. The line joins the Pareto front: ` +
        `${distinct(edge.map(row => nameOf(row.mixer))).join("; ")}.`,
        [...families.map(family => ({name: nameOf(family), ...style(family, []), line: false, dots: true,
            points: known.filter(row => familyOf(row.mixer) === family).map(point)})),
            {name: "Pareto front", colour: "var(--ink)", dash: "4 3", points: edge.map(row =>
                [row[cost], row.acc, undefined, undefined, "", recordsOf(file, row)])}],
        {x: label, y: "score", logX: true, low: 0, high: 1, levels: [[task.chance, "chance"]]});
}

function example(file) {
    const words = list => h("code", {}, list.map(v => (v === null ? "·" : v)).join(" "));
    if (file.pictures) return h("p", {}, h("img", {src: `data/${file.stem}.png`,
        alt: `${file.pictures} test images, each with its label below it`}));
    if (!file.input) return null;
    return h("dl", {class: "example"}, h("dt", {}, "input of a test example"), h("dd", {}, words(file.input)),
        h("dt", {}, file.per_sequence ? "its label" : "its targets (· is not scored)"),
            h("dd", {}, words(file.target)));
}

// The sentence that answers which mixer does it with the fewest parameters, and how sure that is.
function fewest(rows) {
    const solved = rows.filter(row => row.solved > 0).sort((a, b) => a.params - b.params ||
        b.solved / b.seeds - a.solved / a.seeds);
    const sure = solved.filter(row => row.solved === row.seeds && row.seeds >= 3);
    const say = row => [link(rowLink(row), rowName(row)),
        ` (${count(row.params)} parameters, profile ${row.profile}, ${row.precision}): ${row.solved} of ` +
        `${plural(row.seeds, "seed")} solved it at the ` +
        `chosen rate; the 95 % interval of that share is ${interval(row.solved_low, row.solved_high)}.`];
    if (!solved.length) return h("p", {}, "No row has solved this task with any seed at its chosen rate.");
    return [h("p", {}, "Fewest parameters of the rows that solved it: ", say(solved[0])),
        sure.length > 0 && sure[0] !== solved[0] && h("p", {},
            "Fewest of those that solved it with every one of three or more seeds: ", say(sure[0])),
        !sure.length && h("p", {}, "No row solved it with every one of three or more seeds.")];
}

async function drawTask(q) {
    const task = index.tasks.find(t => t.stem === q.get("task") || t.label === q.get("task"));
    if (!task) return ["Tasks", distinct(index.tasks.map(t => t.suite)).map(suite => [h("h2", {}, suite),
        h("ul", {}, index.tasks.filter(t => t.suite === suite).map(t => h("li", {}, link(taskLink(t), taskName(t)),
        `, ${plural(t.runs, "run")}`)))])];
    const file = await ownFile(task);
    file.stem = task.stem;
    const siblings = index.tasks.filter(t => t !== task && groupOf(t) === groupOf(task));
    const profiles = distinct(file.joined.map(row => row.profile));
    const rows = file.joined.filter(row => !q.get("profile") || row.profile === q.get("profile"));
    const chosen = row => (q.get("row") ? row.id === q.get("row") : stemOf(row.mixer) === q.get("mixer"));
    const byScore = (a, b) => b.acc - a.acc, picked = rows.filter(chosen).sort(byScore), named = picked.slice(0, 8);
    const ranked = distinct(rows.map(row => row.mixer)).map(label =>
        standing(rows.filter(row => row.mixer === label))).sort(byScore); // a row for each setting of a mixer
    const drawn = distinct([...named, ...ranked]).slice(0, Math.max(8, named.length + 4));
    const used = [], styles = new Map(drawn.map(row => [row, style(row.mixer, used)]));
    const of = usual(rows), seen = new Set(rows.flatMap(row => marksOf(row)));
    const level = [[task.chance, "chance"]];
    const columns = rowColumns();
    if (!rows.some(row => row.published)) columns.splice(5, 2);
    const byLength = (key, label) =>
        figure(`Score against ${label} in the test set, with the test set's own 95 % interval.`,
        drawn.filter(row => row.more[key]).map(row => ({name: rowName(row), ...styles.get(row), dots: true,
            records: recordsOf(file, row),
            points: row.more[key].map(p => [(p[0] + p[1]) / 2, p[2], p[4] ?? undefined, p[5] ?? undefined])})),
                {x: label, y: "score", low: 0, high: 1, levels: level});
    const runs = h("details", {}, h("summary", {}, `All ${plural(file.curves.length, "run")}`));
    runs.addEventListener("toggle", () => runs.children.length === 1 && runs.append(runTable(task, file, rows)));
    return [taskName(task), [
        h("p", {class: "lead"}, file.alias || file.summary || "", file.summary && file.alias ? ` (${file.summary})`
            : ""),
        taskName(task) !== task.label && h("p", {}, "Its label: ", h("code", {}, task.label)),
        siblings.length > 0 && h("p", {}, "Other variants, which may be easier or harder: ", siblings.map((t, n) =>
            [n > 0 && "; ", link(taskLink(t), taskName(t))]), "."),
        h("p", {}, `Score: ${task.metric} on the test set. Chance is ${score(task.chance)}`,
            file.floor > task.chance && `, the best trivial answer ${score(file.floor)}`,
                file.solved_at && `, and a run has solved it at ${score(file.solved_at)}`,
            ". ", file.T &&
                `${plural(file.T, "position")}${file.T_test !== file.T ? `, ${file.T_test} in the test` : ""}, ` +
                `${file.vocab ? plural(file.vocab, "token") : "real values"}, ${plural(file.labels, "label")}.`),
        fewest(rows), example(file),
        file.about && h("details", {}, h("summary", {}, "The protocol of its source"), h("pre", {}, file.about)),
        profiles.length > 1 && h("form", {class: "filters", "aria-label": "Filters",
            submit: event => event.preventDefault()},
            picker("Profile", "profile", options(profiles, "all"), q.get("profile") || "")),
        h("h2", {}, "Rows"), file.usual.length > 0 && h("p", {class: "settings"}, "Unless a row says otherwise: ",
            file.usual.map(([key, value]) => h("code", {}, `${key}=${value}`))),
        table(`${task.stem}`,
            `${task.label}: ${plural(rows.length, "row")}, the score is the ${index.phrase.toLowerCase()}`, columns,
            rows,
            {sort: [1, -1], records: row => recordsOf(file, row), mark: row =>
                ({id: `row-${row.id}`, class: chosen(row) ? "chosen" : undefined}), wide: true}),
        legendOf(seen),
        file.facts.length > 0 && h("ul", {class: "facts"}, file.facts.map(fact => h("li", {}, `${fact}.`))),
        sharedSettings(file),
        named.map(row => oneRow(task, file, row, of)),
        h("h2", {}, "Figures"), rows.length > drawn.length && h("p", {}, named.length > 0 && "The rows that the link " +
            "names, and others. ", "Curves are of the mixers with the highest scores: of the rows of each, the one " +
            "with the best validation, those with three or more seeds first."),
        figures(figure("Validation score against steps: the mean over the seeds of the chosen rate, in a band from " +
            "the least to the largest.",
            drawn.filter(row => row.more.band.length).map(row => ({name: rowName(row), ...styles.get(row), band: true,
                points: row.more.band, records: recordsOf(file, row)})),
                {x: "steps", y: "score", logX: true, low: 0, high: 1, levels: level}),
            byLength("length", "length"), byLength("position", "position"),
            costFigure(task, file, rows, "params", "parameters", 1),
            costFigure(task, file, rows, "flops", "FLOPs per token", 1),
            costFigure(task, file, rows, "speed", "measured tokens/s", -1)),
        file.published.length > 0 && [h("h2", {}, "Published values"), table(`${task.stem}-published`,
            "What papers print for this task",
            [[3, "row"], [5, "value"], [6, "spread"], [7, "n"], [4, "metric"], [8, "protocol"], [2, "table"],
                [1, "arxiv"], [0, "paper"]].map(([c, title]) => ({title, number: title === "value",
                value: row => row[c] || null,
                cell: title === "arxiv" ? row => row[c] && link(`https://arxiv.org/abs/${row[c]}`, row[c])
                    : undefined})), file.published, {sort: null, wide: true})],
        h("h2", {}, "Runs"), runs]];
}

function sharedSettings(file) {
    return h("details", {}, h("summary", {}, "Settings that all rows share"), h("p", {class: "settings"},
        Object.entries(file.same).map(([key, value]) => h("code", {}, `${key}=${value}`))));
}

const runLink = (task, id) => address("run", {task: task.stem, run: id.slice(0, 12)});

// A row that the link names: what it rests on.
function oneRow(task, file, row, of) {
    const ids = recordsOf(file, row), runs = ids.map((id, i) => row.more.chosen + i);
    const marks = marksOf(row, of);
    return h("section", {class: "one", "aria-label": rowName(row)}, h("h2", {}, rowName(row)),
        h("p", {}, `${score(row.acc, 4)}, `, row.low === null ? `too few seeds for an interval`
            : `${index.level * 100} % interval ${interval(row.low, row.high)}`,
            `, ${row.solved} of ${plural(row.seeds, "seed")} solved, ` +
            `at rate ${row.lr} of ${plural(row.rates, "rate")}; ${count(row.params)} parameters, profile ` +
            `${row.profile}. `,
            marks.map(mark => `${MARKS[mark][0].toUpperCase()}${MARKS[mark].slice(1)}. `), row.more.unlike &&
                `The published number is of another setting: ${row.more.unlike}. `,
            link(rowLink(row), "Link to this row"), ", ", link(address("compare",
                {a: stemOf(row.mixer), task: task.stem, arow: row.id}), "compare it"), "."),
        h("p", {}, "Seeds: ", runs.map((i, k) => [k > 0 && ", ", link(runLink(task, file.runs.run_id[i]),
            `${file.runs.seed[i]}`), ` ${score(testOf(file, i, task))}`])),
        h("p", {class: "settings"}, row.more.unlike_profile.length ? `Unlike the profile ${row.more.beside}: `
            : `As in the profile ${row.more.beside}.`,
            row.more.unlike_profile.map(key => h("code", {}, `${key}=${row.more.own[key] ?? file.same[key]}`))));
}

// A run's test score; chance for a failed one.
function testOf(file, i, task) {
    const value = task.metric === "macro accuracy" ? file.runs.test_macro_acc[i] : file.runs.test_acc[i];
    return file.runs.status[i] !== "ok" || value === null ? task.chance : value;
}

function runTable(task, file, rows) {
    const list = rows.flatMap(row => Array.from({length: row.more.all}, (_, k) => ({row, i: row.more.first + k})));
    const of = key => r => file.runs[key][r.i];
    return table(`${task.stem}-runs`, `All runs of ${task.label}`, [
        {title: "run", value: r => of("run_id")(r).slice(0, 8), cell: r => link(runLink(task, of("run_id")(r)),
            of("run_id")(r).slice(0, 8))},
        {title: "mixer", value: r => rowName(r.row)}, {title: "rate", value: of("lr"), text: r => `${of("lr")(r)}`},
            {title: "seed", number: true, value: r => +of("seed")(r)},
        {title: "steps", value: of("steps"), text: r => `${of("steps")(r)}/${of("max_steps")(r)}`},
        {title: "end", value: r => (of("status")(r) === "ok" ? of("stop_reason")(r) : of("status")(r))},
        {title: "test", value: r => testOf(file, r.i, task), text: r => score(testOf(file, r.i, task), 4)}], list,
            {sort: [6, -1], records: r => [of("run_id")(r)]});
}

// --- a mixer --------------------------------------------------------------------------------------------------------

async function drawMixer(q) {
    const mixer = index.mixers.find(m => m.name === q.get("mixer"));
    if (!mixer) return ["Mixers", [h("ul", {}, index.mixers.map(m => h("li", {},
        link(address("mixer", {mixer: m.name}), m.title), `: ${m.summary}`)))]];
    const rows = index.rows.filter(row => familyOf(row.mixer) === mixer.name &&
        (!q.get("of") || stemOf(row.mixer) === q.get("of")));
    const best = distinct(rows.map(row => row.task)).map(t => standing(rows.filter(row => row.task === t)));
    const {layers} = await load("machines");
    const speeds = new Map();
    for (const layer of layers) { // "bdlru:m=2 B32 T512 D128 params329600"
        const [label, ...sizes] = layer.shape.split(" "), size =
            Object.fromEntries(sizes.map(s => s.match(/^([A-Za-z]+)(\d+)$/)).filter(m => m).map(m => [m[1], +m[2]]));
        if (familyOf(label) !== mixer.name || !size.T || !layer.tok_per_s) continue;
        const name =
            `${nameOf(label)}, B = ${size.B}, D = ${size.D}, ${layer.dtype}, ${layer.device || "cpu"}, ` +
            `${plural(+layer.threads, "thread")}, machine ${layer.machine_id.slice(0, 4)}`;
        if (!speeds.has(name)) speeds.set(name, new Map());
        speeds.get(name).set(size.T, [size.T, +layer.tok_per_s]);
    }
    const members = distinct(index.rows.filter(row => familyOf(row.mixer) === mixer.name).map(row =>
        row.mixer)).sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
    const column = title => ({...rowColumns()[title === "score" ? 1 : 0], title});
    return [mixer.title, [
        h("p", {class: "lead"}, mixer.summary, mixer.equation && (mixer.causal
            ? ". An output depends on no later input." : ". An output may depend on later inputs.")),
        mixer.equation && h("pre", {}, mixer.equation),
        mixer.options.length > 0 && table(`${mixer.name}-options`, `Options of ${mixer.name}`,
            ["option", "default", "meaning"].map((title, c) => ({title, value: o => o[c]})), mixer.options,
            {sort: null}),
        h("h2", {}, "Scores"),
        h("form", {class: "filters", "aria-label": "Filters", submit: event => event.preventDefault()},
            picker("Setting", "of", [["", "the best of each task"],
            ...members.map(label => [stemOf(label), nameOf(label)])], q.get("of") || "")),
        table(`${mixer.name}-tasks`,
            "A row per task: of its settings there the one with the best validation, those with three or more seeds " +
            "first", [
            {title: "task", value: row => taskName(taskOf(row)), cell: row => link(taskLink(taskOf(row)),
                taskName(taskOf(row)))}, ...["score", "setting"].map(column), ...rowColumns().slice(2),
            {title: "chance", value: row => taskOf(row).chance, text: row => score(taskOf(row).chance)},
            {title: "others", help: "mixers that have a row on the task", value: row =>
                distinct(index.rows.filter(o => o.task === row.task).map(o => familyOf(o.mixer))).length - 1}],
        best, {records: row => recordsUnder([row]), wide: true}),
        h("h2", {}, "Speed over the length"),
        figure("Tokens a second of one layer, forward and backward, against the length of the sequences.",
            [...speeds].filter(([, points]) => points.size > 1).map(([name, points], i) =>
            ({name, colour: `var(--c${i % COLOURS})`,
            dash: DASHES[(i / COLOURS) | 0], dots: true, points: [...points.values()].sort((a, b) => a[0] - b[0])})),
                {x: "length T", y: "tokens/s", logX: true, low: 0}) ||
            h("p", {}, "Nothing has been measured at two lengths: ", h("code", {}, "lrnn perf layers"), " does.")]];
}

// --- two mixers -----------------------------------------------------------------------------------------------------

async function drawCompare(q) {
    const labels = distinct(index.rows.map(row => row.mixer)).sort((a, b) =>
        nameOf(a).localeCompare(nameOf(b), "en", {numeric: true}));
    const side = key => labels.find(label => stemOf(label) === q.get(key)) || "";
    const [a, b] = [side("a"), side("b")];
    const partners = key => labels.filter(label => { // those with a task in common with the other side
        const other = side(key === "a" ? "b" : "a");
        return !other || index.rows.some(r => r.mixer === label && index.rows.some(o => o.mixer === other &&
            o.task === r.task));
    });
    const form = h("form", {class: "filters", "aria-label": "Mixers", submit: event => event.preventDefault()},
        [["a", "First"], ["b", "Second"]].map(([key, text]) =>
        picker(text, key, [["", "choose"], ...partners(key).map(label => [stemOf(label), nameOf(label)])],
            q.get(key) || "", v => choose({[key]: v, [`${key}row`]: ""}))));
    if (!a || !b) return ["Compare", [h("p", {class: "lead"},
        "Choose two mixers. The page shows their scores side by side on every task that both have, and their runs " +
        "seed by seed."), form]];
    const rowsOf = (label, t) => index.rows.filter(row => row.mixer === label && row.task === t);
    const common = index.tasks.map((_, t) => t).filter(t => rowsOf(a, t).length &&
        rowsOf(b, t).length).map(t => ({t, a: standing(rowsOf(a, t)), b: standing(rowsOf(b, t))}));
    const sure = row => [plural(row.seeds, "seed"), ...(row.low === null ? [] : [interval(row.low, row.high)])];
    const scores = (title, of) => ({title, value: c => of(c).acc,
        text: c => `${score(of(c).acc)} (${sure(of(c)).join(", ")})`,
        cell: c => [score(of(c).acc), sure(of(c)).map(text => h("small", {}, text))]});
    const content =
        [h("p", {class: "lead"},
        "Of several settings on a task the one with the best validation is shown, those with three or more seeds " +
        "first. A task's link pairs their runs seed by seed, and gives the difference with an interval."), form,
        table("compare", `${nameOf(a)} and ${nameOf(b)} on ${plural(common.length, "task")}`, [
            {title: "task", value: c => taskName(index.tasks[c.t]), cell: c =>
                link(address("compare", {a: q.get("a"), b: q.get("b"), task: index.tasks[c.t].stem}),
                taskName(index.tasks[c.t]))},
            scores(nameOf(a), c => c.a), scores(nameOf(b), c => c.b),
            {title: "difference of the scores", value: c => c.a.acc - c.b.acc, text: c => signed(c.a.acc - c.b.acc)},
            {title: "parameters", number: true, value: c => c.a.params / c.b.params,
                text: c => `${count(c.a.params)}, ${count(c.b.params)}`}], common,
                {records: c => recordsUnder([c.a, c.b])})];
    const task = index.tasks.find(t => t.stem === q.get("task")), here = task &&
        common.find(c => index.tasks[c.t] === task);
    if (here) content.push(...await paired(task, q, rowsOf(a, here.t), rowsOf(b, here.t)));
    return [`${nameOf(a)} and ${nameOf(b)}`, content];
}

// Two rows of a task, seed by seed.
async function paired(task, q, as, bs) {
    const file = await ownFile(task), asked = (list, key) => list.filter(row => row.id === q.get(key));
    const differing = (x, y) => distinct([...Object.keys(x.more.own), ...Object.keys(y.more.own)]).filter(key =>
        x.more.own[key] !== y.more.own[key]);
    // Unless the reader chose them: two rows of three or more seeds that differ in as few settings as possible.
    const choices = (list, key) => (asked(list, key).length ? asked(list, key) : list);
    const [a, b] = choices(as, "arow").flatMap(x => choices(bs, "brow").map(y => [x, y])).map(pair =>
        [pair, [pair.filter(row => row.seeds < 3).length, differing(...pair).length, pair[0].rank + pair[1].rank]])
        .sort(([, x], [, y]) => x[0] - y[0] || x[1] - y[1] || x[2] - y[2])[0][0];
    const [i, k] = [a, b].map(row => file.joined.indexOf(row));
    const [high, low, sign] = i > k ? [i, k, 1] : [k, i, -1];
    const pair = file.pairs.find(p => p[0] === high && p[1] === low);
    const runsOf = row => recordsOf(file, row).map((id, n) => ({id, at: row.more.chosen + n})).filter(r =>
        !file.curves[r.at].set_aside);
    const seeds = distinct([...runsOf(a), ...runsOf(b)].map(r => file.runs.seed[r.at]));
    const list = seeds.map(seed => ({seed, a: runsOf(a).find(r => file.runs.seed[r.at] === seed),
        b: runsOf(b).find(r => file.runs.seed[r.at] === seed)}));
    const value = r => (r ? testOf(file, r.at, task) : null), difference = r =>
        (r.a && r.b ? value(r.a) - value(r.b) : null);
    const cell = r => (r ? link(runLink(task, r.id), score(value(r), 4)) : "-");
    const unlike = differing(a, b), shared = unlike.filter(key => key !== "model" &&
        key in a.more.own && key in b.more.own);
    const rowChoice = (text, key, rows, row) => rows.length > 1 && picker(text, key,
        rows.map(r => [r.id, `${settingOf(r) || r.profile}, ${r.profile}, ${plural(r.seeds, "seed")}`]), row.id);
    const curves = [[a, "var(--c0)", ""], [b, "var(--c1)", "7 3"]].flatMap(([row, colour, dash]) =>
        runsOf(row).map(r => ({name: `${nameOf(row.mixer)}, seed ${file.runs.seed[r.at]}`, group: nameOf(row.mixer),
        colour, dash, records: [r.id],
        points: file.curves[r.at].val.map(p => [p[0], p[1]])})));
    return [h("h2", {id: "seeds"}, `${taskName(task)}, seed by seed`),
        h("form", {class: "filters", "aria-label": "Rows", submit: event => event.preventDefault()},
            rowChoice("First", "arow", as, a), rowChoice("Second", "brow", bs, b)),
        h("p", {id: "verdict"}, pair
            ? `Over ${plural(pair[2], "pair")} the first minus the second is ${signed(sign * pair[3])}, with a 95 % ` +
                `interval from ${signed(sign > 0 ? pair[4] : -pair[5])} to ${signed(sign > 0 ? pair[5] : -pair[4])} ` +
                `(Student's t). ` +
            (pair[4] > 0 || pair[5] < 0 ? "The interval excludes 0."
                : "The interval contains 0: these seeds do not tell them apart.") :
            "They share fewer than two seeds at their rates, so that no interval can be said.",
        shared.length > 0 && ` They also differ in ${shared.join(", ")}, which may explain a difference.`),
        table("seeds", "Test score of each seed", [{title: "seed", number: true, value: r => +r.seed},
            {title: nameOf(a.mixer), value: r => value(r.a), text: r => score(value(r.a), 4), cell: r => cell(r.a)},
            {title: nameOf(b.mixer), value: r => value(r.b), text: r => score(value(r.b), 4), cell: r => cell(r.b)},
                {title: "difference", value: difference, text: r => signed(difference(r))}],
        list, {records: r => [r.a, r.b].filter(x => x).map(x => x.id)}),
        unlike.length > 0 && table("settings", "Settings in which they differ",
            [{title: "setting", value: key => key}, {title: nameOf(a.mixer), value: key => a.more.own[key] ?? "-"},
            {title: nameOf(b.mixer), value: key => b.more.own[key] ?? "-"}], unlike,
            {records: () => [...runsOf(a), ...runsOf(b)].map(r => r.id)}),
        figure("Validation score against steps, a line per seed.", curves, {x: "steps", y: "score", logX: true, low: 0,
            high: 1, levels: [[task.chance, "chance"]]})];
}

// --- a run ----------------------------------------------------------------------------------------------------------

// The reasons to end a run (harness/run/train.c) as words.
const ENDS = {target: "validation reached the target", patience: "validation no longer improved",
    budget: "the budget of steps was spent", steps: "no step was left"};

async function drawRun(q) {
    const task = index.tasks.find(t => t.stem === q.get("task"));
    if (!task) return ["Run", [h("p", {}, "Choose a task, then a run of it: ", link("task.html", "tasks"), ".")]];
    const file = await ownFile(task), i = file.runs.run_id.findIndex(id => id.startsWith(q.get("run") || "-"));
    if (i < 0) return ["Run", [h("p", {}, `No run of ${task.label} has an id that begins with ${q.get("run")}.`)]];
    const of = key => file.runs[key][i], id = of("run_id"), row = file.joined.find(r => i >= r.more.first &&
        i < r.more.first + r.more.all);
    const {machines} = await load("machines");
    const machine = machines.find(m => m.machine_id === of("machine_id") &&
        (!m.env_epoch || !of("env_epoch") || m.env_epoch === of("env_epoch")));
    const command = row.more.command &&
        `${row.more.command.replace(/ --(lr|seed) \S+/g, "")} --lr ${of("lr")} --seed ${of("seed")}`;
    const value = key => row.more.own[key] ?? file.same[key], unlike = row.more.unlike_profile;
    const list = (caption, pairs) => table("run", caption, [{title: "name", value: p => p[0]},
        {title: "value", value: p => p[1], text: p => `${p[1]}`}], pairs, {records: () => [id]});
    const others = Object.entries({...file.same, ...row.more.own}).filter(([key]) => !unlike.includes(key));
    const siblings = Array.from({length: row.more.all}, (_, k) => row.more.first + k).filter(k => k !== i);
    const curve = (split, at) => file.curves[i][split].filter(p => p[at] !== null).map(p => [p[0], p[at]]);
    const level = [[task.chance, "chance"]];
    const checkout = /^[0-9a-f]{7,40}$/.test(of("git_commit")) ? `git checkout ${of("git_commit")}`
        : "# the record names no commit";
    if (file.solved_at) level.push([file.solved_at, "solved"]);
    return [`${nameOf(row.mixer)} on ${taskName(task)}, rate ${of("lr")}, seed ${of("seed")}`, [
        h("p", {class: "lead"}, of("status") === "ok"
            ? `Test score ${score(testOf(file, i, task), 4)}. It ended after ${of("steps")} of ${of("max_steps")} ` +
                `steps: ${ENDS[of("stop_reason")] || of("stop_reason")}.` :
            [h("strong", {}, of("status")), `: ${of("status_detail")}. It counts as chance.`],
            file.curves[i].set_aside && " This attempt was set aside, and the run was done again.", " ",
                link(rowLink(row), "Its row"), "."),
        h("h2", {}, "Settings"),
        unlike.length ? list(`Unlike the profile ${row.more.beside}`, unlike.map(key => [key, value(key)]))
            : h("p", {}, `All settings are those of the profile ${row.more.beside}.`),
        h("details", {}, h("summary", {}, "All other settings"), h("p", {class: "settings"},
            others.map(([key, v]) => h("code", {}, `${key}=${v}`)))),
        h("h2", {}, "Curves"),
        figures(figure("Validation score against steps.",
            [{name: "validation", colour: "var(--c1)", points: curve("val", 1), records: [id]}],
            {x: "steps", y: "score", low: 0, high: 1, levels: level}) || h("p", {}, "This run left no curve."),
        figure("Loss against steps.", [{name: "training", colour: "var(--c0)", points: curve("train", 2)},
            {name: "validation", colour: "var(--c1)", dash: "7 3", points: curve("val", 2)}].filter(s =>
            s.points.length).map(s => ({...s, records: [id]})), {x: "steps", y: "loss", low: 0})),
        h("h2", {}, "Again"), h("pre", {},
            [checkout + (of("git_dirty") ? "  # with changes that were not committed" : ""),
            command || `# ${plainLine(row.more.no_command)}`,
            `lrnn rerun ${id.slice(0, 8)} --out ${shellWord(index.folder)}`].join("\n")),
        siblings.length > 0 && h("p", {}, "Other runs of its row: ",
            siblings.map((k, n) => [n > 0 && ", ", link(runLink(task, file.runs.run_id[k]),
            `rate ${file.runs.lr[k]}, seed ${file.runs.seed[k]}`), ` ${score(testOf(file, k, task))}`])),
        h("h2", {}, "Machine"), machine ? list(`Machine ${of("machine_id")}`, Object.entries(machine))
            : h("p", {}, `machines.csv does not have machine ${of("machine_id") || "(unknown)"}.`),
        h("h2", {}, "Record"), h("p", {}, h("code", {}, `${index.folder}/runs/${id.slice(0, 2)}/${id}.json`)),
        h("details", {}, h("summary", {}, "All fields"), list(`Record ${id}`,
            Object.keys(file.runs).map(key => [key, of(key)]).filter(p => p[1] !== null)))]];
}

// --- papers ---------------------------------------------------------------------------------------------------------

async function drawPapers(q) {
    const {plans} = await load("papers");
    const id = plan => (plan.where ? `${plan.name} ${plan.where}` : plan.name), of = key => plan => plan[key];
    const plan = plans.find(p => id(p) === q.get("paper"));
    const all = table("papers", "Tables of papers, and how many of their runs are on record", [
        {title: "table", value: of("title"), cell: p => [link(address("papers", {paper: id(p)}), p.title || p.name),
            p.where && h("small", {}, p.where)]},
        {title: "plan", value: p => p.name}, {title: "runs done", number: true,
            value: p => (p.planned ? p.done / p.planned : null), text: p =>
            (p.missing ? "none" : `${p.done} of ${p.planned}`)},
        {title: "within", number: true, help: "cells whose number agrees with the paper's",
            value: p => (p.cells ? p.cells.filter(c => c.verdict === "within").length : null),
            text: p => (p.cells && p.cells.some(c => c.printed)
                ? `${p.cells.filter(c => c.verdict === "within").length} of ${p.cells.filter(c => c.printed).length}`
                : "-")}], plans);
    if (!plans.length) return ["Papers",
        [h("p", {}, "This site is of some records alone. The tables of papers are part of a site of all of them.")]];
    if (!plan) return ["Papers", [h("p", {class: "lead"}, "Each table as its paper prints it, with ours beside it."),
        all]];
    const other = plans.filter(p => p.name === plan.name && p !== plan);
    const intro = [h("p", {class: "lead"}, plan.paper && link(`https://arxiv.org/abs/${plan.paper}`,
        `arXiv ${plan.paper}`), plan.source && `, ${plan.source}`, plan.where && `, runs with ${plan.where}`, ". ",
        plan.protocol &&
            `Ours: ${plan.protocol.toLowerCase()}; profile ${plan.profile}, ${plan.done} of ` +
            `${plural(plan.planned, "run")}.`,
        other.map(p => [" ", link(address("papers", {paper: id(p)}), p.where ? `With ${p.where}` : "As the plan says"),
            "."])), h("p", {}, link("papers.html", "All tables"))];
    if (plan.missing) return [plan.title, [...intro, h("p", {}, plan.missing)]];
    const cell = (r, c) => plan.cells.find(x => x.row === r && x.column === c),
        number = x => (plan.speed ? count(x) : score(x));
    const verdict = x => (x.verdict === "not run" ? "open" : x.other ? "other setting" : x.verdict);
    const words = x => `${x.ours === null ? "open" : number(x.ours)}${x.cut ? "*" : ""} / ${x.printed || "-"}`;
    const shade = x => (x.ours === null || x.published === null || x.other ? ""
        : `--d:${Math.min(1, Math.abs(x.ours - x.published) * 4).toFixed(2)}`);
    const title = x => [`${plan.rows[x.row]}, ${plan.columns[x.column]}: paper ${x.printed || "none"}`,
        x.ours === null ? "ours: open, no run" : `ours ${number(x.ours)}`, x.low !== null &&
        `interval ${interval(x.low, x.high)}`,
        `${x.done} of ${plural(x.planned, "run")}`, verdict(x), x.unlike && `another setting: ${x.unlike}`].filter(t =>
            t).join("; ");
    const columns = [{title: "row", value: r => plan.rows[r]},
        ...plan.columns.map((name, c) => ({title: name, number: true, value: r => cell(r, c)?.ours ?? null,
        text: r => (cell(r, c) ? `${words(cell(r, c))} ${verdict(cell(r, c))}` : "-"), cell: r => {
            const x = cell(r, c);
            return x ? h("span",
                {class: `paper ${x.ours === null ? "open" : ""} ${x.ours > x.published ? "above" : "below"}`,
                style: shade(x), title: title(x)}, words(x), h("small", {}, verdict(x))) : "";
        }}))];
    const cells = plan.cells.map(c => c);
    const detail = table(`${plan.name}-cells`, "Cell by cell", [{title: "row", value: c => plan.rows[c.row]},
        {title: "column", value: c => plan.columns[c.column]}, {title: "paper", number: true, value: of("published"),
        text: c => c.printed || "-"},
        {title: "ours", number: true, value: of("ours"), text: c => number(c.ours)},
            {title: "interval", number: true, value: of("low"), text: c => interval(c.low, c.high)},
            {title: "runs", number: true, value: c => c.done / c.planned, text: c => `${c.done}/${c.planned}`},
        {title: "verdict", value: verdict}, {title: "another setting", value: c => c.unlike || null},
        {title: "records", value: c => c.runs.length, cell: c => c.runs.length > 0 &&
            h("details", {}, h("summary", {}, `${c.runs.length}`),
            c.runs.map(run => [link(address("run", {task: c.task, run}), run.slice(0, 8)), " "]))}], cells,
            {sort: null, records: c => c.runs});
    return [plan.title, [...intro,
        h("p", {},
        "A cell is our number / the paper's, and the verdict; the stronger its shade, the larger the difference " +
        "(blue: ours is above, orange: below). Open: no run of it is on record."),
        table(plan.name, plan.title, columns, plan.rows.map((_, r) => r), {sort: null,
            records: r => plan.cells.filter(c => c.row === r).flatMap(c => c.runs)}),
        plan.notes.length > 0 && h("ul", {}, plan.notes.map(note => h("li", {}, note))), h("h2", {}, "Cell by cell"),
            detail]];
}

// --- the history of gates -------------------------------------------------------------------------------------------

const FIGURES_SHOWN = 12; // on the page at once; the others by the pickers

async function drawHistory(q) {
    const file = await load("history"), names = file.columns.split(" ");
    const gates = file.gates.map(row => Object.fromEntries(row.map((value, i) => [names[i], value])));
    const broken = file.broken.length > 0 && h("section", {}, h("h2", {}, "Left out"),
        h("p", {}, "These lines of the history could not be read:"),
        h("ul", {}, file.broken.map(text => h("li", {}, text))));
    if (!gates.length) return ["History", [h("p", {},
        "No gate has left a line yet: each ", h("code", {}, "lrnn gate"), " adds one to gate.jsonl of its folder."),
        broken]];
    const series = file.series.filter(s => (!q.get("gate") || s.gate === q.get("gate")) && (!q.get("figure") ||
        s.figure === q.get("figure")));
    const changes = series.flatMap(s => s.steps.map(([at, before, after]) => ({s, gate: gates[s.points[at][0]], before,
        after})));
    // "s3 bdlru:m=3" as "BD-LRU, m = 3, on s3"; the name of a bench stays.
    const nameOfCell = text => {
        const [task, mixer = "", ...rest] = text.split(" ");
        return index.mixers.some(m => m.name === familyOf(mixer))
            ? [nameOf(mixer), `on ${task}`, ...rest].join(", ") : text;
    };
    const nameOfSeries = s => [nameOfCell(s.name), s.figure, s.machine && `machine ${s.machine.slice(0, 8)}`]
        .filter(t => t).join(", ");
    const when = number => `${gates[number].date.slice(0, 10)}, commit ${gates[number].commit.slice(0, 12)}`;
    const drawn = [...series].sort((a, b) => b.steps.length - a.steps.length).slice(0, FIGURES_SHOWN).map(s => {
        const point = (p, text) => [p[0] + 1, p[1], undefined, undefined, `${text}${when(p[0])}: ${p[1]}, ${p[2]}`];
        return figure(`${nameOfSeries(s)}, over the gates of ${s.gate}.`, [
            {name: s.figure, colour: "var(--c0)", points: s.points.map(p => point(p, "")), dots: s.points.length < 60},
            {name: "changes", colour: "var(--c1)", line: false, dots: true,
                points: s.steps.map(([at]) => point(s.points[at], "changes from here on: "))}]
            .filter(part => part.points.length > 0), {x: "gate", y: s.figure});
    });
    const options = key => [["", "all"], ...distinct(file.series.map(s => s[key])).sort().map(value => [value, value])];
    return ["History", [
        h("p", {class: "lead"}, `${plural(gates.length, "gate")}, the last of ${when(gates.length - 1)}: ` +
            `${gates.at(-1).verdict}. A series changes where all of ${file.window} values lie on one side of all of ` +
            `the ${file.window} before them, which chance alone does at a given place in 0.8 % of cases. ` +
            "Speeds of different machines are different series.",
            file.later > 0 && ` ${plural(file.later, "line")} of a later version not shown.`),
        h("form", {class: "filters", "aria-label": "Filters", submit: event => event.preventDefault()},
            picker("Gate", "gate", options("gate"), q.get("gate") || ""),
            picker("Figure", "figure", options("figure"), q.get("figure") || "")),
        table("changes", "Changes", [{title: "series", value: c => nameOfSeries(c.s)},
            {title: "date", value: c => c.gate.date}, {title: "commit", value: c => c.gate.commit.slice(0, 12)},
            {title: "before", help: "median of the values before", number: true, value: c => c.before},
            {title: "after", help: "median of the values from there on", number: true, value: c => c.after},
            {title: "machine", value: c => c.gate.machine.slice(0, 8)}], changes, {sort: [1, -1]}),
        figures(drawn), series.length > FIGURES_SHOWN && h("p", {},
            `${series.length - FIGURES_SHOWN} more series: choose a gate or a figure.`),
        table("gates", "Gates", [{title: "date", value: g => g.date}, {title: "name", value: g => g.name},
            {title: "commit", value: g => g.commit.slice(0, 12)}, {title: "machine", value: g =>
                g.machine.slice(0, 8)}, {title: "verdict", value: g => g.verdict}], gates, {sort: [0, -1]}),
        broken]];
}

// --- the page -------------------------------------------------------------------------------------------------------

const pages = {index: drawIndex, task: drawTask, mixer: drawMixer, compare: drawCompare, run: drawRun,
    papers: drawPapers, history: drawHistory};
let drawing = 0;

async function draw() {
    const mine = ++drawing, wait = document.getElementById("wait"), focus = document.activeElement;
    const again = focus && (focus.name ? `[name="${focus.name}"]` : ["open",
        "tasks"].filter(k => focus.dataset[k]).map(k => `[data-${k}="${CSS.escape(focus.dataset[k])}"]`)[0]);
    let title = "Not here", content;
    try {
        [title, content] = await pages[page](state());
    } catch (problem) {
        content = [h("p", {role: "alert"}, problemText(problem))];
    }
    if (mine !== drawing) return; // the reader has gone on
    document.title = `${title} - lrnn-bench`;
    document.getElementById("title").replaceChildren(title);
    fill(document.getElementById("content"), {}, []).replaceChildren(...content.flat(9).filter(part => part));
    wait.hidden = true;
    document.body.dataset.drawn = `${drawing}`;
    if (again) document.querySelector(again)?.focus();
}

function start() {
    index = data.index;
    if (!index) {
        document.getElementById("wait").replaceChildren("data/index.js is not there. Write the site again: lrnn " +
            "report --html");
        return;
    }
    const names = index.columns.split(" ");
    index.rows = index.rows.map(row => Object.fromEntries(row.map((value, i) => [names[i], value])));
    document.getElementById("foot").append(`${plural(index.records, "record")} of ${index.folder}, the last of ` +
        `${index.last.slice(0, 10) || "no date"}; lrnn-bench ${index.version}, commit ${index.commit.slice(0, 12)}. `,
        index.broken.length > 0 ? `${plural(index.broken.length, "record")} left out: see the first page. ` : "",
        index.confirm ? `Each row reports its ${index.confirm} largest seeds; the others chose the rate. ` : "",
            "Written by ", h("code", {}, "lrnn report --html"), ".");
    document.querySelector(`nav a:not(.home)[href="${page}.html"]`)?.setAttribute("aria-current", "page");
    // A link to a row leads to it.
    const arrive = () => draw().then(() => document.querySelector("tr.chosen")?.scrollIntoView({block: "center"}));
    addEventListener("hashchange", arrive);
    let timer = 0, width = innerWidth;
    addEventListener("resize", () => {
        clearTimeout(timer);
        if (innerWidth !== width) timer = setTimeout(() => { width = innerWidth; draw(); }, 200);
    });
    arrive();
}
addEventListener("DOMContentLoaded", start);
