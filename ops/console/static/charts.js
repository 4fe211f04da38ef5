// The charts of a machine: one time axis, one cursor over all of them, the expected band and novelties behind the line.
import { axes, color } from "./look.js";
import uPlot from "./vendor/uPlot-1.6.32.esm.js";

const DAY = 86_400_000;
const drawn = new Map(); // element of a plot -> its chart
let view;

export async function drawCharts() {
  const charts = document.getElementById("charts");
  if (!charts) return;
  const answer = await fetch(`/api/v1${location.pathname}${location.search}`);
  if (!answer.ok) return;
  view = await answer.json();
  for (const [element, chart] of drawn) if (!element.isConnected) drop(element, chart);
  for (const section of charts.querySelectorAll("[data-series]")) {
    const series = view.series.find((one) => one.series === section.dataset.series);
    if (series) show(section, series, dataOf(series), () => seriesOptions(series));
  }
  const peers = document.getElementById("peers");
  if (peers && view.peers) show(peers, undefined, peerData(), peerOptions);
  const season = document.getElementById("season");
  if (season && view.state) show(season.parentElement, undefined, seasonData(), seasonOptions);
}

function drop(element, chart) {
  chart.destroy();
  drawn.delete(element);
}

// A chart stays as it is when only its data are new.
function show(section, series, data, options) {
  const element = section.querySelector(".plot");
  const chart = drawn.get(element);
  const shape = `${section.dataset.series}/${data.length}`;
  if (chart && chart.shape === shape) {
    chart.told = series;
    chart.setData(data);
    return;
  }
  if (chart) drop(element, chart);
  element.replaceChildren();
  element.dataset.drawn = "yes";
  const output = section.querySelector("output");
  const more = { shape, told: series, output, summary: output?.textContent };
  const made = new uPlot({ ...common(element), ...options() }, data, (chart, ready) => {
    Object.assign(chart, more);
    element.append(chart.root);
    ready();
  });
  drawn.set(element, made);
  new ResizeObserver(() => made.setSize(sizeOf(element))).observe(element);
}

const times = () => Array.from({ length: Math.round((view.end - view.start) / view.step) }, (_, at) => (view.start + (at + 0.5) * view.step) / 1000);

// A chart's columns: times, values, what the open window has, the least and greatest values.
function dataOf(series) {
  const early = earlyOf(series);
  const at = early ? [...times(), early.time] : times();
  const widened = (column) => (early ? [...column, null] : column);
  const dashed = at.map(() => null);
  if (early) {
    const last = series.values.findLastIndex((value) => value !== null);
    if (last >= 0) dashed[last] = series.values[last];
    dashed[at.length - 1] = early.mean;
  }
  return [at, widened(series.values), dashed, ...(series.lows ? [widened(series.lows), widened(series.highs)] : [])];
}

// What the smallest open window has of a series so far, if it is later than what is drawn.
function earlyOf(series) {
  const known = view.open?.series.find((one) => one.series === series.series && one.kind === series.kind);
  const window = known?.windows.find((one) => one.size_seconds === series.window_seconds && one.mean !== undefined);
  if (!window || window.start_unix_nano / 1e6 < view.end - 3 * view.step) return undefined;
  return { time: (window.start_unix_nano + window.end_unix_nano) / 2e9, mean: window.mean };
}

function seasonData() {
  const hours = view.state.series[0].season;
  return [hours.map((one) => one.hour), ...["expected", "low", "high"].map((name) => hours.map((one) => one[name]))];
}
const peerData = () => [times(), ...view.peers.machines.map((one) => one.values)];

const HOOKS = { setSelect: [zoom], setCursor: [tell] };
const sizeOf = (element) => ({ width: element.clientWidth, height: element.clientHeight });

function common(element) {
  return {
    ...sizeOf(element),
    legend: { show: false },
    cursor: { sync: { key: "machine" }, y: false, points: { size: 6 }, drag: { x: true, y: false, setScale: false } },
    padding: [6, 24, 0, 0],
    axes: axes((_, at) => at.map(clock)),
    hooks: HOOKS,
  };
}

// The time of day, UTC; of several days the day, too.
function clock(seconds) {
  const text = new Date(seconds * 1000).toISOString();
  return view.end - view.start > 2 * DAY ? text.slice(5, 10) : text.slice(11, view.step < 60000 ? 19 : 16);
}

// Steps may be shorter than the windows: only where more than two are missing is the line broken.
function gaps(chart, _place, _from, _to, found) {
  const seconds = 2 * (view.series[0]?.window_seconds ?? 0) + view.step / 1000;
  const least = chart.valToPos(view.start / 1000 + seconds, "x", true) - chart.valToPos(view.start / 1000, "x", true);
  return found.filter(([left, right]) => right - left > least);
}

function seriesOptions(series) {
  if (series.kind === "log") return countOptions();
  const line = { stroke: color("--accent"), width: 1.5, points: { show: false }, gaps };
  const edge = { stroke: "transparent", points: { show: false } };
  const early = { stroke: color("--accent"), width: 1.5, dash: [4, 4], points: { show: false }, spanGaps: true };
  const bands = series.lows ? [{ series: [4, 3], fill: color("--between") }] : [];
  return {
    series: [{}, line, early, ...(series.lows ? [edge, edge] : [])],
    bands,
    scales: { y: { range: (chart, low, high) => range(chart, low, high) } },
    hooks: { ...HOOKS, drawAxes: [drawNovelties] },
  };
}

