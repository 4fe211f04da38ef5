"""The lanes of the heat map: machines, or groups of them, by time, aggregated by Elasticsearch."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ops.console.sources import Sources
from ops.console.views.spans import Span

View = dict[str, Any]
Query = dict[str, Any]

LEVELS = (7, 12, 20, 35)  # scores at which a colour begins; below the first one it is the palest
BY = ("machine", "hypervisor", "site", "tenant", "role")
SORTS: dict[str, Query] = {
    "severity": {"strongest": "desc"},
    "count": {"_count": "desc"},
    "name": {"_key": "asc"},
}
_ORDER = {
    "severity": lambda lane: (-(lane["score"] or 0), lane["name"]),
    "count": lambda lane: (-lane["novelties"], lane["name"]),
    "name": lambda lane: lane["name"],
}
_STRONGEST = {"strongest": {"max": {"field": "score"}}}
_VERDICTS = {"verdicts": {"terms": {"field": "verdict", "size": 9}}}
_OF_A_HYPERVISOR = {"exists": {"field": "hypervisor"}}


def buckets(aggregations: Mapping[str, Any], name: str) -> list[View]:
    """The buckets of an aggregation; none if it isn't there."""
    return list((aggregations.get(name) or {}).get("buckets", []))


class Lanes:
    """The novelties that match, by `by` and time. Each lane has the score of its strongest one in each step."""

    def __init__(self, sources: Sources, by: str, matching: Sequence[Query], span: Span) -> None:
        self._sources, self._span = sources, span
        self._query: Query = {"bool": {"filter": [*matching, span.range("started")]}}
        # A physical machine is its own hypervisor.
        self._fields = {"hypervisor": _OF_A_HYPERVISOR, "machine": {"bool": {"must_not": _OF_A_HYPERVISOR}}}
        if by != "hypervisor":
            self._fields = {by: {"match_all": {}}}

    def names(self, sort: str, begin: int, count: int) -> tuple[list[str], int]:
        """The names of `count` lanes from the place `begin` on, and how many lanes there are, about."""
        wanted = begin + count
        rows = {
            field: {"terms": {"field": field, "size": wanted, "order": SORTS[sort]}, "aggs": _STRONGEST}
            for field in self._fields
        }
        totals = {f"of {field}": {"cardinality": {"field": field}} for field in self._fields}
        found = self._ask(rows | totals)
        lanes = _merged(self._lane(one) for field in self._fields for one in buckets(found(field), field))
        total = sum((found(field).get(f"of {field}") or {}).get("value", 0) for field in self._fields)
        # Of few they are counted; of many, which two fields may have in common, it is about so many.
        total = len(lanes) if len(lanes) < wanted else max(total, len(lanes))
        return [lane["name"] for lane in sorted(lanes, key=_ORDER[sort])[begin:wanted]], total

    def drawn(self, names: Sequence[str], sort: str) -> list[View]:
        """The lanes of these names, with their cells."""
        if not names:
            return []
        rows = {
            field: {"terms": {"field": field, "size": len(names), "include": list(names)}, "aggs": self._over_time()}
            for field in self._fields
        }
        found = self._ask(rows)
        lanes = _merged(self._lane(one) for field in self._fields for one in buckets(found(field), field))
        return sorted(lanes, key=_ORDER[sort])

    def overall(self) -> View:
        """One lane for all that matches."""
        found = self._sources.documents.search(
            "novelties", size=0, query=self._query, aggs=self._over_time(), track_total_hits=True
        )
        total = found["hits"]["total"]["value"]
        return self._lane({"key": "", "doc_count": total, **found.get("aggregations", {})})

    def _ask(self, aggregations: Query) -> Any:
        """Ask for aggregations of each field's own documents; gives those of a field."""
        own = {
            field: {"filter": only, "aggs": {name: one for name, one in aggregations.items() if name.endswith(field)}}
            for field, only in self._fields.items()
        }
        found = self._sources.documents.search("novelties", size=0, query=self._query, aggs=own)
        answer = found.get("aggregations", {})
        return lambda field: answer.get(field) or {}

    def _over_time(self) -> Query:
        every = {"field": "started", "fixed_interval": f"{self._span.step}ms", "min_doc_count": 1}
        over_time = {"date_histogram": every, "aggs": {**_STRONGEST, **_VERDICTS}}
        return {**_STRONGEST, "time": over_time}

    def _lane(self, bucket: Mapping[str, Any]) -> View:
        cells = [self._cell(one) for one in buckets(bucket, "time")]
        return {
            "name": bucket["key"],
            "novelties": bucket["doc_count"],
            "score": (bucket.get("strongest") or {}).get("value"),
            "cells": [cell for cell in cells if 0 <= cell["column"] < self._span.steps],
        }

    def _cell(self, bucket: Mapping[str, Any]) -> View:
        score = bucket["strongest"]["value"]
        return {
            "column": (int(bucket["key"]) - self._span.start) // self._span.step,
            "time": int(bucket["key"]),
            "novelties": bucket["doc_count"],
            "score": score,
            "verdicts": [one["key"] for one in buckets(bucket, "verdicts")],
            "level": level(score),
        }


def level(score: float | None) -> int:
    """The number of a score's colour, from 1."""
    return 1 + sum((score or 0) >= limit for limit in LEVELS)


def _merged(lanes: Iterator[View]) -> list[View]:
    """Lanes of the same name as one."""
    found: dict[str, View] = {}
    for lane in lanes:
        known = found.get(lane["name"])
        found[lane["name"]] = _joined(known, lane) if known else lane
    return list(found.values())


def _joined(one: View, other: View) -> View:
    cells = {cell["column"]: cell for cell in one["cells"]}
    for cell in other["cells"]:
        known = cells.get(cell["column"])
        cells[cell["column"]] = _joined_cell(known, cell) if known else cell
    return {
        "name": one["name"],
        "novelties": one["novelties"] + other["novelties"],
        "score": max(one["score"] or 0, other["score"] or 0),
        "cells": [cells[column] for column in sorted(cells)],
    }


def _joined_cell(one: View, other: View) -> View:
    score = max(one["score"] or 0, other["score"] or 0)
    verdicts = list(dict.fromkeys([*one["verdicts"], *other["verdicts"]]))
    return one | {
        "novelties": one["novelties"] + other["novelties"],
        "score": score,
        "level": level(score),
        "verdicts": verdicts,
    }
