"""Each view of the running chain in a browser, read by content against what the simulator says has happened."""

import csv
import io
import re
import time
from collections import Counter
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import quote

import orjson
from playwright.sync_api import expect

from connectors.kafka.offsets import Log
from infra.contract.topics import load_topics
from infra.contract.watermarks import is_watermark
from jobs.table import JOBS
from ops.sql.examples import EXAMPLES
from tests.console.house import BUSY_SERIES, HOSTILE
from tests.waiting import until

MINUTE = 60_000  # ms
NUMBER = r"(-?[\d.,]+(?:e-?\d+)?)"
POINT = rf"(\d\d-\d\d \d\d:\d\d:\d\d)  {NUMBER} \({NUMBER} to {NUMBER}\)"
PATIENCE = 120.0


def number(text):
    return float(text.replace(",", "")) if text not in ("", "–") else None  # noqa: RUF001


def agree(read, truth, what):
    """Both give the same, at some moment within the patience: the page renews itself, and the chain goes on."""
    found = []

    def same():
        found[:] = [read(), truth()]
        return found[0] == found[1]

    try:
        until(same, PATIENCE, what, pause=1)
    except TimeoutError as error:
        raise AssertionError(f"{what}: the page says {found[0]}, it is {found[1]}") from error


def test_the_chain_shows_each_job_with_its_rate_and_what_it_has_rejected(visitor, house, report):
    page = visitor.open("/chain")
    wanted = [JOBS[name] for name in JOBS.enabled()]
    expect(page.locator(".graph .node")).to_have_count(len(wanted))
    for job in wanted:
        expect(page.locator(".graph")).to_contain_text(job.name)

    def column(name):
        return {row["Query"].split("\n")[0]: number(row[name]) for row in visitor.rows()}

    stages = lambda: Counter(one["stage"] for one in house.records("events.rejected"))  # noqa: E731
    agree(lambda: column("Rejected")["enrichment"], lambda: stages()["enrichment"], "rejected by enrichment")
    report.checked("chain", "rejected by enrichment: as many as in events.rejected")
    late = lambda: sum(not is_watermark(one) for one in house.records("events.late"))  # noqa: E731
    agree(lambda: sum(column("Late")[name] for name in ("enrichment", "statistics")), late, "late records")
    report.checked("chain", "late: as many as in events.late")
    until(lambda: all(lag is not None and lag < 5_000 for lag in column("Lag, records").values()), PATIENCE, "lags")
    report.checked("chain", "each query has a lag, of less than 5,000 records")

    log, topics = Log(house.settings.kafka_bootstrap), [topic.name for topic in load_topics().telemetry]
    before, begun = sum(log.ends(topics).values()), time.monotonic()
    time.sleep(60)  # what the page's rate is taken over
    sent = (sum(log.ends(topics).values()) - before) / (time.monotonic() - begun)
    shown = column("Rows/s")["enrichment"]
    assert 0.5 * sent < shown < 2 * sent, (sent, shown)
    report.checked("chain", "the rate of enrichment is that of what is sent, within a factor of two")
    fresh = page.locator("#fresh").inner_text()
    until(lambda: page.locator("#fresh").inner_text() != fresh, 10, "the page renews itself", pause=0.2)
    report.checked("chain", "renews itself")


