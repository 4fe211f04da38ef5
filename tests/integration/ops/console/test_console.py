"""The console over a real broker and a real Elasticsearch, with no job that answers: its views, then what people do."""

import base64
import json

import pytest
from confluent_kafka import Producer
from starlette.testclient import TestClient

from connectors.kafka.reader import read_topic
from connectors.sinks.elasticsearch import connect as connect_elasticsearch
from infra.contract.topics import load_topics
from jobs.detector import control
from jobs.enrichment.inventory import read_facts
from jobs.runtime.settings import Settings
from ops.console.feeds import CLOCK, signs
from ops.console.sources import Sources
from tests.integration.ops.console.conftest import BEGAN, OWN

MINUTE = 60_000


@pytest.fixture(scope="module")
def browser(console):
    return TestClient(console, base_url="http://127.0.0.1")


def get(browser, path):
    answer = browser.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.text
    assert browser.get(f"/{path}").status_code == 200
    return answer.json()


def test_the_fleet_is_aggregated_by_machine_and_time(browser):
    view = get(browser, "fleet?span=1h")
    cells = {
        one["name"]: [(cell["column"], cell["score"], cell["verdicts"]) for cell in one["cells"]]
        for one in view["lanes"]
    }
    assert (view["overall"]["novelties"], view["total"]) == (3, 2)
    assert list(cells) == ["vm-2", "vm-1"]
    assert cells == {
        "vm-2": [(30, 40.0, ["silence"])],
        "vm-1": [(0, 8.0, ["anomaly"]), (59, 9.0, ["state_change"])],
    }
    assert view["choices"]["site"] == ["north", "south"]
    assert [one["machine"] for one in view["open"]["novelties"]] == ["vm-2", "vm-1"]


def test_the_fleet_is_filtered_and_sorted(browser):
    found = get(browser, "fleet?span=1h&sort=name&site=north")
    assert [(one["name"], one["novelties"]) for one in found["lanes"]] == [("vm-1", 1), ("vm-2", 1)]
    assert [one["name"] for one in get(browser, "fleet?sort=count")["lanes"]] == ["vm-1", "vm-2"]
    assert [one["name"] for one in get(browser, "fleet?machine=VM-2")["lanes"]] == ["vm-2"]
    assert get(browser, "fleet?span=1h")["open"]["verdicts"] == {"silence": 1, "state_change": 1}


def test_a_hypervisor_has_its_machines_and_itself(browser):
    lanes = get(browser, "fleet?span=1h&by=hypervisor&sort=name")["lanes"]
    assert [(one["name"], one["novelties"], one["score"]) for one in lanes] == [("hv-1", 2, 40.0), ("vm-1", 1, 8.0)]


def test_an_incident_has_its_members_with_their_novelties(browser):
    listed = get(browser, "incidents?state=open")
    assert ([one["id"] for one in listed["incidents"]], listed["open"]) == (["i1"], 1)
    (member,) = get(browser, "incidents/i1")["members"]
    assert (member["machine"], member["now"]["observed"]) == ("vm-1", 97.0)


def test_a_machine_has_its_series_by_the_shortest_window_and_its_control_history(browser):
    view = get(browser, "fleet/vm-1?span=1h")
    (series,) = view["series"]
    columns = zip(series["values"], series["lows"], series["highs"], strict=True)
    points = [(step, *point) for step, point in enumerate(columns) if point[0] is not None]
    assert (series["series"], series["unit"], series["window_seconds"]) == ("cpu", "%", 10.0)
    assert points == [(59, 10.0, 0.0, 100.0), (119, 40.0, 30.0, 100.0)]
    assert [one["id"] for one in view["novelties"]] == ["n3", "n1"]
    assert [(one["by"], one["machine"]) for one in view["control"]] == [("ada", "vm-*")]


def test_a_dead_letter_has_the_bytes_of_its_record(browser):
    (count,) = get(browser, "rejected?stage=enrichment")["counts"]
    assert (count["stage"], count["code"], count["letters"], count["events"]) == ("enrichment", "not_json", 1, 1.0)
    assert get(browser, "rejected/d1")["original"]["hex"].startswith("00000000  ff 6e 6f 20 4a 53 4f 4e")


def test_the_lag_is_what_no_job_has_read(browser):
    view = get(browser, "chain")
    lags = {row["query"]: row["lag"] for row in view["queries"]}
    # A line, what was said of one machine, and in each partition what was said of several.
    said = 1 + 1 + load_topics()[control.TOPIC].partitions
    assert (lags["enrichment"], lags["detector"]) == (said, 0)
    assert {one["source"] for one in view["down"]} == {"archive", "detector", "enrichment", "indexer", "statistics"}


