"""Records of `novelties`, checked whole before anything of them is taken."""

from collections.abc import Mapping
from typing import Any

from infra.contract.dead_letters import InvalidRecordError
from jobs.runtime.intake import (
    LARGEST_COUNT,
    LATE,
    NANO_PER_MILLI,
    checked_inventory,
    checked_machine,
    checked_names,
    checked_number,
    checked_optional_text,
    checked_text,
    checked_time,
    unexpected,
)
from jobs.runtime.shard_state import Message

PHASES = ("start", "update", "end")
NAME_CHARACTERS = 1_000
MOST_CONTRIBUTORS = 100
MEASURES = ("observed", "expected", "expected_low", "expected_high")
LONGEST_WINDOW_SECONDS = 1e9


def check_novelty(record: Mapping[str, Any], message: Message, watermark: int) -> None:
    """Raises InvalidRecordError unless a novelty has what incidents are made of, and isn't older than `watermark`."""
    for name in ("id", "verdict"):
        checked_text(record, name, NAME_CHARACTERS)
    if record.get("phase") not in PHASES:
        raise unexpected("phase", f"one of {', '.join(PHASES)}", record.get("phase"))
    checked_machine(record)
    checked_text(record, "text")
    checked_optional_text(record, "series")
    checked_inventory(record)
    checked_number(record, "score")
    checked_names("depends_on", record.get("depends_on"))
    _check_evidence(record)
    time = checked_time("time_unix_nano", record.get("time_unix_nano"), _after(message))
    checked_time("since_unix_nano", record.get("since_unix_nano"), time)
    _check_peers(record.get("peers", {}))
    if time < watermark:
        raise InvalidRecordError(LATE, f"time_unix_nano: {time} is before the partition's watermark {watermark}")


def _check_evidence(record: Mapping[str, Any]) -> None:
    contributors = record.get("contributors", [])
    if type(contributors) is not list or len(contributors) > MOST_CONTRIBUTORS:
        raise unexpected("contributors", f"a list of at most {MOST_CONTRIBUTORS} objects", contributors)
    for one in (record, *contributors):
        if type(one) is not dict:
            raise unexpected("contributors", "a list of objects", one)
        checked_optional_text(one, "series")
        checked_optional_text(one, "kind", NAME_CHARACTERS)
        for name in MEASURES:
            if one.get(name) is not None:
                checked_number(one, name)
    if record.get("window_seconds") is not None:
        checked_number(record, "window_seconds", 0.0, LONGEST_WINDOW_SECONDS)


def _check_peers(peers: object) -> None:
    if type(peers) is not dict or len(peers) > NAME_CHARACTERS:
        raise unexpected("peers", "an object of numbers", peers)
    for kind, number in peers.items():
        if type(number) is not int or not 0 <= number <= LARGEST_COUNT or len(kind) > NAME_CHARACTERS:
            raise unexpected(f"peers.{kind:.100}", f"a whole number from 0 to {LARGEST_COUNT}", number)


def _after(message: Message) -> int:
    """The latest time that a record may have: what it says was known when it was written."""
    return (message.source.timestamp_unix_milli + 1) * NANO_PER_MILLI
