"""Compares the faults that were simulated with the chain's answers to them; pure functions on plain records.

A fault is a line of the simulator's truth: kind, machine, start_unix_nano, end_unix_nano (null: it stays), series that
show it (empty: any), guests (machine: series that it affects too), answers that are right, verdicts that are tolerated.
An answer is a novelty or a dead letter, both as documents of the indexer, or a record of events.late.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Fields = Mapping[str, Any]

# How long after a fault, in event time, an answer counts: a window must end first, and a fault's end shows too.
GRACE_SECONDS = 120.0
LOG_FAULTS = frozenset({"log_burst", "new_template"})


@dataclass(frozen=True)
class Row:
    """A fault and the chain's first right answer to it.

    `delay_s` are the seconds from the fault's start to the answer in event time, `seen_s` those until the answer was
    first seen in Elasticsearch by the wall clock (for a simulation in real time); None: not found, or not observed.
    """

    kind: str
    machine: str
    start_unix_nano: int
    found: bool
    answer: str = ""
    text: str = ""
    delay_s: float | None = None
    seen_s: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON."""
        seen = None if self.seen_s is None else round(self.seen_s, 1)
        times = {"delay_s": self.delay_s, "seen_s": seen}
        return {"kind": self.kind, "machine": self.machine, "found": self.found, **times}


@dataclass(frozen=True)
class Answer:
    """An answer of the chain about a machine; `time_milli` is event time."""

    topic: str
    machine: str | None
    what: str  # the verdict of a novelty, the code of a dead letter
    time_milli: int
    text: str = ""
    id: str = ""
    series: frozenset[str] = frozenset()  # of a novelty of a whole machine: its contributors
    kind: str | None = None


def novelty_answer(identity: str, document: Fields) -> Answer:
    """The answer in a document of the novelties' index."""
    verdict, emitted, text, kind = (document.get(name) for name in ("verdict", "alerted", "text", "kind"))
    named = (document.get("contributors") or ()) if kind == "machine" else [document]
    series = frozenset(one["series"] for one in named if one.get("series"))
    return Answer("novelties", document["machine"], str(verdict), int(emitted or 0), text or "", identity, series, kind)


def dead_letter_answer(identity: str, document: Fields) -> Answer:
    """The answer in a document of the dead letters' index; of an undecoded record, its key may be the machine."""
    machine = document.get("machine") or document.get("key")
    return Answer("events.rejected", machine, document["code"], document["@timestamp"], document["reason"], identity)


def late_answer(record: Fields) -> Answer:
    """The answer in a record of events.late."""
    received, count = record["source"]["timestamp_unix_milli"], len(record["events"]["time_unix_nano"])
    return Answer("events.late", record["machine"], "late", received, f"{count} events came late", record["id"])


def rows(faults: Iterable[Fields], answers: Sequence[Answer], seen: Mapping[str, float]) -> list[Row]:
    """A row for each fault; `seen` are the Unix seconds at which a document was first seen, by its id."""
    return [_row(fault, answers, seen) for fault in faults]


def false_alarms(faults: Sequence[Fields], answers: Iterable[Answer], machines: frozenset[str]) -> list[Answer]:
    """The novelties of these machines that no fault explains."""
    return [
        one
        for one in answers
        if one.topic == "novelties" and one.machine in machines and not any(_explains(fault, one) for fault in faults)
    ]


def report(table: Sequence[Row], events_in: int, lost: int, duplicated: int, false_alarms: int) -> dict[str, Any]:
    """The result as JSON; passed if every fault was found and no event lost or duplicated."""
    return {
        "passed": bool(table) and all(row.found for row in table) and not (lost or duplicated),
        "faults": [row.as_dict() for row in table],
        "events_in": events_in,
        "events_lost": lost,
        "events_duplicated": duplicated,
        "false_alarms": false_alarms,
    }


def _row(fault: Fields, answers: Sequence[Answer], seen: Mapping[str, float]) -> Row:
    kind, machine, start = fault["kind"], fault["machine"], fault["start_unix_nano"]
    right = [one for one in answers if _is_answered_by(fault, one)]
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


def _is_answered_by(fault: Fields, one: Answer) -> bool:
    """Whether the answer is right: of the fault's machine and series, in its time, and one that it asks for."""
    return (
        one.machine == fault["machine"]
        and _in_time(fault, one)
        and _shows(fault, one)
        and any(_is_expected(answer, one) for answer in fault["answers"])
    )


def _explains(fault: Fields, one: Answer) -> bool:
    """Whether the fault explains a novelty: as a right answer to it, or as a consequence of it."""
    if not _in_time(fault, one):
        return False
    if one.machine == fault["machine"]:
        return _is_answered_by(fault, one) or one.what in fault["tolerated"]
    return not one.series.isdisjoint(fault["guests"].get(one.machine, ()))


def _in_time(fault: Fields, one: Answer) -> bool:
    start, end = fault["start_unix_nano"], fault["end_unix_nano"]
    time = one.time_milli * 1_000_000
    return bool(start <= time and (end is None or time <= end + GRACE_SECONDS * 1e9))


def _shows(fault: Fields, one: Answer) -> bool:
    # The chain may choose the templates of log lines: an answer for any template of the machine is right.
    in_logs = fault["kind"] in LOG_FAULTS and one.kind == "log"
    return in_logs or not fault["series"] or not one.series.isdisjoint(fault["series"])


def _is_expected(answer: Fields, one: Answer) -> bool:
    return bool(answer["topic"] == one.topic and answer.get("verdict", answer.get("code", one.what)) == one.what)
