/*
Vega-Lite specifications of charts of counts, ratios and costs; like those of rates in specs.js.

stackedCounts(rows, {lines, parts})    counts, a bar a line
ratioDots(rows, {lines, series})       ratios, a rule at 1
quartiles(rows, {series, title})       median with quartiles along an ordinal axis
gainsAndLosses(rows, {lines})          gained to the right, lost to the left
*/

function stackedCounts(rows, { lines, parts }) {
  return {
    data: { values: rows },
    height: { step: lines.length > 3 ? 30 : 40 },
    encoding: {
      y: lineAxis(lines, 150),
      x: {
        field: "count",
        type: "quantitative",
        stack: "zero",
        title: "wrong tasks",
        axis: { tickMinStep: 1, format: "d", domain: false, ticks: false, tickCount: 6 },
      },
      order: { field: "order", type: "quantitative" },
    },
    layer: [
      {
        mark: { type: "bar", stroke: colour("surface"), strokeWidth: 1, opacity: 0.9 },
        encoding: {
          color: {
            field: "part",
            type: "nominal",
            sort: parts,
            scale: { domain: parts, range: partColours(parts.length) },
            legend: { columns: 3, labelLimit: 170 },
          },
          tooltip: [
            { field: "line", title: "" },
            { field: "part", title: " " },
            { field: "told", title: "  " },
          ],
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
      y: lineAxis(lines, 200),
    },
    layer: [
      {
        data: { values: [{ one: 1 }] },
        mark: { type: "rule", color: colour("ink-faint"), strokeDash: [4, 3] },
        encoding: { x: { field: "one", type: "quantitative" }, y: { value: 0 }, y2: { value: "height" } },
      },
      {
        mark: { type: "circle", size: 90, opacity: 1 },
        encoding: {
          x: {
            field: "value",
            type: "quantitative",
            title: "times the shortest way",
            scale: { domain: [Math.min(0.8, ...rows.map(row => row.value)), most], nice: true, zero: false },
            axis: { format: ".2~f", tickCount: 6 },
          },
          color: colourOf(series),
          ...(series.length > 1
            ? { yOffset: { field: "series", type: "nominal", sort: series, scale: { padding: 0.3 } } }
            : {}),
          tooltip: [
            { field: "series", title: "" },
            { field: "line", title: " " },
            { field: "told", title: "  " },
          ],
        },
      },
    ],
  };
}

function quartiles(rows, { series, title, format }) {
  const offset = spread(series);
  const shift = offset ? { xOffset: offset } : {};
  const y = {
    field: "middle",
    type: "quantitative",
    title,
    axis: { format, tickCount: 4, domain: false, ticks: false },
    scale: { zero: true },
  };
  return {
    data: { values: rows },
    height: 120,
    encoding: {
      x: { field: "x", type: "ordinal", title: "steps above the least", axis: { labelAngle: 0, grid: false } },
      color: colourOf(series),
      tooltip: [
        { field: "series", title: "" },
        { field: "told", title: " " },
      ],
    },
    layer: [
      {
        mark: { type: "rule", strokeWidth: 5, opacity: 0.35, strokeCap: "round" },
        encoding: { y: { ...y, field: "low" }, y2: { field: "high" }, ...shift },
      },
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
      y: lineAxis(lines, 150),
      x: {
        field: "count",
        type: "quantitative",
        title: "tasks: lost ← → gained",
        scale: { domain: [-1.2 * most, 1.2 * most], nice: false },
        axis: {
          tickMinStep: 1,
          format: "d",
          domain: false,
          ticks: false,
          labelExpr: "replace(datum.label, '−', '')",
        },
      },
    },
    layer: [
      {
        mark: { type: "bar", cornerRadius: 2 },
        encoding: {
          color: {
            field: "change",
            type: "nominal",
            scale: { domain: ["gained", "lost"], range: [colour("right-line"), colour("wrong-line")] },
            legend: null,
          },
          tooltip: [
            { field: "line", title: "" },
            { field: "told", title: " " },
          ],
        },
      },
      {
        mark: { type: "text", fontSize: 11.5, fontWeight: 600, dx: { expr: "datum.count < 0 ? -10 : 10" } },
        encoding: { text: { field: "label" } },
      },
    ],
  };
}
