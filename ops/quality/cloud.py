"""The simulated cloud: faults of each kind, put in at known times, through the detector's own fold.

The records that the statistics job would write are made of the simulator's values, without servers.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from infra.contract.columnar import to_columns
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import fold
from ops.simulator.faults import SECOND, Fault, parse
from ops.simulator.simulation import Lines, Scrape, Settings, Simulation

START = 1_700_000_000 * SECOND
WINDOW = 10 * SECOND
HISTORY, SPACING = 600, 120  # s before the first fault, and between the beginnings of two
DETECTED = ("cpu_hog", "memory_leak", "state_change", "log_burst", "new_template", "silence", "new_vm")
PATIENCE = 120 * SECOND  # after a fault began, until there must be a novelty, if it does not last longer
AFTERMATH = 300 * SECOND  # after a fault ended, in which novelties of its machines follow from it

Record = dict[str, Any]
Cells = dict[tuple[int, int], Any]  # by window number and machine


class Life(NamedTuple):
    """A novelty: its first record and its last."""

    start: Record
    last: Record


def measure(seeds: Sequence[int]) -> dict[str, Any]:
    """All kinds of fault once a seed: how many were found, and false alarms a day of the whole cloud.

    By kind: `faults`, `found` in time, of those `right` (a novelty's last verdict is among the fault's answers), and
    the median `delay_seconds`.
    """
    found: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    asked, false, days = Counter[str](), 0, 0.0
    for seed in seeds:
        settings = Settings(START, duration=_length() * SECOND, seed=seed, faults=faults(seed))
        simulation = Simulation(settings)
        facts: list[Record] = [simulation.fault_facts(fault) for fault in settings.faults]
        lives = _lives(fold(None, list(statistics(simulation)), DetectorSettings())[1])
        for fact in facts:
            asked[fact["kind"]] += 1
            found[fact["kind"]] += _answer(fact, lives)
        false += sum(not any(_explains(fact, life.start) for fact in facts) for life in lives)
        days += _length() / 86400
    kinds = {kind: _figures(asked[kind], found[kind]) for kind in DETECTED}
    return {"kinds": kinds, "false_alarms": false, "days": days}


def faults(seed: int) -> tuple[Fault, ...]:
    """One of each kind, on virtual machines of their own, in an order drawn by the seed."""
    rng = np.random.default_rng(seed)
    machines = [f"vm-{number:02d}" for number in rng.permutation(np.arange(1, 25))[: len(DETECTED)]]
    order = rng.permutation(len(DETECTED))
    specs = zip(DETECTED, machines, (HISTORY + SPACING * order).tolist(), strict=True)
    return tuple(parse(f"{kind}:{'vm-new' if kind == 'new_vm' else vm}@+{start}s") for kind, vm, start in specs)


def _length() -> int:
    return HISTORY + SPACING * len(DETECTED) + 300


def _figures(faults: int, found: list[tuple[int, bool]]) -> dict[str, float]:
    figures = {"faults": faults, "found": len(found), "right": sum(right for _, right in found)}
    return figures | ({"delay_seconds": float(np.median([delay for delay, _ in found])) / SECOND} if found else {})


def _lives(records: list[Record]) -> list[Life]:
    last = {record["id"]: record for record in records}
    return [Life(record, last[record["id"]]) for record in records if record["phase"] == "start"]


def _answer(fact: Record, lives: list[Life]) -> list[tuple[int, bool]]:
    """The delay in ns of the first novelty of the fault's machine, and whether its verdict is right; none if missed."""
    begin, verdicts = fact["start_unix_nano"], {answer["verdict"] for answer in fact["answers"]}
    own = [life for life in lives if life.start["machine"] == fact["machine"]]
    until = max(fact["end_unix_nano"] or begin, begin + PATIENCE)
    in_time = [life for life in own if begin <= life.start["time_unix_nano"] <= until]
    if not in_time:
        return []
    first = min(in_time, key=lambda life: life.start["time_unix_nano"])
    right = any(life.last["verdict"] in verdicts for life in in_time)
    return [(first.start["time_unix_nano"] - begin, right)]


def _explains(fact: Record, novelty: Record) -> bool:
    end = fact["end_unix_nano"] or fact["start_unix_nano"]
    here = novelty["machine"] == fact["machine"] or novelty["machine"] in fact["guests"]
    return here and fact["start_unix_nano"] <= novelty["time_unix_nano"] <= end + AFTERMATH


def statistics(simulation: Simulation) -> Iterator[bytes]:
    """What the statistics job would write of this cloud, in windows of 10 s, each with its watermark."""
    metrics, logs = _collected(simulation)
    windows = [window for window, _ in metrics]
    for window in range(min(windows), max(windows) + 1):
        bounds = {"kind": "tumbling", "size_seconds": WINDOW / SECOND, "start_unix_nano": (window - 1) * WINDOW}
        for row, machine in enumerate(simulation.machines):
            if (window, row) in metrics:
                names = [instrument.series for instrument in simulation.instruments[row]]
                entries = [_metric(names[at], values) for at, values in metrics[window, row].items()]
                entries += [_log(template, count) for template, count in sorted(logs[window, row].items())]
                span = bounds | {"end_unix_nano": window * WINDOW}
                yield orjson.dumps({"machine": machine.name, "window": span, "statistics": to_columns(entries)})
        yield orjson.dumps({"watermark_unix_nano": window * WINDOW})


def _collected(simulation: Simulation) -> tuple[Cells, Cells]:
    """Values by series, growth a second of counters; lines by template."""
    metrics: Cells = defaultdict(lambda: defaultdict(list))
    logs: Cells = defaultdict(Counter)
    contents = [record.content for record in simulation.records()]
    before: dict[int, Scrape] = {}
    for scrape in sorted((c for c in contents if isinstance(c, Scrape)), key=lambda scrape: scrape.time_unix_nano):
        cell = metrics[_window(scrape.time_unix_nano), scrape.machine]
        for at, value in _values(simulation, scrape, before.get(scrape.machine)):
            cell[at].append(value)
        before[scrape.machine] = scrape
    for lines in (c for c in contents if isinstance(c, Lines)):
        for line, template in lines.lines:
            logs[_window(line.time_unix_nano), lines.machine][template.masked] += 1
    return metrics, logs


def _window(time_unix_nano: int) -> int:
    return -(-time_unix_nano // WINDOW)


def _values(simulation: Simulation, scrape: Scrape, before: Scrape | None) -> Iterator[tuple[int, float]]:
    for at, instrument in enumerate(simulation.instruments[scrape.machine]):
        if not instrument.monotonic:
            yield at, float(scrape.values[at])
        elif before is not None:
            seconds = (scrape.time_unix_nano - before.time_unix_nano) / SECOND
            yield at, float(scrape.values[at] - before.values[at]) / seconds


def _metric(series: str, values: list[float]) -> Record:
    return {"kind": "metric", "series": series, "count": len(values), "mean": float(np.mean(values))}


def _log(template: str, count: int) -> Record:
    return {"kind": "log", "series": template, "count": count}
