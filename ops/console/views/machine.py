"""The view of a machine: its series as they were observed, its novelties, and what people said of it."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from infra.contract.topics import parse_duration
from ops.console.errors import NotThere
from ops.console.reads import SourceDown
from ops.console.sources import Sources
from ops.console.views.control import said
from ops.console.views.fleet import SPANS, View, buckets, one_of

STEPS = 120  # points of a series
SERIES = 100  # that are listed
DRAWN = 24  # of those, those with novelties first
NOVELTIES = 100
_FACTS = ("type", "site", "hypervisor", "tenant", "role", "workload")
_NOVELTY = (
    *("verdict", "series", "started", "ended", "score", "observed", "expected_low", "expected_high", "text"),
    "feedback",
)
_MINIMUM, _MAXIMUM = {"min": {"field": "min"}}, {"max": {"field": "max"}}


def machine(sources: Sources, arguments: Mapping[str, str]) -> View:
    """What is known of one machine over the last `span` of its own event time, or of one of its series.

    The control history needs Kafka; `down` says if it can't be read. Raises NotThere for a machine without
    statistics and novelties, and UserError for another span.
    """
    name, span, series = arguments["machine"], one_of("span", arguments, SPANS, "6h"), arguments.get("series", "")
    newest = _newest(sources, name)
    novelties = _novelties(sources, name, series)
    if newest is None and not novelties:
        raise NotThere(f"There is no machine {name}.")
    end = newest["@timestamp"] if newest else max(one["started"] for one in novelties)
    step = int(parse_duration(span).total_seconds() * 1000) // STEPS
    start = int(end) // step * step - (STEPS - 1) * step
    found = _series(sources, name, start, step)
    troubled = {one["series"] for one in novelties if (one["ended"] or end) >= start}
    found.sort(key=lambda one: (one["series"] not in troubled, one["series"]))
    control, down = _control(sources, name)
    return {
        "machine": name,
        "facts": {fact: newest[fact] for fact in _FACTS if newest and newest.get(fact)},
        "span": span,
        "chosen": series,
        "start": start,
        "step": step,
        "names": sorted(one["series"] for one in found),
        "series": [one for one in found if series in ("", one["series"])][:DRAWN],
        "novelties": novelties,
        "control": control,
        "down": down,
    }


def _newest(sources: Sources, name: str) -> View | None:
    """The machine's newest statistic, with what the inventory says of it."""
    hits = sources.search("statistics", query={"term": {"machine": name}}, sort=[{"@timestamp": "desc"}], size=1)
    found = hits["hits"]["hits"]
    return dict(found[0]["_source"]) if found else None


def _novelties(sources: Sources, name: str, series: str) -> list[View]:
    """The newest ones of the machine, or of one of its series."""
    matching: list[View] = [{"term": {"machine": name}}]
    if series:
        matching.append({"term": {"series": series}})
    query = {"bool": {"filter": matching}}
    found = sources.search("novelties", query=query, sort=[{"started": "desc"}], size=NOVELTIES)["hits"]["hits"]
    return [{"id": hit["_id"], **{field: hit["_source"].get(field) for field in _NOVELTY}} for hit in found]


def _series(sources: Sources, name: str, start: int, step: int) -> list[View]:
    """Each series by steps of time: the mean of its windows, and the least and greatest value in them."""
    values = {
        "mean": {"avg": {"field": "mean"}},
        "count": {"avg": {"field": "count"}},
        "low": _MINIMUM,
        "high": _MAXIMUM,
    }
    over_time = {"date_histogram": {"field": "@timestamp", "fixed_interval": f"{step}ms", "min_doc_count": 1}}
    described = {which: {"terms": {"field": which, "size": 1}} for which in ("kind", "unit")}
    inside = {**described, "time": {**over_time, "aggs": values}}
    by_series = {"terms": {"field": "series", "size": SERIES}, "aggs": inside}
    # Windows of several lengths overlap, and a count is that of its window: those of the shortest length are shown.
    by_length = {"terms": {"field": "window.size_seconds", "size": 1, "order": {"_key": "asc"}}}
    found = sources.search(
        "statistics",
        size=0,
        query={"bool": {"filter": [{"term": {"machine": name}}, {"range": {"@timestamp": {"gte": start}}}]}},
        aggs={"length": {**by_length, "aggs": {"series": by_series}}},
    )
    lengths = buckets(found.get("aggregations", {}), "length")
    return [_one(bucket, float(length["key"])) for length in lengths for bucket in buckets(length, "series")]


def _one(bucket: Mapping[str, Any], seconds: float) -> View:
    kind, unit = (next((one["key"] for one in buckets(bucket, which)), None) for which in ("kind", "unit"))
    statistic = "count" if kind == "log" else "mean"
    return {
        "series": bucket["key"],
        "unit": unit,
        "statistic": statistic,
        "window_seconds": seconds,
        "points": [
            {
                "time": int(one["key"]),
                "value": one[statistic]["value"],
                "low": None if kind == "log" else one["low"]["value"],
                "high": None if kind == "log" else one["high"]["value"],
            }
            for one in buckets(bucket, "time")
            if one[statistic]["value"] is not None
        ],
    }


def _control(sources: Sources, name: str) -> tuple[list[View] | None, list[View]]:
    """What people told the detector of the machine, the newest first; and the source, if it is down."""
    try:
        events = sources.control()
    except SourceDown as error:
        return None, [{"source": error.source, "reason": error.reason}]
    return [said(one) for one in reversed(events) if fnmatchcase(name, one["machine"])], []
