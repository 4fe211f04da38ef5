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


def lane(name, novelties, score, *cells):
    return bucket(name, novelties, score, time={"buckets": list(cells)})


@pytest.fixture
def answer(sources):
    """Makes Elasticsearch answer with lanes, by the field that they are of, and with what is open."""

    def given(*lanes, opened=(), total=None, verdicts=(), **of_fields):
        of_fields = of_fields or {"machine": lanes}
        grouped = {
            field: {field: {"buckets": list(found)}, f"of {field}": {"value": total or len(found)}}
            for field, found in of_fields.items()
        }
        head = {"newest": {"value": float(NEWEST)}} | {
            name: {"buckets": [{"key": value}]}
            for name, value in (("site", "s1"), ("tenant", "t1"), ("role", "UPF"), ("verdict", "silence"))
        }
        counted = {"verdict": {"buckets": [{"key": name, "doc_count": count} for name, count in verdicts]}}
        listed = [(str(number), one) for number, one in enumerate(opened)]

        def search(kind, **query):
            sources._ask("Elasticsearch")
            sources.searches.append((kind, query))
            asked = query["aggs"]
            if "newest" in asked:
                return hits(aggregations=head)
            if "verdict" in asked:
                return hits(*listed, total=120, aggregations=counted)
            if "time" in asked:
                return hits(total=9, aggregations={"strongest": {"value": 36.0}, "time": {"buckets": []}})
            return hits(aggregations=grouped)

        sources.search = search

    return given


def test_a_cell_has_its_column_its_strongest_score_and_its_colour(browser, answer):
    answer(lane("vm-1", 4, 36.0, cell(0, 6.9, "anomaly"), cell(59, 36.0, "silence", novelties=3)))
    view = browser.get("/api/v1/fleet").json()
    (machine,) = view["lanes"]
    assert (view["overall"]["novelties"], view["overall"]["score"]) == (9, 36.0)
    assert [(one["column"], one["level"], one["novelties"]) for one in machine["cells"]] == [(0, 1, 1), (59, 5, 3)]
    assert (view["times"][0], view["times"][-1], len(view["times"])) == (END - 59 * STEP, END, 60)
    page = browser.get("/fleet").text
    assert 'class="heat-5" d="M1017,39h12v16h-12z"' in page
    assert ">–</text>" in page  # noqa: RUF001


@pytest.mark.parametrize(
    ("sort", "order"), [("severity", {"strongest": "desc"}), ("count", {"_count": "desc"}), ("name", {"_key": "asc"})]
)
def test_elasticsearch_sorts_and_filters(browser, sources, answer, sort, order):
    answer()
    browser.get(f"/fleet?sort={sort}&span=1h&site=s1&hypervisor=hv-1&verdict=silence&role=&machine=vm-*")
    asked = sources.searches[1][1]
    assert asked["aggs"]["machine"]["aggs"]["machine"]["terms"] == {"field": "machine", "size": 60, "order": order}
    start = NEWEST // 60_000 * 60_000 - 59 * 60_000
    assert asked["query"]["bool"]["filter"] == [
        {"term": {"site": "s1"}},
        {"term": {"hypervisor": "hv-1"}},
        {"term": {"verdict": "silence"}},
        {"wildcard": {"machine": {"value": "vm-*", "case_insensitive": True}}},
        {"range": {"started": {"gte": start, "lt": start + 3_600_000}}},
    ]


def test_a_part_of_a_name_finds_machines(browser, sources, answer):
    answer()
    browser.get("/fleet?machine=07")
    found = {"wildcard": {"machine": {"value": "*07*", "case_insensitive": True}}}
    assert found in sources.searches[1][1]["query"]["bool"]["filter"]


def test_only_the_lanes_of_a_page_are_drawn(browser, sources, answer):
    answer(*[lane(f"vm-{number}", 1, float(200 - number)) for number in range(130)], total=10_000)
    view = browser.get("/api/v1/fleet?page=2").json()
    assert view["total"] == 10_000
    asked = [search["aggs"]["machine"]["aggs"] for _, search in sources.searches if "machine" in search["aggs"]]
    (drawn,) = [one["machine"]["terms"] for one in asked if "include" in one["machine"]["terms"]]
    assert drawn["include"] == [f"vm-{number}" for number in range(60, 120)]
    page = browser.get("/fleet?page=2&sort=count").text
    assert '/fleet?page=1&amp;sort=count">Previous' in page
    assert '/fleet?page=3&amp;sort=count">Next' in page