def test_the_fleet_has_each_machine_with_as_many_novelties_as_there_are(visitor, house, report):
    page = visitor.open("/fleet?span=1h")

    def lanes():
        names = page.locator("#heat g a").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
        said = [re.fullmatch(r"(.*): (\d+) novelties, .*", name) for name in names]
        return {re.sub(r".*… \((.*)\)", r"\1", one[1]): int(one[2]) for one in said}

    agree(lanes, lambda: dict(Counter(one["machine"] for one in house.documents("novelties"))), "novelties by machine")
    report.checked("fleet", "each machine with as many novelties as are indexed")
    asked = {fault["machine"] for fault in house.lines("faults") if fault["answers"][0]["topic"] == "novelties"}
    assert asked <= lanes().keys()
    assert HOSTILE in lanes()
    report.checked("fleet", "each machine of which the simulator asks for a novelty, and one whose name is markup")

    openly = {"bool": {"must_not": {"exists": {"field": "ended"}}}}
    verdicts = lambda: Counter(one["verdict"] for one in house.documents("novelties", query=openly))  # noqa: E731
    silent = page.locator(".tile", has_text="silent")
    agree(lambda: int(silent.locator("b").inner_text()), lambda: verdicts()["silence"], "silent machines")
    silent.click()
    page.wait_for_url("**/fleet?*verdict=silence*")
    machines = [row["Machine"] for row in visitor.rows("h2 + .scroll table")]
    assert "vm-20" in machines
    assert "vm-17" not in machines
    report.checked("fleet", "the tile of silent machines counts them, and leads to vm-20")


def test_the_fleet_is_seen_by_hypervisor_and_filtered_by_role(visitor, house, report):
    cloud = orjson.loads((house.truth / "cloud.json").read_bytes())
    roles = {one["machine"]: one["role"] for one in cloud}
    page = visitor.open("/fleet?span=1h")
    page.locator("select[name=role]").select_option("AMF")
    page.wait_for_url("**/fleet?*role=AMF*")
    names = page.locator("#heat g a").all_text_contents()
    assert {roles[name] for name in names} == {"AMF"}
    report.checked("fleet", "of a role only its machines")
    page = visitor.open("/fleet?span=1h&by=hypervisor")
    lane = page.locator('#heat a[aria-label^="hv-02:"]')
    expect(lane).to_have_count(1)
    lane.click()
    page.wait_for_url("**/fleet?*hypervisor=hv-02*")
    guests = {one["machine"] for one in cloud if one.get("hypervisor") == "hv-02"}
    assert {*page.locator("#heat g a").all_text_contents()} <= guests
    report.checked("fleet", "a hypervisor leads to its guests")


def test_a_cell_of_the_heat_map_says_what_began_in_it(visitor, report):
    page = visitor.open("/fleet?span=1h&machine=vm-20&verdict=silence")
    visitor.point_at_cell("vm-20")
    expect(page.locator("#tip")).to_contain_text("silence")
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url("**/fleet/vm-20?*from=*")
    expect(page.locator("h1")).to_contain_text("vm-20")
    report.checked("fleet", "a cell says its verdict, and leads to its machine at its time")


def test_a_series_is_drawn_as_it_was_sent(visitor, house, report):
    path = f"/fleet/vm-17?span=15m&series={quote(BUSY_SERIES)}"
    page, compared = visitor.open(path), {}
    expect(page.locator(".plot canvas").first).to_be_visible()
    shown = page.request.get(f"{house.address}/api/v1{path}").json()
    length = int(shown["series"][0]["window_seconds"] * 1000)

    def are_enough():
        for end, said in _windows_under_the_mouse(page, shown["step"], length).items():
            if end not in compared and end <= known_until(house):
                sent = house.window("vm-17", BUSY_SERIES, int(end) - length, length)
                compared.update({end: (said, sent)} if sent else {})
        return len(compared) >= 5

    until(are_enough, 3 * PATIENCE, "five windows are drawn", pause=5)
    assert {end: one for end, one in compared.items() if not _near(*one)} == {}
    report.checked("machine", f"mean, least and greatest value of {len(compared)} windows: as they were sent")


def known_until(house):
    """Up to which time, ms, the simulator knows what it has sent: what is newer may not be confirmed to it yet."""
    return max(line["start_unix_nano"] for line in house.lines("windows")) // 1_000_000 - MINUTE


