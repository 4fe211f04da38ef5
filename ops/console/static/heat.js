// The heat map in hand: what a cell says, a click that leads on, and a span that is dragged to zoom in.
const SVG = "http://www.w3.org/2000/svg";
const LEAST_DRAG = 6; // pixels; less is a click
const attached = new WeakMap(); // map -> what handles it
let cells, cellsOf;

export function attachHeatMap() {
  const map = document.getElementById("heat");
  cells = undefined; // they may be others now
  if (!map) return;
  if (!attached.has(map)) {
    attached.set(map, new HeatMap(map));
    map.parentElement.scrollLeft = map.parentElement.scrollWidth; // where it is too narrow, the newest comes first
  }
  attached.get(map).placeLabels();
}

class HeatMap {
  constructor(map) {
    this.map = map;
    map.addEventListener("pointermove", (event) => (this.from ? this.drag(event) : this.hover(event)));
    map.addEventListener("pointerleave", () => this.leave());
    map.addEventListener("pointerdown", (event) => this.begin(event));
    map.addEventListener("pointerup", (event) => this.end(event));
    map.addEventListener("pointercancel", () => this.leave());
    map.parentElement.addEventListener("scroll", () => this.placeLabels(), { passive: true });
  }

  // The names of the lanes stay in sight, wherever a narrow window is scrolled to.
  placeLabels() {
    const left = this.map.parentElement.scrollLeft / this.map.getScreenCTM().a;
    for (const label of this.map.querySelectorAll(".label")) label.setAttribute("transform", `translate(${left})`);
  }

  // Where a pointer is: its lane (0: all of them) and its column.
  place({ clientX, clientY }) {
    const { label, cell, head, row, columns } = this.sizes();
    const at = new DOMPoint(clientX, clientY).matrixTransform(this.map.getScreenCTM().inverse());
    const column = Math.floor((at.x - label) / cell);
    return { lane: Math.floor((at.y - head) / row), column: Math.min(columns - 1, column), isLabel: at.x < label, x: clientX };
  }

  sizes() {
    return Object.fromEntries(Object.entries(this.map.dataset).map(([name, value]) => [name, Number(value)]));
  }

  async hover(event) {
    const place = this.place(event);
    this.newest = event;
    const found = place.isLabel ? undefined : (await cellsNow()).get(`${place.lane}/${place.column}`);
    if (this.from || this.newest !== event) return; // the pointer went on while the cells were fetched
    if (!found) return this.leave();
    this.box("hover", place.column, 1, place.lane, 1);
    showTip(event, text(found));
  }

  begin(event) {
    const place = this.place(event);
    if (event.button || place.isLabel) return;
    this.from = place;
    this.map.setPointerCapture(event.pointerId);
  }

  drag(event) {
    const [left, right] = this.columns(event);
    hideTip();
    this.box("brush", left, right - left + 1, 0, this.map.querySelectorAll(":scope > g").length);
  }

  columns(event) {
    const to = Math.max(0, this.place(event).column);
    return [Math.min(this.from.column, to), Math.max(this.from.column, to)];
  }

  end(event) {
    if (!this.from) return;
    const isClick = Math.abs(event.clientX - this.from.x) < LEAST_DRAG;
    const [left, right] = this.columns(event);
    const { start, step } = this.sizes();
    const { lane } = this.from;
    this.leave();
    if (isClick) return this.follow(lane, left);
    go(location.href, start + left * step, start + (right + 1) * step);
  }

  // A click on a cell leads where the lane's name does, with some time around it.
  async follow(lane, column) {
    const link = this.map.querySelectorAll(":scope > g")[lane]?.querySelector("a");
    if (!link || !(await cellsNow()).has(`${lane}/${column}`)) return;
    const { start, step } = this.sizes();
    go(link.getAttribute("href"), start + (column - 2) * step, start + (column + 3) * step);
  }

  leave() {
    this.from = this.newest = undefined;
    for (const box of this.map.querySelectorAll(".hover, .brush")) box.remove();
    hideTip();
  }

  box(name, column, columns, lane, lanes) {
    const { label, cell, head, row } = this.sizes();
    const box = this.map.querySelector(`.${name}`) ?? this.map.appendChild(document.createElementNS(SVG, "rect"));
    const sizes = { class: name, x: label + column * cell, y: head + lane * row, width: columns * cell, height: lanes * row };
    for (const [key, value] of Object.entries(sizes)) box.setAttribute(key, value);
  }
}

function go(address, from, to) {
  const next = new URL(address, location.href);
  for (const name of ["span", "page"]) next.searchParams.delete(name);
  next.searchParams.set("from", Math.max(0, from));
  next.searchParams.set("to", to);
  location.assign(next);
}

// The cells of the map by lane and column, from the JSON of the page: fetched once, when a pointer comes.
function cellsNow() {
  if (!cells || cellsOf !== location.href) {
    cellsOf = location.href;
    cells = fetchCells();
  }
  return cells;
}

async function fetchCells() {
  const answer = await fetch(`/api/v1${location.pathname}${location.search}`);
  const found = new Map();
  if (!answer.ok) return found; // Elasticsearch is down
  const view = await answer.json();
  [view.overall, ...view.lanes].forEach((lane, number) => {
    for (const cell of lane?.cells ?? []) found.set(`${number}/${cell.column}`, { ...cell, name: lane.name || "all" });
  });
  return found;
}

function text({ name, time, novelties, score, verdicts }) {
  const at = new Date(time).toISOString().slice(0, 19).replace("T", " ");
  const what = verdicts.join(", ").replaceAll("_", " ");
  return `${name}\n${at} UTC\n${novelties} ${novelties === 1 ? "novelty" : "novelties"}, strongest ${score?.toFixed(1)}\n${what}`;
}

function showTip({ pageX, pageY }, content) {
  const tip = document.getElementById("tip") ?? document.body.appendChild(Object.assign(document.createElement("div"), { id: "tip", className: "tip" }));
  tip.textContent = content;
  tip.style.left = `${Math.min(pageX + 14, scrollX + innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${pageY + 16}px`;
}

function hideTip() {
  document.getElementById("tip")?.remove();
}
