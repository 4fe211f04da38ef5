import pytest

from tests.unit.ops.console.sources import ESCAPED, MARKUP
from tests.unit.ops.console.views.test_incidents import hits

NEWEST = 1_790_000_000_000
STEP = 360_000  # ms: an hour in 60 columns is 60,000; six hours 360,000
END = NEWEST // STEP * STEP


def bucket(key, novelties, score, **more):
    return {"key": key, "doc_count": novelties, "strongest": {"value": score}, **more}


def cell(column, score, *verdicts, novelties=1):
    at = END - (59 - column) * STEP
    return bucket(at, novelties, score, verdicts={"buckets": [{"key": one} for one in verdicts]})


def answers(*machines, opened=()):
    """The three searches of the view: what there is to choose, the map, what is open."""
    head = {"newest": {"value": float(NEWEST)}} | {
        name: {"buckets": [{"key": value}]} for name, value in (("site", "s1"), ("role", "UPF"), ("verdict", "silence"))
    }
    return [
        hits(aggregations=head),
        hits(aggregations={"machine": {"buckets": list(machines)}}),
        hits(*[(str(number), one) for number, one in enumerate(opened)], total=120),
    ]


@pytest.fixture
def answer(sources):
    def given(*machines, opened=()):
        def search(kind, **query):
            sources._ask("Elasticsearch")
            sources.searches.append((kind, query))
            which = 0 if "max" in str(query.get("aggs", {}).get("newest")) else 1 if query.get("aggs") else 2
            return answers(*machines, opened=opened)[which]

        sources.search = search

    return given


def test_a_cell_has_its_column_its_strongest_score_and_its_colour(browser, answer):
    answer(bucket("vm-1", 4, 36.0, time={"buckets": [cell(0, 6.9, "anomaly"), cell(59, 36.0, "silence", novelties=3)]}))
    view = browser.get("/api/v1/fleet").json()
    (machine,) = view["machines"]
    assert [(one["column"], one["level"], one["novelties"]) for one in machine["cells"]] == [(0, 1, 1), (59, 5, 3)]
    assert (view["times"][0], view["times"][-1], len(view["times"])) == (END - 59 * STEP, END, 60)
    page = browser.get("/fleet").text
    assert 'class="heat-5" x="1017"' in page
    assert ">–</text>" in page  # noqa: RUF001


@pytest.mark.parametrize(
    ("sort", "order"), [("severity", {"strongest": "desc"}), ("count", {"_count": "desc"}), ("name", {"_key": "asc"})]
)
def test_elasticsearch_sorts_and_filters(browser, sources, answer, sort, order):
    answer()
    browser.get(f"/fleet?sort={sort}&span=1h&site=s1&verdict=silence&role=")
    asked = sources.searches[1][1]
    assert asked["aggs"]["machine"]["terms"]["order"] == order
    assert asked["aggs"]["machine"]["aggs"]["time"]["date_histogram"]["fixed_interval"] == "60000ms"
    start = NEWEST // 60_000 * 60_000 - 59 * 60_000
    assert asked["query"]["bool"]["filter"] == [
        {"term": {"site": "s1"}},
        {"term": {"verdict": "silence"}},
        {"range": {"started": {"gte": start}}},
    ]


def test_the_address_is_the_state_of_the_filters(browser, answer):
    answer()
    page = browser.get("/fleet?sort=name&span=7d&site=s1").text
    for chosen in ('value="name" selected', 'value="7d" selected', 'value="s1" selected'):
        assert chosen in page
    assert "No novelty began in this span for what is chosen." in page


def test_what_is_open_is_listed_with_its_sentence(browser, answer):
    answer(
        opened=[{"machine": "vm-9", "verdict": "silence", "started": NEWEST, "score": 30.0, "text": "vm-9 is silent"}]
    )
    view = browser.get("/api/v1/fleet").json()
    assert (view["open"]["total"], view["open"]["novelties"][0]["machine"]) == (120, "vm-9")
    assert "vm-9 is silent" in browser.get("/fleet").text


def test_without_novelties_the_page_says_so(browser):
    page = browser.get("/fleet").text
    assert "No novelty began in this span." in page
    assert "Nothing is open." in page


@pytest.mark.parametrize(("argument", "known"), [("sort", "severity, count, name"), ("span", "1h, 6h, 1d, 7d, 30d")])
def test_another_value_is_refused(browser, argument, known):
    answer = browser.get(f"/api/v1/fleet?{argument}=x")
    assert (answer.status_code, answer.json()["error"]) == (400, f"{argument}='x': there are {known}")


def test_what_telemetry_says_is_escaped(browser, answer):
    hostile = {"machine": MARKUP, "verdict": MARKUP, "started": 0, "score": 1.0, "text": MARKUP, "role": MARKUP}
    answer(bucket(MARKUP, 1, 9.0, time={"buckets": [cell(3, 9.0, MARKUP)]}), opened=[hostile])
    page = browser.get("/fleet").text
    assert ESCAPED in page
    assert "<script>" not in page
