"""Whether the chain found the faults that really happened, and what it said besides: pure, on plain records.

A fault is a line of the simulator's truth: kind, machine, start_unix_nano, end_unix_nano (null: it stays), series that
show it (empty: any), guests (machine: series that suffer too), answers that are right, verdicts that are tolerated.
Novelties and rejected are the indexer's documents; late are records of events.late.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Facts = Mapping[str, Any]

# In event time: a window must end before its novelty starts, and what ends leaves a mark on its own.
GRACE_SECONDS = 120.0
LOG_FAULTS = frozenset({"log_burst", "new_template"})


@dataclass(frozen=True)
class Row:
    """A fault and the chain's first right answer to it.

    `delay_s` counts from the fault's start to the answer in event time, `seen_s` until it was first seen in
    Elasticsearch by the wall clock (of a simulation in real time); None: not found, or nobody watched.
    """

    kind: str
    machine: str
    start_unix_nano: int
    found: bool
    answer: str = ""
    text: str = ""
    delay_s: float | None = None
    seen_s: float | None = None

    def facts(self) -> dict[str, Any]:
        """The row in the demo's JSON."""
        return {"kind": self.kind, "machine": self.machine, "found": self.found, "delay_s": self.delay_s}


@dataclass(frozen=True)
class Said:
    """One thing that the chain said about a machine."""

    topic: str
    machine: str | None
    what: str  # a novelty's verdict, a rejected record's code
    time_milli: int
    text: str = ""
    id: str = ""
    series: frozenset[str] = frozenset()  # of a machine as a whole those that are strange
    kind: str | None = None


def novelty_said(identity: str, document: Facts) -> Said:
    """A document of the novelties' index."""
    verdict, told, text, kind = (document.get(name) for name in ("verdict", "told", "text", "kind"))
    named = (document.get("contributors") or ()) if kind == "machine" else [document]
    series = frozenset(one["series"] for one in named if one.get("series"))
    return Said("novelties", document["machine"], str(verdict), int(told or 0), text or "", identity, series, kind)


def rejected_said(identity: str, document: Facts) -> Said:
    """A document of the rejected's index. What couldn't be decoded has no machine, but maybe its key says it."""
    machine = document.get("machine") or document.get("key")
    return Said("events.rejected", machine, document["code"], document["@timestamp"], document["reason"], identity)


def late_said(record: Facts) -> Said:
    """A record of events.late."""
    received, count = record["source"]["timestamp_unix_milli"], len(record["events"]["time_unix_nano"])
    return Said("events.late", record["machine"], "late", received, f"{count} events came late", record["id"])


def rows(faults: Iterable[Facts], said: Sequence[Said], seen: Mapping[str, float]) -> list[Row]:
    """What the chain answered to each fault; `seen`: Unix seconds at which a document's id was first seen."""
    return [_row(fault, said, seen) for fault in faults]


def false_alarms(faults: Sequence[Facts], said: Iterable[Said], machines: frozenset[str]) -> list[Said]:
    """The novelties on these machines that no fault explains."""
    return [
        one
        for one in said
        if one.topic == "novelties" and one.machine in machines and not any(_explains(fault, one) for fault in faults)
    ]


def report(table: Sequence[Row], events_in: int, lost: int, duplicated: int, false_alarms: int) -> dict[str, Any]:
    """The demo's JSON. Passed: every fault found, no event lost or doubled."""
    return {
        "passed": bool(table) and all(row.found for row in table) and not (lost or duplicated),
        "faults": [row.facts() for row in table],
        "events_in": events_in,
        "events_lost": lost,
        "events_duplicated": duplicated,
        "false_alarms": false_alarms,
    }


def _row(fault: Facts, said: Sequence[Said], seen: Mapping[str, float]) -> Row:
    kind, machine, start = fault["kind"], fault["machine"], fault["start_unix_nano"]
    right = [one for one in said if _answers(fault, one)]
    if not right:
        return Row(kind, machine, start, found=False)
    first = min(right, key=lambda one: (one.time_milli, one.id))
    seen_at = seen.get(first.id)
    return Row(
        kind,
        machine,
        start,
        found=True,
        answer=f"{first.topic}: {first.what}",
        text=first.text,
        delay_s=first.time_milli / 1e3 - start / 1e9,
        seen_s=None if seen_at is None else seen_at - start / 1e9,
    )


def _answers(fault: Facts, one: Said) -> bool:
    """Whether this is a right answer: about the fault's machine and series, in its time."""
    return (
        one.machine == fault["machine"]
        and _in_time(fault, one)
        and _shows(fault, one)
        and any(_is_asked(answer, one) for answer in fault["answers"])
    )


def _explains(fault: Facts, one: Said) -> bool:
    """Whether the fault accounts for a novelty, be it a right answer or only a consequence."""
    if not _in_time(fault, one):
        return False
    if one.machine == fault["machine"]:
        return _answers(fault, one) or one.what in fault["tolerated"]
    return not one.series.isdisjoint(fault["guests"].get(one.machine, ()))


def _in_time(fault: Facts, one: Said) -> bool:
    start, end = fault["start_unix_nano"], fault["end_unix_nano"]
    time = one.time_milli * 1_000_000
    return bool(start <= time and (end is None or time <= end + GRACE_SECONDS * 1e9))


def _shows(fault: Facts, one: Said) -> bool:
    # How a log line is cut into a template is the chain's own affair: any template of the machine will do.
    in_logs = fault["kind"] in LOG_FAULTS and one.kind == "log"
    return in_logs or not fault["series"] or not one.series.isdisjoint(fault["series"])


def _is_asked(answer: Facts, one: Said) -> bool:
    return bool(answer["topic"] == one.topic and answer.get("verdict", answer.get("code", one.what)) == one.what)
