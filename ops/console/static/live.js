// Keeps the page fresh: the server says when something has changed, the page is fetched again, and what differs is
// changed in place, so that focus, selection and open details stay.
import { Idiomorph } from "./vendor/idiomorph-0.8.0.esm.js";

const FEEDS = document.body.dataset.feeds;
const IS_DOWN = "down" in document.body.dataset; // this page came without its view: a source was down
const RETRY_MS = 2000; // while a source is down
const fresh = document.getElementById("fresh");
let stream, isFetching, hasChanged, retry;

export function keepFresh(redraw) {
  if (!FEEDS) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open(redraw)));
  open(redraw);
}

// Browsers allow six connections a server: a page that nobody sees gives its own back.
function close() {
  stream?.close();
  stream = undefined;
}

function open(redraw) {
  if (document.hidden || stream) return;
  stream = new EventSource(`/stream?feeds=${FEEDS}`);
  stream.onopen = () => refresh(redraw); // what has changed before it was open
  stream.addEventListener("changed", () => refresh(redraw));
  stream.onerror = () => {
    say("the console does not answer", true);
    if (stream?.readyState !== EventSource.CLOSED) return; // it tries again by itself
    close();
    setTimeout(open, 5000, redraw);
  };
}

async function refresh(redraw) {
  hasChanged = true;
  clearTimeout(retry);
  if (isFetching) return;
  isFetching = true;
  try {
    let reason;
    while (hasChanged) {
      hasChanged = false;
      reason = await fetchPage();
    }
    dim(reason);
    if (reason) {
      // What was fresh, and when, stays. A source that was only slow comes back without any change to be told of.
      retry = setTimeout(() => stream && refresh(redraw), RETRY_MS);
      return;
    }
    redraw();
    say(`${new Date().toISOString().slice(11, 19)} UTC`, false);
  } catch {
    say("the console does not answer", true);
  } finally {
    isFetching = false;
  }
}

// Brings the page up to date; returns why that can't be done now, if a source is down.
async function fetchPage() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const live = page.getElementById("live");
  if (!live) throw new Error("no page of the console");
  if (answer.status === 503) return live.querySelector(".down").textContent;
  if (IS_DOWN) location.reload();
  Idiomorph.morph(document.getElementById("live"), [...live.childNodes], { morphStyle: "innerHTML", callbacks });
}

// What a person has opened or chosen, and what a script has drawn, stays. Rows with boxes have ids: none becomes another.
const callbacks = {
  beforeAttributeUpdated: (name) => name !== "open" && name !== "checked",
  beforeNodeMorphed: (element) => !element.matches?.("[data-drawn]"),
};

function dim(reason) {
  if (IS_DOWN) return; // it says so already
  const down = document.getElementById("down");
  down.textContent = reason ?? "";
  down.hidden = !reason;
  document.body.classList.toggle("dim", Boolean(reason));
}

function say(text, isStale) {
  fresh.textContent = text;
  document.body.classList.toggle("stale", isStale);
}
