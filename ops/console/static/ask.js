// A result as a chart, if its first column is a time or a number and others are numbers; Ctrl-Enter asks.
import uPlot from "./vendor/uPlot-1.6.32.esm.js";
import { axes, color } from "./look.js";

const NUMBER = /^(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT|UBIGINT|FLOAT|DOUBLE|DECIMAL)/;
const TIME = /^(TIMESTAMP|DATE)/;
const LINES = ["--accent", "--wrong", "--good", "--heat-4", "--faint"];

export function attachQuery() {
  const field = document.getElementById("sql");
  field?.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) field.form.requestSubmit();
  });
  const table = document.getElementById("result");
  if (table) draw(table);
}

function draw(table) {
  const columns = [...table.tHead.rows[0].cells].map((cell) => ({ name: cell.textContent, type: cell.dataset.type }));
  const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.dataset.value));
  const isTime = TIME.test(columns[0]?.type);
  const numbers = columns.map((one, at) => at).filter((at) => at > 0 && NUMBER.test(columns[at].type));
  if (rows.length < 3 || !numbers.length || !(isTime || NUMBER.test(columns[0].type))) return;
  const at = rows.map(([first]) => (isTime ? Date.parse(`${first.replace(" ", "T")}Z`) / 1000 : Number(first)));
  if (at.some((value, place) => place > 0 && !(value > at[place - 1]))) return; // no axis
  const section = document.getElementById("drawn");
  section.hidden = false;
  const element = section.querySelector(".plot");
  element.dataset.drawn = "yes";
  const shown = numbers.slice(0, LINES.length);
  const values = shown.map((column) => rows.map((row) => (row[column] === "" ? null : Number(row[column]))));
  const day = at[at.length - 1] - at[0] > 86400;
  const clock = (seconds) => new Date(seconds * 1000).toISOString().slice(...(day ? [5, 16] : [11, 19])).replace("T", " ");
  const series = shown.map((column, line) => ({ label: columns[column].name, stroke: color(LINES[line]), width: 1.5, points: { show: rows.length < 40 } }));
  const options = {
    width: element.clientWidth,
    height: 200,
    legend: { live: false },
    scales: { x: { time: isTime } },
    axes: axes(isTime ? (_, ticks) => ticks.map(clock) : undefined),
    series: [{}, ...series],
    cursor: { show: false },
  };
  new uPlot(options, [at, ...values], element);
}