def test_a_hypervisor_has_what_runs_on_it_and_what_it_says_itself(browser, answer):
    virtual = lane("hv-1", 2, 8.0, cell(3, 8.0, "anomaly"), cell(5, 7.0, "anomaly"))
    physical = lane("hv-1", 1, 30.0, cell(5, 30.0, "silence"))
    answer(hypervisor=[virtual], machine=[physical, lane("hv-2", 1, 5.0, cell(1, 5.0))])
    lanes = browser.get("/api/v1/fleet?by=hypervisor").json()["lanes"]
    assert [(one["name"], one["novelties"], one["score"]) for one in lanes] == [("hv-1", 3, 30.0), ("hv-2", 1, 5.0)]
    cells = {one["column"]: (one["novelties"], one["level"], one["verdicts"]) for one in lanes[0]["cells"]}
    assert cells == {3: (1, 2, ["anomaly"]), 5: (2, 4, ["anomaly", "silence"])}


@pytest.mark.parametrize(
    ("by", "leads"),
    [
        ("machine", "/fleet/x?span=1h"),
        ("hypervisor", "/fleet?by=machine&amp;span=1h&amp;hypervisor=x"),
        ("site", "/fleet?by=hypervisor&amp;span=1h&amp;site=x"),
    ],
)
def test_a_lane_leads_to_what_is_in_it(browser, answer, by, leads):
    answer(**{by: [lane("x", 1, 9.0)]})
    assert f'<a href="{leads}"' in browser.get(f"/fleet?by={by}&span=1h").text


def test_a_chosen_stretch_of_time_is_cut_into_as_many_columns(browser, sources, answer):
    answer()
    view = browser.get(f"/api/v1/fleet?from={NEWEST}&to={NEWEST + 600_000}").json()
    assert (view["span"], view["start"], view["step"], len(view["times"])) == (None, NEWEST, 10_000, 60)
    page = browser.get(f"/fleet?from={NEWEST}&to={NEWEST + 600_000}&site=s1").text
    assert '<a href="/fleet?site=s1">Zoom out</a>' in page


def test_the_address_is_the_state_of_the_filters(browser, answer):
    answer()
    page = browser.get("/fleet?sort=name&span=7d&site=s1").text
    for chosen in ('value="name" selected', 'value="7d" selected', 'value="s1" selected'):
        assert chosen in page
    assert "No novelty began in this span for what is chosen." in page


def test_what_is_open_is_listed_with_its_sentence(browser, answer):
    answer(
        verdicts=[("silence", 100), ("new_entity", 20)],
        opened=[{"machine": "vm-9", "verdict": "silence", "started": NEWEST, "score": 30.0, "text": "vm-9 is silent"}],
    )
    view = browser.get("/api/v1/fleet").json()
    assert (view["open"]["total"], view["open"]["novelties"][0]["machine"]) == (120, "vm-9")
    page = browser.get("/fleet").text
    assert "vm-9 is silent" in page
    assert '<a class="tile" href="/fleet?verdict=silence"><b>100</b> silent</a>' in page


def test_without_novelties_the_page_says_so(browser):
    page = browser.get("/fleet").text
    assert "No novelty began in this span." in page
    assert "Nothing is open." in page


@pytest.mark.parametrize(
    ("argument", "known"),
    [
        ("sort", "severity, count, name"),
        ("span", "15m, 1h, 6h, 1d, 7d, 30d"),
        ("by", "machine, hypervisor, site, tenant, role"),
    ],
)
def test_another_value_is_refused(browser, argument, known):
    answer = browser.get(f"/api/v1/fleet?{argument}=x")
    assert (answer.status_code, answer.json()["error"]) == (400, f"{argument}='x': there are {known}")


@pytest.mark.parametrize(
    ("query", "argument"),
    [
        ("page=0", "page"),
        ("page=x", "page"),
        ("page=999", "page"),
        ("from=1", "to"),
        ("to=1", "from"),
        ("from=9&to=9", "to"),
    ],
)
def test_a_page_or_time_of_no_use_is_refused_with_its_name(browser, query, argument):
    answer = browser.get(f"/api/v1/fleet?{query}")
    assert (answer.status_code, answer.json()["error"].partition("=")[0]) == (400, argument)


def test_what_telemetry_says_is_escaped(browser, answer):
    hostile = {"machine": MARKUP, "verdict": MARKUP, "started": 0, "score": 1.0, "text": MARKUP, "role": MARKUP}
    answer(lane(MARKUP, 1, 9.0, cell(3, 9.0, MARKUP)), opened=[hostile])
    page = browser.get("/fleet").text
    assert ESCAPED in page
    assert "<script>" not in page


def test_a_long_name_is_cut_and_a_reader_of_the_screen_has_both(browser, answer):
    answer(lane("a" * 40, 1, 9.0, cell(3, 9.0, "silence")))
    page = browser.get("/fleet").text
    assert f'aria-label="{"a" * 27}… ({"a" * 40}): 1 novelties, strongest score 9"' in page
    assert f">{'a' * 27}…</text>" in page
