"""Observes the chain's answers to a simulation and compares them with the simulator's truth."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from elasticsearch import Elasticsearch

from connectors.kafka.reader import read_records
from infra.errors import UserError
from jobs.indexer.index_names import index_of
from jobs.runtime.settings import Settings
from jobs.runtime.watermarks import last_watermarks
from ops.launcher import topics_of
from ops.simulator import check
from ops.simulator.truth import GRACE, WINDOW
from ops.verify import answers, readback

TAIL = 500  # offsets of a partition; all of it is read only if there is no watermark among them


@dataclass(frozen=True)
class Result:
    """The chain's answers to the faults, and the comparison of the events with the truth."""

    rows: list[answers.Row]
    false_alarms: list[answers.Answer]
    events: check.Report
    until_unix_nano: int  # the end of the compared time

    @property
    def passed(self) -> bool:
        """Whether every fault was found and every event is there once."""
        return self.events.passed and bool(self.rows) and all(row.found for row in self.rows)

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON."""
        alarms = len(self.false_alarms)
        report = answers.report(self.rows, self.events.events, self.events.lost, self.events.duplicated, alarms)
        agrees = {"passed": self.passed, "events_passed": self.events.passed}
        return {**report, **agrees, "until_unix_nano": self.until_unix_nano}


class Truth:
    """Reads the folder into which a simulator writes its truth; the simulation may still run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def faults(self) -> list[dict[str, Any]]:
        """The faults that have begun."""
        return list(self._lines("faults"))

    def planned(self) -> int:
        """The number of faults of the simulation in all."""
        return len(orjson.loads(self._read("plan.json")))

    def machines(self) -> frozenset[str]:
        """The names of the simulated machines."""
        return frozenset(machine["machine"] for machine in orjson.loads(self._read("cloud.json")))

    def span(self) -> tuple[int, int]:
        """The time, Unix ns, in which the windows are complete; the first one may have events of another simulation."""
        starts = [line["start_unix_nano"] for line in self._lines("windows")]
        if not starts:
            return 0, 0
        return min(starts) + WINDOW, max(starts) - GRACE // 2

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        whole, _, _ = self._read(f"{name}.jsonl").rpartition(b"\n")
        return map(orjson.loads, whole.splitlines())

    def _read(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise UserError(f"truth {str(self.folder)!r}: {name} can't be read; is the simulator running?") from error


class Observer:
    """Observes one generation of the chain; `seen` continues an earlier observer's sightings (readback.Sightings)."""

    def __init__(
        self, settings: Settings, truth: Path, client: Elasticsearch, seen: dict[str, float] | None = None
    ) -> None:
        self.settings, self.truth, self.client = settings, Truth(truth), client
        self.topics = topics_of(settings)
        self.novelties, self.rejected = (index_of(kind, settings.generation) for kind in ("novelties", "rejected"))
        self.sightings = readback.Sightings(client, self.novelties, self.rejected, seen=seen)

    def look(self) -> int:
        """Read Elasticsearch; returns the number of answers so far."""
        self.sightings.look()
        return len(self.sightings.seen)

    def emitted_until(self) -> int:
        """The event time, Unix ns, up to which every partition has emitted its windows; 0 if one has emitted none."""
        topic = self.topics["statistics"]
        watermarks = last_watermarks(self.settings.kafka_bootstrap, topic.name, TAIL)
        if len(watermarks) < topic.partitions:
            watermarks = last_watermarks(self.settings.kafka_bootstrap, topic.name)
        return min(watermarks.get(partition, 0) for partition in range(topic.partitions))

    def rows(self) -> list[answers.Row]:
        """A row for each fault that has begun."""
        return answers.rows(self.truth.faults(), list(self._answers()), self.sightings.seen)

    def result(self, since: int, until: int) -> Result:
        """Compare what happened from `since` to `until`, Unix ns; an answer to a fault may come later."""
        truth, found = self.truth.faults(), list(self._answers())
        within = [one for one in found if since <= one.time_milli * 1_000_000 <= until]
        events = check.compare_events(self.truth.folder, self._read("events"), until, since)
        alarms = answers.false_alarms(truth, within, self.truth.machines())
        return Result(answers.rows(truth, found, self.sightings.seen), alarms, events, until)

    def _answers(self) -> Iterator[answers.Answer]:
        for identity, document in readback.documents(self.client, self.novelties):
            yield answers.novelty_answer(identity, document)
        for identity, document in readback.documents(self.client, self.rejected):
            yield answers.dead_letter_answer(identity, document)
        yield from map(answers.late_answer, self._read("events.late"))

    def _read(self, topic: str) -> Iterator[dict[str, Any]]:
        for _, record in read_records(self.settings.kafka_bootstrap, self.topics[topic].name):
            yield record
