"""What the chain gives, compared with the truth while it runs: retention leaves nothing to compare at the end."""

import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from connectors.kafka.client import make_consumer
from connectors.kafka.offsets import Log
from connectors.kafka.security import client_config
from infra.contract.columnar import to_rows
from infra.contract.watermarks import FIELD
from tests.soak.fleet import BROKEN_EVERY, LATE_EVERY, MINUTE, Fleet

Record = Mapping[str, Any]
TOPICS = ("statistics", "events.rejected", "events.late", "novelties", "incidents")


class Ledger:
    """Counts each window of a machine, and each other record, by its identity."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.windows: dict[str, Counter[int]] = defaultdict(Counter)  # by machine: how often each minute came
        self.others: dict[str, Counter[str]] = {topic: Counter() for topic in TOPICS[1:]}
        self.wrong: list[str] = []
        self.watermark = 0  # ns: the least of the partitions of `statistics`
        self._watermarks: dict[int, int] = {}

    def take(self, topic: str, partition: int, record: Record, partitions: int) -> None:
        """Take a record of one of TOPICS, whose topic has so many partitions."""
        if FIELD in record:
            if topic == "statistics":
                self._watermarks[partition] = record[FIELD]
                if len(self._watermarks) == partitions:
                    self.watermark = min(self._watermarks.values())
        elif topic == "statistics":
            self._take_window(record)
        else:
            self.others[topic][_identity(topic, record)] += 1

    def _take_window(self, record: Record) -> None:
        window, machine = record["window"], record["machine"]
        if window["size_seconds"] != 60 or machine == "late":
            return
        minute = (window["start_unix_nano"] - self.fleet.start) // MINUTE
        self.windows[machine][minute] += 1
        found = {one["name"]: (one["count"], one["mean"]) for one in to_rows(record["statistics"])}
        if found != {name: (1, value) for name, value in self.fleet.values(machine, minute).items()}:
            self.wrong.append(f"{machine} in minute {minute}: {found}"[:300])

    def compared(self, minutes: int) -> dict[str, Any]:
        """The minutes from the start to before `minutes`, of all machines, with the dead letters and late records."""
        wanted = {(machine, minute) for minute in range(minutes) for machine in self.fleet.machines(minute)}
        seen = {
            (machine, minute): times
            for machine, counts in self.windows.items()
            for minute, times in counts.items()
            if minute < minutes
        }
        doubled = [times for counts in (seen, *self.others.values()) for times in counts.values() if times > 1]
        lacking = {
            "events.rejected": -(-minutes // BROKEN_EVERY) - len(self.others["events.rejected"]),
            "events.late": -(-minutes // LATE_EVERY) - len(self.others["events.late"]),
        }
        return {
            "windows": len(wanted),
            "lost": len(wanted - seen.keys()) + sum(max(0, count) for count in lacking.values()),
            "duplicated": sum(times - 1 for times in doubled),
            "wrong": len(self.wrong) + len(seen.keys() - wanted),
            "examples": [*self.wrong[:3], *map(str, sorted(wanted - seen.keys())[:3])],
            "novelties": len({identity.split("/")[0] for identity in self.others["novelties"]}),
            "incidents": len({identity.split("/")[0] for identity in self.others["incidents"]}),
        }


def _identity(topic: str, record: Record) -> str:
    if topic in ("novelties", "incidents"):
        return f"{record['id']}/{record['phase']}/{record['time_unix_nano']}"
    return str(record["id"]) if topic == "events.rejected" else str(record["events"]["value"])


class Reader:
    """A thread that reads committed records of TOPICS into a ledger, from the beginning on."""

    def __init__(self, bootstrap: str, partitions: Mapping[str, int], ledger: Ledger) -> None:
        self.ledger, self.failure = ledger, ""
        self._partitions = partitions
        self._over = threading.Event()
        settings = {"isolation.level": "read_committed", "auto.offset.reset": "error"}
        self._consumer: Consumer = make_consumer(client_config(bootstrap), "soak", settings)
        starts = Log(bootstrap).starts(list(partitions))
        self._consumer.assign([TopicPartition(*place, offset) for place, offset in starts.items()])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                for message in self._consumer.consume(5_000, 1.0):
                    if error := message.error():
                        if error.code() == KafkaError._AUTO_OFFSET_RESET:
                            raise KafkaException(error)  # retention was faster than this thread
                        continue
                    topic, record = message.topic() or "", orjson.loads(message.value() or b"")
                    self.ledger.take(topic, message.partition() or 0, record, self._partitions[topic])
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"

    def close(self) -> None:
        """Read no more."""
        self._over.set()
        self._thread.join(60)
        self._consumer.close()
