/*
Vega-Lite specifications of the charts. Data are plain rows; colours are those of the theme at the time of drawing.

rateLines(rows, {x, series, dash})     rates with intervals along an ordinal axis
heatMap(rows, {columns, lines})        rates by two groups, written into the cells
stackedCounts(rows, {lines, parts})    counts, a bar a line
ratioDots(rows, {lines, series})       ratios, a rule at 1
quartiles(rows, {series, title})       median with quartiles along an ordinal axis
gainsAndLosses(rows, {lines})          gained to the right, lost to the left
*/

const RATE_AXIS = { format: ".0%", grid: true, title: null, values: [0, 0.25, 0.5, 0.75, 1], domain: false, ticks: false };
const RATE_SCALE = { domain: [0, 1] };
const MOST_INTERVALS = 8; // Along an axis: more of them hide each other, and are in the table.

function seriesScale(series) {
  return { domain: series, range: seriesColours(series.length) };
}

function spread(series) {
  return series.length > 1 ? { field: "series", type: "nominal", sort: series, scale: { padding: 0.4 } } : undefined;
}

function rateLines(rows, { x, series, dash, xTitle }) {
  const step = Math.min(0.12, 0.5 / series.length);
  const shift = row => (series.indexOf(row.series) - (series.length - 1) / 2) * step;
  const values = rows.map(row => ({ ...row, at: x.indexOf(row.x) + shift(row) }));
  const y = { field: "value", type: "quantitative", scale: RATE_SCALE, axis: RATE_AXIS };
  const axis = { values: x.map((_, i) => i), labelExpr: `${JSON.stringify(x)}[datum.value]`, grid: false, ticks: false, labelPadding: 8, title: xTitle };
  const intervals = {
    transform: [{ filter: "isValid(datum.low)" }],
    mark: { type: "rule", strokeWidth: 1.5, opacity: 0.75 },
    encoding: { y: { ...y, field: "low" }, y2: { field: "high" } },
  };
  return {
    data: { values },
    height: 170,
    encoding: {
      x: { field: "at", type: "quantitative", scale: { domain: [-0.45, x.length - 0.55], nice: false, zero: false }, axis },
      color: { field: "series", type: "nominal", scale: seriesScale(series), legend: seriesLegend(series), sort: series },
      tooltip: [
        { field: "series", title: "" },
        { field: "where", title: " " },
        { field: "told", title: "  " },
        { field: "interval", title: "95 %" },
      ],
    },
    layer: [
      { mark: { type: "line", strokeWidth: 2, opacity: 0.45, tooltip: null }, encoding: { y, ...dashes(dash, series) } },
      ...(x.length > MOST_INTERVALS ? [] : [intervals]),
      { mark: { type: "circle", size: x.length > MOST_INTERVALS ? 36 : 80, opacity: 1 }, encoding: { y } },
    ],
  };
}

/* Series that say the same of another kind are drawn with a broken line. */
function dashes(dash, series) {
  if (!dash) return {};
  return { strokeDash: { field: "series", type: "nominal", legend: null, scale: { domain: series, range: series.map(name => (dash.includes(name) ? [5, 4] : [1, 0])) } } };
}

function seriesLegend(series) {
  return series.length > 1 ? { symbolType: "circle", symbolOpacity: 1, symbolStrokeWidth: 0, columns: series.length > 3 ? 2 : 0 } : null;
}

function heatMap(rows, { columns, lines, width }) {
  const room = (width - 130) / columns.length;
  const labels = room < 82 ? { labelAngle: -38, labelLimit: 130 } : { labelAngle: 0, labelLimit: room, labelExpr: "split(datum.label, ' ')", labelPadding: 20 };
  return {
    data: { values: rows.map(row => ({ ...row, label: room < 82 ? row.brief : row.label })) },
    height: { step: 34 },
    encoding: {
      x: { field: "column", type: "nominal", title: null, scale: { domain: columns }, axis: { orient: "top", domain: false, ticks: false, ...labels } },
      y: { field: "line", type: "nominal", title: null, scale: { domain: lines }, axis: { domain: false, ticks: false, labelLimit: 130 } },
    },
    layer: [
      {
        mark: { type: "rect", cornerRadius: 4, stroke: colour("surface"), strokeWidth: 3 },
        encoding: {
          color: { field: "value", type: "quantitative", scale: { domain: [0, 0.5, 1], range: [colour("heat-low"), colour("heat-middle"), colour("heat-high")], interpolate: "lab" }, legend: null },
          tooltip: [{ field: "line", title: "" }, { field: "column", title: " " }, { field: "told", title: "  " }, { field: "interval", title: "95 %" }],
        },
      },
      { mark: { type: "text", fontSize: 11.5, color: colour("ink") }, encoding: { text: { field: "label" } } },
    ],
  };
}

