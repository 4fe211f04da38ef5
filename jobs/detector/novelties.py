"""Records of the topic `novelties`: their ids, and a sentence that a person understands."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import exp
from typing import Any

from jobs.detector.model.statistics import STATISTICS

Novelty = dict[str, Any]


# What the statistic compared with, where it wasn't simply the usual level.
_COMPARED = {statistic.label: statistic.compared for statistic in STATISTICS}


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
    return _present(record)


def later(record: Novelty, phase: str, time_unix_nano: int, **changes: Any) -> Novelty:
    """An update or the end of the novelty of `record`."""
    return {**record, "phase": phase, "time_unix_nano": time_unix_nano, **changes}


def ended(record: Novelty, time_unix_nano: int, why: str) -> Novelty:
    """The end of a novelty that an operator has caused."""
    return later(record, "end", time_unix_nano, text=f"{record['text']}: {why}")


def explained(contributors: Sequence[Mapping[str, Any]], most: int, weights: Sequence[float] | None = None) -> Novelty:
    """The fields that say which series were surprising at once, strongest first: the `most` strongest, and how many.

    Their shares are those of their weights: of their scores, if there are no others.
    """
    weights = [one["score"] for one in contributors] if weights is None else weights
    total = sum(weights)
    pairs = list(zip(contributors, weights, strict=True))[:most]
    shown = [{**_present(one), "share": float(weight / total)} for one, weight in pairs]
    return {"contributing": len(contributors), "contributors": shown}


def anomaly_text(record: Novelty, many: bool) -> str:
    """What was seen (`many`: in a block of windows), what was expected, and which series moved at the same time."""
    compared = _COMPARED.get(record["statistic"], "")
    return f"{_subject(record, many)}; expected {_range(record)}{compared}{_company(record)}{_example(record)}"


def machine_text(record: Novelty) -> str:
    """Of a machine as a whole: how many series are strange at once, and the strongest of them."""
    return f"{where(record)} is strange as a whole: {_together(record)}"


def machine_changed_text(record: Novelty) -> str:
    since = datetime.fromtimestamp(record["since_unix_nano"] // 10**9, UTC)
    return f"{record['machine']} stays as it is since {since:%H:%M:%S} UTC: {_together(record)}"


def machine_calm_text(record: Novelty, time_unix_nano: int) -> str:
    """When nothing of it is strange any more."""
    seconds = (time_unix_nano - record["since_unix_nano"]) / 1e9
    return f"{record['machine']} is no longer strange as a whole, after {seconds:g} s: {_together(record)}"


def _together(record: Novelty) -> str:
    named = [one["series"] for one in record["contributors"]][:3]
    more = record["contributing"] - len(named)
    return f"{', '.join(named)}{f' and {more} more' if more else ''} together"


def silence_text(record: Novelty) -> str:
    return (
        f"{where(record)} has sent nothing for {record['observed']:g} s; "
        f"gaps of up to {record['expected_high']:g} s are usual"
    )


def gone_text(record: Novelty) -> str:
    if record["statistic"] == "retired":
        return f"{where(record)} is gone: the inventory says that it is retired"
    return f"{where(record)} is gone: it has sent nothing for {record['observed']:g} s"


def new_machine_text(record: Novelty) -> str:
    if record.get("seen_before"):
        return f"{where(record)} is back: it was seen before, and then it was gone"
    return f"{where(record)} is a machine never seen before"


def new_series_text(record: Novelty, more: int) -> str:
    """`more`: how many others are new with it."""
    what = _what(record) if record["kind"] == "log" else f"metric {record['series']}"
    return f"{what}{f' (and {more} more)' if more else ''} was never seen before on {where(record)}{_example(record)}"


def state_change_text(record: Novelty, mean: float) -> str:
    what, since = _what(record), datetime.fromtimestamp(record["since_unix_nano"] // 10**9, UTC)
    stays = f"stays near {_amount(record, mean)} since {since:%H:%M:%S} UTC"
    return f"{what} on {record['machine']} {stays}; before it was {_range(record)}"


def returned_text(record: Novelty, time_unix_nano: int, undone: bool) -> str:
    change = "the change of state is undone: " if undone else ""
    seconds = (time_unix_nano - record["since_unix_nano"]) / 1e9
    return f"{change}{_what(record)} on {record['machine']} is back within {_range(record)} after {seconds:g} s"


def learned_text(record: Novelty) -> str:
    return f"{_what(record)} on {record['machine']}: the new state is the normal one now"


def where(record: Novelty) -> str:
    """The machine and its place, as far as the inventory knows it."""
    facts = record.get("inventory") or {}
    words = [facts.get("role"), f"of {facts['tenant']}" if facts.get("tenant") else None]
    words += [f"{word} {facts[name]}" for word, name in (("on", "hypervisor"), ("at", "site")) if facts.get(name)]
    place = " ".join(word for word in words if word)
    return f"{record['machine']} ({place})" if place else str(record["machine"])


def _subject(record: Novelty, many: bool) -> str:
    seconds = record["window_seconds"]
    if record["kind"] == "log":
        return f"{_what(record)} came {record['observed']:.0f} times in {seconds:g} s on {where(record)}"
    mean = f" in the mean of {seconds:g} s" if many else ""
    return f"{_what(record)} on {where(record)} is {_amount(record, record['observed'])}{mean}"


def _what(record: Novelty) -> str:
    return f'log line "{record["series"]}"' if record["kind"] == "log" else str(record["series"])


def _example(record: Novelty) -> str:
    """A line, where it says more than its template."""
    line = record.get("example")
    return f'; for example "{line}"' if line and line != record["series"] else ""


def _amount(record: Novelty, value: float) -> str:
    unit = record.get("unit") or "1"
    return f"{value:.4g}" if unit == "1" else f"{value:.4g} {unit}"


def _range(record: Novelty) -> str:
    return f"{record['expected_low']:.4g} to {_amount(record, record['expected_high'])}"


def _company(record: Novelty) -> str:
    others = [one["series"] for one in record["contributors"] if one["series"] != record["series"]][:3]
    if not others:
        return ""
    more = record["contributing"] - 1 - len(others)
    return f"; also {', '.join(others)}{f' and {more} more' if more else ''}"


def _present(fields: Mapping[str, Any]) -> Novelty:
    return {name: value for name, value in fields.items() if value is not None}
