// Fetches the page again every two seconds while it is visible, and replaces what has changed.
const PERIOD = 2000;
const fresh = document.getElementById("fresh");
let shown = "";

function isBusy() {
  const selection = document.getSelection();
  const isUsed = document.querySelector("#live :is(details[open], input:checked, input:focus, select:focus)");
  return document.hidden || (selection && !selection.isCollapsed) || isUsed;
}

async function refresh() {
  if (isBusy()) return;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const live = page.getElementById("live");
    if (!live) throw new Error("no page");
    if (live.innerHTML !== shown) show(live);
    fresh.textContent = `${new Date().toISOString().slice(11, 19)} UTC`;
    document.body.classList.remove("stale");
  } catch {
    document.body.classList.add("stale");
    fresh.textContent = "the console does not answer";
  }
}

function show(live) {
  const focused = document.activeElement?.closest("#live a")?.getAttribute("href");
  shown = live.innerHTML;
  document.getElementById("live").replaceChildren(...live.childNodes);
  if (focused) document.querySelector(`#live a[href="${CSS.escape(focused)}"]`)?.focus();
}

async function refreshForever() {
  await refresh();
  setTimeout(refreshForever, PERIOD);
}

// A filter applies as soon as it is chosen; without scripts there is its button.
for (const form of document.querySelectorAll("form.filters")) {
  form.addEventListener("change", () => form.requestSubmit());
}
// One box chooses all of a list.
document.addEventListener("change", ({ target }) => {
  const name = target.dataset.all;
  if (name) for (const box of document.querySelectorAll(`#live input[name="${name}"]`)) box.checked = target.checked;
});

refreshForever();