function stackedCounts(rows, { lines, parts }) {
  return {
    data: { values: rows },
    height: { step: lines.length > 3 ? 30 : 40 },
    encoding: {
      y: { field: "line", type: "nominal", sort: lines, scale: { domain: lines }, title: null, axis: { domain: false, ticks: false, labelLimit: 150 } },
      x: { field: "count", type: "quantitative", stack: "zero", title: "wrong tasks", axis: { tickMinStep: 1, format: "d", domain: false, ticks: false, tickCount: 6 } },
      order: { field: "order", type: "quantitative" },
    },
    layer: [
      {
        mark: { type: "bar", stroke: colour("surface"), strokeWidth: 1, opacity: 0.9 },
        encoding: {
          color: { field: "part", type: "nominal", sort: parts, scale: { domain: parts, range: partColours(parts.length) }, legend: { columns: 3, labelLimit: 170 } },
          tooltip: [{ field: "line", title: "" }, { field: "part", title: " " }, { field: "told", title: "  " }],
        },
      },
    ],
  };
}

function partColours(count) {
  return [...seriesColours(8), colour("line-strong"), colour("ink-faint")].slice(0, Math.max(count, 1));
}

function ratioDots(rows, { lines, series }) {
  const most = Math.max(1.2, ...rows.map(row => row.value)) * 1.05;
  return {
    data: { values: rows },
    height: { step: 26 + 14 * (Math.min(series.length, 6) - 1), for: "position" },
    encoding: {
      y: { field: "line", type: "nominal", sort: lines, scale: { domain: lines }, title: null, axis: { domain: false, ticks: false, labelLimit: 200 } },
    },
    layer: [
      { data: { values: [{ one: 1 }] }, mark: { type: "rule", color: colour("ink-faint"), strokeDash: [4, 3] }, encoding: { x: { field: "one", type: "quantitative" }, y: { value: 0 }, y2: { value: "height" } } },
      {
        mark: { type: "circle", size: 90, opacity: 1 },
        encoding: {
          x: { field: "value", type: "quantitative", title: "times the shortest way", scale: { domain: [Math.min(0.8, ...rows.map(row => row.value)), most], nice: true, zero: false }, axis: { format: ".2~f", tickCount: 6 } },
          color: { field: "series", type: "nominal", sort: series, scale: seriesScale(series), legend: seriesLegend(series) },
          ...(series.length > 1 ? { yOffset: { field: "series", type: "nominal", sort: series, scale: { padding: 0.3 } } } : {}),
          tooltip: [{ field: "series", title: "" }, { field: "line", title: " " }, { field: "told", title: "  " }],
        },
      },
    ],
  };
}

function quartiles(rows, { series, title, format }) {
  const offset = spread(series);
  const shift = offset ? { xOffset: offset } : {};
  const y = { field: "middle", type: "quantitative", title, axis: { format, tickCount: 4, domain: false, ticks: false }, scale: { zero: true } };
  return {
    data: { values: rows },
    height: 120,
    encoding: {
      x: { field: "x", type: "ordinal", title: "steps above the least", axis: { labelAngle: 0, grid: false } },
      color: { field: "series", type: "nominal", sort: series, scale: seriesScale(series), legend: seriesLegend(series) },
      tooltip: [{ field: "series", title: "" }, { field: "told", title: " " }],
    },
    layer: [
      { mark: { type: "rule", strokeWidth: 5, opacity: 0.35, strokeCap: "round" }, encoding: { y: { ...y, field: "low" }, y2: { field: "high" }, ...shift } },
      { mark: { type: "circle", size: 70, opacity: 1 }, encoding: { y, ...shift } },
    ],
  };
}

function gainsAndLosses(rows, { lines }) {
  const most = Math.max(1, ...rows.map(row => Math.abs(row.count)));
  return {
    data: { values: rows },
    height: { step: 28 },
    encoding: {
      y: { field: "line", type: "nominal", sort: lines, scale: { domain: lines }, title: null, axis: { domain: false, ticks: false, labelLimit: 150 } },
      x: { field: "count", type: "quantitative", title: "tasks: lost ← → gained", scale: { domain: [-1.2 * most, 1.2 * most], nice: false }, axis: { tickMinStep: 1, format: "d", domain: false, ticks: false, labelExpr: "replace(datum.label, '−', '')" } },
    },
    layer: [
      {
        mark: { type: "bar", cornerRadius: 2 },
        encoding: {
          color: { field: "change", type: "nominal", scale: { domain: ["gained", "lost"], range: [colour("right-line"), colour("wrong-line")] }, legend: null },
          tooltip: [{ field: "line", title: "" }, { field: "told", title: " " }],
        },
      },
      { mark: { type: "text", fontSize: 11.5, fontWeight: 600, dx: { expr: "datum.count < 0 ? -10 : 10" } }, encoding: { text: { field: "label" } } },
    ],
  };
}
