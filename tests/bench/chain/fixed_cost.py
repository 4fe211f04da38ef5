"""What a batch of each stage costs however few records it has."""

import time
from collections import defaultdict
from pathlib import Path
from statistics import median

import orjson

from tests.bench.chain.lab import STAGES, Lab, Usage

QUIET_RATE = 500  # events a second: some sixteen scrapes


def fixed_cost(lab: Lab, machines: int, seconds: int) -> dict[str, dict[str, float]]:
    """The median wall clock, and the mean CPU time, in ms, of a batch of each stage under a load of hardly anything.

    The CPU time is all of its processes', between batches too; where a stage has several queries, that of the most
    frequent one's batches. In the profile small it isn't known of each stage.
    """
    load = lab.load(QUIET_RATE, seconds, machines, singles=False)
    places = {stage: _size(lab.jobs[stage].log) for stage in STAGES}
    usage = Usage(lab.leaders(*STAGES))
    before = usage.look()
    time.sleep(seconds)
    after = usage.look()
    found = {}
    for stage, place in places.items():
        by_query = _batches(lab.jobs[stage].log, place, stage)
        if by_query:
            most = max(map(len, by_query.values()))
            walls = [wall for each in by_query.values() for wall in each]
            found[stage] = {"wall_ms": round(median(walls)), "batches": most}
            if stage in after:
                found[stage]["cpu_ms"] = round(1000 * (after[stage] - before[stage]) / most)
    load.communicate(timeout=120)
    lab.check()
    return found


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _batches(path: Path, place: int, stage: str) -> dict[str, list[float]]:
    """The ms that each batch of a stage took, by query, as a log says from a place in it on."""
    found: dict[str, list[float]] = defaultdict(list)
    with path.open("rb") as log:
        log.seek(place)
        for line in log:
            if b'"batch"' not in line or not line.startswith(b"{"):
                continue
            entry = orjson.loads(line)
            if entry.get("event") == "batch" and entry["job"] == stage:
                found[entry["query"]].append(entry["milliseconds"]["triggerExecution"])
    return found
