"""The sink against a scripted Elasticsearch: what is waited out, what is refused, what is full."""

from typing import Any, ClassVar

import orjson
import pytest
from elastic_transport import BaseNode, ConnectionError, HttpHeaders
from elastic_transport._models import ApiResponseMeta
from elastic_transport._node._base import NodeApiResponse
from elasticsearch import Elasticsearch

from connectors.sinks import elasticsearch
from connectors.sinks.elasticsearch import Action, ElasticsearchSink, Found, IndexFull, connect
from connectors.sinks.elasticsearch_errors import Retry
from infra.errors import UserError

HEADERS = HttpHeaders({"content-type": "application/json", "x-elastic-product": "Elasticsearch"})


class Scripted(BaseNode):
    """Answers each request with the next of `answers`: a (status, body), or an exception."""

    answers: ClassVar[list[Any]] = []
    requests: ClassVar[list[tuple[str, str, bytes]]] = []
    otherwise: ClassVar[Any] = None  # answers a body, once `answers` are used up

    def perform_request(self, method, target, body=None, headers=None, request_timeout=None):
        self.requests.append((method, target, body or b""))
        answer = self.answers.pop(0) if self.answers else self.otherwise(body or b"")
        if isinstance(answer, Exception):
            raise answer
        status, content = answer
        meta = ApiResponseMeta(status=status, http_version="1.1", headers=HEADERS, duration=0.0, node=self.config)
        return NodeApiResponse(meta, orjson.dumps(content))

    def close(self):
        pass


class Script:
    def __init__(self) -> None:
        Scripted.answers, Scripted.requests, Scripted.otherwise = [], [], None
        self.pauses: list[float] = []
        self.causes: list[str] = []
        client = Elasticsearch("http://127.0.0.1:1", node_class=Scripted, max_retries=0)
        self.sink = ElasticsearchSink(client, Retry(self.wait))

    def wait(self, seconds: float, cause: str) -> None:
        self.pauses.append(seconds)
        self.causes.append(cause)

    def answer(self, *answers: Any) -> None:
        Scripted.answers += answers

    def sent(self) -> list[list[str]]:
        """The ids of each bulk request."""
        bulks = (body for _, target, body in Scripted.requests if target.startswith("/_bulk"))
        return [ids_of(body) for body in bulks]


def ids_of(body: bytes) -> list[str]:
    """The ids of the documents in a bulk request; that of a probe is the probe's."""
    metas = [orjson.loads(line) for line in body.splitlines()]
    return [next(iter(meta.values()))["_id"] for meta in metas if meta.keys() & {"index", "delete"}]


@pytest.fixture
def script() -> Script:
    return Script()


def action(identity: str, **document: Any) -> Action:
    return Action("things", identity, {"name": identity, **document})


def result(identity: str, status: int, kind: str = "", reason: str = "", **more: Any) -> dict[str, Any]:
    error = {"error": {"type": kind, "reason": reason, **more}} if status >= 300 else {}
    return {"index": {"_index": "things", "_id": identity, "status": status, **error}}


