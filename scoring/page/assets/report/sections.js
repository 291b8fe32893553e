/*
The charts of the report: each takes the document and gives a card, or null where there is nothing to show. Every card
has a title that says what is shown, one sentence that reads it, and a table.
*/

function chartSections() {
  const cards = [
    positionChart(),
    transitionChart(),
    heatChart(),
    errorChart(),
    pathChart(),
    detourChart(),
    passChart(),
    flipChart(),
    infrastructureCard(),
  ];
  return element("div", { class: "charts" }, cards.filter(Boolean));
}

/* Rows of figures with an interval, run by run. */
function figureRows(entries, told) {
  const rows = [];
  for (const run of page.document.runs) {
    for (const entry of entries) {
      const found = figure(run, entry);
      if (found) rows.push({ run, entry, found, ...told(run, entry, found) });
    }
  }
  return rows;
}

function countWords(found) {
  return isNumber(found.successes)
    ? `${percent(found.value)} %, ${number(found.successes)} of ${number(found.n)}`
    : `${percent(found.value)} %, n ${number(found.n)}`;
}

function intervalText(found) {
  return isNumber(found.low) ? `${percent(found.low)} to ${percent(found.high)}` : "no interval";
}

function lineRow(series, x, where, found) {
  return {
    series,
    x,
    where,
    value: found.value,
    low: isNumber(found.low) ? found.low : null,
    high: isNumber(found.high) ? found.high : null,
    told: countWords(found),
    interval: intervalText(found),
  };
}

function runTitles() {
  return page.document.runs.map(run => run.title);
}

/* A table of figures: a line an entry, and for each run value, n and interval. */
function figureTable(entries, first, name = group) {
  const runs = page.document.runs;
  const head = [first, ...runs.flatMap(run => (several() ? [run.title, "n", "95 %"] : ["%", "n", "95 %"]))];
  const rows = entries.map(entry => [
    name(entry),
    ...runs.flatMap(run => {
      const found = figure(run, entry);
      return found
        ? [
            percent(found.value),
            isNumber(found.successes) ? `${number(found.successes)}/${number(found.n)}` : number(found.n),
            intervalText(found),
          ]
        : [NOTHING, "0", NOTHING];
    }),
  ]);
  return { head, rows };
}

function positionChart() {
  const entries = page.document.layout.positions;
  const rows = figureRows(entries, (run, entry, found) =>
    lineRow(run.title, group(entry), `task ${group(entry)}`, found),
  );
  if (!rows.length) return null;
  return chartCard({
    id: "positions",
    title: "Task accuracy by position in the session",
    reading: positionReading(entries),
    words: rows.map(row => `${row.series}, ${row.where}: ${row.told}`).join("; "),
    panels: [
      { spec: () => rateLines(rows, { x: entries.map(group), series: runTitles(), xTitle: "task of the session" }) },
    ],
    table: figureTable(entries, "position"),
  });
}

function positionReading(entries) {
  return readings(run => {
    const found = entries.map(entry => figure(run, entry));
    if (!found[0] || !found.at(-1) || found.length < 2) return null;
    return `${percent(found[0].value)} % of the first tasks are right, ${percent(found.at(-1).value)} % of the last.`;
  });
}

/* The sentence of one run; of several, each with its name in front. */
function readings(read) {
  const lines = page.document.runs.map(run => [run, read(run)]).filter(([, text]) => text);
  if (!several()) return lines.length ? lines[0][1] : "Nothing to tell.";
  return lines.map(([run, text]) => runLine(run, text));
}

function runLine(run, text) {
  return element("span", { class: "run-line" }, runName(run), `: ${text}`);
}

function transitionChart() {
  const { kind, half } = page.document.layout.transitions;
  const names = { kind: "changes of kind of task", half: "changes between tool and text" };
  const shown = several() ? { kind } : { kind, half };
  const series = several() ? runTitles() : Object.values(names);
  const rows = Object.entries(shown).flatMap(([which, entries]) =>
    figureRows(entries, (run, entry, found) =>
      lineRow(
        several() ? run.title : names[which],
        group(entry),
        `after ${plural(Number(group(entry)), "change")}`,
        found,
      ),
    ),
  );
  const x = [...new Set(rows.map(row => row.x))].sort();
  if (x.length < 2) return null;
  return chartCard({
    id: "transitions",
    title: "Task accuracy by changes within the session",
    reading: readings(run => {
      const found = kind.map(entry => [entry, figure(run, entry)]).filter(([, it]) => it);
      if (found.length < 2) return null;
      const [first, last] = [found[0], found.at(-1)];
      return `${percent(first[1].value)} % right before the kind of task first changes, ${percent(last[1].value)} % after ${plural(Number(group(last[0])), "change")}.`;
    }),
    words: rows.map(row => `${row.series}, ${row.where}: ${row.told}`).join("; "),
    panels: [
      {
        spec: () =>
          rateLines(rows, { x, series, xTitle: several() ? "changes of the kind of task so far" : "changes so far" }),
      },
    ],
    table: figureTable(
      [...kind, ...half],
      "changes",
      entry => `${entry.name.includes("half") ? "tool and text" : "kind"}, ${group(entry)}`,
    ),
  });
}

