import pytest

from infra.contract.inventory import MOST_DEPENDENCIES
from jobs.detector.population.dependencies import dependencies, peer_of


@pytest.mark.parametrize(
    ("series", "peer"),
    [
        ("http.client.request.duration{http.request.method=GET,server.address=udm.core,server.port=80}", "udm.core"),
        ("rpc.client.duration{net.peer.name=pcf}", "pcf"),
        ("db.client.operation.duration{db.system=postgresql,server.address=db-1}", "db-1"),
        ("traces.span.metrics.calls{peer.service=payment,span.kind=SPAN_KIND_CLIENT}", "payment"),
        ("requests{service.peer.name=ausf}", "ausf"),
        # A server's own address, and callers' addresses, say nothing of what the server needs.
        ("http.server.request.duration{server.address=amf.core}", None),
        ("http.server.duration{net.peer.name=10.0.0.7}", None),
        ("http.client.request.duration{server.address=localhost}", None),
        ("http.client.request.duration{server.address=127.0.0.1}", None),
        ("http.client.request.duration{client.server.addresses=udm}", None),
        ("system.cpu.utilization{state=user}", None),
        ("connection to <*> failed, server.address=udm", None),
        ("redis.client.connections", None),
    ],
)
def test_the_other_side_of_a_call_is_named_by_the_callers_metrics(series, peer):
    assert peer_of(series) == peer


def test_what_the_inventory_says_and_what_was_learned_are_one_list():
    series = ["http.client.active_requests{server.address=udm}", "x{peer.service=pcf}", "y{peer.service=pcf}"]
    assert dependencies({"depends_on": ["udm", "dns"]}, series) == ["dns", "pcf", "udm"]
    assert dependencies(None, ["system.cpu.utilization"]) == []


def test_what_was_learned_never_displaces_what_the_inventory_says():
    declared = [f"z{number}" for number in range(MOST_DEPENDENCIES - 1)]
    found = dependencies({"depends_on": declared}, [f"a{{peer.service=s{number:03d}}}" for number in range(500)])
    assert set(found) == {*declared, "s000"}
