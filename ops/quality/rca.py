"""Root causes: recorded faults with known causes, through the folds of detector and incidents.

The records that the statistics job would write of a recording go through the detector's own fold, and its novelties
through that of the incidents, as in the chain; the causes are those of the incidents' records. Two things differ from
live machines. The recording of a fault follows one of normal operation that was taken days earlier, so what changed
between them changes at the seam as well. And `depends_on` comes from the system's call graph, where an operator would
load an inventory.
"""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import orjson

from infra.contract.columnar import to_columns
from infra.contract.dead_letters import Source
from infra.contract.inventory import DEPENDS_ON
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import Shard
from jobs.incidents.fold import Incidents
from jobs.runtime.packed_state import Parts
from jobs.runtime.shard_state import LATEST_MILLI, Message
from ops.quality.rca_data import PETSHOP_UNITS, Case, Dependencies, Recording, System, Values

START = 1_700_000_000 * 10**9
DEEPEST = 5  # of ranks that are looked at
SECONDS_PER_DAY = 86_400.0

Record = dict[str, Any]


class Outcome(NamedTuple):
    """What was said of a fault: the rank of its cause among the machines named, None if it wasn't.

    `named` are the causes of all incidents that are told of while it lasts, those of the most telling one first.
    """

    case: str
    cause: str
    named: list[str]
    delay_seconds: float | None  # from the fault's first window to the incident's first record

    @property
    def rank(self) -> int | None:
        return self.named.index(self.cause) + 1 if self.cause in self.named else None


class Chain:
    """The detector and the incidents of one system, which has one partition."""

    def __init__(self, system: System, state: tuple[Parts, Parts] | None = None) -> None:
        detector, incidents = state or (None, None)
        self.settings = DetectorSettings(window_seconds=system.window_seconds)
        self.dependencies = system.dependencies
        self.shard, self.incidents = Shard(self.settings, detector), Incidents(1, incidents)

    def state(self) -> tuple[Parts, Parts]:
        """The constructor's second argument."""
        return self.shard.dump(), self.incidents.dump()

    def feed(self, windows: Sequence[Values], first: int) -> list[Record]:
        """The records of incidents that these windows cause; the first one has this number."""
        novelties = self.shard.feed(list(_statistics(windows, first, self.settings, self.dependencies)))
        values = [orjson.dumps(one) for one in novelties]
        values.append(orjson.dumps({"watermark_unix_nano": self.shard.watermark}))
        messages = (Message(Source("novelties", 0, number, LATEST_MILLI), one) for number, one in enumerate(values))
        found, rejected = self.incidents.feed(messages)
        for _, error in rejected:
            raise error
        return found


def measure(systems: dict[str, System]) -> dict[str, Any]:
    """By system: see `figures`."""
    return {name: _figures_of(system) for name, system in systems.items()}


def _figures_of(system: System) -> dict[str, Any]:
    outcomes, calm, windows = [], 0, 0
    for recording in system.recordings:
        found, incidents = outcomes_of(system, recording)
        outcomes += found
        calm, windows = calm + incidents, windows + len(recording.normal)
    days = windows * system.window_seconds / SECONDS_PER_DAY
    return figures(outcomes) | {"incidents_without_fault_per_day": calm / days, "days_without_fault": days}


def outcomes_of(system: System, recording: Recording) -> tuple[list[Outcome], int]:
    """What was said of each fault of a recording, and how many incidents began while there was none."""
    chain = Chain(system)
    first = START // chain.settings.window_nano
    before = chain.feed(recording.normal, first)
    state, end = chain.state(), first + len(recording.normal)
    calm = sum(record["phase"] == "start" for record in before)
    return [_outcome(Chain(system, state), case, end) for case in recording.cases], calm


def _outcome(chain: Chain, case: Case, first: int) -> Outcome:
    chain.feed(case.before, first)
    first += len(case.before)
    newest: dict[str, Record] = {}
    told: dict[str, int] = {}
    for record in chain.feed(case.windows, first):
        if record["id"] not in newest and record["phase"] == "end":
            continue  # what only ends meanwhile is of before
        newest[record["id"]] = record
        told.setdefault(record["id"], record["time_unix_nano"])
    incidents = _most_telling_first([one for one in newest.values() if "merged_into" not in one], case.target)
    if not incidents:
        return Outcome(case.name, case.cause, [], None)
    delay = (told[incidents[0]["id"]] - chain.settings.end_of(first)) / 1e9
    causes = [cause for one in incidents for cause in one["causes"] if cause["kind"] == "machine"]
    return Outcome(case.name, case.cause, list(dict.fromkeys(cause["name"] for cause in causes)), delay)


def _most_telling_first(incidents: Sequence[Record], target: str | None) -> list[Record]:
    """As somebody reads them who looks for the fault that was seen on a machine: its incident, then larger ones first.

    A fault is several incidents where the call graph lacks an edge.
    """

    def weight(incident: Record) -> tuple[bool, int, float, str]:
        has_target = any(member["machine"] == target for member in incident["members"])
        return has_target, incident["machines"], incident["score"], incident["id"]

    return sorted(incidents, key=weight, reverse=True)


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """How often the cause was among the first k that were named, their mean over k = 1 to 5, and what was wrong.

    `false_causes` are faults of which another machine was named first, `not_found` those of which none was named.
    """
    within = {k: fmean(one.rank is not None and one.rank <= k for one in outcomes) for k in range(1, DEEPEST + 1)}
    return {
        "faults": len(outcomes),
        "top1": within[1],
        "top3": within[3],
        "avg5": fmean(within.values()),
        "false_causes": sum(bool(one.named) and one.rank != 1 for one in outcomes),
        "not_found": sum(not one.named for one in outcomes),
        "missed": {one.case: [one.cause, *one.named[:3]] for one in outcomes if one.rank != 1},
    }


def _statistics(
    windows: Sequence[Values], first: int, settings: DetectorSettings, dependencies: Dependencies
) -> Iterator[bytes]:
    """What the statistics job would write, with a watermark after each window."""
    for number, values in enumerate(windows, first):
        window = {
            "kind": "tumbling",
            "size_seconds": settings.window_seconds,
            "start_unix_nano": settings.end_of(number - 1),
            "end_unix_nano": settings.end_of(number),
        }
        for machine, series in values.items():
            inventory = {"known": True, DEPENDS_ON: dependencies.get(machine)}
            table = to_columns([_metric(name, value) for name, value in series.items()])
            yield orjson.dumps({"machine": machine, "inventory": inventory, "window": window, "statistics": table})
        yield orjson.dumps({"watermark_unix_nano": settings.end_of(number)})


def _metric(series: str, value: float) -> Record:
    unit = PETSHOP_UNITS.get(series.partition(" ")[0], "1")
    return {"kind": "metric", "series": series, "name": series, "unit": unit, "count": 1, "mean": value}
