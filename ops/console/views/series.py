"""Series over time, by Elasticsearch: those of a machine, its log templates, and one series of several machines."""

from collections.abc import Mapping
from typing import Any

from ops.console.sources import Sources
from ops.console.views.lanes import buckets
from ops.console.views.spans import Span

View = dict[str, Any]
Query = dict[str, Any]

LISTED = 100  # series of a machine
TEMPLATES = 50
PEERS = 12
_DESCRIBED = {which: {"terms": {"field": which, "size": 1}} for which in ("kind", "unit")}


def of_machine(sources: Sources, machine: str, span: Span, only: list[str] | None = None) -> list[View]:
    """The series of a machine, or those of these names, by their names."""
    matching: list[Query] = [{"term": {"machine": machine}}]
    if only is not None:
        matching.append({"terms": {"series": only}})
    by_series = {"terms": {"field": "series", "size": LISTED}, "aggs": {**_DESCRIBED, **_over_time(span)}}
    found = _shortest(sources, matching, span, {"series": by_series})
    return sorted(
        (_series(one, span, seconds) for seconds, length in found for one in buckets(length, "series")),
        key=lambda one: str(one["series"]),
    )


def names(sources: Sources, machine: str, span: Span) -> list[str]:
    """The names of a machine's series."""
    found = sources.documents.search(
        "statistics",
        size=0,
        query={"bool": {"filter": [{"term": {"machine": machine}}, span.range("@timestamp")]}},
        aggs={"series": {"terms": {"field": "series", "size": 10 * LISTED, "order": {"_key": "asc"}}}},
    )
    return [one["key"] for one in buckets(found.get("aggregations", {}), "series")]


def templates(sources: Sources, machine: str, span: Span) -> list[View]:
    """The log templates of a machine with the number of lines, the most frequent first."""
    lines = {"lines": {"sum": {"field": "count"}}, "newest": {"max": {"field": "@timestamp"}}}
    severity = {"severity": {"max": {"field": "severity_number"}}}
    order = {"terms": {"field": "series", "size": TEMPLATES, "order": {"lines": "desc"}}}
    matching: list[Query] = [{"term": {"machine": machine}}, {"term": {"kind": "log"}}]
    found = _shortest(sources, matching, span, {"series": {**order, "aggs": lines | severity}})
    return [
        {
            "template": one["key"],
            "lines": one["lines"]["value"],
            "newest": one["newest"]["value"],
            "severity": one["severity"]["value"],
        }
        for _, length in found
        for one in buckets(length, "series")
    ]


def of_peers(sources: Sources, series: str, place: tuple[str, str], span: Span) -> list[View]:
    """The same series on machines that share a place with others, such as ("role", "amf")."""
    kind, name = place
    matching: list[Query] = [{"term": {"series": series}}, {"term": {kind: name}}]
    by_machine = {"terms": {"field": "machine", "size": PEERS}, "aggs": {**_DESCRIBED, **_over_time(span)}}
    found = _shortest(sources, matching, span, {"machine": by_machine})
    return [
        {"machine": one["key"], "values": _series(one, span, seconds)["values"]}
        for seconds, length in found
        for one in buckets(length, "machine")
    ]


def _shortest(
    sources: Sources, matching: list[Query], span: Span, aggregations: Query
) -> list[tuple[float, Mapping[str, Any]]]:
    """The aggregations over windows of the shortest length, with that length in s.

    Windows of several lengths overlap, and a count is that of its window.
    """
    by_length = {"terms": {"field": "window.size_seconds", "size": 1, "order": {"_key": "asc"}}}
    found = sources.documents.search(
        "statistics",
        size=0,
        query={"bool": {"filter": [*matching, span.range("@timestamp")]}},
        aggs={"length": {**by_length, "aggs": aggregations}},
    )
    return [(float(one["key"]), one) for one in buckets(found.get("aggregations", {}), "length")]


def _over_time(span: Span) -> Query:
    """By steps: the mean of the windows, and the least and greatest value in them."""
    values = {
        "mean": {"avg": {"field": "mean"}},
        "count": {"avg": {"field": "count"}},
        "low": {"min": {"field": "min"}},
        "high": {"max": {"field": "max"}},
    }
    every = {"field": "@timestamp", "fixed_interval": f"{span.step}ms", "min_doc_count": 1}
    return {"time": {"date_histogram": every, "aggs": values}}


def _series(bucket: Mapping[str, Any], span: Span, seconds: float) -> View:
    """A series as columns: an element for each step, None where nothing came."""
    kind, unit = (next((one["key"] for one in buckets(bucket, which)), None) for which in ("kind", "unit"))
    statistic = "count" if kind == "log" else "mean"
    found = {(int(one["key"]) - span.start) // span.step: one for one in buckets(bucket, "time")}
    shown = {"values": statistic} if kind == "log" else {"values": statistic, "lows": "low", "highs": "high"}
    columns = {
        column: [found[step][name]["value"] if step in found else None for step in range(span.steps)]
        for column, name in shown.items()
    }
    return {
        "series": bucket["key"],
        "kind": kind,
        "unit": unit,
        "statistic": statistic,
        "window_seconds": seconds,
        **columns,
    }
