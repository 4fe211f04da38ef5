"""The views of dead letters: how many by stage and code, the newest by source and machine, and one with its bytes."""

from collections.abc import Mapping
from typing import Any

from ops.console.errors import NotThere
from ops.console.reads import SourceDown
from ops.console.sources import Sources
from ops.console.views.lanes import buckets

View = dict[str, Any]

SHOWN = 100
GROUPS = 200
CHOICES = ("topic", "machine")  # filters that are a list; stage and code are chosen in the table
BYTES = 4_096  # of a record that a page shows
LINE = 16  # bytes
FILTERS = {"stage": "stage", "code": "code", "topic": "source.topic", "machine": "machine"}  # argument -> field
_LISTED = ("stage", "code", "reason", "machine", "events", "source")


def rejected(sources: Sources, arguments: Mapping[str, str]) -> View:
    """The counts by stage and code, and the newest dead letters of those that are chosen."""
    chosen = {name: value for name in FILTERS if (value := arguments.get(name))}
    counts = sources.documents.search(
        "rejected",
        size=0,
        query={"match_all": {}},
        aggs={"stage": {"terms": {"field": "stage", "size": GROUPS}, "aggs": {"code": _codes()}}, **_choices()},
    ).get("aggregations", {})
    found = sources.documents.search(
        "rejected",
        size=SHOWN,
        query={"bool": {"filter": [{"term": {FILTERS[name]: value}} for name, value in chosen.items()]}},
        sort=[{"@timestamp": "desc"}],
        source_excludes=["value"],
    )["hits"]
    return {
        "chosen": chosen,
        "total": found["total"]["value"],
        "counts": _counts(counts),
        "choices": {name: [one["key"] for one in buckets(counts, name)] for name in CHOICES},
        "letters": [_letter(hit["_id"], hit["_source"]) for hit in found["hits"]],
    }


def _choices() -> View:
    return {name: {"terms": {"field": FILTERS[name], "size": GROUPS, "order": {"_key": "asc"}}} for name in CHOICES}


def _codes() -> View:
    newest = {"newest": {"max": {"field": "@timestamp"}}, "events": {"sum": {"field": "events"}}}
    return {"terms": {"field": "code", "size": GROUPS}, "aggs": newest}


def _counts(aggregations: Mapping[str, Any]) -> list[View]:
    return [
        {
            "stage": stage["key"],
            "code": code["key"],
            "letters": code["doc_count"],
            "events": code["events"]["value"],
            "newest": code["newest"]["value"],
        }
        for stage in buckets(aggregations, "stage")
        for code in stage["code"]["buckets"]
    ]


def _letter(identity: str, document: Mapping[str, Any]) -> View:
    picked = {name: document.get(name) for name in _LISTED}
    return {"id": identity, "name": document.get("id"), "time": document.get("@timestamp"), **picked}


def letter(sources: Sources, arguments: Mapping[str, str]) -> View:
    """One dead letter: why, what the index keeps of it as text, and its original record's bytes. Raises NotThere."""
    identity = arguments["id"]
    document = sources.documents.find("rejected", identity)
    if document is None:
        raise NotThere(f"There is no dead letter {identity}.")
    return {
        **_letter(identity, document),
        "key": document.get("key"),
        "kept": document.get("value"),
        "original": _original(sources, document.get("source") or {}),
    }


def _original(sources: Sources, source: Mapping[str, Any]) -> View:
    """The bytes of the record; without them why they can't be had."""
    if not {"topic", "partition", "offset"} <= {*source}:
        return {"missing": "the dead letter names no record"}
    try:
        found = sources.original(source)
    except SourceDown as error:
        return {"missing": f"{error.source}: {error.reason}"}
    if found is None:
        return {"missing": f"{source['topic']} no longer has it"}
    shown = found[:BYTES]
    return {"bytes": len(found), "shown": len(shown), "text": shown.decode(errors="replace"), "hex": hex_dump(shown)}


def hex_dump(value: bytes) -> str:
    """Bytes as `hexdump -C` prints them: place, hexadecimal digits, ASCII."""
    return "\n".join(_hex_line(at, value[at : at + LINE]) for at in range(0, len(value), LINE))


def _hex_line(at: int, part: bytes) -> str:
    text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
    return f"{at:08x}  {part.hex(' '):<{LINE * 3 - 1}}  {text}"
