from typing import Any

import orjson
import pytest

from infra.contract.columnar import to_rows
from ops.quality.cloud import DETECTED, HISTORY, START, Life, _answer, _explains, faults, statistics
from ops.simulator.faults import KINDS, SECOND
from ops.simulator.simulation import Settings, Simulation


def emitted(machine: str, seconds: int, first: str, last: str) -> Life:
    record: dict[str, Any] = {"machine": machine, "time_unix_nano": seconds * SECOND, "verdict": first}
    return Life(record, record | {"verdict": last})


FACT = {
    "machine": "vm-01",
    "start_unix_nano": 1000 * SECOND,
    "end_unix_nano": None,
    "answers": [{"topic": "novelties", "verdict": "state_change"}],
    "guests": {"vm-02": []},
}


def test_each_kind_strikes_a_machine_of_its_own_after_a_history() -> None:
    plan = faults(3)
    assert sorted(fault.kind for fault in plan) == sorted(DETECTED)
    assert len({fault.machine for fault in plan}) == len(DETECTED)
    assert min(fault.start for fault in plan) == HISTORY * SECOND
    assert set(DETECTED) <= set(KINDS)


def test_the_first_novelty_tells_the_delay_and_its_last_verdict_counts() -> None:
    late, early = emitted("vm-01", 1050, "anomaly", "anomaly"), emitted("vm-01", 1020, "anomaly", "state_change")
    assert _answer(FACT, [late, early]) == [(20 * SECOND, True)]
    assert _answer(FACT, [late]) == [(50 * SECOND, False)]


@pytest.mark.parametrize(("machine", "seconds"), [("vm-01", 999), ("vm-01", 1121), ("vm-02", 1020)])
def test_nothing_told_of_the_machine_in_time_is_a_miss(machine: str, seconds: int) -> None:
    assert _answer(FACT, [emitted(machine, seconds, "anomaly", "state_change")]) == []


def test_a_fault_explains_what_its_machine_and_its_guests_show_until_a_while_after() -> None:
    explained = [
        (machine, seconds)
        for machine in ("vm-01", "vm-02", "vm-03")
        for seconds in (999, 1000, 1300, 1301)
        if _explains(FACT, emitted(machine, seconds, "anomaly", "anomaly").start)
    ]
    assert explained == [("vm-01", 1000), ("vm-01", 1300), ("vm-02", 1000), ("vm-02", 1300)]


def test_statistics_are_means_of_gauges_growth_of_counters_and_counts_of_lines() -> None:
    simulation = Simulation(Settings(START, duration=40 * SECOND, machines=4, sites=1))
    records = [orjson.loads(raw) for raw in statistics(simulation)]
    watermarks = [record["watermark_unix_nano"] for record in records if "watermark_unix_nano" in record]
    assert watermarks == [START + n * 10 * SECOND for n in range(len(watermarks))]
    second = [r for r in records if "machine" in r and r["window"]["end_unix_nano"] == START + 20 * SECOND]
    assert [record["machine"] for record in second] == [machine.name for machine in simulation.machines]
    emitted = to_rows(second[0]["statistics"])
    by_series = {entry["series"]: entry for entry in emitted}
    for instrument in simulation.instruments[0]:
        assert by_series[instrument.series]["count"] == 2
        assert by_series[instrument.series]["kind"] == "metric"
    assert all(entry["count"] > 0 for entry in emitted)
