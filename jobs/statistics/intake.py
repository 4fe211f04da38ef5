"""New records of `events` into the state of their shard."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import orjson

from infra.contract.columnar import Columns
from infra.contract.watermarks import check_order, watermark_of
from jobs.statistics.catalogue import LABELS_BEGIN, Form
from jobs.statistics.histograms import spread_of
from jobs.statistics.panes import Fact, add_fact
from jobs.statistics.points import Points
from jobs.statistics.quantiles import Ints
from jobs.statistics.state import State

Record = dict[str, Any]


def take(state: State, records: Iterable[tuple[int, bytes]]) -> list[Record]:
    """Take (offset, value) records in the order of the log, watermarks among them; returns the control events.

    Raises OutOfOrderError if one contradicts an earlier watermark.
    """
    series: list[Ints] = []
    times: list[int] = []
    values: list[float] = []
    controls: list[Record] = []
    for offset, value in records:
        record, labels = _read(value)
        if (watermark := watermark_of(record)) is not None:
            state.watermark = max(state.watermark, watermark)
            continue
        events = record["events"]
        time = events["time_unix_nano"]
        first = min(time)
        if "retried" in record and first < state.watermark:
            continue  # rejected, sent again after a fix, and its window may have been emitted
        check_order(record, offset, first, state.watermark)
        if record["kind"] == "control":
            controls += [_control(record, *event) for event in zip(events["body"], time, strict=True)]
            continue
        _note_facts(state, record, offset, time, first)
        machine = state.catalogue.machine_number(record["machine"])
        numbers = state.catalogue.numbers(machine, record["kind"], events, labels)
        if "histogram" in events:
            _note_histograms(state, numbers, time, events["histogram"])
        series.append(numbers[events["labels"]] if "labels" in events else numbers)
        times += time
        values += _values(record["kind"], events)
    state.catalogue.grow()
    if series:
        state.wait(Points(np.concatenate(series), np.array(times, np.int64), np.array(values, np.float64)))
    return controls


def _read(value: bytes) -> tuple[Record, bytes]:
    """A record without the labels of its events, and their text, which follows LABELS_BEGIN; a watermark has none.

    There is no second LABELS_BEGIN: in a string, quotes are escaped, and no other list of a record is called `series`.
    """
    head, series, labels = value.partition(LABELS_BEGIN)
    return orjson.loads(head + b"}}" if series else value), labels


def _control(record: Record, body: str, time: int) -> Record:
    """As JSON of the schema `statistics`."""
    return {"id": record["id"], "machine": record["machine"], "control": orjson.loads(body), "time_unix_nano": time}


def _values(kind: str, events: Columns) -> list[float]:
    """Of data points; lines are only counted, and their severity stands in, so that a window has its highest."""
    if kind == "log":
        return [number or 0 for number in events.get("severity_number", [0] * len(events["time_unix_nano"]))]
    return events["value"]


def _note_facts(state: State, record: Record, offset: int, time: list[int], first: int) -> None:
    machine, inventory = record["machine"], record["inventory"]
    known = state.latest.get(machine)
    if known and known.inventory == inventory:
        inventory = known.inventory  # the same object: it is packed once
    for moment in _latest(time, first, max(time), state.windows.pane):
        add_fact(state.facts[moment - moment % state.windows.pane], machine, Fact(moment, inventory, offset, offset))


def _latest(time: list[int], first: int, last: int, pane: int) -> list[int]:
    """The latest time in each pane that there is one of; `first` and `last` are the least and the greatest."""
    if first // pane == last // pane:
        return [last]
    moments = np.sort(time)
    ends = np.flatnonzero(np.diff(moments // pane))
    return [*moments[ends].tolist(), last]


def _note_histograms(state: State, numbers: Ints, time: list[int], histograms: list[Record | None]) -> None:
    for number, at, histogram in zip(numbers.tolist(), time, histograms, strict=True):
        if histogram is not None and state.catalogue.series[number].form == Form.HISTOGRAM:
            state.waiting.append((number, at, spread_of(histogram)))
