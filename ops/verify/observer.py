"""Watches the chain's answers to a simulation arrive, and compares them with the truth."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from elasticsearch import Elasticsearch

from connectors.kafka.reader import read_records
from infra.errors import UserError
from jobs.indexer.indexer import index_of
from jobs.runtime.settings import Settings
from jobs.runtime.watermarks import last_watermarks
from ops.launcher import topics_of
from ops.simulator import check
from ops.simulator.truth import GRACE, WINDOW
from ops.verify import faults, readback

TAIL = 500  # records of a partition; the whole of it is read only where there is no watermark among them


@dataclass(frozen=True)
class Result:
    """What the chain said of the faults, and whether it lost or doubled anything."""

    rows: list[faults.Row]
    false_alarms: list[faults.Said]
    events: check.Report
    until_unix_nano: int  # what was compared ends here

    @property
    def passed(self) -> bool:
        """Every fault found, every event there once."""
        return self.events.passed and bool(self.rows) and all(row.found for row in self.rows)

    def facts(self) -> dict[str, Any]:
        """As JSON."""
        alarms = len(self.false_alarms)
        report = faults.report(self.rows, self.events.events, self.events.lost, self.events.duplicated, alarms)
        agrees = {"passed": self.passed, "events_passed": self.events.passed}
        return {**report, **agrees, "until_unix_nano": self.until_unix_nano}


class Truth:
    """A simulator's folder as it stands; the simulation may still run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def faults(self) -> list[dict[str, Any]]:
        """Those that have begun."""
        return list(self._lines("faults"))

    def planned(self) -> int:
        """How many faults there are to come in all."""
        return len(orjson.loads(self._read("plan.json")))

    def machines(self) -> frozenset[str]:
        """The machines of the simulated cloud; others are real ones."""
        return frozenset(machine["machine"] for machine in orjson.loads(self._read("cloud.json")))

    def span(self) -> tuple[int, int]:
        """Unix ns between which the windows are whole: the first one may hold another simulation's end as well."""
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
    """Looks at one generation of the chain; `seen` is what an earlier one has seen (readback.Sightings)."""

    def __init__(
        self, settings: Settings, truth: Path, client: Elasticsearch, seen: dict[str, float] | None = None
    ) -> None:
        self.settings, self.truth, self.client = settings, Truth(truth), client
        self.topics = topics_of(settings)
        self.novelties, self.rejected = (index_of(kind, settings.generation) for kind in ("novelties", "rejected"))
        self.sightings = readback.Sightings(client, self.novelties, self.rejected, seen=seen)

    def look(self) -> int:
        """Look at Elasticsearch; how many answers there are by now."""
        self.sightings.look()
        return len(self.sightings.seen)

    def told_until(self) -> int:
        """Event time, unix ns, whose windows every partition has told; 0 if one has not told any."""
        topic = self.topics["statistics"]
        watermarks = last_watermarks(self.settings.kafka_bootstrap, topic.name, TAIL)
        if len(watermarks) < topic.partitions:
            watermarks = last_watermarks(self.settings.kafka_bootstrap, topic.name)
        return min(watermarks.get(partition, 0) for partition in range(topic.partitions))

    def rows(self) -> list[faults.Row]:
        """What was said of the faults that have begun."""
        return faults.rows(self.truth.faults(), list(self._said()), self.sightings.seen)

    def result(self, since: int, until: int) -> Result:
        """The comparison of what happened from `since` to `until`, unix ns; an answer to a fault may come later."""
        truth, said = self.truth.faults(), list(self._said())
        within = [one for one in said if since <= one.time_milli * 1_000_000 <= until]
        events = check.compare_events(self.truth.folder, self._read("events"), until, since)
        alarms = faults.false_alarms(truth, within, self.truth.machines())
        return Result(faults.rows(truth, said, self.sightings.seen), alarms, events, until)

    def _said(self) -> Iterator[faults.Said]:
        for identity, document in readback.documents(self.client, self.novelties):
            yield faults.novelty_said(identity, document)
        for identity, document in readback.documents(self.client, self.rejected):
            yield faults.rejected_said(identity, document)
        yield from map(faults.late_said, self._read("events.late"))

    def _read(self, topic: str) -> Iterator[dict[str, Any]]:
        for _, record in read_records(self.settings.kafka_bootstrap, self.topics[topic].name):
            yield record
