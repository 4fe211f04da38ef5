"""The Elasticsearch documents of a record: pure functions from the parsed JSON of a record to its documents by id.

A document's id comes from its record's id, so a record that is written again overwrites its documents. Whatever the
record is, a document is one that the index takes: its types are checked, its strings are cut, and its id has a bounded
length. Times are milliseconds since the Unix epoch; `@timestamp` is the time by which Kibana filters. The fields are
those of the index templates, `*.template.json`.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from infra.contract.columnar import to_rows
from infra.contract.inventory import FACTS
from infra.contract.schemas import INCIDENTS, NOVELTIES, REJECTED, STATISTICS, WINDOW
from infra.contract.watermarks import is_watermark
from jobs.indexer.conformity import check, require

Record = Mapping[str, Any]
Document = dict[str, Any]

PHASES = ("start", "update", "end")
TEXT_BYTES = 8192
# Of a string: Lucene takes terms of at most 32,766 bytes, and a character has up to four.
TEXT_CHARACTERS = 8191
SHARED_CHARACTERS = 1024  # of one that each series of a machine repeats
ID_BYTES = 16  # of a digest
LONGEST_ID = 128  # bytes of an id that is taken as it is: those of novelties and incidents have 16
MOST_SERIES = 50_000  # of one record: each becomes a document

LATEST_MILLI = 2**63 // 1_000_000  # nanoseconds have no later time

_INVENTORY = ("known", *FACTS)
_SERIES = ("series", "name", "kind", "unit")
_WINDOW = tuple(name for name in WINDOW.names if not name.endswith("_unix_nano"))
_MEASURES = ("sum", "mean", "variance", "min", "max", "first", "last", "p50", "p95", "p99", "missing")
_STATISTIC = ("rate", "count", "observations", *_MEASURES, "severity_number")
_EVIDENCE = ("score", "probability", "observed", "expected", "expected_low", "expected_high", "peaked")
_INCIDENT = ("phase", "machines", "novelties", "verdicts", "score", "causes", "merged_into", "text")
_MEMBER = ("novelty", "machine", "verdict", "series", "score")
_CONTRIBUTORS = ("contributing", "contributors")
_TEXTS = ("example", "text", "feedback")
_DESCRIPTION = ("verdict", "seen_before", "phase", *_TEXTS, "statistic", "window_seconds", *_CONTRIBUTORS)


def statistics(record: Record) -> dict[str, Document]:
    """The documents of one machine's window, one for each series; none for a watermark or a control event.

    Raises:
        KeyError, TypeError, ValueError: the record doesn't have the form of schemas.STATISTICS.
    """
    check(record, STATISTICS)
    if is_watermark(record) or "control" in record:
        return {}
    require(record, "id", "machine", "window", "statistics")
    window = record["window"]
    shared = {
        "@timestamp": _milli(window["end_unix_nano"]),
        "machine": _cut(record["machine"], SHARED_CHARACTERS),
        **_picked(record.get("inventory"), _INVENTORY, SHARED_CHARACTERS),
        "window": {
            **_picked(window, _WINDOW, SHARED_CHARACTERS),
            "start": _milli(window["start_unix_nano"]),
            "end": _milli(window["end_unix_nano"]),
        },
    }
    series = record["statistics"]["series"]
    if None in series:
        raise ValueError("statistics.series: each row needs one")
    if len(series) > MOST_SERIES:
        raise ValueError(f"statistics: {len(series)} series in one record; at most {MOST_SERIES} are indexed")
    rows = to_rows(_columns(record["statistics"]))
    return {_digest(f"{record['id']}/{name}"): {**shared, **row} for name, row in zip(series, rows, strict=True)}


def _columns(statistics: Record) -> dict[str, Any]:
    """The columns of a record's statistics as its documents have them."""
    columns: dict[str, Any] = {name: statistics[name] for name in _STATISTIC if statistics.get(name) is not None}
    for name in _SERIES:
        if (texts := statistics.get(name)) is not None:
            columns[name] = [text and text[:TEXT_CHARACTERS] for text in texts]
    if attributes := statistics.get("attributes"):
        columns["attributes"] = [_pairs(one) for one in attributes]
    return columns


