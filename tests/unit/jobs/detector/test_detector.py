"""One window after another of a shard: what it evicts, and in which order things happen."""

import numpy as np
import pytest

from infra.contract.columnar import to_columns
from jobs.detector.budget import STEP
from jobs.detector.control import allow, not_anomalous, reset, retire, suppress
from jobs.detector.detector import EVICT_EVERY, Detector
from jobs.detector.rules import Rule
from jobs.detector.saved_state import NOTHING
from jobs.detector.settings import DetectorSettings

TTL = 100
SETTINGS = DetectorSettings(state_ttl_windows=TTL)
FIRST = 10 * EVICT_EVERY  # window


def record(machine: str, values: dict[str, float]) -> dict[str, object]:
    entries = [{"series": name, "kind": "metric", "count": 1, "mean": value} for name, value in values.items()]
    return {"machine": machine, "inventory": None, "statistics": to_columns(entries)}


def run(windows: range, gone: range, last: float = 10.0) -> Detector:
    """vm-1 has cpu in all windows, and disk until `gone`; the last value of disk is `last`."""
    detector, rng = Detector(SETTINGS, NOTHING), np.random.default_rng(4)
    for window in windows:
        values = {"cpu": float(rng.normal(50.0, 1.0))}
        if window not in gone:
            values["disk"] = last if window + 1 == gone.start else float(rng.normal(10.0, 1.0))
        detector.step(window, [record("vm-1", values)])
    return detector


def series(detector: Detector) -> list[str]:
    return [detector.series.describe(row).series for row in range(len(detector.series))]


def test_a_series_is_evicted_after_its_state_ttl() -> None:
    gone = range(FIRST + 200, FIRST + EVICT_EVERY + 1)
    before = run(range(FIRST + 1, FIRST + EVICT_EVERY), gone)
    assert series(before) == ["cpu", "disk"]
    after = run(range(FIRST + 1, FIRST + EVICT_EVERY + 1), gone)
    assert series(after) == ["cpu"]
    assert (len(after.model), after.series.row(0, "metric", "disk")) == (1, None)


def test_a_series_within_its_state_ttl_is_kept() -> None:
    gone = range(FIRST + EVICT_EVERY - TTL + 2, FIRST + EVICT_EVERY + 1)
    assert series(run(range(FIRST + 1, FIRST + EVICT_EVERY + 1), gone)) == ["cpu", "disk"]


def test_a_series_with_an_open_novelty_is_kept() -> None:
    gone = range(FIRST + 200, FIRST + EVICT_EVERY + 1)
    detector = run(range(FIRST + 1, FIRST + EVICT_EVERY + 1), gone, last=90.0)
    assert series(detector) == ["cpu", "disk"]
    assert [novelty["series"] for novelty in detector.series_tracker.open_novelties()] == ["disk"]


def test_the_last_series_that_is_evicted_takes_its_definition_along_and_may_come_back() -> None:
    gone = range(FIRST + 200, FIRST + EVICT_EVERY + 1)
    detector = run(range(FIRST + 1, FIRST + EVICT_EVERY + 1), gone)
    detector.step(FIRST + EVICT_EVERY + 1, [record("vm-1", {"disk": 10.0, "cpu": 50.0})])
    assert series(detector) == ["cpu", "disk"]
    assert [one.series for one in detector.series.definitions] == ["cpu", "disk"]


@pytest.mark.parametrize("first", [1, 40])
def test_what_begins_with_a_template_never_seen_is_new_and_not_strange(first: int) -> None:
    detector, rng = Detector(DetectorSettings(), NOTHING), np.random.default_rng(5)
    emitted = []
    for window in range(FIRST, FIRST + 204):
        cpu = {"series": "cpu", "kind": "metric", "count": 1, "mean": float(rng.normal(50.0, 1.0))}
        lines = {FIRST + 200: first, FIRST + 201: 40, FIRST + 202: 40}.get(window, 0)
        burst = [{"series": "disk <*> failed", "kind": "log", "count": lines}] if lines else []
        emitted += detector.step(window, [{"machine": "vm-1", "statistics": to_columns([cpu, *burst])}])
    (start,) = [one for one in emitted if one["phase"] == "start"]
    assert (start["verdict"], start["series"]) == ("new_entity", "disk <*> failed")
    assert start["observed"] == (first if first > 1 else first + 40)


