// What every page has: it stays fresh, filters apply as soon as they are chosen, one box chooses all of a list.
import { attachQuery } from "./ask.js";
import { drawCharts } from "./charts.js";
import { attachHeatMap } from "./heat.js";
import { keepFresh } from "./live.js";

for (const form of document.querySelectorAll("form.filters")) {
  form.addEventListener("change", () => form.requestSubmit());
  form.addEventListener("submit", () => dropEmptyFields(form));
}

// The address is the state of the page: what isn't chosen isn't in it.
function dropEmptyFields(form) {
  for (const field of form.elements) if (field.name && !field.value) field.disabled = true;
}

document.addEventListener("change", ({ target }) => {
  const name = target.dataset.all;
  if (name) for (const box of document.querySelectorAll(`#live input[name="${name}"]`)) box.checked = target.checked;
});

// A page from the browser's memory has the fields that were dropped.
addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form.filters :disabled")) field.disabled = false;
});

attachHeatMap();
attachQuery();
drawCharts();
keepFresh(() => {
  attachHeatMap();
  drawCharts();
});
