/*
Vega-Lite specifications of the charts. Data are plain rows; colours are those of the theme at the time of drawing.

rateLines(rows, {x, series, dash})     rates with intervals along an ordinal axis
heatMap(rows, {columns, lines})        rates by two groups, written into the cells
colourOf(series), lineAxis(lines)      what several charts have in common
*/

const RATE_AXIS = {
  format: ".0%",
  grid: true,
  title: null,
  values: [0, 0.25, 0.5, 0.75, 1],
  domain: false,
  ticks: false,
};
const RATE_SCALE = { domain: [0, 1] };
const MOST_INTERVALS = 8; // Along an axis: more of them hide each other, and are in the table.

function seriesScale(series) {
  return { domain: series, range: seriesColours(series.length) };
}

function spread(series) {
  return series.length > 1 ? { field: "series", type: "nominal", sort: series, scale: { padding: 0.4 } } : undefined;
}

function colourOf(series) {
  return {
    field: "series",
    type: "nominal",
    sort: series,
    scale: seriesScale(series),
    legend: seriesLegend(series),
  };
}

function lineAxis(lines, labelLimit) {
  return {
    field: "line",
    type: "nominal",
    sort: lines,
    scale: { domain: lines },
    title: null,
    axis: { domain: false, ticks: false, labelLimit },
  };
}

function rateLines(rows, { x, series, dash, xTitle }) {
  const step = Math.min(0.12, 0.5 / series.length);
  const shift = row => (series.indexOf(row.series) - (series.length - 1) / 2) * step;
  const values = rows.map(row => ({ ...row, at: x.indexOf(row.x) + shift(row) }));
  const y = { field: "value", type: "quantitative", scale: RATE_SCALE, axis: RATE_AXIS };
  const axis = {
    values: x.map((_, i) => i),
    labelExpr: `${JSON.stringify(x)}[datum.value]`,
    grid: false,
    ticks: false,
    labelPadding: 8,
    title: xTitle,
  };
  const intervals = {
    transform: [{ filter: "isValid(datum.low)" }],
    mark: { type: "rule", strokeWidth: 1.5, opacity: 0.75 },
    encoding: { y: { ...y, field: "low" }, y2: { field: "high" } },
  };
  return {
    data: { values },
    height: 170,
    encoding: {
      x: {
        field: "at",
        type: "quantitative",
        scale: { domain: [-0.45, x.length - 0.55], nice: false, zero: false },
        axis,
      },
      color: colourOf(series),
      tooltip: [
        { field: "series", title: "" },
        { field: "where", title: " " },
        { field: "told", title: "  " },
        { field: "interval", title: "95 %" },
      ],
    },
    layer: [
      {
        mark: { type: "line", strokeWidth: 2, opacity: 0.45, tooltip: null },
        encoding: { y, ...dashes(dash, series) },
      },
      ...(x.length > MOST_INTERVALS ? [] : [intervals]),
      { mark: { type: "circle", size: x.length > MOST_INTERVALS ? 36 : 80, opacity: 1 }, encoding: { y } },
    ],
  };
}

/* Series that say the same of another kind are drawn with a broken line. */
function dashes(dash, series) {
  if (!dash) return {};
  return {
    strokeDash: {
      field: "series",
      type: "nominal",
      legend: null,
      scale: { domain: series, range: series.map(name => (dash.includes(name) ? [5, 4] : [1, 0])) },
    },
  };
}

function seriesLegend(series) {
  return series.length > 1
    ? { symbolType: "circle", symbolOpacity: 1, symbolStrokeWidth: 0, columns: series.length > 3 ? 2 : 0 }
    : null;
}

function heatMap(rows, { columns, lines, width }) {
  const room = (width - 130) / columns.length;
  const labels =
    room < 82
      ? { labelAngle: -38, labelLimit: 130 }
      : { labelAngle: 0, labelLimit: room, labelExpr: "split(datum.label, ' ')", labelPadding: 20 };
  return {
    data: { values: rows.map(row => ({ ...row, label: room < 82 ? row.brief : row.label })) },
    height: { step: 34 },
    encoding: {
      x: {
        field: "column",
        type: "nominal",
        title: null,
        scale: { domain: columns },
        axis: { orient: "top", domain: false, ticks: false, ...labels },
      },
      y: lineAxis(lines, 130),
    },
    layer: [
      {
        mark: { type: "rect", cornerRadius: 4, stroke: colour("surface"), strokeWidth: 3 },
        encoding: {
          color: {
            field: "value",
            type: "quantitative",
            scale: {
              domain: [0, 0.5, 1],
              range: [colour("heat-low"), colour("heat-middle"), colour("heat-high")],
              interpolate: "lab",
            },
            legend: null,
          },
          tooltip: [
            { field: "line", title: "" },
            { field: "column", title: " " },
            { field: "told", title: "  " },
            { field: "interval", title: "95 %" },
          ],
        },
      },
      { mark: { type: "text", fontSize: 11.5, color: colour("ink") }, encoding: { text: { field: "label" } } },
    ],
  };
}
