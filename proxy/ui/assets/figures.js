/*
The run in figures: cards that are brought up to date.

renderFigures(place, figures, records)
rateNow(rate, now) -> requests in the last minute        now: Unix seconds
*/

function renderFigures(place, figures, judged, records, now) {
  const cards = records
    ? [requestCard(figures, now), tokenCard(figures), errorCard(figures)]
    : [sessionCard(figures), taskCard(figures, judged), requestCard(figures, now), tokenCard(figures), errorCard(figures)];
  syncChildren(place, cards.map(it => ({ key: it.title, sign: jsonText([it.title, it.big, it.small, it.extraSign]), make: () => figureCard(it) })));
}

function figureCard({ title, big, of, small, extra, kind }) {
  return element(
    "div",
    { class: `card figure-card ${kind || ""}` },
    element("div", { class: "label" }, title),
    element("div", { class: "big" }, big, of && element("span", { class: "of" }, ` / ${of}`)),
    extra ? extra() : null,
    element("div", { class: "small quiet" }, small),
  );
}

function sessionCard({ sessions }) {
  const playing = sessions.begun - sessions.over;
  return {
    title: "Sessions over",
    big: number(sessions.over),
    of: number(sessions.planned),
    small: playing ? `${number(playing)} not over yet` : sessions.begun ? "none is open" : "none was opened yet",
    extra: () => bar([["done", sessions.over], ["open", playing], ["rest", sessions.planned - sessions.begun]]),
    extraSign: [sessions],
  };
}

function taskCard({ tasks, unjudged_sessions: unjudged }, judged) {
  const over = tasks.right + tasks.wrong + tasks.other;
  const other = tasks.other ? `, ${number(tasks.other)} not scored` : "";
  const by = !judged
    ? `by names alone${other}`
    : unjudged
      ? `judging ${plural(unjudged, "session")} …`
      : `strict${other}; ${number(tasks.released_right)} right as released`;
  return {
    title: "Tasks right",
    big: number(tasks.right),
    of: number(over),
    small: over ? by : "none is over yet",
    extra: () => bar([["right", tasks.right], ["wrong", tasks.wrong], ["rest", tasks.other]]),
    extraSign: [tasks],
  };
}

function requestCard(figures, now) {
  const { requests, rate } = figures;
  const counts = bucketsUntil(rate, now);
  return {
    title: "Requests a minute",
    big: number(rateNow(rate, now)),
    small: `${number(requests)} in all`,
    extra: () => sparkline(counts),
    extraSign: counts,
  };
}

function tokenCard({ input_tokens: given, output_tokens: made }) {
  return { title: "Tokens", big: compact(given + made), small: `${compact(given)} input, ${compact(made)} output` };
}

function errorCard({ errors }) {
  return {
    title: "Errors",
    big: number(errors),
    small: errors ? element("a", { href: linkTo({ list: "errors" }) }, "of providers, and refused requests") : "no provider failed",
    kind: errors ? "wrong" : "",
    extraSign: errors,
  };
}

/* Shares of one whole, as boxes that grow. */
function bar(parts) {
  const made = element("div", { class: "share", "aria-hidden": "true" });
  for (const [kind, count] of parts) {
    if (count <= 0) continue;
    const part = element("div", { class: kind });
    part.style.flexGrow = String(count);
    append(made, part);
  }
  return made;
}

/* The counts of the buckets that end now: those without any request are not sent. */
function bucketsUntil({ seconds: size, newest, counts }, now) {
  const gone = Math.max(0, Math.floor((now - newest) / size));
  return [...counts, ...Array(Math.min(gone, counts.length)).fill(0)].slice(-counts.length);
}

function rateNow(rate, now) {
  return bucketsUntil(rate, now).slice(-Math.round(60 / rate.seconds)).reduce((sum, it) => sum + it, 0);
}

function sparkline(counts) {
  const [width, height] = [120, 22];
  const most = Math.max(1, ...counts);
  const points = counts.map((count, i) => `${((width * i) / (counts.length - 1)).toFixed(1)},${(height - 1 - ((height - 2) * count) / most).toFixed(1)}`);
  return drawing(
    "svg",
    { class: "sparkline", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    drawing("polyline", { points: points.join(" "), "vector-effect": "non-scaling-stroke" }),
  );
}

const COMPACT = new Intl.NumberFormat("en-GB", { notation: "compact", maximumFractionDigits: 1 });

function compact(value) {
  return isNumber(value) ? COMPACT.format(value) : NOTHING;
}
