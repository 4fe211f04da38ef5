"""What a record becomes in Elasticsearch: pure functions from a record to its documents.

A document's id comes from its record's id, so a repeated record overwrites itself. Times are milliseconds since the
Unix epoch; `@timestamp` is the time that a person browses by. Their fields are those of the `*.template.json`.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from infra.contract.columnar import to_rows
from infra.contract.schemas import WINDOW

Record = Mapping[str, Any]
Document = dict[str, Any]

PHASES = ("start", "update", "end")
TEXT_BYTES = 8192

_FACTS = ("known", "type", "site", "hypervisor", "tenant", "role")
_SERIES = ("series", "name", "kind", "unit")
_WINDOW = tuple(name for name in WINDOW.names if not name.endswith("_unix_nano"))
_FIGURES = ("sum", "mean", "variance", "min", "max", "first", "last", "p50", "p95", "p99", "missing")
_STATISTIC = ("rate", "count", "observations", *_FIGURES, "severity_number")
_EVIDENCE = ("score", "probability", "observed", "expected", "expected_low", "expected_high", "peaked")
_INCIDENT = ("phase", "machines", "novelties", "verdicts", "score", "causes", "text")
_MEMBER = ("novelty", "machine", "verdict", "series", "score")
_STORY = ("verdict", "phase", "text", "feedback", "statistic", "window_seconds", "contributing", "contributors")


def statistics(record: Record) -> dict[str, Document]:
    """The documents of one machine's window by id: one a series; none for a watermark or a control event.

    Raises:
        KeyError, TypeError: the record doesn't have the form of schemas.STATISTICS.
    """
    if "watermark_unix_nano" in record or "control" in record:
        return {}
    window = record["window"]
    shared = {
        "@timestamp": _milli(window["end_unix_nano"]),
        "machine": record["machine"],
        **_picked(record.get("inventory"), _FACTS),
        "window": {
            **_picked(window, _WINDOW),
            "start": _milli(window["start_unix_nano"]),
            "end": _milli(window["end_unix_nano"]),
        },
    }
    columns = _picked(record["statistics"], (*_SERIES, *_STATISTIC))
    if attributes := record["statistics"].get("attributes"):
        columns["attributes"] = [_pairs(one) for one in attributes]
    return {_series_id(record["id"], row["series"]): {**shared, **row} for row in to_rows(columns)}


def rejected(record: Record) -> dict[str, Document]:
    """The one document of a rejected record: why, whence, and what it held as text, cut to 8 kB.

    Raises:
        KeyError, TypeError, ValueError: the record doesn't have the form of schemas.REJECTED.
    """
    source = record["source"]
    document = {
        "@timestamp": source["timestamp_unix_milli"],
        **_picked(record, ("code", "reason", "machine", "events")),
        "source": _picked(source, ("topic", "partition", "offset")),
    }
    if "key" in record:
        document["key"] = _text(base64.b64decode(record["key"]))
    if "value" in record:
        document["value"] = _text(base64.b64decode(record["value"]))
    elif "batch" in record:
        document["value"] = _text(record["batch"].encode())
    return {record["id"]: document}


def novelties(record: Record) -> dict[str, Document]:
    """The state of a novelty, by its id, as far as this one record tells; `merge` joins what several tell.

    None for a watermark.

    Raises:
        KeyError, TypeError: the record doesn't have the form of schemas.NOVELTIES.
    """
    if "watermark_unix_nano" in record:
        return {}
    state = {
        "machine": record["machine"],
        **_picked(record.get("inventory"), _FACTS),
        **_picked(record, (*_SERIES, *_EVIDENCE, *_STORY)),
    }
    return {record["id"]: state | _life(record)}


def incidents(record: Record) -> dict[str, Document]:
    """The state of an incident, by its id, as of this record; `merge` keeps the newest.

    Raises:
        KeyError, TypeError: the record doesn't have the form of schemas.INCIDENTS.
    """
    members = [{**_picked(one, _MEMBER), "since": _milli(one["since_unix_nano"])} for one in record["members"]]
    return {record["id"]: _picked(record, _INCIDENT) | {"members": members} | _life(record)}


def _life(record: Record) -> Document:
    time = _milli(record["time_unix_nano"])
    started = _milli(record["since_unix_nano"])
    times = {"@timestamp": started, "started": started, "told": time, "updated": time, "peaked": time}
    return times | ({"ended": time} if record["phase"] == "end" else {})


def merge(one: Document, other: Document) -> Document:
    """Two states of one life as one: the newest, with the strongest moment's evidence and the first one's `told`.

    Associative, commutative and idempotent: neither order nor repetition of the records shows in the document.
    """
    peak = max(one, other, key=lambda state: (state.get("score", 0.0), -state["peaked"]))
    newest = max(one, other, key=version)
    rest = {key: value for key, value in newest.items() if key not in _EVIDENCE}
    return rest | _picked(peak, _EVIDENCE) | {"told": min(one["told"], other["told"])}


def version(state: Document) -> int:
    """Orders the states of one life, by event time and then phase, as an external version of Elasticsearch."""
    return int(state["updated"]) * len(PHASES) + PHASES.index(state["phase"])


def _pairs(attributes: Mapping[str, str] | None) -> list[str] | None:
    return [f"{key}={value}" for key, value in sorted(attributes.items())] if attributes else None


def _series_id(record_id: str, series: str) -> str:
    """Of bounded length: a series holds all its attributes, and an `_id` has at most 512 bytes."""
    return f"{record_id}/{hashlib.blake2b(series.encode(), digest_size=12).hexdigest()}"


def _picked(fields: Record | None, names: Iterable[str]) -> Document:
    return {name: value for name in names if fields and (value := fields.get(name)) is not None}


def _milli(unix_nano: int) -> int:
    return unix_nano // 1_000_000


def _text(content: bytes) -> str:
    return content[:TEXT_BYTES].decode(errors="replace")
