import pytest

from tests.unit.ops.console.sources import ESCAPED, MARKUP

STARTED = 1_790_000_000_000
INCIDENT = {
    "started": STARTED,
    "alerted": STARTED + 20_000,
    "updated": STARTED + 60_000,
    "peaked": STARTED + 40_000,
    "machines": 2,
    "novelties": 3,
    "verdicts": ["silence", "state_change"],
    "score": 41.5,
    "causes": [
        {"kind": "hypervisor", "name": "hv-02", "likelihood": 3.25, "affected": 2, "machines": 5},
        {
            "kind": "machine",
            "name": "vm-03",
            "likelihood": 1.5,
            "affected": 1,
            "machines": 1,
            "because": [{"evidence": "deviation", "weight": 4.615, "text": "vm-03 has sent nothing for 30 s"}],
        },
    ],
    "members": [
        {"novelty": "n1", "machine": "vm-03", "verdict": "silence", "since": STARTED, "score": 41.5},
        {"novelty": "n2", "machine": "vm-04", "verdict": "state_change", "series": "cpu", "since": STARTED, "score": 9},
    ],
    "text": "2 machines, likely because of hypervisor hv-02 (2 of its 5 machines)",
}
NOVELTY = {"verdict": "state_change", "machine": "vm-04", "observed": 97.0, "expected_low": 10.0, "expected_high": 20.0}


def hits(*documents, total=None, **more):
    listed = [{"_id": identity, "_source": document} for identity, document in documents]
    return {"hits": {"total": {"value": total or len(listed)}, "hits": listed}, **more}


@pytest.fixture
def one(sources):
    sources.found = {
        "incidents": hits(("i1", INCIDENT), total=250, aggregations={"open": {"doc_count": 17}}),
        "novelties": hits(("n2", NOVELTY | {"text": "cpu on vm-04 stays near 97"})),
    }
    sources.by_id = {("incidents", "i1"): INCIDENT}


def test_the_list_has_the_newest_first_with_the_likeliest_cause(browser, sources, one):
    view = browser.get("/api/v1/incidents").json()
    assert (view["total"], view["open"]) == (250, 17)
    (found,) = view["incidents"]
    assert (found["id"], found["cause"]["name"], found["machines"]) == ("i1", "hv-02", 2)
    kind, query = sources.searches[-1]
    assert (kind, query["sort"]) == ("incidents", [{"started": "desc"}])
    page = browser.get("/incidents").text
    assert '<a href="/incidents/i1">2026-09-21 14:13:20</a>' in page
    assert "hypervisor hv-02" in page
    assert "1 of 250" in page


def test_open_ones_are_those_without_an_end(browser, sources, one):
    browser.get("/incidents?state=open")
    assert sources.searches[-1][1]["query"] == {"bool": {"must_not": {"exists": {"field": "ended"}}}}


def test_another_state_is_refused_with_those_that_there_are(browser):
    answer = browser.get("/api/v1/incidents?state=shut")
    assert answer.status_code == 400
    assert answer.json() == {"error": "state='shut': there are all, open"}


def test_a_page_has_causes_and_members_with_what_their_novelties_say(browser, one):
    view = browser.get("/api/v1/incidents/i1").json()
    assert [cause["name"] for cause in view["causes"]] == ["hv-02", "vm-03"]
    assert [member["now"] and member["now"]["observed"] for member in view["members"]] == [None, 97.0]
    page = browser.get("/incidents/i1").text
    assert "cpu on vm-04 stays near 97" in page
    assert "10 to 20" in page
    assert "3.25" in page
    assert "4.615: vm-03 has sent nothing for 30 s" in page


def test_an_incident_that_is_not_there_is_said(browser):
    page = browser.get("/incidents/none")
    assert (page.status_code, "There is no incident none." in page.text) == (404, True)


def test_without_incidents_the_page_says_so(browser):
    assert "No incident has been indexed." in browser.get("/incidents").text


def test_what_telemetry_says_is_escaped(browser, sources):
    member = {"novelty": "n1", "machine": MARKUP, "verdict": MARKUP, "series": MARKUP, "since": STARTED, "score": 1}
    cause = {"kind": MARKUP, "name": MARKUP, "likelihood": 1.0, "affected": 1, "machines": 1}
    cause["because"] = [{"evidence": MARKUP, "weight": 1.0, "text": MARKUP}]
    hostile = INCIDENT | {"text": MARKUP, "verdicts": [MARKUP], "causes": [cause], "members": [member]}
    identity = '"><script>x'
    sources.found = {"incidents": hits((identity, hostile)), "novelties": hits(("n1", NOVELTY | {"text": MARKUP}))}
    sources.by_id = {("incidents", "i1"): hostile}
    for path in ("/incidents", "/incidents/i1"):
        page = browser.get(path).text
        assert ESCAPED in page
        assert "<script>" not in page


def test_members_stand_where_the_inventory_has_them_with_the_causes_marked(browser, sources, one):
    at = {"site": "north", "hypervisor": "hv-02"}
    sources.found["novelties"] = hits(("n1", NOVELTY | at), ("n2", NOVELTY | at))
    expected = [
        {
            "site": "north",
            "hypervisors": [{"hypervisor": "hv-02", "is_member": False, "machines": ["vm-03", "vm-04"]}],
        }
    ]
    assert browser.get("/api/v1/incidents/i1").json()["places"] == expected
    page = browser.get("/incidents/i1").text
    assert 'hypervisor hv-02 <span class="tag wrong">cause 1</span>' in page
    assert '<a href="/fleet/vm-03">vm-03</a> <span class="tag">cause 2</span>' in page
