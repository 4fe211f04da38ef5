import pytest

from ops.console.views.rejected import hex_dump
from tests.unit.ops.console.sources import ESCAPED, MARKUP
from tests.unit.ops.console.views.test_incidents import hits

RECEIVED = 1_790_000_000_000
PLACE = ("telemetry.syslog", 2, 1734)
LETTER = {
    "@timestamp": RECEIVED,
    "id": "telemetry.syslog-2-1734-0-not_json",
    "stage": "enrichment",
    "code": "not_json",
    "reason": "unexpected character at 4",
    "events": 1,
    "source": {"topic": "telemetry.syslog", "partition": 2, "offset": 1734},
    "value": "abc\ufffd",
}


@pytest.fixture
def one(sources):
    code = {"key": "not_json", "doc_count": 7, "events": {"value": 9.0}, "newest": {"value": float(RECEIVED)}}
    counts = {"stage": {"buckets": [{"key": "enrichment", "doc_count": 7, "code": {"buckets": [code]}}]}}
    sources.found = {"rejected": hits(("d1", LETTER), total=7, aggregations=counts)}
    sources.by_id = {("rejected", "d1"): LETTER}


def test_dead_letters_are_counted_by_stage_and_code(browser, one):
    view = browser.get("/api/v1/rejected").json()
    assert view["counts"] == [
        {"stage": "enrichment", "code": "not_json", "letters": 7, "events": 9.0, "newest": float(RECEIVED)}
    ]
    page = browser.get("/rejected").text
    assert '<a href="/rejected?stage=enrichment&amp;code=not_json">not_json</a>' in page
    assert "unexpected character at 4" in page
    assert "telemetry.<wbr>syslog/<wbr>2/<wbr>1734" in page


def test_those_of_a_stage_and_code_are_chosen_by_the_address(browser, sources, one):
    browser.get("/rejected?stage=enrichment&code=not_json")
    terms = [{"term": {"stage": "enrichment"}}, {"term": {"code": "not_json"}}]
    assert sources.searches[-1][1]["query"] == {"bool": {"filter": terms}}


def test_topics_and_machines_that_there_are_can_be_chosen_and_stay_chosen(browser, sources, one):
    sources.found["rejected"]["aggregations"] |= {
        "topic": {"buckets": [{"key": "telemetry.syslog"}, {"key": "telemetry.otel"}]},
        "machine": {"buckets": [{"key": MARKUP}, {"key": "vm-1"}]},
    }
    page = browser.get("/rejected?topic=telemetry.syslog&machine=vm-1")
    terms = [{"term": {"source.topic": "telemetry.syslog"}}, {"term": {"machine": "vm-1"}}]
    assert sources.searches[-1][1]["query"] == {"bool": {"filter": terms}}
    assert '<option value="telemetry.syslog" selected>' in page.text
    assert '<option value="vm-1" selected>' in page.text
    assert (
        'href="/rejected?topic=telemetry.syslog&amp;machine=vm-1&amp;stage=enrichment&amp;code=not_json"' in page.text
    )
    assert MARKUP not in page.text


def test_a_record_is_shown_as_text_and_in_hexadecimal_digits(browser, sources, one):
    sources.originals = {PLACE: b"abc\xff\x00<b>"}
    original = browser.get("/api/v1/rejected/d1").json()["original"]
    assert original["hex"] == "00000000  61 62 63 ff 00 3c 62 3e                          abc..<b>"
    assert (original["bytes"], original["text"]) == (8, "abc\ufffd\x00<b>")
    page = browser.get("/rejected/d1").text
    assert "61 62 63 ff 00 3c 62 3e" in page
    assert "&lt;b&gt;" in page


def test_of_a_long_record_the_beginning_is_shown(browser, sources, one):
    sources.originals = {PLACE: b"x" * 5_000}
    original = browser.get("/api/v1/rejected/d1").json()["original"]
    assert (original["bytes"], original["shown"], len(original["text"])) == (5_000, 4_096, 4_096)
    assert "the first 4,096 of 5,000 bytes" in browser.get("/rejected/d1").text


def test_of_a_record_that_its_topic_has_deleted_what_the_index_kept_is_left(browser, one):
    page = browser.get("/rejected/d1").text
    assert "The original record can&#39;t be shown: telemetry.syslog no longer has it." in page.replace("'", "&#39;")
    assert "<pre>abc\ufffd</pre>" in page


def test_a_broker_that_is_down_leaves_what_the_index_kept(browser, sources, one):
    sources.down = {"Kafka"}
    page = browser.get("/rejected/d1")
    assert (page.status_code, "Kafka: does not answer" in page.text, "abc\ufffd" in page.text) == (200, True, True)


def test_a_dead_letter_that_is_not_there_is_said(browser):
    assert browser.get("/api/v1/rejected/d9").json() == {"error": "There is no dead letter d9."}


def test_a_dump_has_sixteen_bytes_a_line():
    assert hex_dump(bytes(range(0x41, 0x52))) == (
        f"00000000  41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e 4f 50  ABCDEFGHIJKLMNOP\n00000010  51{' ' * 45}  Q"
    )


def test_what_senders_wrote_is_escaped(browser, sources):
    hostile = dict.fromkeys(("id", "stage", "code", "reason", "machine", "value"), MARKUP)
    document = LETTER | hostile | {"source": {"topic": MARKUP, "partition": 0, "offset": 0}}
    sources.found = {"rejected": hits(("d1", document))}
    sources.by_id, sources.originals = {("rejected", "d1"): document}, {(MARKUP, 0, 0): MARKUP.encode()}
    for path in ("/rejected", "/rejected/d1"):
        page = browser.get(path).text
        assert ESCAPED in page
        assert "<script>" not in page
