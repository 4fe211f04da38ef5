"""What the detector takes of `statistics`, and what becomes a dead letter instead of an exception."""

import numpy as np
import orjson
import pytest

from infra.contract.dead_letters import InvalidRecordError
from jobs.detector.control import allow, not_anomalous, reset, suppress
from jobs.detector.intake import check_control
from jobs.detector.job import DetectorShard
from jobs.detector.rules import Rule
from jobs.detector.saved_state import Saved
from jobs.detector.shard import Shard
from jobs.runtime.packed_state import pack, unpack
from jobs.runtime.shard_state import Input
from tests.unit.jobs.detector.test_shard import FIRST, SETTINGS, SIZE, eventful, record, usual, watermark

NOVELTY = {
    "id": "n",
    "machine": "vm-1",
    "verdict": "anomaly",
    "kind": "metric",
    "series": "cpu",
    "observed": 9.0,
    "expected": 5.0,
    "score": 20.0,
    "text": "t",
    "time_unix_nano": 20,
    "since_unix_nano": 10,
}
BAD = {"action": "feedback", "machine": "vm-01", "novelty": "n"}


def controlled(control, window=5):
    return orjson.dumps({"id": "c", "machine": "vm-1", "control": control, "time_unix_nano": (FIRST + window) * SIZE})


def fed(values):
    return DetectorShard(SETTINGS).feed(Input("statistics", 2, range(len(values)), values))


@pytest.mark.parametrize(
    "control",
    [
        not_anomalous(NOVELTY),
        not_anomalous(NOVELTY | {"kind": "machine", "verdict": "silence"}) | {"by": "ada"},
        reset("cpu*", "vm-1"),
        suppress(Rule(machine="upf-*", size=2.0)),
        allow("r1"),
    ],
)
def test_what_the_command_line_writes_is_obeyed(control):
    check_control(control)


@pytest.mark.parametrize(
    ("control", "reason"),
    [
        (BAD, "verdict: must be a text of 1 to 1000 characters, is None"),
        (
            {"action": "explode", "machine": "vm-1"},
            "action: must be one of feedback, reset, suppress, allow, retire, is 'explode'",
        ),
        (reset("", "vm-1"), "series: must be a text of 1 to 1000 characters, is ''"),
        (not_anomalous(NOVELTY | {"observed": "9"}), "observed: must be a number from -1e+300 to 1e+300, is '9'"),
        (not_anomalous(NOVELTY) | {"novelty_record": "{"}, "no JSON: "),
        (not_anomalous(NOVELTY) | {"novelty_record": "{}"}, "id: must be a text of"),
        (not_anomalous(NOVELTY | {"verdict": "silence", "observed": -1.0}), "observed: must be a number from 0 to"),
        (suppress(Rule(size=2.0)) | {"size": -2.0}, "size=-2.0: Input should be greater than 0"),
        (suppress(Rule(size=2.0)) | {"direction": "sideways"}, "direction='sideways': Input should be"),
        (allow("r1") | {"by": 7}, "by: must be a text of at most 1000 characters, is 7"),
        ("reset", "control: must be an object, is 'reset'"),
    ],
)
def test_a_control_event_that_cannot_be_obeyed_is_a_dead_letter_that_says_why(control, reason):
    with pytest.raises(InvalidRecordError) as refused:
        check_control(control)
    assert refused.value.code == "not_control"
    assert refused.value.reason.startswith(reason)
    (letter,) = [output for output in fed([controlled(control), watermark(9)]) if output.topic]
    found = orjson.loads(letter.value)
    assert (found["stage"], found["code"], found["source"]["partition"]) == ("detector", "not_control", 2)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("machine", 7),
        ("window", {"kind": "tumbling", "size_seconds": "10"}),
        ("inventory", {"site": [1]}),
        ("inventory", {"depends_on": "udm-1"}),
        ("inventory", {"depends_on": ["udm-1", None]}),
        ("inventory", {"depends_on": [""]}),
        ("inventory", {"depends_on": ["udm-1"] * 101}),
        ("statistics", {"series": ["a"], "kind": ["metric", "log"], "count": [1]}),
        ("statistics", {"series": ["a"], "kind": ["trace"], "count": [1]}),
        ("statistics", {"series": ["a"], "kind": ["metric"], "count": [-1]}),
        ("statistics", {"series": ["a"], "kind": ["metric"], "count": [1], "mean": ["x"]}),
        ("statistics", {"series": ["a"], "kind": ["metric"]}),
        ("statistics", {}),
    ],
)
def test_a_window_that_cannot_be_judged_shows_nowhere_else(field, value):
    good = list(eventful()[0])
    wrong = orjson.dumps(orjson.loads(record("vm-9", 5, usual("vm-1", 5))) | {field: value})
    outputs = fed([*good[:20], wrong, *good[20:]])
    (letter,) = [output for output in outputs if output.topic]
    assert letter.note == "not_expected"
    assert [one.value for one in outputs if not one.topic] == [one.value for one in fed(good)]


def test_a_window_that_was_judged_before_is_late():
    outputs = fed([record("vm-1", 3, usual("vm-1", 3)), watermark(4), record("vm-2", 3, usual("vm-2", 3))])
    assert [output.note for output in outputs if output.topic] == ["late"]


def test_a_control_event_that_waits_in_an_older_state_and_cannot_be_obeyed_is_dropped():
    shard = Shard(SETTINGS)
    shard.feed([controlled(allow("r1"))])
    header, columns = unpack(shard.dump())
    raw = controlled(BAD)
    columns |= {"pending": np.frombuffer(raw, np.uint8), "pending_lengths": columns["pending_lengths"] * 0 + len(raw)}
    again = Shard(SETTINGS, pack(*Saved(header, columns)))
    assert again.feed([watermark(20)]) == []
    assert again.pending == []
