"""Records of the topic `novelties`: their ids, and a sentence that a person understands."""

import hashlib
from math import exp
from typing import Any

Novelty = dict[str, Any]


def novelty_id(machine: str, series: str | None, since_unix_nano: int, verdict: str) -> str:
    """The id that the start, updates and end of a novelty share; `verdict` is the one that it started with."""
    name = "\x1f".join([machine, series or "", str(since_unix_nano), verdict])
    return hashlib.blake2b(name.encode(), digest_size=16).hexdigest()


def start(machine: str, verdict: str, kind: str, time_unix_nano: int, **fields: Any) -> Novelty:
    """The first record of a novelty; fields that are None are left out."""
    since = fields.pop("since_unix_nano", time_unix_nano)
    record = {
        "id": novelty_id(machine, fields.get("series"), since, verdict),
        "phase": "start",
        "verdict": verdict,
        "machine": machine,
        "kind": kind,
        "time_unix_nano": time_unix_nano,
        "since_unix_nano": since,
        "probability": exp(-fields["score"]),
        **fields,
    }
    return {name: value for name, value in record.items() if value is not None}


def later(record: Novelty, phase: str, time_unix_nano: int, **changes: Any) -> Novelty:
    """An update or the end of a novelty that `record` told."""
    return {**record, "phase": phase, "time_unix_nano": time_unix_nano, **changes}


def anomaly_text(record: Novelty, seconds: float, many: bool, others: list[str]) -> str:
    """What was seen in so many seconds (`many`: in a block of windows) and what was expected.

    `others` are the series that moved at the same time, strongest first.
    """
    return _subject(record, seconds, many) + f"; expected {_range(record)}{_company(others)}"


def state_change_text(record: Novelty, mean: float) -> str:
    what = _what(record)
    return f"{what} on {record['machine']} stays near {_amount(record, mean)}; before it was {_range(record)}"


def returned_text(record: Novelty, undone: bool) -> str:
    change = "the change of state is undone: " if undone else ""
    return f"{change}{_what(record)} on {record['machine']} is back within {_range(record)}"


def learned_text(record: Novelty) -> str:
    return f"{_what(record)} on {record['machine']}: the new state is the normal one now"


def _subject(record: Novelty, seconds: float, many: bool) -> str:
    if record["kind"] == "log":
        return f"{_what(record)} came {record['observed']:.0f} times in {seconds:g} s on {record['machine']}"
    mean = f" in the mean of {seconds:g} s" if many else ""
    return f"{_what(record)} on {record['machine']} is {_amount(record, record['observed'])}{mean}"


def _what(record: Novelty) -> str:
    return f'log line "{record["series"]}"' if record["kind"] == "log" else str(record["series"])


def _amount(record: Novelty, value: float) -> str:
    unit = record.get("unit") or "1"
    return f"{value:.4g}" if unit == "1" else f"{value:.4g} {unit}"


def _range(record: Novelty) -> str:
    return f"{record['expected_low']:.4g} to {_amount(record, record['expected_high'])}"


def _company(others: list[str]) -> str:
    if not others:
        return ""
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    return f"; also {', '.join(others[:3])}{more}"
