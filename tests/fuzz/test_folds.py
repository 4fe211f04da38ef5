"""Folds under mutated records, without Spark: nothing raises, each record is used or a dead letter, neighbours are the
same as without them."""

import base64
import random
from collections import Counter
from functools import partial
from typing import NamedTuple

import orjson
import pytest

from infra.contract.columnar import event_columns, to_columns
from infra.contract.watermarks import watermark_value
from jobs.detector.job import DetectorShard
from jobs.detector.settings import DetectorSettings
from jobs.incidents.job import IncidentsShard
from jobs.rules.absence import Absence
from jobs.rules.change import Change
from jobs.rules.job import RulesShard
from jobs.rules.sequence import EventSequence
from jobs.runtime.shard_state import Input, Opener, Output
from jobs.statistics.settings import load_windows
from jobs.statistics.shard import Shard
from tests.fuzz.mutations import mutated

COUNT = 25_000
STEPS = 250  # of 10 s, with a watermark each
NANO = 10**9
START = 1_700_000_000 * NANO
GOOD, BAD = ("good-1", "good-2"), ("bad-1", "bad-2", "bad-3")


class Sent(NamedTuple):
    """A record, its Kafka timestamp in ms, and whether it is a mutated one."""

    value: bytes
    timestamp: int
    is_mutated: bool = False


def _noise(*parts):
    return random.Random(":".join(map(str, parts))).gauss(0, 1)


def _events(machine, step, kind):
    time, jump = START + step * 10 * NANO, 50.0 if step in range(150, 160) else 0.0
    inventory = {"known": True, "site": "lund", "role": "upf", "hypervisor": f"hv-of-{machine}"}
    if kind == "control":
        about = {
            "novelty": "n",
            "verdict": "anomaly",
            "kind": "metric",
            "series": "cpu",
            "observed": 1.0,
            "expected": 0,
        }
        body = orjson.dumps({"action": "feedback", "machine": machine, **about}).decode()
        events = [{"time_unix_nano": time - time % 10**6, "type": "control", "body": body}]
    elif kind == "log":
        events = [
            {"time_unix_nano": time + n * NANO, "series": f"line {n % 3} <*>", "body": f"line {n % 3}", "type": "log"}
            | {"severity_number": 9, "template": f"line {n % 3} <*>"}
            for n in range(4)
        ]
    else:
        spread = {"count": 2 + step, "sum": 3.0, "bounds": [1.0, 2.0], "counts": [1, step, 1]}
        events = [
            {
                "time_unix_nano": time + 5 * n * NANO,
                "series": f"{name}{{a=b}}",
                "name": name,
                "unit": "1",
                "type": type_,
            }
            | {
                "value": 10 + _noise(machine, step, n, name) + jump,
                "attributes": {"a": "b"},
                "temporality": "cumulative",
            }
            | ({"histogram": spread} if type_ == "histogram" else {"monotonic": type_ == "sum"})
            for name, type_ in (("cpu", "gauge"), ("net", "sum"), ("latency", "histogram"))
            for n in range(2)
        ]
    return orjson.dumps(
        {"id": f"t-0-{step}-0", "machine": machine, "kind": kind, "resource": {"host.name": machine}}
        | {"inventory": inventory, "source": {"topic": "t", "partition": 0, "offset": step}}
        | {"events": event_columns(events)}
    )


def _statistics(machine, step, kind):
    end = START + (step + 1) * 10 * NANO
    if kind == "control":
        control = {"action": "suppress", "machine": machine, "rule": "r1", "series": "disk*", "size": 2.0}
        return orjson.dumps({"id": "c", "machine": machine, "control": control, "time_unix_nano": end - 10 * NANO})
    window = {"kind": "tumbling", "size_seconds": 10.0, "start_unix_nano": end - 10 * NANO, "end_unix_nano": end}
    jump = 500.0 if step in range(150, 154) else 0.0
    rows = [
        {"series": f"metric-{n}", "name": f"metric-{n}", "kind": "metric", "unit": "1", "count": 2}
        | {"mean": 10.0 * (n + 1) + _noise(machine, step, n) + jump}
        for n in range(4)
    ]
    rows.append({"series": "opened <*>", "kind": "log", "count": 3 + step % 2})
    return orjson.dumps(
        {"id": f"{machine}/10s/{step}", "machine": machine, "inventory": {"known": True, "hypervisor": f"h-{machine}"}}
        | {"window": window, "statistics": to_columns(rows)}
    )


def _novelty(machine, step, kind):
    time = START + step * 10 * NANO
    phase, since = (("start", time), ("end", time - 10 * NANO))[step % 2]
    return orjson.dumps(
        {"id": f"{machine}@{since}", "phase": phase, "verdict": "anomaly", "machine": machine, "series": "cpu"}
        | {"inventory": {"known": True, "hypervisor": f"h-{machine}"}, "peers": {"machines": 20, "hypervisor": 2}}
        | {"time_unix_nano": time, "since_unix_nano": since, "score": 20.0, "text": f"cpu on {machine} is high"}
        | {"kind": "metric", "contributors": [{"series": "cpu", "score": 20.0}]}
    )


