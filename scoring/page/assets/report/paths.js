/*
What it cost against the shortest way, what changed between runs, and what failed for reasons that are not the agent's.
*/

function figureValue(found, unit, currency) {
  if (!found) return NOTHING;
  if (unit === "rate") return `${percent(found.value)} %`;
  if (unit === "seconds") return seconds(found.value);
  if (unit === "money") return `${found.value.toPrecision(3)} ${currency || ""}`.trim();
  if (unit === "ratio") return found.value.toFixed(2);
  return number(found.value, Number.isInteger(found.value) ? 0 : 1);
}

function entryTitle(entry) {
  const title = definition(entry.name).title;
  return entry.group === null || entry.group === undefined ? title : `${title}, ${entry.group}`;
}

function valueTable(entries, first) {
  const runs = page.document.runs;
  const head = [first, ...runs.flatMap(run => [several() ? run.title : "value", "n"])];
  const rows = entries.map(entry => {
    const { unit, text } = definition(entry.name);
    const title = element("span", { title: text }, entryTitle(entry));
    return [
      title,
      ...runs.flatMap(run => [
        figureValue(figure(run, entry), unit, run.currency),
        number((figure(run, entry) || { n: 0 }).n),
      ]),
    ];
  });
  return { head, rows };
}

function pathChart() {
  const entries = page.document.layout.correct;
  const ratios = entries.filter(entry => definition(entry.name).unit === "ratio" && entry.name.includes("over"));
  const rows = figureRows(ratios, (run, entry, found) => ({
    line: ratioTitle(entry),
    series: run.title,
    value: found.value,
    told: `${found.value.toFixed(2)} times, n ${number(found.n)}`,
  }));
  if (!rows.length) return null;
  const lines = ratios.map(ratioTitle);
  const behaviour = page.document.layout.behaviour.filter(entry =>
    /latency|seconds|cost|tokens|steps|calls/.test(entry.name),
  );
  return chartCard({
    id: "paths",
    title: "Steps, calls, tokens and cost of right tasks against the shortest way",
    reading: readings(run => {
      const found = ratios.map(entry => [entry, figure(run, entry)]).filter(([, it]) => it);
      if (!found.length) return null;
      const [entry, most] = found.reduce((best, it) => (it[1].value > best[1].value ? it : best));
      if (most.value < 1.005) return "Right tasks were done in the shortest way.";
      return `Right tasks take ${most.value.toFixed(2)} times the ${ratioTitle(entry).toLowerCase()} that they need.`;
    }),
    words: rows.map(row => `${row.series}, ${row.line}: ${row.told}`).join("; "),
    panels: [{ spec: () => ratioDots(rows, { lines, series: runTitles() }) }],
    table: valueTable([...entries, ...behaviour], "figure"),
  });
}

function ratioTitle(entry) {
  return capital(entry.name.replace(/_over_.*/, "").replace(/_/g, " "));
}

const MEASURES = [
  {
    title: "Tokens of a task",
    of: task =>
      isNumber(task.input_tokens) && isNumber(task.output_tokens) ? task.input_tokens + task.output_tokens : null,
    told: value => `${number(value)} tokens`,
    format: "~s",
  },
  { title: "Seconds of a task", of: task => task.seconds, told: seconds, format: "~g" },
  { title: "Calls of a task", of: task => task.calls, told: value => plural(value, "call"), format: "~g" },
  { title: "Cost of a task", of: task => task.cost, told: value => value.toPrecision(3), format: "~g" },
];

function detourChart() {
  const right = page.document.sessions.flatMap(row =>
    row.tasks
      .filter(task => (task.scores[page.scorer] || {}).label === "correct" && task.steps)
      .map(task => ({ run: page.runs.get(row.run), task, extra: Math.max(0, task.steps - task.least) })),
  );
  if (!right.some(it => it.extra > 0)) return null;
  const tables = [];
  const panels = MEASURES.map(measure => {
    const rows = quartileRows(right, measure);
    if (!rows.length || rows.every(row => row.high === 0)) return null;
    tables.push(...rows.map(row => [measure.title, row.series, String(row.x), String(row.n), row.told]));
    return {
      title: measure.title,
      spec: () => quartiles(rows, { series: runTitles(), title: null, format: measure.format }),
    };
  }).filter(Boolean);
  const share = right.filter(it => it.extra > 0).length;
  return chartCard({
    id: "detours",
    title: "What right tasks cost, by steps above the least",
    reading: `${number(share)} of ${plural(right.length, "right task")} took more steps than the least. Marks are medians, bars reach from quartile to quartile.`,
    words: "The same figures are in the table.",
    panels,
    table: { head: ["measure", "run", "steps above the least", "n", "median (quartiles)"], rows: tables },
    wide: true,
  });
}

