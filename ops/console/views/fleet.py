"""The view of the fleet: a heat map of machines and time, aggregated by Elasticsearch, and what is open now."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from infra.contract.topics import parse_duration
from infra.errors import UserError
from ops.console.sources import Sources

View = dict[str, Any]

COLUMNS = 60
MACHINES = 100  # rows of the map
OPEN = 50
CHOICES = 50  # values of a filter
FILTERS = ("site", "role", "verdict")
LEVELS = (7, 12, 20, 35)  # scores at which a colour begins; below the first one it is the palest
SORTS: dict[str, dict[str, str]] = {
    "severity": {"strongest": "desc"},
    "count": {"_count": "desc"},
    "name": {"_key": "asc"},
}
# Of a verdict in a cell; of several the first one.
MARKS = {"gone": "×", "silence": "–", "new_entity": "+", "state_change": "≠"}  # noqa: RUF001
SPANS = ("1h", "6h", "1d", "7d", "30d")
_NEWEST = "newest"
_OPEN_FIELDS = ("machine", "verdict", "series", "started", "score", "site", "role", "text")


def fleet(sources: Sources, arguments: Mapping[str, str]) -> View:
    """Scores by machine and time of the last `span` of event time. Raises UserError for an argument of no use.

    The span ends with the newest novelty, not now: a chain that is behind, or a replay, is seen as well.
    """
    sort, span = one_of("sort", arguments, tuple(SORTS)), one_of("span", arguments, SPANS, "6h")
    chosen = {name: value for name in FILTERS if (value := arguments.get(name))}
    head = sources.search("novelties", size=0, aggs=_head(), query={"match_all": {}}).get("aggregations", {})
    end = (head.get(_NEWEST) or {}).get("value")
    view: View = {
        "sort": sort,
        "span": span,
        "chosen": chosen,
        "choices": {name: [one["key"] for one in buckets(head, name)] for name in FILTERS},
        "machines": [],
        "open": {"total": 0, "novelties": []},
        "times": [],
    }
    if end is None:
        return view
    step = int(parse_duration(span).total_seconds() * 1000) // COLUMNS
    start = int(end) // step * step - (COLUMNS - 1) * step
    matching = [{"term": {name: value}} for name, value in chosen.items()]
    view["times"] = [start + number * step for number in range(COLUMNS)]
    view["machines"] = _machines(sources, matching, start, step, sort)
    view["open"] = _open(sources, matching)
    return view


def one_of(name: str, arguments: Mapping[str, str], known: tuple[str, ...], default: str = "") -> str:
    value = arguments.get(name) or default or known[0]
    if value not in known:
        raise UserError(f"{name}={value!r}: there are {', '.join(known)}")
    return value


def _head() -> View:
    return {_NEWEST: {"max": {"field": "started"}}} | {
        name: {"terms": {"field": name, "size": CHOICES, "order": {"_key": "asc"}}} for name in FILTERS
    }


def buckets(aggregations: Mapping[str, Any], name: str) -> list[View]:
    return list((aggregations.get(name) or {}).get("buckets", []))


def _machines(sources: Sources, matching: list[View], start: int, step: int, sort: str) -> list[View]:
    strongest = {"strongest": {"max": {"field": "score"}}}
    over_time = {"date_histogram": {"field": "started", "fixed_interval": f"{step}ms", "min_doc_count": 1}}
    rows = {"terms": {"field": "machine", "size": MACHINES, "order": SORTS[sort]}}
    verdicts = {"verdicts": {"terms": {"field": "verdict", "size": 9}}}
    found = sources.search(
        "novelties",
        size=0,
        query={"bool": {"filter": [*matching, {"range": {"started": {"gte": start}}}]}},
        aggs={"machine": {**rows, "aggs": {**strongest, "time": {**over_time, "aggs": {**strongest, **verdicts}}}}},
    )
    return [_machine(one, start, step) for one in buckets(found.get("aggregations", {}), "machine")]


def _machine(bucket: Mapping[str, Any], start: int, step: int) -> View:
    return {
        "machine": bucket["key"],
        "novelties": bucket["doc_count"],
        "score": bucket["strongest"]["value"],
        "cells": [cell for one in buckets(bucket, "time") if (cell := _cell(one, start, step))["column"] < COLUMNS],
    }


def _cell(bucket: Mapping[str, Any], start: int, step: int) -> View:
    score = bucket["strongest"]["value"]
    return {
        "column": (int(bucket["key"]) - start) // step,
        "time": int(bucket["key"]),
        "novelties": bucket["doc_count"],
        "score": score,
        "verdicts": [one["key"] for one in buckets(bucket, "verdicts")],
        "level": 1 + sum((score or 0) >= limit for limit in LEVELS),
    }


def _open(sources: Sources, matching: list[View]) -> View:
    """The novelties that have not ended, the strongest first."""
    found = sources.search(
        "novelties",
        size=OPEN,
        query={"bool": {"filter": matching, "must_not": [{"exists": {"field": "ended"}}]}},
        sort=[{"score": "desc"}],
    )["hits"]
    listed = [{name: hit["_source"].get(name) for name in _OPEN_FIELDS} for hit in found["hits"]]
    return {"total": found["total"]["value"], "novelties": listed}


class Drawing(NamedTuple):
    """The sizes of the heat map, in SVG units."""

    label: int = 190
    cell: int = 14
    row: int = 18
    head: int = 20
    ticks: int = 10  # columns between two times

    def width(self) -> int:
        return self.label + COLUMNS * self.cell

    def height(self, rows: int) -> int:
        return self.head + rows * self.row

    def x(self, column: int) -> int:
        return self.label + column * self.cell

    def y(self, row: int) -> int:
        return self.head + row * self.row


def drawing() -> View:
    """What only the page needs: sizes, marks, and what can be chosen."""
    return {"draw": Drawing(), "marks": MARKS, "sorts": tuple(SORTS), "spans": SPANS, "most": MACHINES}