def rejected(record: Record) -> dict[str, Document]:
    """The document of a dead letter: its code, reason and source, and the original as text of at most 8 kB.

    The id is a digest of the record's, which names topics of any length; `id` has the record's own.

    Raises:
        KeyError, TypeError, ValueError: the record doesn't have the form of schemas.REJECTED.
    """
    check(record, REJECTED)
    require(record, "id", "source")
    source = record["source"]
    document = {
        "@timestamp": _time(source["timestamp_unix_milli"]),
        **_picked(record, ("id", "stage", "code", "reason", "machine", "events")),
        "source": _picked(source, ("topic", "partition", "offset", "last_offset")),
    }
    if "key" in record:
        document["key"] = _text(base64.b64decode(record["key"]))
    if "value" in record:
        document["value"] = _text(base64.b64decode(record["value"]))
    elif "batch" in record:
        document["value"] = _text(record["batch"].encode())
    return {_digest(record["id"]): document}


def novelties(record: Record) -> dict[str, Document]:
    """The document of a novelty as of this record (start, update or end); see `merge`. None for a watermark.

    Raises:
        KeyError, TypeError, ValueError: the record doesn't have the form of schemas.NOVELTIES.
    """
    check(record, NOVELTIES)
    if is_watermark(record):
        return {}
    require(record, "id", "machine")
    state = {
        "machine": _cut(record["machine"]),
        **_picked(record.get("inventory"), _INVENTORY),
        **_picked(record, (*_SERIES, *_EVIDENCE, *_DESCRIPTION)),
    }
    return {_own_id(record): state | _times(record)}


def incidents(record: Record) -> dict[str, Document]:
    """The document of an incident as of this record (start, update or end); see `merge`.

    Raises:
        KeyError, TypeError, ValueError: the record doesn't have the form of schemas.INCIDENTS.
    """
    check(record, INCIDENTS)
    require(record, "id", "members")
    members = [{**_picked(one, _MEMBER), "since": _milli(one["since_unix_nano"])} for one in record["members"]]
    return {_own_id(record): _picked(record, _INCIDENT) | {"members": members} | _times(record)}


def _times(record: Record) -> Document:
    """The times of a novelty or incident as of this record, in ms since the epoch."""
    if record["phase"] not in PHASES:
        raise ValueError(f"phase: {str(record['phase'])[:100]!r}: it is one of {', '.join(PHASES)}")
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


def _pairs(attributes: Mapping[str, str | None] | None) -> list[str] | None:
    if not attributes:
        return None
    texts = [key if value is None else f"{key}={value}" for key, value in sorted(attributes.items())]
    return [text[:TEXT_CHARACTERS] for text in texts]


def _own_id(record: Record) -> str:
    """The id of a novelty or incident, by which people name it. Raises ValueError if the index wouldn't take it."""
    identity = str(record["id"])
    if not 0 < len(identity.encode()) <= LONGEST_ID:
        raise ValueError(f"id: {identity[:100]!r}: it has 1 to {LONGEST_ID} bytes")
    return identity


def _digest(identity: str) -> str:
    """An id of fixed length: Elasticsearch takes at most 512 bytes, and a name may have more."""
    return hashlib.blake2b(identity.encode(), digest_size=ID_BYTES).hexdigest()


def _picked(fields: Record | None, names: Iterable[str], characters: int = TEXT_CHARACTERS) -> Document:
    """Those of the named fields that have a value, with strings cut, also those in lists and objects."""
    return {name: _cut(value, characters) for name in names if fields and (value := fields.get(name)) is not None}


def _cut(value: Any, characters: int = TEXT_CHARACTERS) -> Any:
    if isinstance(value, str):
        return value[:characters]
    if isinstance(value, list):
        return [_cut(one, characters) for one in value]
    if isinstance(value, dict):
        return {name: _cut(one, characters) for name, one in value.items()}
    return value


def _milli(unix_nano: int) -> int:
    return _time(unix_nano // 1_000_000)


def _time(milli: int) -> int:
    """A time that the index takes. Raises ValueError for others."""
    if not 0 <= milli < LATEST_MILLI:
        raise ValueError(f"time: {milli} ms since 1970: it is before the year 2262")
    return milli


def _text(content: bytes) -> str:
    return content[:TEXT_BYTES].decode(errors="replace")
