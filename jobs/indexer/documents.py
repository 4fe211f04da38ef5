"""The Elasticsearch documents of a record: pure functions from the parsed JSON of a record to its documents by id.

A document's id comes from its record's id, so a record that is written again overwrites its documents. Times are
milliseconds since the Unix epoch; `@timestamp` is the time by which Kibana filters. The fields are those of the index
templates, `*.template.json`.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from infra.contract.columnar import to_rows
from infra.contract.inventory import FACTS
from infra.contract.schemas import WINDOW
from infra.contract.watermarks import is_watermark

Record = Mapping[str, Any]
Document = dict[str, Any]

PHASES = ("start", "update", "end")
TEXT_BYTES = 8192

_INVENTORY = ("known", *FACTS)
_SERIES = ("series", "name", "kind", "unit")
_WINDOW = tuple(name for name in WINDOW.names if not name.endswith("_unix_nano"))
_MEASURES = ("sum", "mean", "variance", "min", "max", "first", "last", "p50", "p95", "p99", "missing")
_STATISTIC = ("rate", "count", "observations", *_MEASURES, "severity_number")
_EVIDENCE = ("score", "probability", "observed", "expected", "expected_low", "expected_high", "peaked")
_INCIDENT = ("phase", "machines", "novelties", "verdicts", "score", "causes", "text")
_MEMBER = ("novelty", "machine", "verdict", "series", "score")
_DESCRIPTION = ("verdict", "phase", "text", "feedback", "statistic", "window_seconds", "contributing", "contributors")


def statistics(record: Record) -> dict[str, Document]:
    """The documents of one machine's window, one for each series; none for a watermark or a control event.

    Raises:
        KeyError, TypeError: the record doesn't have the form of schemas.STATISTICS.
    """
    if is_watermark(record) or "control" in record:
        return {}
    window = record["window"]
    shared = {
        "@timestamp": _milli(window["end_unix_nano"]),
        "machine": record["machine"],
        **_picked(record.get("inventory"), _INVENTORY),
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
    """The document of a dead letter: its code, reason and source, and the original as text of at most 8 kB.

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
    """The document of a novelty as of this record (start, update or end); see `merge`. None for a watermark.

    Raises:
        KeyError, TypeError: the record doesn't have the form of schemas.NOVELTIES.
    """
    if is_watermark(record):
        return {}
    state = {
        "machine": record["machine"],
        **_picked(record.get("inventory"), _INVENTORY),
        **_picked(record, (*_SERIES, *_EVIDENCE, *_DESCRIPTION)),
    }
    return {record["id"]: state | _times(record)}


def incidents(record: Record) -> dict[str, Document]:
    """The document of an incident as of this record (start, update or end); see `merge`.

    Raises:
        KeyError, TypeError: the record doesn't have the form of schemas.INCIDENTS.
    """
    members = [{**_picked(one, _MEMBER), "since": _milli(one["since_unix_nano"])} for one in record["members"]]
    return {record["id"]: _picked(record, _INCIDENT) | {"members": members} | _times(record)}


def _times(record: Record) -> Document:
    """The times of a novelty or incident as of this record, in ms since the epoch."""
    time = _milli(record["time_unix_nano"])
    started = _milli(record["since_unix_nano"])
    times = {"@timestamp": started, "started": started, "alerted": time, "updated": time, "peaked": time}
    return times | ({"ended": time} if record["phase"] == "end" else {})


def merge(one: Document, other: Document) -> Document:
    """Merge two states of one novelty or incident: the newer one, with the evidence of the higher score.

    `alerted`, the event time of the first alert, is the earlier one. Merging is associative, commutative and
    idempotent, so the document doesn't depend on the order of the records, or on duplicates.
    """
    peak = max(one, other, key=lambda state: (state.get("score", 0.0), -state["peaked"]))
    newest = max(one, other, key=version)
    rest = {key: value for key, value in newest.items() if key not in _EVIDENCE}
    return rest | _picked(peak, _EVIDENCE) | {"alerted": min(one["alerted"], other["alerted"])}


def upgrade(stored: Document) -> Document:
    """A stored document with the fields of this version: version 0.1.0 had `told` for `alerted`."""
    return {"alerted" if name == "told" else name: value for name, value in stored.items()}


def version(state: Document) -> int:
    """The external version of a document in Elasticsearch: it orders the states by event time and then by phase."""
    return int(state["updated"]) * len(PHASES) + PHASES.index(state["phase"])


def _pairs(attributes: Mapping[str, str] | None) -> list[str] | None:
    return [f"{key}={value}" for key, value in sorted(attributes.items())] if attributes else None


def _series_id(record_id: str, series: str) -> str:
    """The id of a series' document, with a hash: the name of a series is unbounded, an `_id` has at most 512 bytes."""
    return f"{record_id}/{hashlib.blake2b(series.encode(), digest_size=12).hexdigest()}"


def _picked(fields: Record | None, names: Iterable[str]) -> Document:
    return {name: value for name in names if fields and (value := fields.get(name)) is not None}


def _milli(unix_nano: int) -> int:
    return unix_nano // 1_000_000


def _text(content: bytes) -> str:
    return content[:TEXT_BYTES].decode(errors="replace")
