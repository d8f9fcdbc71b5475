// site.js - what the pages of `lrnn report --html` are made of: data files, names, tables, figures. pages.js draws the
// pages. Every statistic (rate, mean, interval, verdict) comes from the data files beside them; these two choose, sort
// and draw. All text goes in as text nodes.
"use strict";

// --- data and state -------------------------------------------------------------------------------------------------

const data = {}; // what the data files hand over, by their names
const loads = {}; // promises of them
const page = document.documentElement.dataset.page;
let index = null; // data.index, once its rows are objects

// A data file is a call of this function.
function site(name, value) {
    data[name] = value;
}

// Loads data/NAME.js once; a page from a disk may load scripts alone.
function load(name) {
    return data[name] ? Promise.resolve(data[name]) : loads[name] ||= new Promise((done, failed) => {
        const script = document.createElement("script");
        script.src = `data/${encodeURIComponent(name)}.js`;
        script.onload = () => (data[name] ? done(data[name])
            : failed(new Error(`data/${name}.js holds something else`)));
        script.onerror = () => failed(new Error(`data/${name}.js is not there`));
        document.head.append(script);
    });
}

// The choices of the reader stand in the address after '#', so that each view has a link.
const state = () => new URLSearchParams(location.hash.slice(1));

function address(file, values) {
    const text = new URLSearchParams(Object.entries(values).filter(([, value]) => value)).toString();
    return text ? `${file}.html#${text}` : `${file}.html`;
}

function choose(values) {
    const next = state();
    for (const [key, value] of Object.entries(values)) value ? next.set(key, value) : next.delete(key);
    history.replaceState(null, "", `#${next}`);
    draw();
}

// --- elements -------------------------------------------------------------------------------------------------------

function fill(element, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {}))
        if (typeof value === "function") element.addEventListener(key, value);
        else if (value !== undefined && value !== null && value !== false) element.setAttribute(key,
            value === true ? "" : value);
    element.append(...children.flat(9).filter(child => child !== undefined && child !== null && child !== false &&
        child !== ""));
    return element;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const link = (href, ...children) => h("a", {href}, ...children);

function picker(label, key, options, value, change) {
    return h("label", {}, label, h("select", {name: key, change: event => (change ||
        (v => choose({[key]: v})))(event.target.value)},
        options.map(([id, text]) => h("option", {value: id, selected: id === value}, text))));
}

// --- numbers and names ----------------------------------------------------------------------------------------------

const score = (x, digits = 3) => (x === null || x === undefined ? "-" : x.toFixed(digits));
const signed = x => (x === null || x === undefined ? "-" : (x > 0.0005 ? "+" : "") +
    x.toFixed(3).replace(/^-(0\.0+)$/, "$1"));
