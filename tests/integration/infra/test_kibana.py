"""Kibana can't run here: its objects refer to what exists, and their queries run on a real Elasticsearch."""

import json
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch

from jobs.indexer.indices import template_of

OBJECTS = [json.loads(line) for line in Path("infra/kibana/objects.ndjson").read_text().splitlines()]
TIME = 1_700_000_000_000
MINUTE = {"kind": "tumbling", "size_seconds": 60.0}
FIVE_MINUTES = {"kind": "sliding", "size_seconds": 300.0}
DOCUMENTS = {
    "novelties": [
        {"@timestamp": TIME, "machine": "vm-01", "verdict": "state_change", "series": "system.memory.usage"},
        {"@timestamp": TIME, "machine": "vm-02", "verdict": "silence"},
        {"@timestamp": TIME, "machine": "vm-02", "verdict": "silence", "ended": TIME + 1},
    ],
    "statistics": [
        {"@timestamp": TIME, "machine": "vm-01", "site": "site-1", "count": 12, "window": MINUTE},
        {"@timestamp": TIME, "machine": "vm-02", "site": "site-1", "count": 30, "window": MINUTE},
        {"@timestamp": TIME, "machine": "vm-02", "site": "site-1", "count": 90, "window": FIVE_MINUTES},
    ],
    "rejected": [{"@timestamp": TIME, "code": "not_json", "machine": "vm-03", "source": {"topic": "telemetry.lines"}}],
    "incidents": [
        {
            "@timestamp": TIME,
            "machines": 2,
            "novelties": 3,
            "verdicts": ["silence"],
            "score": 9.5,
            "causes": [{"kind": "hypervisor", "name": "hv-01"}],
            "text": "2 machines, likely because of hypervisor hv-01",
        },
        {"@timestamp": TIME, "machines": 1, "causes": [{"kind": "machine", "name": "vm-03"}], "ended": TIME + 1},
    ],
}
FOUND = {
    "kappa-novelties-all": 3,
    "kappa-changes": 1,
    "kappa-silent": 1,
    "kappa-rejected-all": 1,
    "kappa-incidents-all": 2,
    "kappa-incidents-open": 1,
    "kappa-novelties-time": {"state_change": 1, "silence": 2},
    "kappa-machines": {"vm-01": 1, "vm-02": 2},
    "kappa-rejected-code": {"not_json": 1},
    "kappa-volume": {"site-1": 2},
}


@pytest.fixture(scope="module")
def client(servers):
    """Elasticsearch with the indexer's templates and a few documents, under names of its own."""
    with Elasticsearch(servers.elasticsearch_url) as client:
        for kind, documents in DOCUMENTS.items():
            template = template_of(kind)["template"]
            client.indices.create(index=f"kibana-test-{kind}", mappings=template["mappings"])
            for document in documents:
                client.index(index=f"kibana-test-{kind}", document=document, refresh=True)
        yield client
        client.indices.delete(index=",".join(f"kibana-test-{kind}" for kind in DOCUMENTS))


def _of(kind):
    return {one["id"]: one for one in OBJECTS if one["type"] == kind}


def _index(name):
    return name.replace("kappa-", "kibana-test-")


def test_every_reference_leads_to_an_object():
    known = {(one["type"], one["id"]) for one in OBJECTS}
    assert {(ref["type"], ref["id"]) for one in OBJECTS for ref in one["references"]} <= known


@pytest.mark.parametrize("identity", _of("search"))
def test_a_saved_search_finds_its_documents_and_their_columns(client, identity):
    saved = _of("search")[identity]
    source = json.loads(saved["attributes"]["kibanaSavedObjectMeta"]["searchSourceJSON"])
    index = _index(saved["references"][0]["id"])
    query = {"query_string": {"query": source["query"]["query"]}}
    assert client.search(index=index, query=query)["hits"]["total"]["value"] == FOUND[identity]
    known = client.field_caps(index=index, fields="*")["fields"].keys()
    assert set(saved["attributes"]["columns"]) <= known


@pytest.mark.parametrize("identity", _of("visualization"))
def test_a_chart_has_its_figures(client, identity):
    state = json.loads(_of("visualization")[identity]["attributes"]["visState"])
    url = json.loads(state["params"]["spec"])["data"]["url"]
    answer = client.search(index=_index(url["index"]), **url["body"])
    (aggregation,) = answer["aggregations"].values()
    aggregation = aggregation.get("time", aggregation)
    inner = [name for name in ("verdict", "site") if name in aggregation["buckets"][0]]
    buckets = aggregation["buckets"][0][inner[0]]["buckets"] if inner else aggregation["buckets"]
    assert {bucket["key"]: bucket["doc_count"] for bucket in buckets} == FOUND[identity]


def test_the_dashboard_shows_each_panel_once():
    (dashboard,) = _of("dashboard").values()
    panels = json.loads(dashboard["attributes"]["panelsJSON"])
    names = [reference["name"] for reference in dashboard["references"]]
    assert names == [f"{panel['panelIndex']}:{panel['panelRefName']}" for panel in panels]