def _windows_under_the_mouse(page, step, length):
    """What the chart says of each window, by the window's end in ms, while the mouse goes over it."""
    box, found = page.locator("#charts .u-over").bounding_box(), {}
    for place in range(0, int(box["width"]), 8):
        page.mouse.move(box["x"] + place, box["y"] + box["height"] / 2)
        if not (said := re.match(POINT, page.locator("#s-0 output").text_content())):
            continue  # between two windows
        at = datetime.fromisoformat(f"{datetime.now(UTC).year}-{said[1]}Z").timestamp() * 1000
        # A window is shown at its end, by the middle of a step.
        found[at + step / 2 - (at + step / 2) % length] = tuple(map(number, said.groups()[1:]))
    return found


def _near(shown, sent):
    return all(abs(one - other) <= 1e-3 * max(abs(other), 1e-3) for one, other in zip(shown, sent, strict=True))


def test_a_machine_has_its_novelties_with_what_contributed_and_what_the_detector_holds(visitor, house, report):
    (first, *_) = sorted(
        house.documents("novelties", query={"term": {"machine": "vm-17"}}), key=lambda one: one["started"]
    )
    page = visitor.open(f"/fleet/vm-17?novelty={first['_id']}")
    expect(page.locator(".verdict")).to_contain_text(first["text"])
    assert page.locator(".shares li").count() == len(first.get("contributors") or ())
    report.checked("machine", "a novelty with its sentence and its contributors")
    expect(page.locator("h1")).to_contain_text("hypervisor hv-01")
    page = visitor.open(f"/fleet/vm-17?span=15m&series={quote(BUSY_SERIES)}")
    expect(page.locator("#live")).to_contain_text("What the detector holds now")
    expect(page.locator("dl").first).to_contain_text("99 % between")
    cloud = orjson.loads((house.truth / "cloud.json").read_bytes())
    (role,) = {one["role"] for one in cloud if one["machine"] == "vm-17"}
    peers = {one["machine"] for one in cloud if one["role"] == role}
    assert {*page.locator("#peers a").all_inner_texts()} == peers
    report.checked("machine", "what the detector holds of a series, and the same series of its role's machines")


def test_log_templates_have_as_many_lines_as_were_sent(visitor, house, report):
    start = min(line["start_unix_nano"] for line in house.lines("windows")) // 1_000_000
    begin = start - start % MINUTE + 2 * MINUTE
    end = begin + 2 * MINUTE
    sent = sum(
        line["series"]["*"]["count"]
        for line in house.lines("windows")
        if line["machine"] == "vm-12" and "*" in line["series"] and begin <= line["start_unix_nano"] // 1_000_000 < end
    )
    # Windows of a minute are shown at their ends.
    visitor.open(f"/fleet/vm-12?from={begin + MINUTE}&to={end + MINUTE}")
    shown = sum(number(row["Lines"]) for row in visitor.rows("table:has(th:text('Template'))"))
    assert shown == sent
    report.checked("machine", f"log templates: the {sent} lines that were sent in two minutes")


def test_an_incident_names_the_hypervisor_that_is_busy(visitor, house, report):
    page = visitor.open("/incidents")
    found = [one for one in house.documents("incidents") if "hv-02" in {each["machine"] for each in one["members"]}]
    assert found, "no incident has hv-02"
    incident = found[0]
    page.locator(f'a[href="/incidents/{quote(incident["_id"])}"]').click()
    page.wait_for_url("**/incidents/*")
    causes = visitor.rows("table:has(th:text('Evidence'))")
    assert "hv-02" in [row["Which"] for row in causes[:3]], causes
    report.checked("incidents", "hv-02 is among the three likeliest causes of the incident that it caused")
    faults = [*house.lines("faults")]
    affected = {name for fault in faults for name in (fault["machine"], *fault["guests"])}
    shown = {row["Machine"] for row in visitor.rows("table:has(th:text('Since'))")}
    assert shown & affected
    assert shown == {
        each["machine"]
        for each in house.documents("incidents", query={"ids": {"values": [incident["_id"]]}})[0]["members"]
    }
    report.checked("incidents", "the members are those that are indexed")
    expect(page.locator(".timeline rect")).to_have_count(len(shown))
    cloud = orjson.loads((house.truth / "cloud.json").read_bytes())
    guests = {one["machine"] for one in cloud if one.get("hypervisor") == "hv-02"}
    below = page.locator(".tree li li", has_text=re.compile(r"^hypervisor hv-02"))
    expect(below).to_contain_text("cause")
    assert {*below.locator("ul a").all_inner_texts()} == guests & shown
    report.checked("incidents", "a bar for each member, and hv-02's guests below it, by the simulator's inventory")
    expect(page.locator("dl")).to_contain_text(f"{incident['machines']} machines")