// Lines of a log are counted: a window without any has none.
function countOptions() {
  const bars = uPlot.paths.bars({ size: [0.8, 12] });
  return {
    series: [
      {},
      { stroke: color("--accent"), fill: color("--between"), width: 1, paths: bars, points: { show: false } },
      { show: false },
    ],
    scales: { y: { range: (_, _low, high) => [0, (high || 1) * 1.1] } },
    hooks: { ...HOOKS, drawAxes: [drawNovelties] },
  };
}

function seasonOptions() {
  const edge = { stroke: "transparent", points: { show: false } };
  const hour = (at) => (at < 24 ? `${at}:00` : `${at - 24}:00 we`);
  return {
    series: [{}, { stroke: color("--good"), width: 1.5, points: { show: false } }, edge, edge],
    bands: [{ series: [3, 2], fill: color("--expected") }],
    scales: { x: { time: false }, y: { range: (_, low, high) => padded(low, high) } },
    axes: axes((_, at) => at.map(hour)),
    cursor: { show: false },
    hooks: {},
  };
}

function peerOptions() {
  const mine = view.machine;
  return {
    series: [
      {},
      ...view.peers.machines.map(({ machine }) => ({
        stroke: color(machine === mine ? "--accent" : "--faint"),
        width: machine === mine ? 2.2 : 0.8,
        points: { show: false },
        gaps,
      })),
    ],
    scales: { y: { range: (_, low, high) => padded(low, high) } },
  };
}

// What was expected is in sight, too.
function range(chart, low, high) {
  const now = expectedNow(chart);
  const then = noveltiesOf(chart).flatMap((one) => [one.expected_low, one.expected_high]);
  const known = [...then, now?.low, now?.high].filter(Number.isFinite);
  return padded(Math.min(low, ...known), Math.max(high, ...known));
}

function padded(low, high) {
  const pad = (high - low) * 0.08 || Math.abs(high) * 0.1 || 1;
  return [low - pad, high + pad];
}

function noveltiesOf(chart) {
  const name = chart.told?.series;
  return view.novelties.filter((one) => one.series === name && one.started < view.end && (one.ended ?? view.end) >= view.start);
}

function expectedNow(chart) {
  const known = view.state?.series.find((one) => one.series === chart.told?.series);
  return known?.kind === "log" ? undefined : known?.expected;
}

function drawNovelties(chart) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  const now = expectedNow(chart);
  if (now) {
    const [top, bottom] = [now.high, now.low].map((value) => chart.valToPos(value, "y", true));
    ctx.fillStyle = color("--now");
    ctx.fillRect(bbox.left, top, bbox.width, bottom - top);
  }
  for (const one of noveltiesOf(chart)) {
    const left = chart.valToPos(one.started / 1000, "x", true);
    const width = Math.max(3, chart.valToPos((one.ended ?? view.end) / 1000, "x", true) - left);
    ctx.fillStyle = color("--novel");
    ctx.fillRect(left, bbox.top, width, bbox.height);
    if (one.expected_low === null) continue;
    const [top, bottom] = [one.expected_high, one.expected_low].map((value) => chart.valToPos(value, "y", true));
    ctx.fillStyle = color("--expected");
    ctx.fillRect(left, top, width, Math.max(2, bottom - top));
  }
  ctx.restore();
}

// Beside the name: what the cursor is at, and the sentence of a novelty there.
function tell(chart) {
  if (!chart.output) return;
  const at = chart.cursor.idx;
  chart.output.textContent = at === null || at === undefined ? chart.summary : said(chart, at);
}

function said(chart, at) {
  const [seconds, values, , lows, highs] = chart.data;
  const time = new Date(seconds[at] * 1000).toISOString().slice(5, 19).replace("T", " ");
  const [value, low, high] = [values, lows, highs].map((column) => brief(column?.[at]));
  const novelty = noveltiesOf(chart).find((one) => one.started <= seconds[at] * 1000 && seconds[at] * 1000 <= (one.ended ?? view.end));
  const between = low && high ? ` (${low} to ${high})` : "";
  return `${time}  ${value ?? "–"}${between}${novelty ? `  ${novelty.text ?? novelty.verdict}` : ""}`;
}

const brief = (value) => (value === null || value === undefined ? undefined : value.toLocaleString("en", { maximumSignificantDigits: 4 }));

function zoom(chart) {
  const { left, width } = chart.select;
  if (width < 4) return;
  const [from, to] = [left, left + width].map((at) => Math.round(chart.posToVal(at, "x") * 1000));
  const next = new URL(location.href);
  for (const name of ["span", "novelty"]) next.searchParams.delete(name);
  next.searchParams.set("from", from);
  next.searchParams.set("to", to);
  location.assign(next);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const [element, chart] of drawn) drop(element, chart);
  drawCharts();
});