function count(x) {
    if (x === null || x === undefined || x < 0) return "-";
    for (const [unit, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
        if (x >= unit) return `${+(x / unit).toPrecision(3)}${name}`;
    return `${+x.toPrecision(3)}`;
}
// One word to a shell, and nothing else.
const shellWord = text => (/^[A-Za-z0-9_@%+=:,./][A-Za-z0-9_@%+=:,./-]*$/.test(text) ? text
    : `'${text.replace(/'/g, "'\\''")}'`);
const interval = (low, high) => (low === null || low === undefined ? "-" : `${score(low)} to ${score(high)}`);
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

// "a=1,2,b=x" as [["a", "1,2"], ["b", "x"]]: a value may be a list.
function pairsOf(text) {
    const pairs = [];
    for (const part of text.split(",").filter(part => part))
        part.includes("=") || !pairs.length ? pairs.push(part.split(/=(.*)/s).slice(0, 2))
            : (pairs.at(-1)[1] += `,${part}`);
    return pairs;
}
const familyOf = label => label.split(":")[0];
const stemOf = label => label.replace(/[:,]/g, "-").replace(/=/g, "").replace(/[^A-Za-z0-9.+-]/g, "_");

// "bdlru:m=5" as "BD-LRU, m = 5".
function nameOf(label) {
    const [name, options] = label.split(/:(.*)/s), mixer = index.mixers.find(m => m.name === name);
    return [mixer ? mixer.title : name, ...pairsOf(options || "").map(([key, value]) =>
        `${key} = ${value}`)].join(", ");
}

// The settings that tell a row from the others of its task: " dim=64 layers=2" as "dim = 64, layers = 2". Where the
// task's file is there, only those that most other rows do not have.
const settingOf = row => (row.told || pairsOf(row.setting.trim().replace(/ /g, ","))).map(([key, value]) =>
    `${key} = ${value}`).join(", ");
const rowName = row => [nameOf(row.mixer), settingOf(row)].filter(part => part).join("; ");
const taskOf = row => index.tasks[row.task];
// "digits:size=14,n_train=20000,n_val=1000" as "digits, size = 14, n_train = 20000": the sizes of splits tell nothing.
const taskName = task => [task.label.split(":")[0], ...pairsOf(task.label.split(/:(.*)/s)[1] ||
    "").filter(([key]) => !/^n_(val|test)$/.test(key))
    .map(([key, value]) => `${key} = ${value}`)].join(", ");
// The row that stands for several: the best by validation, but none that could see the future before one that could
// not, and no lucky seed before rows of three or more.
const standing = (list, few = row => row.seeds < 3) => [...list].sort((a, b) => a.sees_future - b.sees_future ||
    few(a) - few(b) || a.rank - b.rank)[0] ?? null;
const taskLink = (task, values) => address("task", {task: task.stem, ...values});
const rowLink = row => taskLink(taskOf(row), {mixer: stemOf(row.mixer), row: row.id});

// --- tables ---------------------------------------------------------------------------------------------------------

// Saves a text as a file of the reader's.
function save(name, text) {
    const a = h("a", {href: URL.createObjectURL(new Blob([text], {type: "text/plain"})), download: name});
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

const plainLine = text => text.replace(/[\x00-\x1f]/g, " "); // a cell has no ends of lines
// Texts are written as by harness/sheet/format_latex.c and format_md.c.
const LATEX = {"+-": "$\\pm$", "-": "-{}", "\\": "\\textbackslash{}", "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$"};
const latexText = text => plainLine(text).replace(/\+-(?![A-Za-z])|-(?=-)|[\\{}$&#_%~^<>|]/g, c =>
    LATEX[c] || `\\${c}`);
const markdownText = text => plainLine(text).replace(/[\\|`*_<>[\]$]/g, "\\$&");
const csvCell = text => { // a spreadsheet takes no text for a formula
    const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);
    const plain = /^[=+@\t\r'-]/.test(text) && !number && text !== "-" ? `'${text}` : text;
    return /[",\n\r]/.test(plain) ? `"${plain.replace(/"/g, '""')}"` : plain;
};

const writers = {
    CSV: (heads, rows, records) => [["records", ...heads], ...rows.map((row, i) => [records[i].join(" "), ...row])]
        .map(row => row.map(csvCell).join(",")).join("\n") + "\n",
    LaTeX: (heads, rows, records) => [
        `% needs booktabs; rows rest on the records`, ...records.map((ids, i) => `%  ${i + 1}: ${ids.join(" ")}`),
        `\\begin{tabular}{l${"r".repeat(heads.length - 1)}}`, "\\toprule", `${heads.map(latexText).join(" & ")} \\\\`,
            "\\midrule",
        ...rows.map(row => `${row.map(latexText).join(" & ")} \\\\`), "\\bottomrule", "\\end{tabular}", ""].join("\n"),
    Markdown: (heads, rows, records) => {
        const line = cells => `| ${cells.map(markdownText).join(" | ")} |`;
        return [line([...heads, "records"]), `|${":--|".repeat(heads.length + 1)}`,
            ...rows.map((row, i) => line([...row, records[i].join(" ")])), ""].join("\n");
    },
};

const problemText = problem => `${problem.message}. Write the site again: lrnn report --html`;

// Buttons that save a table: get() gives its heads, its rows as texts, and for each row what records() takes; records()
// gives the hashes of that row's records, or a promise of them where files must be loaded first.
function exports(name, get, records) {
    const said = h("span", {role: "alert"});
    const write = async kind => {
        const {heads, rows, from} = get();
        const hashes = await Promise.all(from.map(records || (() => [])));
        save(`${name}.${{CSV: "csv", LaTeX: "tex", Markdown: "md"}[kind]}`, writers[kind](heads, rows, hashes));
    };
    return h("p", {class: "exports"}, "Save as ", Object.keys(writers).map(kind => h("button", {type: "button",
        click: () => write(kind).catch(problem => said.replaceChildren(` ${problemText(problem)}`))}, kind)),
    records && "with the hashes of the records that it rests on", said);
}

// A table that is sorted by a click on a heading. column: {title, help, value(row), text(row), cell(row), least}; value
// sorts, and the first click puts the greatest first, or the least where less is better (least); text is what people
// and files read, cell is what stands in the page. The first column names the rows. sort: column and direction, or null
// for the given order.
function table(name, caption, columns, rows, {sort = [0, 1], records, mark, wide} = {}) {
    let [by, direction] = sort || [-1, 1];
    const text = (column, row) => (column.text ? column.text(row) : `${column.value(row) ?? "-"}`);
    const sorted = () => (by < 0 ? rows : [...rows].sort((a, b) => {
        const x = columns[by].value(a), y = columns[by].value(b);
        if ((x ?? null) === null || (y ?? null) === null) return (x ?? null) === null ? ((y ?? null) === null ? 0 : 1)
            : -1;
        return direction * (typeof x === "number" && typeof y === "number" ? x - y
            : `${x}`.localeCompare(`${y}`, "en", {numeric: true}));
    }));
    const numeric = column => column.number || rows.some(row => typeof column.value(row) === "number");
    const body = h("tbody"), head = h("tr");
    const box = h("div", {class: "box", tabindex: 0, role: "region", "aria-label": caption},
        h("table", {class: wide ? "wide" : undefined}, h("caption", {}, caption), h("thead", {}, head), body));
    function refresh(focus) {
        head.replaceChildren(...columns.map((column, c) => h("th", {scope: "col", title: column.help,
            class: numeric(column) ? "n" : undefined, "aria-sort": c === by
                ? (direction > 0 ? "ascending" : "descending") : undefined},
        h("button", {type: "button", click: () => {
            direction = c === by ? -direction : numeric(column) && !column.least ? -1 : 1;
            by = c;
            refresh(c);
        }}, column.title))));
        body.replaceChildren(...sorted().map(row => h("tr", {id: mark && mark(row).id, class: mark && mark(row).class},
            columns.map((column, c) => h(c ? "td" : "th", {scope: c ? undefined : "row",
                class: numeric(column) ? "n" : undefined},
                column.cell ? column.cell(row) : text(column, row))))));
        if (focus !== undefined) head.children[focus].firstChild.focus();
    }
    refresh();
    return h("section", {class: "table"}, box, exports(name, () => ({heads: columns.map(column => column.title),
        rows: sorted().map(row => columns.map(column => text(column, row))), from: sorted()}), records));
}

// --- figures --------------------------------------------------------------------------------------------------------

const COLOURS = 8, DASHES = ["", "7 3", "2 3", "9 3 2 3", "1 4", "14 4", "9 3 2 3 2 3", "4 6"];

// A family has one colour and shape on all pages, and no two families share both; dashes tell lines of one colour apart
// within a figure.
function style(label, used) {
    const family = index.mixers.findIndex(m => m.name === familyOf(label)) + COLOURS;
    const colour = `var(--c${family % COLOURS})`, before = used.filter(other => other === colour).length;
    used.push(colour);
    return {colour, dash: DASHES[before % DASHES.length], shape: Math.floor(family / COLOURS) - 1 + SHAPES.length};
}

function ticksOf(low, high, log) {
    if (log) {
        const ticks = [];
        for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
            for (const m of high / low > 100 ? [1] : [1, 2, 5]) {
                const tick = m * 10 ** power;
                if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
            }
        if (ticks.length > 1) return ticks;
    }
    const step = 10 ** Math.floor(Math.log10((high - low) / 4 || 1)), ticks = [];
    const wide = step * [1, 2, 5, 10].find(m => (high - low) / (m * step) <= 6);
    for (let tick = Math.ceil(low / wide) * wide; tick <= high + wide * 1e-6;
        tick += wide) ticks.push(+tick.toPrecision(6));
    return ticks;
}

// The shapes of points, each around (x, y).
const SHAPES = [(x, y) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0`, (x, y) => `M${x - 4} ${y - 4}h8v8h-8z`,
    (x, y) => `M${x} ${y - 5}l5 9h-10z`, (x, y) => `M${x} ${y - 5}l5 5l-5 5l-5 -5z`];
const marker = (s, x, y, ...children) => svg("path", {class: "dot", d: SHAPES[(s.shape || 0) % SHAPES.length](x, y)},
    children);

// How many figures stand side by side, and the distance between them (site.css).
const figuresAbreast = width => Math.max(1, Math.min(3, Math.floor(width / 500))), FIGURE_GAP = 32;
const figures = (...list) => h("div", {class: "figures"}, list);

// A figure of series {name, group, colour, dash, shape, points: [[x, y, low, high, text, records]], records, line,
// band, dots}; levels: [[y, name]]. Series of one group share an entry of the legend.
function figure(caption, series, {x, y, logX = false, low, high, levels = []}) {
    const points = series.flatMap(s => s.points).filter(p => p[0] !== null && p[1] !== null && (!logX || p[0] > 0));
    if (!points.length) return null;
    const room = document.getElementById("main").clientWidth, abreast = figuresAbreast(room);
    const width = Math.max(280, Math.min(720, Math.floor((room - (abreast - 1) * FIGURE_GAP) / abreast)));
    const height = 300, left = 46, right = width - 10, top = 26, bottom = height - 38;
    const xs = points.map(p => p[0]), ys = points.flatMap(p => [p[1], p[2] ?? p[1],
        p[3] ?? p[1]]).concat(levels.map(l => l[0]));
    let [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), low ?? Math.min(...ys), high ?? Math.max(...ys)];
    if (x0 === x1) [x0, x1] = logX ? [x0 / 2, x1 * 2] : [x0 - 1, x1 + 1];
    if (y0 === y1) [y0, y1] = [y0 - 0.5, y1 + 0.5];
    if (high === undefined) y1 += (y1 - y0) * 0.05;
    const along = logX ? Math.log : v => v;
    const px = v => left + (along(v) - along(x0)) / (along(x1) - along(x0)) * (right - left - 16) + 8;
    const py = v => bottom - (Math.min(Math.max(v, y0), y1) - y0) / (y1 - y0) * (bottom - top);
    const path = list => list.map((p, i) => `${i ? "L" : "M"}${px(p[0]).toFixed(1)} ${py(p[1]).toFixed(1)}`).join("");
    const text = (s, p) => `${s.name}: ${x} ${count(p[0])}, ${y} ${p[1] < 10 ? score(p[1]) : count(p[1])}`;
    const hidden = new Set(), parts = series.map(s => {
        const own = s.points.filter(p => p[0] !== null && p[1] !== null && (!logX || p[0] > 0));
        const band = own.filter(p => p[2] !== undefined && p[2] !== null);
        return svg("g", {style: `color:${s.colour}`},
            s.band && band.length > 1 && svg("path", {class: "band", d: path(band.map(p => [p[0], p[3]])) +
                path([...band].reverse().map(p => [p[0], p[2]])).replace("M", "L") + "Z"}),
            !s.band && band.map(p => svg("path", {class: "whisker", d: `M${px(p[0])} ${py(p[2])}V${py(p[3])}`})),
            s.line !== false && own.length > 1 && svg("path", {class: "line", d: path(own),
                "stroke-dasharray": s.dash || undefined}),
            (s.dots || own.length === 1) && own.map(p => marker(s, px(p[0]), py(p[1]),
                svg("title", {}, p[4] || text(s, p)))),
            !s.dots && own.map(p => svg("circle", {class: "touch", cx: px(p[0]), cy: py(p[1]), r: 6},
                svg("title", {}, text(s, p)))));
    });
    const xTicks = ticksOf(x0, x1, logX), yTicks = ticksOf(y0, y1, false);
    const drawing = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
        "aria-label": `${caption} The table below the figure has its numbers.`},
        yTicks.map(v => [svg("path", {class: "grid", d: `M${left} ${py(v)}H${right}`}),
            svg("text", {x: left - 6, y: py(v) + 4, "text-anchor": "end"}, y1 - y0 < 10 ? `${+v.toFixed(3)}`
                : count(v))]),
        xTicks.map(v => [svg("path", {class: "grid", d: `M${px(v)} ${bottom}v5`}),
            svg("text", {x: px(v), y: bottom + 18, "text-anchor": "middle"}, count(v))]),
        svg("text", {x: right, y: height - 4, "text-anchor": "end"}, x), svg("text", {x: 4, y: 12}, y),
        levels.map(([v, name]) => [svg("path", {class: "level", d: `M${left} ${py(v)}H${right}`}),
            svg("text", {x: right, y: py(v) - 4, "text-anchor": "end", class: "level"}, name)]), parts);
    const groupOf = s => s.group || s.name, groups = distinct(series.map(groupOf));
    const legend = groups.length > 1 && h("ul", {class: "legend"},
        groups.map(group => [group, series.find(s => groupOf(s) === group)]).map(([group, s]) => h("li", {},
        h("button", {type: "button", "aria-pressed": "true", click: event => {
            hidden.has(group) ? hidden.delete(group) : hidden.add(group);
            parts.forEach((part, i) => groupOf(series[i]) === group && part.classList.toggle("off", hidden.has(group)));
            event.currentTarget.setAttribute("aria-pressed", !hidden.has(group));
        }}, svg("svg", {width: 26, height: 12, "aria-hidden": "true", style: `color:${s.colour}`},
        s.line !== false && svg("path", {class: "line", d: "M0 6H26", "stroke-dasharray": s.dash || undefined}),
        (s.dots || s.line === false) && marker(s, 13, 6)), group))));
    const rows = series.flatMap(s => s.points.map(p => ({name: s.name, p, records: p[5] || s.records || []})));
    const details = h("details", {}, h("summary", {}, "Numbers of this figure"));
    details.addEventListener("toggle", () => {
        if (details.children.length === 1) details.append(table("figure", caption,
            [{title: "series", value: r => r.name},
            {title: x, value: r => r.p[0]}, {title: y, value: r => r.p[1]}, {title: "low", value: r => r.p[2] ?? null},
            {title: "high", value: r => r.p[3] ?? null}], rows, {records: rows.some(r => r.records.length)
                ? r => r.records : undefined}));
    });
    return h("figure", {}, h("figcaption", {}, caption), drawing, legend, details);
}

// --- marks ----------------------------------------------------------------------------------------------------------

const MARKS = {"*": "a limit of steps or time ended a run early", "#": "a failed run counts as chance",
    p: "another precision than most of its column",
        b: "a budget more than twice, or less than half, that of its column",
    s: "a size more than twice, or less than half, that of its column",
        o: "made by other numerics than this program's",
    "^": "could see the inputs after each position, which its task forbids"};

const distinct = list => [...new Set(list)];
const median = list => [...list].sort((a, b) => a - b)[list.length >> 1];
function commonest(list) {
    const votes = new Map();
    for (const value of list) votes.set(value, (votes.get(value) || 0) + 1);
    return [...votes].sort((a, b) => b[1] - a[1])[0]?.[0];
}
const budgetOf = row => row.max_steps * row.batch;

// The usual values among rows of one task.
function usual(rows) {
    return {precision: commonest(rows.map(row => row.precision)), budget: median(rows.map(budgetOf)),
        params: median(rows.map(row => row.params))};
}

function marksOf(row, of) {
    const far = (a, b) => a > 2 * b || b > 2 * a;
    return [row.cut && "*", row.failed && "#", of && row.precision !== of.precision && "p",
        of && far(budgetOf(row), of.budget) && "b",
        of && far(row.params, of.params) && "s", row.outdated && "o",
        row.sees_future && "^"].filter(mark => mark);
}

function legendOf(marks) {
    return marks.size > 0 && h("ul", {class: "marks"}, Object.keys(MARKS).filter(mark => marks.has(mark))
        .map(mark => h("li", {}, h("b", {}, mark), ` ${MARKS[mark]}`)));
}
