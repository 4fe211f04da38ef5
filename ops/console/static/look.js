// What charts have in common: the colours of the page, and axes.

// A colour of the style sheet as a canvas takes it: light or dark as the page is.
const probe = document.body.appendChild(Object.assign(document.createElement("i"), { hidden: true }));

export function color(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

export function axes(values) {
  const look = { stroke: color("--faint"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "10px system-ui, sans-serif" };
  const short = (value) => Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 }).format(value);
  return [
    { ...look, size: 22, gap: 5, space: 70, values },
    { ...look, size: 52, gap: 4, space: 24, values: (_, numbers) => numbers.map(short) },
  ];
}

