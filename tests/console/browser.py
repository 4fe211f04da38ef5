"""A real browser: Debian's Chromium by Playwright. What goes wrong in a page is noted, so that a test can say so."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
# As root without a sandbox; nothing is asked of other hosts.
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
AXE = Path(__file__).parent / "vendor" / "axe-4.14.1.min.js"
# WCAG 2.2 A and AA, and axe's own best practices.
RUN_AXE = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
    .map(({id, help, nodes}) => `${id}: ${help}: ${nodes.map(node => node.target.join(" ")).slice(0, 5).join(", ")}`)"""
# Within these, what is awaited comes; Playwright's own 5 are too few for a page that retries on a busy machine.
SECONDS = 30
expect.set_options(timeout=SECONDS * 1000)

needs_chromium = pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed (apt-get install chromium)")


@contextmanager
def chromium():
    """A running browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=[*ARGUMENTS])
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """A person with a browser of their own at the console."""

    def __init__(self, browser, address, **options):
        """`options` are Playwright's of a context: viewport, color_scheme, extra_http_headers, ..."""
        self.address = address
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.page.set_default_timeout(SECONDS * 1000)
        self.faults = []  # errors of scripts, and what the content security policy has refused
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)

    def open(self, path):
        """Go to a page; it has loaded, and its stream is open, when this returns."""
        self.page.goto(self.address + path)
        if self.page.locator("body").get_attribute("data-feeds"):
            self.page.locator("#fresh", has_text="UTC").wait_for()
        return self.page

    def rows(self, table="table"):
        """The rows of the first such table of the page: texts by the heading of their column."""
        return self.page.locator(table).first.evaluate(READ_TABLE)

    def text(self):
        """What the page says."""
        return self.page.locator("main").inner_text()

    def point_at_cell(self, machine):
        """Hold the mouse over the first cell of a machine in the heat map."""
        cells = self.page.locator(f'#heat a[aria-label^="{machine}"]').locator("xpath=..").locator("path")
        box = cells.first.bounding_box()
        self.page.mouse.move(box["x"] + 4, box["y"] + 4)

    def accessibility(self):
        """What axe finds at fault."""
        self.page.evaluate(AXE.read_text())
        return self.page.evaluate(RUN_AXE)

    def overlaps(self):
        """Texts that stand on each other, and boxes that reach beyond the window."""
        return self.page.evaluate(FIND_OVERLAPS)

    def close(self):
        self.context.close()


READ_TABLE = """(table) => {
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.innerText.trim());
  const texts = (row) => [...row.cells].map((cell, at) => [names[at], cell.innerText.trim()]);
  return [...table.tBodies[0].rows].map((row) => Object.fromEntries(texts(row)));
}"""

# Of the page's own blocks: whether siblings cover each other, and whether the page is wider than the window.
FIND_OVERLAPS = """() => {
  const found = [];
  const name = (one) => one.outerHTML.slice(0, 60);
  // What stands in a line may be broken into several.
  const isBox = (one) => !["inline", "contents"].includes(getComputedStyle(one).display);
  const seen = (one) => one.checkVisibility() && one.getBoundingClientRect().width > 1 && isBox(one);
  const wide = document.documentElement.scrollWidth;
  for (const parent of document.querySelectorAll("header, nav, main, #live, form, .tiles, .charts, h1, h2, h3, tr")) {
    const boxes = [...parent.children].filter(seen).map((one) => [one, one.getBoundingClientRect()]);
    for (let at = 1; at < boxes.length; at++) {
      const [[before, a], [after, b]] = [boxes[at - 1], boxes[at]];
      if (getComputedStyle(after).position === "absolute" || getComputedStyle(before).position === "absolute") continue;
      const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (width > 1 && height > 1) found.push(`${name(before)} covers ${name(after)}`);
    }
  }
  if (wide > innerWidth + 1) found.push(`the page is ${wide} wide`);
  return found;
}"""
