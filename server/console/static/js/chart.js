// A line chart of the last ten minutes, drawn by hand: times to the right, values upwards from 0.
import { h, svg, put, text } from "./dom.js";

const span = 600; // seconds
const left = 54;
const bottom = 18;
const top = 8;
let numbered = 0;

/**
 * chart makes one. series are [{name, show}]; update(points) draws [{at, values}], oldest first,
 * whose values may be null.
 */
export function chart({ title, series, format, least = 1 }) {
  const id = `chart-${++numbered}`;
  const values = series.map(() => h("b", {}, "–"));
  const legend = h("ul", { class: "legend" }, series.map((s, i) => h("li", { class: `series-${i}` }, s, " ", values[i])));
  const when = h("span", { class: "muted small" }, "now");
  const plot = svg("svg", { role: "img", "aria-labelledby": id });
  const root = h("section", { class: "panel chart" }, h("header", {}, h("h3", { id }, title), when), plot, legend);
  let points = [];
  let pointed = null; // seconds before now

  function draw() {
    const width = plot.clientWidth || 400;
    const height = plot.clientHeight || 144;
    const now = points.length ? points[points.length - 1].at : 0;
    const x = (at) => left + ((at - now + span) / span) * (width - left - 4);
    const most = nice(points.reduce((m, p) => p.values.reduce((a, v) => Math.max(a, v ?? 0), m), least));
    const y = (v) => top + (1 - v / most) * (height - top - bottom);
    const parts = [];
    for (const f of [0, 0.5, 1]) {
      parts.push(svg("line", { class: "axis", x1: left, x2: width - 4, y1: y(most * f), y2: y(most * f) }));
      parts.push(svg("text", { x: left - 8, y: y(most * f) + 4, "text-anchor": "end" }, format(most * f)));
    }
    for (const [ago, label, anchor] of [[600, "10 min ago", "start"], [300, "5 min", "middle"], [0, "now", "end"]]) {
      parts.push(svg("text", { x: x(now - ago), y: height - 3, "text-anchor": anchor }, label));
    }
    series.forEach((_, i) => parts.push(...drawn(points, i, x, y)));
    const at = pointed === null ? null : nearest(points, now - pointed);
    if (at) parts.push(svg("line", { class: "cursor", x1: x(at.at), x2: x(at.at), y1: top, y2: height - bottom }));
    plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
    put(plot, parts);
    const shown = at ?? points[points.length - 1];
    series.forEach((_, i) => text(values[i], shown ? format(shown.values[i]) : "–"));
    text(when, at && now - at.at >= 1 ? `${Math.round(now - at.at)} s ago` : "now");
  }

  plot.addEventListener("pointermove", (e) => {
    const box = plot.getBoundingClientRect();
    pointed = Math.max(0, Math.min(span, span * (1 - (e.clientX - box.left - left) / (box.width - left - 4))));
    draw();
  });
  plot.addEventListener("pointerleave", () => {
    pointed = null;
    draw();
  });
  new ResizeObserver(draw).observe(plot);
  return {
    root,
    update(p) {
      points = p;
      draw();
    },
  };
}

/** drawn are the lines of a series, parted where it has no value. */
function drawn(points, i, x, y) {
  const runs = [];
  let run = null;
  let before = null;
  for (const p of points) {
    const v = p.values[i];
    if (v === null || v === undefined || (before !== null && p.at - before > 10)) run = null;
    before = p.at;
    if (v === null || v === undefined) continue;
    if (!run) runs.push((run = []));
    run.push([x(p.at).toFixed(1), y(v).toFixed(1)]);
  }
  return runs.flatMap((r) => {
    const path = r.length > 1 ? `M${r.map((c) => c.join(" ")).join("L")}` : `M${r[0].join(" ")}h0.1`;
    const line = svg("path", { class: `line series-${i}`, d: path });
    if (i > 0 || r.length < 2) return [line];
    return [svg("path", { class: `area series-${i}`, d: `${path}V${y(0).toFixed(1)}H${r[0][0]}Z` }), line];
  });
}

function nearest(points, at) {
  let best = null;
  for (const p of points) if (!best || Math.abs(p.at - at) < Math.abs(best.at - at)) best = p;
  return best;
}

/** nice is 1, 2 or 5 times a power of ten that is no less. */
function nice(n) {
  const power = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 5, 10].map((f) => f * power).find((v) => v >= n * 0.999999);
}