function heatChart() {
  const { rows: lines, columns, cells } = page.document.layout.heat;
  const panels = page.document.runs
    .map(run => ({ run, rows: heatRows(run, cells) }))
    .filter(({ rows }) => rows.length)
    .map(({ run, rows }) => ({
      title: several() ? run.title : "",
      mark: several() ? runMark(run) : null,
      spec: width => heatMap(rows, { columns, lines, width }),
    }));
  if (!panels.length) return null;
  return chartCard({
    id: "heat",
    title: "Task accuracy by task label and turn subtype",
    reading: readings(run => heatReading(heatRows(run, cells))),
    words: "The same figures are in the table.",
    panels,
    table: figureTable(
      cells.map(cell => ({ key: cell.key, of: "scorer", group: `${cell.row}, ${cell.column}` })),
      "label, subtype",
    ),
    wide: several(),
    roomy: true,
  });
}

function heatRows(run, cells) {
  return cells.flatMap(cell => {
    const found = figure(run, { key: cell.key, of: "scorer" });
    if (!found) return [];
    return [
      {
        line: cell.row,
        column: cell.column,
        value: found.value,
        label: `${percent(found.value, 0)} % of ${number(found.n)}`,
        brief: `${percent(found.value, 0)} %`,
        told: countWords(found),
        interval: intervalText(found),
        n: found.n,
      },
    ];
  });
}

function heatReading(rows) {
  const solid = rows.filter(row => row.n >= 3);
  const from = solid.length ? solid : rows;
  if (!from.length) return null;
  const worst = from.reduce((low, row) => (row.value < low.value ? row : low));
  return `Weakest at ${worst.line}, ${worst.column} (${worst.told}).`;
}

function errorChart() {
  const { errors, errors_by_label: byLabel } = page.document.layout;
  const titleOf = id => (page.document.error_classes[id] || { title: id }).title;
  const parts = errors.map(entry => titleOf(group(entry)));
  const rows = several()
    ? figureRows(errors, (run, entry, found) => errorRow(run.title, titleOf(group(entry)), parts, found))
    : errorRowsByLabel(byLabel, parts, titleOf);
  const counted = rows.filter(row => row.count > 0);
  if (!counted.length) return null;
  const used = parts.filter(part => counted.some(row => row.part === part));
  const lines = several() ? runTitles() : byLabel.rows.filter(line => counted.some(row => row.line === line));
  return chartCard({
    id: "errors",
    title: several() ? "Wrong tasks by class of error" : "Wrong tasks by label and class of error",
    reading: readings(run => errorReading(run, errors, titleOf)),
    words: counted.map(row => `${row.line}, ${row.part}: ${row.count}`).join("; "),
    panels: [{ spec: () => stackedCounts(counted, { lines, parts: used }) }],
    table: figureTable(errors, "class of error", entry => titleOf(group(entry))),
  });
}

function errorRow(line, part, parts, found) {
  return {
    line,
    part,
    order: parts.indexOf(part),
    count: found.successes ?? 0,
    told: `${number(found.successes)} of ${number(found.n)} wrong tasks`,
  };
}

function errorRowsByLabel({ cells }, parts, titleOf) {
  const [run] = page.document.runs;
  return cells.flatMap(cell => {
    const found = figure(run, { key: cell.key, of: "scorer" });
    return found ? [errorRow(cell.row, titleOf(cell.column), parts, found)] : [];
  });
}

function errorReading(run, errors, titleOf) {
  const found = errors.map(entry => [entry, figure(run, entry)]).filter(([, it]) => it && it.successes);
  if (!found.length) return null;
  const [entry, most] = found.reduce((best, it) => (it[1].successes > best[1].successes ? it : best));
  return `${titleOf(group(entry))} is the most frequent: ${number(most.successes)} of ${plural(most.n, "wrong task")}.`;
}

function passChart() {
  const passes = page.document.layout.passes;
  const names = {
    pass_hat_k: "sessions, all of k",
    pass_at_k: "sessions, one of k",
    task_pass_hat_k: "tasks, all of k",
    task_pass_at_k: "tasks, one of k",
  };
  const shown = Object.entries(passes).filter(([name]) => name in names && (!several() || name === "pass_hat_k"));
  const rows = shown.flatMap(([name, entries]) =>
    figureRows(entries, (run, entry, found) =>
      lineRow(several() ? run.title : names[name], group(entry), `k = ${group(entry)}`, found),
    ),
  );
  const x = [...new Set(rows.map(row => row.x))];
  if (x.length < 2) return null;
  const series = several() ? runTitles() : Object.values(names);
  const all = Object.values(passes).flat();
  return chartCard({
    id: "passes",
    title: several()
      ? "Pass^k: sessions right in all of k epochs"
      : "Pass^k and pass@k: right in all, or in one, of k epochs",
    reading: readings(run => passReading(run, passes.pass_hat_k)),
    words: rows.map(row => `${row.series}, ${row.where}: ${row.told}`).join("; "),
    panels: [
      { spec: () => rateLines(rows, { x, series, dash: [names.pass_at_k, names.task_pass_at_k], xTitle: "k" }) },
    ],
    table: figureTable(all, "figure", entry => `${definition(entry.name).title}, k = ${group(entry)}`),
  });
}

function passReading(run, entries) {
  const found = entries.map(entry => [entry, figure(run, entry)]).filter(([, it]) => it);
  if (found.length < 2) return null;
  const [first, last] = [found[0], found.at(-1)];
  return `${percent(first[1].value)} % of the sessions are right at a time, ${percent(last[1].value)} % in all of ${group(last[0])} epochs.`;
}
