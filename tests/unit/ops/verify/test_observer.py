from types import SimpleNamespace

import orjson
import pytest

from ops.simulator import check
from ops.simulator.faults import parse
from ops.verify.answers import Answer
from ops.verify.observer import Observer, Truth

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND


def answer(what: str, seconds: int, topic: str = "novelties") -> Answer:
    return Answer(topic, "vm-1", what, (START + seconds * SECOND) // 1_000_000, id=f"{what}-{seconds}")


@pytest.fixture
def observer(tmp_path, monkeypatch) -> Observer:
    """Of a cloud with one late machine, from 60 s to 90 s after START; each test sets its answers."""
    fault = parse("late:vm-1@+60s/30s").as_dict(START, [], [])
    (tmp_path / "faults.jsonl").write_bytes(orjson.dumps(fault) + b"\n")
    (tmp_path / "cloud.json").write_bytes(orjson.dumps([{"machine": "vm-1"}]))
    monkeypatch.setattr(
        check, "compare_events", lambda *_: SimpleNamespace(passed=True, events=1, lost=0, duplicated=0)
    )
    found = object.__new__(Observer)
    found.truth, found.sightings = Truth(tmp_path), SimpleNamespace(seen={})
    monkeypatch.setattr(found, "_read", lambda _: [], raising=False)
    return found


def test_an_answer_may_come_after_what_is_compared(observer, monkeypatch):
    monkeypatch.setattr(observer, "_answers", lambda: [answer("late", 100, "events.late")])
    result = observer.result(START, START + 80 * SECOND)
    assert [row.delay_s for row in result.rows] == [40.0]
    assert result.passed


def test_only_alarms_within_what_is_compared_are_counted(observer, monkeypatch):
    alarms = [answer("silence", 20), answer("silence", 79), answer("silence", 81)]
    monkeypatch.setattr(observer, "_answers", lambda: alarms)
    result = observer.result(START + 30 * SECOND, START + 80 * SECOND)
    assert result.false_alarms == [alarms[1]]
    assert not result.passed
    assert result.as_dict()["events_passed"]


def test_what_is_emitted_is_emitted_by_every_partition(observer, monkeypatch):
    def read(_bootstrap, _topic, tail=None):
        emitted = [(n, {"watermark_unix_nano": 10 * n}) for n in range(1, 4)] + [
            (n, {"machine": "vm-1"}) for n in range(4)
        ]
        return emitted if tail else [(0, {"watermark_unix_nano": 5}), (0, {"watermark_unix_nano": 7}), *emitted]

    monkeypatch.setattr("jobs.runtime.watermarks.read_records", read)
    observer.topics = {"statistics": SimpleNamespace(name="statistics", partitions=4)}
    observer.settings = SimpleNamespace(kafka_bootstrap="")
    assert observer.emitted_until() == 7
    observer.topics["statistics"].partitions = 5
    assert observer.emitted_until() == 0