def test_the_live_generation_is_promoted(browser):
    assert get(browser, "generations")["promoted"] == "live"


def test_what_is_written_changes_the_sign_of_its_feed_and_no_other(browser, servers):
    sources = Sources(Settings(kafka_bootstrap=servers.bootstrap, elasticsearch_url=servers.elasticsearch_url), OWN)
    before = signs(sources)
    client = connect_elasticsearch(servers.elasticsearch_url)
    # An update of an old document, by which neither their number nor the newest time changes.
    (hit,) = client.search(index="kappa-novelties", query={"ids": {"values": ["n1"]}})["hits"]["hits"]
    index = hit["_index"]
    client.index(index=index, id="n1", document=hit["_source"])
    client.indices.refresh(index=index)
    control.send(servers.bootstrap, load_topics()[control.TOPIC], control.reset("none", "vm-3"), "ada")
    after = signs(sources)
    assert {feed for feed in after if before[feed] != after[feed]} - {CLOCK} == {"novelties", "control"}


def test_it_is_ready(browser):
    assert browser.get("/readyz").text == "ok\n"


def act(browser, name, **fields):
    token = browser.get("/control").text.partition('name="csrf" value="')[2].partition('"')[0]
    answer = browser.post(f"/act/{name}", data={"csrf": token, "back": "/control", **fields}, follow_redirects=False)
    assert answer.status_code == 303, answer.text


def test_feedback_is_about_the_strongest_moment_of_the_novelty(browser, servers):
    at = BEGAN * 1_000_000
    start = {"id": "n1", "phase": "start", "verdict": "anomaly", "machine": "vm-1", "kind": "metric", "series": "cpu"}
    start |= {"text": "so", "time_unix_nano": at, "since_unix_nano": at, "expected": 1.5}
    producer = Producer({"bootstrap.servers": servers.bootstrap, "partitioner": "murmur2_random"})
    for phase, score, observed in (("start", 8.0, 97.0), ("update", 12.0, 99.0), ("end", 1.0, 2.0)):
        record = start | {"phase": phase, "score": score, "observed": observed}
        producer.produce("novelties", json.dumps(record).encode(), b"vm-1")
    assert producer.flush(30) == 0
    act(browser, "feedback", novelty="n1", started=str(BEGAN))
    said = get(browser, "control?action=feedback")["history"][0]
    assert [said[name] for name in ("by", "machine", "series", "novelty")] == ["ada", "vm-1", "cpu", "n1"]
    (event,) = [one for one in control.history(servers.bootstrap, control.TOPIC) if one["action"] == "feedback"]
    assert (event["observed"], json.loads(event["novelty_record"])["phase"]) == (99.0, "end")


def test_a_rule_holds_until_it_is_allowed_again(browser):
    act(browser, "suppress", machine="vm-1", direction="above")
    (rule,) = get(browser, "control")["rules"]
    assert (rule["machine"], rule["direction"], rule["by"]) == ("vm-1", "above", "ada")
    act(browser, "allow", rule=rule["rule"])
    view = get(browser, "control")
    assert (view["rules"], [one["action"] for one in view["history"][:2]]) == ([], ["allow", "suppress"])


def test_a_rule_is_previewed_on_what_is_indexed(browser):
    view = get(browser, "control/suppress?machine=vm-1")
    assert ([one["id"] for one in view["novelties"]], view["of"]) == (["n3", "n1"], 3)


def test_a_retired_machine_is_in_the_inventory_and_in_the_history(browser, servers):
    act(browser, "retire", machine="vm-2", typed="vm-2")
    (fact,) = read_facts(servers.bootstrap, "inventory")["vm-2"]
    assert fact["valid_to"] is not None
    said = get(browser, "fleet/vm-2")["control"][0]
    assert (said["action"], said["by"]) == ("retire", "ada")


def test_a_retried_dead_letter_is_sent_once(browser, servers):
    letter = {"id": "telemetry.lines-0-0-0-not_json", "stage": "enrichment", "code": "not_json", "reason": "no JSON"}
    source = {"topic": "telemetry.lines", "partition": 0, "offset": 0, "timestamp_unix_milli": BEGAN}
    record = letter | {"source": source, "value": base64.b64encode(b"\xffno JSON").decode(), "events": 1}
    producer = Producer({"bootstrap.servers": servers.bootstrap})
    producer.produce("events.rejected", json.dumps(record).encode(), b"telemetry.lines/0/0", partition=0)
    assert producer.flush(30) == 0
    for _ in range(2):
        act(browser, "retry", id=letter["id"])
    (sent,) = read_topic(servers.bootstrap, "events.retry")
    assert (sent.key(), sent.value()) == (b"0/0", b"\xffno JSON")
