"""Entries of the inventory as people give them, and the end of a machine."""

from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
from pydantic import ConfigDict, Field, field_validator

from connectors.kafka.producer import write_now
from infra.contract.inventory import DEPENDENCIES_CHARACTERS, DEPENDS_ON, FACTS, MOST_DEPENDENCIES, Facts
from infra.contract.topics import TopicMap
from jobs.detector import control


class Entry(Facts):
    """The facts of one machine and from when to when they are valid."""

    model_config = ConfigDict(extra="forbid")

    machine: str = Field(min_length=1)
    depends_on: list[Annotated[str, Field(min_length=1)]] = Field(default=[], max_length=MOST_DEPENDENCIES)
    valid_from: datetime | None = None
    valid_to: datetime | None = None

    @field_validator("depends_on", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """CSV has no lists: there semicolons part the names."""
        return [name.strip() for name in value.split(";") if name.strip()] if isinstance(value, str) else value

    @field_validator("depends_on")
    @classmethod
    def _bound(cls, names: list[str]) -> list[str]:
        if sum(map(len, names)) > DEPENDENCIES_CHARACTERS:
            raise ValueError(f"at most {DEPENDENCIES_CHARACTERS} characters in all are taken")
        return names

    def record(self) -> dict[str, Any]:
        """The record of the schema `inventory` for this entry, without the fields that it leaves out."""
        fields = {
            "machine": self.machine,
            **{name: getattr(self, name) for name in FACTS},
            DEPENDS_ON: self.depends_on or None,
            "valid_from_unix_nano": nanos(self.valid_from),
            "valid_to_unix_nano": nanos(self.valid_to),
        }
        return {name: value for name, value in fields.items() if value is not None}

    def key(self) -> bytes:
        """The key of the record, `machine@valid_from`: compaction keeps one record of each, so history stays."""
        return f"{self.machine}@{nanos(self.valid_from) or 0}".encode()


def retire(bootstrap: str, topics: TopicMap, machine: str, time: datetime, by: str) -> None:
    """Say to the inventory and to the detector that a machine goes at `time`. Raises UserError if it can't be said."""
    entry = Entry(machine=machine, valid_from=time, valid_to=time)
    write_now(bootstrap, topics["inventory"].name, entry.key().decode(), orjson.dumps(entry.record()))
    control.send(bootstrap, topics[control.TOPIC], control.retire(machine, nanos(time) or 0), by)


def nanos(time: datetime | None) -> int | None:
    """Unix nanoseconds; a time without a zone is UTC."""
    if time is None:
        return None
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1_000_000) * 1000