def test_dead_letters_are_counted_and_have_the_bytes_that_were_sent(visitor, house, report):
    sent = [line for line in house.lines("rejected") if "sha256" in line]
    page = visitor.open("/rejected")

    def counts():
        return Counter({row["Code"]: int(number(row["Dead letters"])) for row in visitor.rows()})

    agree(lambda: counts()["not_json"] + counts()["not_otlp"], lambda: len(sent), "malformed records")
    assert counts()["series_too_long"] == sum(
        one["code"] == "series_too_long" for one in house.records("events.rejected")
    )
    report.checked("rejected", f"the {len(sent)} malformed records that were sent, and the labels of 4 kB")
    page.get_by_role("link", name="not_json").first.click()
    page.wait_for_url("**/rejected?*code=not_json*")
    page.locator("tbody th a[href^='/rejected/']").first.click()
    dump = page.locator("pre.hex").inner_text().splitlines()
    value = bytes.fromhex("".join(line[10:57].replace(" ", "") for line in dump))
    assert sha256(value).hexdigest() in {line["sha256"] for line in sent}
    report.checked("rejected", "a record's bytes are those that were sent")


def test_names_of_markup_are_text_in_every_view(visitor, report):
    for path in ("/fleet?span=1h", f"/fleet/{quote(HOSTILE, safe='')}?span=1h", "/rejected?code=series_too_long"):
        page = visitor.open(path)
        expect(page.locator("main")).to_contain_text("<img src=")
        assert (page.locator("main img, main b:text('load')").count(), visitor.overlaps()) == (0, [])
        assert page.title() != "broken"
    report.checked("machine", "a name of markup and labels of 4 kB are text")


def test_questions_are_answered_as_the_topics_say(visitor, house, report):
    truth = lambda: len({one["id"] for one in house.records("novelties") if not is_watermark(one)})  # noqa: E731

    def answer():
        visitor.open("/ask?sql=SELECT%20count(DISTINCT%20id)%20AS%20novelties%20FROM%20novelties")
        return number(visitor.page.locator("#result td").inner_text())

    agree(answer, truth, "novelties in the archive")
    report.checked("ask", "as many novelties as the topic has")
    for example in EXAMPLES:
        page = visitor.open("/ask")
        page.get_by_role("link", name=example.title).click()
        expect(page.locator("#result tbody tr").first).to_be_visible()
    report.checked("ask", "each example has an answer")
    page = visitor.open("/ask")
    page.get_by_role("link", name="How does a series go over time?").click()
    expect(page.locator("#drawn canvas")).to_be_visible()
    shown = visitor.rows("#result")
    csv_text = page.request.get(page.get_by_role("link", name="CSV").evaluate("one => one.href")).text()
    assert len([*csv.DictReader(io.StringIO(csv_text))]) >= len(shown) > 5
    report.checked("ask", "an example has a table, a chart and a CSV file")
    page = visitor.page
    page.get_by_label("SQL").fill("SELECT machine FROM novelties WHERE nothing")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator(".down[role=alert]").last).to_contain_text("nothing")
    visitor.faults.clear()  # the answer's status is 400
    report.checked("ask", "a wrong question is named")
