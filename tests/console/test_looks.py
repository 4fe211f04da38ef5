"""Each view at a desk and on a phone, light and dark: a picture with something on it, nothing on something else, no
fault that axe finds."""

import pytest
from playwright.sync_api import expect

from tests.console import pictures
from tests.console.browser import Visitor

OF_TOUR = ("chain", "fleet", "novelty", "incident", "answer")  # pictures of docs/tutorial/console.md
CUT = {"x": 0, "y": 0, "width": 1280, "height": 720}
LOOKS = {
    "desk-light": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "light"},
    "desk-dark": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "dark"},
    "phone-light": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "has_touch": True},
    "phone-dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "has_touch": True},
}


@pytest.mark.parametrize("look", LOOKS)
def test_each_view_can_be_seen_and_used(browser, house, report, look):
    visitor, found = Visitor(browser, house.address, **LOOKS[look]), {}
    for name, path in house.places().items():
        page = visitor.open(path)
        expect(page.locator("h1")).to_be_visible()
        if page.locator(".plot").count() and name != "ask":
            expect(page.locator(".plot canvas").first).to_be_visible()
        axe = visitor.accessibility()
        report.axe += [f"{look} {name}: {one}" for one in axe]
        png = page.screenshot(full_page=True)
        pictures.save(png, f"{look}/{name}")
        if look == "desk-light" and name in OF_TOUR:
            pictures.save(page.screenshot(clip=CUT), f"tour/{name}")
        faults = [one for one in visitor.faults if "404" not in one or name != "not-found"]
        found[name] = [*axe, *faults, *visitor.overlaps(), *pictures.emptiness(png, LOOKS[look]["viewport"]["height"])]
        visitor.faults.clear()
    visitor.close()
    assert {name: faults for name, faults in found.items() if faults} == {}
    report.facts.setdefault("looks", []).append(look)