function quartileRows(right, measure) {
  const groups = new Map();
  for (const { run, task, extra } of right) {
    const value = measure.of(task);
    if (!isNumber(value)) continue;
    const x = extra > 4 ? "5+" : String(extra);
    const key = `${run.index} ${x}`;
    if (!groups.has(key)) groups.set(key, { series: run.title, x, index: run.index, values: [] });
    groups.get(key).values.push(value);
  }
  return [...groups.values()]
    .sort((a, b) => a.index - b.index || (a.x < b.x ? -1 : 1))
    .map(({ series, x, values }) => {
      values.sort((a, b) => a - b);
      const at = share => values[Math.min(values.length - 1, Math.floor(share * values.length))];
      const [low, middle, high] = [at(0.25), at(0.5), at(0.75)];
      return {
        series,
        x,
        n: values.length,
        low,
        middle,
        high,
        told: `${measure.told(middle)} (${measure.told(low)} to ${measure.told(high)})`,
      };
    });
}

function flipChart() {
  const compared = page.document.runs
    .slice(1)
    .map(run => ({ run, comparison: comparisonOf(run) }))
    .filter(({ comparison }) => comparison);
  if (!compared.length) return null;
  const panels = compared
    .map(({ run, comparison }) => ({ title: run.title, mark: runMark(run), rows: flipRows(comparison) }))
    .filter(({ rows }) => rows.length);
  const lines = [...new Set(panels.flatMap(({ rows }) => rows.map(row => row.line)))];
  const table = {
    head: ["scenario and task", "run", "change", "in the first", "in this one", "why"],
    rows: compared.flatMap(({ run, comparison }) => comparison.flips.map(flip => flipLine(run, flip))),
  };
  return chartCard({
    id: "flips",
    title: "Tasks that changed between the runs",
    reading: compared.map(({ run, comparison }) => {
      const gained = comparison.flips.filter(it => it.change === "gained").length;
      const lost = comparison.flips.length - gained;
      return runLine(run, `${number(gained)} gained, ${number(lost)} lost against the first.`);
    }),
    words: panels.flatMap(({ rows }) => rows.map(row => `${row.line}: ${row.told}`)).join("; "),
    panels: panels.map(({ title, mark, rows }) => ({ title, mark, spec: () => gainsAndLosses(rows, { lines }) })),
    table: table.rows.length ? table : null,
    wide: panels.length > 1,
  });
}

function flipTask(flip) {
  const row = page.sessions.get(flip.keys.b) || page.sessions.get(flip.keys.a);
  return row ? row.tasks[flip.task - 1] : null;
}

function flipRows(comparison) {
  const counts = new Map();
  for (const flip of comparison.flips) {
    const task = flipTask(flip);
    const key = `${flip.change} ${task ? task.label : ""}`;
    if (!counts.has(key)) counts.set(key, { line: task ? task.label : "", change: flip.change, count: 0 });
    counts.get(key).count += flip.change === "gained" ? 1 : -1;
  }
  return [...counts.values()].map(row => ({
    ...row,
    label: String(Math.abs(row.count)),
    told: `${Math.abs(row.count)} ${row.change}`,
  }));
}

function flipLine(run, flip) {
  const link = (key, text) =>
    key && page.sessions.has(key) ? element("a", { href: sessionAddress(key, flip.task) }, text) : text;
  const outcome = side => `${side.right}/${side.scored} right`;
  const reason = flip.change === "gained" ? flip.a.reason : flip.b.reason;
  return [
    element("span", {}, foreign(flip.scenario, { limit: 60 }), ` task ${flip.task}`),
    runName(run),
    badge(flip.change === "gained" ? "right" : "wrong", flip.change),
    link(flip.keys.a, outcome(flip.a)),
    link(flip.keys.b, outcome(flip.b)),
    reason || "",
  ];
}

function infrastructureCard() {
  const entries = page.document.layout.infrastructure;
  const lines = page.document.runs.flatMap(run => {
    const left = (run.scorers[page.scorer] || {}).unscored;
    return left && left.tasks
      ? Object.entries(left.reasons).map(([reason, count]) => [
          ...(several() ? [runName(run)] : []),
          foreign(reason, { limit: 200 }),
          number(count),
        ])
      : [];
  });
  const table = valueTable(entries, "figure");
  const failed = element("a", { href: "#verdict=unscored" }, "Show these sessions");
  const made = chartCard({
    id: "infrastructure",
    title: "Failures that are not the agent's",
    reading: lines.length
      ? ["What failed for such reasons is in no rate. ", failed]
      : page.document.sessions.length
        ? "Every task was played to its end."
        : "No task was played.",
    words: "",
    panels: [],
    table: null,
  });
  if (lines.length)
    append(
      made,
      plainTable(
        { head: [...(several() ? ["run"] : []), "reason", "tasks"], rows: lines },
        "Tasks that were not scored, by reason",
      ),
    );
  if (entries.length) append(made, plainTable(table, "Failures and retries"));
  return made;
}
