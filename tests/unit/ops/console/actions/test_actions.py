import re

import pytest

from ops.console.operations import ElsewhereError
from ops.redrive import Wanted
from ops.replay.registry import Generation, Promotion, Registry
from tests.unit.ops.console.sources import ESCAPED, MARKUP
from tests.unit.ops.console.views.test_incidents import hits
from tests.unit.ops.console.writes import post

NOVELTY = {"machine": "vm-1", "series": "cpu", "verdict": "anomaly", "kind": "metric", "started": 1_790_000_000_000}
LETTER = {"id": "telemetry.lines-0-1-0-not_json", "stage": "enrichment", "code": "not_json", "source": {}}


@pytest.mark.parametrize(
    ("action", "fields", "done"),
    [
        ("feedback", {"novelty": "n1", "started": "17"}, ("feedback", "n1", 17, "ada")),
        ("reset", {"series": "cpu*", "machine": "vm-1"}, ("reset", "cpu*", "vm-1", "ada")),
        ("suppress", {"machine": "vm-*", "size": "2.5"}, ("suppress", {"machine": "vm-*", "size": 2.5}, "ada")),
        ("allow", {"rule": "3f1c09aa"}, ("allow", "3f1c09aa", "ada")),
        ("retire", {"machine": "vm-1", "typed": "vm-1"}, ("retire", "vm-1", "ada")),
        ("retry", {"id": ["a", "b"], "code": "not_json"}, ("retry", ("a", "b"), Wanted(code="not_json"))),
        ("retry", {"which": "all", "machine": "vm-1"}, ("retry", (), Wanted(machine="vm-1"))),
        ("promote", {"name": "v2"}, ("command", "replay", "promote", "v2", "ada")),
        ("rollback", {}, ("command", "replay", "rollback", "ada")),
        ("drop", {"name": "v2", "typed": "v2"}, ("command", "replay", "drop", "v2", "ada")),
        ("diff", {"one": "live", "other": "v2"}, ("command", "replay", "diff", "live", "v2", "--json", "ada")),
        (
            "savepoint",
            {"name": "monday", "job": "detector"},
            ("command", "savepoint", "create", "monday", "--job=detector", "ada"),
        ),
        ("savepoint", {"name": "monday", "job": ""}, ("command", "savepoint", "create", "monday", "--all", "ada")),
        ("verify-savepoint", {"name": "monday"}, ("command", "savepoint", "verify", "monday", "ada")),
        (
            "delete-savepoint",
            {"name": "monday", "typed": "monday"},
            ("command", "savepoint", "delete", "monday", "ada"),
        ),
        (
            "start",
            {"name": "v2", "job": "detector", "from": "earliest", "where": "", "set": "detector.a=1\n\n detector.b=2"},
            (
                *("command", "replay", "start", "--as=v2", "--job=detector", "--from=earliest"),
                *("--set=detector.a=1", "--set=detector.b=2", "--detach", "ada"),
            ),
        ),
    ],
)
def test_an_action_is_done_under_the_persons_name_and_the_next_page_says_so(
    browser, sources, writes, action, fields, done
):
    answer = post(browser, action, **fields)
    assert (answer.status_code, writes.done) == (303, [done])
    assert sources.forgotten == 1
    page = browser.get(answer.headers["location"]).text
    assert '<p class="notice" role="status">' in page
    assert '<p class="notice"' not in browser.get("/control").text


@pytest.mark.parametrize(
    ("action", "fields", "fault"),
    [
        ("feedback", {"novelty": "n1"}, "started: is missing"),
        ("feedback", {"novelty": "n1", "started": "soon"}, "started=&#39;soon&#39;: must be a whole number"),
        ("reset", {"series": "*", "machine": "*"}, "every series of every machine would be reset"),
        ("suppress", {}, "every novelty would be suppressed"),
        ("suppress", {"size": "-1"}, "size=&#39;-1&#39;: Input should be greater than 0"),
        ("retire", {"machine": "vm-1", "typed": "vm-2"}, "type the machine&#39;s name, vm-1, to retire it"),
        ("retry", {"code": "not_json"}, "choose dead letters"),
        ("drop", {"name": "v2", "typed": "v3"}, "type the generation&#39;s name, v2"),
        ("promote", {"name": "--force"}, "name=&#39;--force&#39;: use up to 31 lower-case letters"),
        ("savepoint", {"name": "../x", "job": "detector"}, "name=&#39;../x&#39;: use up to 100 letters"),
        ("delete-savepoint", {"name": "monday", "typed": ""}, "type the savepoint&#39;s name, monday"),
        ("start", {"job": "detector"}, "name: is missing"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_field(browser, writes, action, fields, fault):
    answer = post(browser, action, **fields)
    assert (answer.status_code, writes.done) == (400, [])
    assert fault in answer.text


def test_what_the_broker_refuses_is_said(browser, writes):
    writes.refusal = f"topic: {MARKUP}"
    answer = post(browser, "allow", rule="x")
    assert answer.status_code == 400
    assert ESCAPED in answer.text


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)"])
def test_nobody_is_sent_to_another_site(browser, back):
    assert post(browser, "allow", rule="x", back=back).headers["location"] == "/chain"


def test_the_page_of_a_machine_has_the_forms_of_its_novelties(browser, sources):
    sources.found = {"novelties": hits(("n1", NOVELTY), ("n2", NOVELTY | {"feedback": "not-anomalous"}))}
    page = browser.get("/fleet/vm-1").text
    assert re.findall(r'action="/act/(\w+)"', page) == ["feedback", "reset", "retire"]
    assert '<input type="hidden" name="novelty" value="n1">' in page
    assert "not anomalous</small>" in page
    assert '/control/suppress?machine=vm-1&amp;series=cpu"' in page


def test_the_list_of_dead_letters_has_the_form_of_a_retry(browser, sources):
    sources.found = {"rejected": hits(("d1", LETTER))}
    page = browser.get("/rejected?code=not_json").text
    assert f'form="retry" name="id" value="{LETTER["id"]}"' in page
    assert 'name="code" value="not_json"' in page
    assert "Retry all 1" in page


def test_where_nothing_can_be_run_the_command_is_shown(browser, writes):
    def refuse(arguments, by):
        raise ElsewhereError(f"docker compose run --rm kappa {' '.join(arguments)}")

    writes.command = refuse
    answer = post(browser, "promote", name="v2")
    assert (answer.status_code, "docker compose run --rm kappa replay promote v2" in answer.text) == (200, True)


def test_a_generation_can_be_compared_promoted_and_dropped(browser, sources):
    planned = Generation(name="v2", base="live", jobs=("detector",), state="caught up")
    sources.generations = Registry({"v2": planned}, Promotion(generation="live", previous="v1"))
    page = browser.get("/generations").text
    row = page[page.index('id="g-v2"') :].partition("</tr>")[0]
    assert re.findall(r'action="/act/(\w+)"', row) == ["diff", "promote", "drop"]
    live = page[page.index('id="g-live"') :].partition("</tr>")[0]
    assert re.findall(r'action="/act/(\w+)"', live) == []  # readers see it
    assert "Roll back to v1" in page
    assert 'action="/act/start"' in page