def test_a_machine_that_comes_back_ends_its_silence_before_others_start() -> None:
    detector = Detector(SETTINGS, NOTHING)
    for window in range(FIRST + 1, FIRST + 20):
        detector.step(window, [record("vm-1", {"cpu": 1.0}), record("vm-2", {"cpu": 1.0})])
    for window in range(FIRST + 20, FIRST + 24):
        silences = detector.step(window, [record("vm-1", {"cpu": 1.0})])
    assert silences == []
    back = detector.step(FIRST + 24, [record(name, {"cpu": 1.0}) for name in ("vm-9", "vm-2", "vm-1")])
    assert [(one["machine"], one["phase"], one["verdict"]) for one in back] == [
        ("vm-2", "end", "silence"),
        ("vm-9", "start", "new_entity"),
    ]


def test_a_metric_that_is_noise_raises_its_own_threshold_and_no_other() -> None:
    rng, detector = np.random.default_rng(3), Detector(DetectorSettings(), NOTHING)
    names, last = ("cpu", "disk", "memory"), FIRST + 500
    alerts: list[tuple[int, str]] = []
    for window in range(FIRST, last + 1):
        records = []
        for machine in range(12):
            values = {name: float(rng.normal(50.0, 1.0)) for name in names}
            spike = 10.0 ** rng.uniform(1.0, 6.0) if rng.random() < 0.02 else 0.0
            values["noise"] = float(rng.normal(50.0, 1.0)) + spike
            values["cpu"] += 9.5 * (machine == 7 and window == last)
            records.append(record(f"vm-{machine}", values))
        starts = [one for one in detector.step(window, records) if one["phase"] == "start"]
        alerts += [(window, one["series"]) for one in starts if one["verdict"] == "anomaly"]
    noisy = [window for window, name in alerts if name == "noise"]
    surcharge = detector.budget.thresholds_of_series(np.arange(4)) - DetectorSettings().threshold(len(detector.series))
    assert surcharge[3] == pytest.approx(STEP * len(noisy), abs=0.1)
    assert surcharge[3] > 2.0
    assert surcharge[:3].max() <= STEP
    assert sum(window >= FIRST + 375 for window in noisy) < sum(window < FIRST + 125 for window in noisy)
    assert alerts[-1] == (last, "cpu")


SILENCE = {"verdict": "silence", "kind": "machine", "observed": 40.0}
SURPRISE = {"verdict": "anomaly", "kind": "metric", "series": "cpu", "observed": 90.0, "expected": 50.0}


@pytest.mark.parametrize(
    "control",
    [
        *(
            not_anomalous({"id": "x", "machine": "vm-9", "text": "t", "time_unix_nano": 0, **about})
            for about in (SILENCE, SURPRISE, {**SURPRISE, "kind": "machine"})
        ),
        reset("*", "vm-9"),
        retire("vm-9", 1),
        allow("unknown"),
    ],
)
def test_what_is_said_of_a_machine_that_is_not_there_changes_nothing(control: dict[str, object]) -> None:
    detector = run(range(FIRST + 1, FIRST + 50), range(0))
    before = detector.saved()
    assert detector.apply_control(control, FIRST + 50) == []
    after = detector.saved()
    assert after.header == before.header
    assert all(np.array_equal(after.arrays[name], column) for name, column in before.arrays.items())


def test_a_rule_about_a_machine_that_is_not_there_only_waits_for_it() -> None:
    detector, rule = run(range(FIRST + 1, FIRST + 50), range(0), last=10.0), Rule(machine="vm-9")
    assert detector.apply_control(suppress(rule), FIRST + 50) == []
    assert list(detector.overrides.rules.values()) == [rule]
    novelties = detector.step(FIRST + 50, [record("vm-1", {"cpu": 500.0, "disk": 10.0})])
    assert [(one["machine"], one["series"]) for one in novelties] == [("vm-1", "cpu")]
    assert detector.step(FIRST + 51, [record("vm-9", {"cpu": 50.0})]) == []