def bulk(*results: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    return 200, {"took": 1, "errors": True, "items": list(results)}


def test_what_is_written_is_not_refused(script):
    script.answer(bulk(result("a", 201), result("b", 200)))
    assert script.sink.write([action("a"), action("b")]) == {}
    assert script.sent() == [["a", "b"]]
    assert script.pauses == []


def test_nothing_is_sent_for_no_actions(script):
    assert script.sink.write([]) == {}
    assert script.sink.find("things", []) == {}
    assert Scripted.requests == []


def test_a_refused_document_is_told_with_all_of_its_reasons(script):
    cause = {"type": "number_format", "reason": "not a number: x"}
    refused = result("b", 400, "document_parsing_exception", "failed to parse [count]", caused_by=cause)
    script.answer(bulk(result("a", 201), refused, result("c", 201)))
    assert script.sink.write([action("a"), action("b"), action("c")]) == {
        1: "document_parsing_exception: failed to parse [count] (number_format: not a number: x)"
    }
    assert script.pauses == []


def test_only_what_a_full_queue_left_out_is_sent_again(script):
    full = result("b", 429, "es_rejected_execution_exception", "queue is full")
    script.answer(
        bulk(result("a", 201), full, result("c", 400, "document_parsing_exception", "bad")),
        bulk(full),
        bulk(result("b", 201)),
    )
    assert script.sink.write([action(name) for name in "abc"]) == {2: "document_parsing_exception: bad"}
    assert script.sent() == [["a", "b", "c"], ["b"], ["b"]]
    assert len(script.pauses) == 2


@pytest.mark.parametrize(
    "outage", [ConnectionError("refused"), (503, {"error": "no master"}), (429, {"error": "busy"}), (404, None)]
)
def test_an_outage_is_waited_out(script, outage):
    script.answer(outage, outage, outage, bulk(result("a", 201)))
    assert script.sink.write([action("a")]) == {}
    assert script.sent() == [["a"]] * 4
    assert len(script.pauses) == 3
    assert all(0 <= pause <= 10 for pause in script.pauses)


def test_an_index_at_fault_is_waited_for(script):
    script.answer(bulk(result("a", 400, "index_closed_exception", "closed")), bulk(result("a", 201)))
    assert script.sink.write([action("a")]) == {}
    assert len(script.pauses) == 1


def test_a_newer_version_in_the_index_is_no_refusal(script):
    script.answer(bulk(result("a", 409, "version_conflict_engine_exception", "current version is higher")))
    assert script.sink.write([action("a")]) == {}
    assert script.pauses == []


def test_the_caller_may_give_up_waiting():
    class GivenUp(Exception):
        pass

    def give_up(*_: object) -> None:
        raise GivenUp

    script = Script()
    script.sink._retry = Retry(give_up)
    script.answer(ConnectionError("refused"))
    with pytest.raises(GivenUp):
        script.sink.write([action("a")])


def test_found_documents_are_read_by_id(script):
    found = {"_index": "things", "_id": "a", "found": True, "_source": {"name": "a"}}
    script.answer((200, {"docs": [found, {"_index": "things", "_id": "b", "found": False}]}))
    assert script.sink.find("things", ["a", "b"]) == {"a": Found("things", {"name": "a"})}


def test_an_unreadable_shard_is_waited_for_and_not_taken_for_absence(script):
    failed = {"_index": "things", "_id": "a", "error": {"type": "no_shard_available_action_exception", "reason": "x"}}
    script.answer((200, {"docs": [failed]}), (200, {"docs": [{"_id": "a", "found": True, "_source": {"n": 1}}]}))
    assert script.sink.find("things", ["a"]) == {"a": Found("things", {"n": 1})}
    assert len(script.pauses) == 1


DENIED = "action [indices:data/write/bulk[s]] is unauthorized"


@pytest.mark.parametrize(
    ("refusal", "cause"),
    [
        ((401, {"error": "unable to authenticate"}), "forbidden"),
        ((403, {"error": {"type": "security_exception", "reason": DENIED}}), "forbidden"),
        (bulk(result("a", 403, "security_exception", DENIED)), "forbidden"),
        (bulk(result("a", 429, "cluster_block_exception", "disk usage exceeded flood-stage watermark")), "full"),
        ((400, {"error": {"type": "validation_exception", "reason": "[9]/[9] maximum normal shards open"}}), "full"),
        ((503, {"error": "no master"}), "unavailable"),
    ],
)
def test_missing_rights_and_a_full_server_are_waited_out_and_told_apart(script, refusal, cause):
    script.answer(refusal, *([(400, {"error": "busy"})] if refusal[0] == 400 else []))
    Scripted.otherwise = staticmethod(refusing())
    assert script.sink.write([action("a")]) == {}
    assert script.causes == [cause]
    assert script.sent()[-1] == ["a"]


def test_an_address_without_port_is_named():
    with pytest.raises(UserError, match=r"elasticsearch_url='http://somewhere'.*port"):
        connect("http://somewhere")


def refusing(*bad: str, status: int = 400) -> Any:
    """Answers a bulk as a server that refuses any request with one of these documents in it."""

    def answer(body: bytes) -> tuple[int, dict[str, Any]]:
        ids = ids_of(body)
        if {*ids} & {*bad}:
            return status, {"error": {"type": "action_request_validation_exception", "reason": "id is too long"}}
        return bulk(*(result(identity, 404 if identity == elasticsearch.PROBE else 201) for identity in ids))

    return answer


@pytest.mark.parametrize("status", [400, 413])
def test_a_refused_request_is_cut_until_the_documents_at_fault_are_alone(script, status):
    names = [f"d{number}" for number in range(100)]
    Scripted.otherwise = staticmethod(refusing("d17", "d63", status=status))
    refused = script.sink.write([action(name) for name in names])
    assert {number: reason.partition(": ")[2] for number, reason in refused.items()} == dict.fromkeys(
        (17, 63), "action_request_validation_exception: id is too long"
    )
    written = [
        identity for ids in script.sent() if not {*ids} & {"d17", "d63", elasticsearch.PROBE} for identity in ids
    ]
    assert sorted(written) == sorted({*names} - {"d17", "d63"}), "each good one once"
    assert script.pauses == []


def test_a_server_that_refuses_every_request_is_waited_for_and_no_document_is_blamed(script):
    class GivenUp(Exception):
        pass

    pauses: list[float] = []

    def wait_twice(seconds: float, _: str) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise GivenUp

    script.sink._retry = Retry(wait_twice)
    Scripted.otherwise = staticmethod(lambda _: (406, {"error": "wrong media type"}))
    with pytest.raises(GivenUp):
        script.sink.write([action("a"), action("b")])


def failing_at(*bad: str, probe: int):
    """A server with a fault: 500 for these documents; the probe's delete has the status `probe`."""

    def answer(body: bytes) -> tuple[int, dict[str, Any]]:
        of_document = dict.fromkeys(bad, 500) | {elasticsearch.PROBE: probe}
        statuses = [(identity, of_document.get(identity, 201)) for identity in ids_of(body)]
        return bulk(*(result(identity, status, "illegal_state_exception", "odd") for identity, status in statuses))

    return answer


def test_a_document_that_the_server_fails_at_again_and_again_is_refused_if_its_shard_takes_others(script):
    Scripted.otherwise = staticmethod(failing_at("b", probe=404))
    assert script.sink.write([action("a"), action("b"), action("c")]) == {1: "illegal_state_exception: odd"}
    assert script.sent() == [["a", "b", "c"], *[["b"]] * (elasticsearch.FAILURES - 1), [elasticsearch.PROBE]]
    assert b'"routing":"b"' in Scripted.requests[-1][2]


def test_a_shard_that_fails_at_everything_is_waited_for(script):
    broken, mended = failing_at("a", probe=500), failing_at(probe=404)
    Scripted.otherwise = staticmethod(
        lambda body: broken(body) if len(script.pauses) < 2 * elasticsearch.FAILURES else mended(body)
    )
    assert script.sink.write([action("a")]) == {}
    assert script.sent()[-1] == ["a"]


def test_an_answer_that_is_no_answer_of_elasticsearch_is_waited_out(script):
    script.answer((200, {"took": 1, "items": []}), (502, {"error": "bad gateway"}), bulk(result("a", 201)))
    assert script.sink.write([action("a")]) == {}
    assert len(script.pauses) == 2


def test_a_document_that_is_no_json_is_refused_and_the_others_are_written(script):
    script.answer(bulk(result("b", 201)))
    refused = script.sink.write([action("a", odd={1, 2}), action("b")])
    assert list(refused) == [0]
    assert refused[0].startswith("not JSON")


def test_a_document_that_is_too_large_is_refused_before_it_is_sent(script, monkeypatch):
    monkeypatch.setattr(elasticsearch, "LARGEST_BYTES", 1_000)
    script.answer(bulk(result("b", 201)))
    refused = script.sink.write([action("a", text="x" * 2_000), action("b")])
    assert "at most 1000" in refused[0]
    assert script.sent() == [["b"]]


def test_requests_are_bounded_in_bytes(script, monkeypatch):
    monkeypatch.setattr(elasticsearch, "CHUNK_BYTES", 1_000)
    Scripted.otherwise = staticmethod(refusing())
    script.sink.write([action(f"d{number}", text="x" * 300) for number in range(10)])
    assert [len(body) <= 1_000 + 20 for _, _, body in Scripted.requests] == [True] * 5


def test_a_full_index_is_told_so_that_another_can_take_the_rest(script):
    reason = "Number of documents in the index can't exceed [2147483519]"
    script.answer(bulk(result("a", 400, "illegal_argument_exception", reason)))
    with pytest.raises(IndexFull, match=r"things.*2147483519"):
        script.sink.write([action("a")])
    assert script.pauses == []