RULES = (
    Change.model_validate({"id": "hot", "name": "Hot", "kind": "change", "series": "cpu*", "by": 20, "within": "1m"}),
    Absence.model_validate({"id": "gone", "name": "Gone", "kind": "absence", "for": "5m"}),
    EventSequence.model_validate(
        {"id": "then", "name": "Then", "kind": "sequence", "within": "30s", "first": {"log": "^line 1"}}
        | {"then": {"log": "^line 2", "severity": "INFO"}}
    ),
)


class Case(NamedTuple):
    topic: str
    make: object
    kinds: tuple[str, ...]
    opener: Opener


CASES = {
    "statistics": Case("events", _events, ("metric", "log", "control"), partial(Shard, load_windows())),
    "detector": Case("statistics", _statistics, ("window", "control"), partial(DetectorShard, DetectorSettings())),
    "incidents": Case("novelties", _novelty, ("novelty",), partial(IncidentsShard, 1)),
    "rules": Case("events", _events, ("metric", "log"), partial(RulesShard, RULES, 7 * 86_400 * NANO)),
}


def log_of(case: Case, count: int, seed: int = 34) -> list[Sent]:
    """Good machines' records and watermarks, with `count` mutated records of other machines between them."""
    rng, log = random.Random(seed), []
    for step in range(STEPS):
        before = START + (step - 1) * 10 * NANO  # the watermark that came last
        for machine in GOOD:
            for kind in case.kinds:
                if kind != "control":
                    # Statistics of a window are written once it has ended, with its end as Kafka timestamp.
                    log.append(Sent(case.make(machine, step, kind), (before + 20 * NANO) // 10**6))
        for _ in range(count // STEPS):
            kind = rng.choice((*case.kinds, *case.kinds, "watermark"))
            whole = watermark_value(before) if kind == "watermark" else case.make(rng.choice(BAD), step, kind)
            # A mutated watermark that moved time would make good events late: it can't be ahead of its own timestamp.
            timestamp = before + (0 if kind == "watermark" else 20 * NANO)
            log.append(Sent(mutated(rng, whole), timestamp // 10**6, True))
        mark = START + step * 10 * NANO + (10 * NANO if case.topic == "statistics" else 0)
        log.append(Sent(watermark_value(mark + (case.topic == "novelties")), mark // 10**6))
    return log


def fed(case: Case, log: list[tuple[int, Sent]], batches: int) -> list[Output]:
    state, outputs = case.opener(None), []
    size = -(-len(log) // batches)
    for begin in range(0, len(log), size):
        part = log[begin : begin + size]
        offsets = [offset for offset, _ in part]
        values, timestamps = [one.value for _, one in part], [one.timestamp for _, one in part]
        outputs += state.feed(Input(case.topic, 0, offsets, values, [0] * len(part), timestamps))
        state = case.opener(state.dump())
    return outputs


def rejected(outputs: list[Output]) -> dict[int, dict]:
    """Dead letters by offset."""
    letters = [orjson.loads(output.value) for output in outputs if output.topic == "events.rejected"]
    found = {letter["source"]["offset"]: letter for letter in letters}
    assert len(found) == len(letters)
    return found


def written(outputs: list[Output]) -> list[tuple]:
    """What is written beside dead letters and watermarks, whose number depends on the batches; in the sink's order."""
    kept = [one for one in outputs if one.topic != "events.rejected" and one.key is not None]
    return sorted((one.time_unix_nano // 10**6, one.key, one.topic or "", one.value, one.headers) for one in kept)


@pytest.mark.parametrize("name", CASES)
def test_mutated_records_are_used_or_rejected_and_show_nowhere_else(name):
    case = CASES[name]
    log = list(enumerate(log_of(case, COUNT)))
    assert sum(one.is_mutated for _, one in log) == COUNT
    outputs = fed(case, log, batches=7)
    letters = rejected(outputs)
    for offset, letter in letters.items():
        assert log[offset][1].is_mutated, letter
        assert base64.b64decode(letter["value"]) == log[offset][1].value
        assert (letter["stage"], letter["source"]["topic"]) == (name, case.topic) and letter["reason"]
    codes = Counter(letter["code"] for letter in letters.values())
    assert codes["not_json"] > COUNT / 20 and codes["not_expected"] > COUNT / 20, codes
    # What was rejected has left no trace: without it, everything is the same, however the log is cut.
    used = [(offset, one) for offset, one in log if offset not in letters]
    assert len(used) + len(letters) == len(log)
    assert len(used) - sum(not one.is_mutated for _, one in log) > COUNT / 20
    again = fed(case, used, batches=3)
    assert not rejected(again)
    assert written(again) == written(outputs)
    # Nor does what was used show in the output of other machines.
    alone = fed(case, [(offset, one) for offset, one in log if not one.is_mutated], batches=3)
    assert _of_good(name, written(alone)) == _of_good(name, written(outputs))
    assert len(_of_good(name, written(alone))) > 3


def _of_good(name, found):
    """What good machines gave, without what is the shard's: how many machines there are."""
    records = [(time, topic, orjson.loads(value), headers) for time, _, topic, value, headers in found]
    for _, _, record, _ in records:
        record.pop("peers", None)
    if name == "incidents":
        return [one for one in records if {member["machine"] for member in one[2]["members"]} & {*GOOD}]
    return [one for one in records if one[2]["machine"] in GOOD]
