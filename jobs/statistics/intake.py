"""New records of `events` into the state of their shard. Each is checked whole before anything of it is taken."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import orjson

from infra.contract.columnar import Columns, event_columns, to_rows
from infra.contract.dead_letters import InvalidRecordError
from infra.contract.schemas import LABELS
from jobs.runtime.intake import (
    LARGEST_COUNT,
    LATE,
    NANO_PER_MILLI,
    UNKNOWN_KIND,
    checked_column,
    checked_inventory,
    checked_labels,
    checked_machine,
    checked_object,
    checked_rows,
    checked_text,
    checked_time,
    event_times,
    parse,
    unexpected,
    watermark_in,
)
from jobs.runtime.shard_state import Message, Output
from jobs.statistics.catalogue import LABELS_BEGIN, REFUSED, Form
from jobs.statistics.histograms import spread_of
from jobs.statistics.limits import MACHINE
from jobs.statistics.lines import Lines
from jobs.statistics.panes import Fact, add_fact
from jobs.statistics.points import Points
from jobs.statistics.quantiles import Ints
from jobs.statistics.state import State

Record = dict[str, Any]

STAGE = "statistics"
LATE_TOPIC = "events.late"
HIGHEST_SEVERITY = 255
_LABELS = frozenset(LABELS)
_TEXT_TYPES = frozenset((str, type(None)))


class Batch(NamedTuple):
    """The events of a record, checked.

    `numbers` are those of the series of its rows of labels if these are known by their text; else the rows are in
    `labels`.
    """

    record: Record
    times: list[int]
    first: int
    last: int
    text: bytes
    labels: Columns
    numbers: Ints | None


class Gathered:
    """What the records of one call have given so far."""

    def __init__(self) -> None:
        self.outputs: list[Output] = []  # control events, late data, dead letters
        self.series: list[Ints] = []
        self.times: list[int] = []
        self.values: list[float] = []
        self.lines: list[Lines] = []


def take(state: State, messages: Iterator[Message]) -> list[Output]:
    """Take records in the order of the log, up to a watermark that ends a pane.

    Returns what needs no window: control events, which go on as they came, late data and dead letters.
    """
    found, pane = Gathered(), state.watermark // state.windows.pane
    for message in messages:
        try:
            _take(state, message, found)
        except InvalidRecordError as error:
            found.outputs.append(Output.of_rejected(STAGE, message, error))
        if state.watermark // state.windows.pane > pane:
            break  # which series there are, and so which are too many, depends on what this closes
    if found.lines:
        lines = Lines.joined(found.lines)
        state.examples.take(lines, state.windows.pane)
        state.lines.wait(lines.take(state.parameters.wants(lines.series)))
    state.catalogue.grow()
    if found.series:
        times, values = np.array(found.times, np.int64), np.array(found.values, np.float64)
        state.wait(Points(np.concatenate(found.series), times, values))
    return found.outputs


def _take(state: State, message: Message, found: Gathered) -> None:
    """Take one record; nothing of it is taken if this raises."""
    record, text = _read(message.value)
    if (watermark := watermark_in(record, message)) is not None:
        state.watermark = max(state.watermark, watermark)
    elif record.get("kind") == "control":
        found.outputs += _controls(state, record, message)
    else:
        batch = _checked(state, record, text, message)
        if batch.first < state.watermark:
            late, rest = _split_late(state, batch, message)
            found.outputs.append(late)
            if rest is None:
                return
            batch = rest
        _add(state, batch, message.source.offset, found)


def _read(value: bytes | None) -> tuple[Record, bytes]:
    """A record without the labels of its events, and their text, which follows LABELS_BEGIN.

    There is no second LABELS_BEGIN in what enrichment writes: in a string, quotes are escaped, and no other list of a
    record is called `series`. What anyone else has written may be in another order: then it is parsed as a whole.
    """
    head, begin, text = (value or b"").partition(LABELS_BEGIN)
    if begin and text.endswith(b"]}}"):
        try:
            record = orjson.loads(head + b"}}")
        except orjson.JSONDecodeError:
            return parse(value), b""
        events = record.get("events")
        if type(events) is dict and _LABELS.isdisjoint(events):
            return record, text
    return parse(value), b""


def _checked(state: State, record: Record, text: bytes, message: Message) -> Batch:
    """The data points or log lines of a record, checked whole; `text` is that of their labels, if it was cut off."""
    kind, machine = record.get("kind"), checked_machine(record)
    if kind not in ("metric", "log"):
        raise InvalidRecordError(UNKNOWN_KIND, f"kind: must be metric, log or control, is {kind!r:.100}")
    known = state.latest.get(machine)
    if (known is None or known.inventory != record.get("inventory")) and checked_inventory(record) is None:
        raise unexpected("inventory", "an object", None)
    events = checked_object(record, "events")
    times, first, last = event_times(events, message)
    _check_values(kind, events)
    numbers = state.catalogue.known_scrape(machine, text) if text and kind == "metric" else None
    labels: Columns = {}
    if numbers is None:
        labels = _labels(events, text)
        if text and not labels.keys() <= _LABELS:  # the rest of the record was no labels only
            return _checked(state, parse(message.value), b"", message)
        rows = checked_labels(labels)
        if kind == "metric" and not all(map(_are_attributes, labels.get("attributes", ()))):
            raise unexpected("attributes", "a list of objects of texts", labels["attributes"])
    else:
        rows = len(numbers)
    checked_rows(events, rows)
    return Batch(record, times, first, last, text, labels, numbers)


def _labels(events: Columns, text: bytes) -> Columns:
    if not text:
        return {name: events[name] for name in LABELS if name in events}
    try:
        found: Columns = orjson.loads(b'{"series":[' + text[:-1])
    except orjson.JSONDecodeError as error:
        raise InvalidRecordError("not_json", f"no JSON: {error}") from None
    return found


def _check_values(kind: str, events: Columns) -> None:
    if kind == "log":
        checked_column(events, "body", (str, type(None)), "texts")
        checked_column(events, "severity_number", (int, type(None)), "whole numbers")
        if not all(0 <= (number or 0) <= HIGHEST_SEVERITY for number in events.get("severity_number", ())):
            raise unexpected("severity_number", f"from 0 to {HIGHEST_SEVERITY}", events["severity_number"])
        return
    values = events.get("value")
    try:
        sum(values)  # type: ignore[arg-type]
    except TypeError:
        raise unexpected("value", "a list of numbers", values) from None
    for histogram in events.get("histogram", ()):
        if histogram is not None:
            _check_histogram(histogram)


def _are_attributes(found: object) -> bool:
    return found is None or (type(found) is dict and _TEXT_TYPES.issuperset(map(type, found.values())))


def _check_histogram(histogram: Any) -> None:
    if type(histogram) is not dict:
        raise unexpected("histogram", "an object", histogram)
    counts, bounds = histogram.get("counts") or [], histogram.get("bounds") or []
    if type(counts) is not list or type(bounds) is not list:
        raise unexpected("histogram.counts", "a list", counts)
    for count in (histogram.get("count") or 0, *(count or 0 for count in counts)):
        if type(count) is not int or not 0 <= count <= LARGEST_COUNT:
            raise unexpected("histogram.count", f"a whole number from 0 to {LARGEST_COUNT}", count)


def _split_late(state: State, batch: Batch, message: Message) -> tuple[Output, Batch | None]:
    """The events that are older than the watermark, as a record of `events.late`; and the others, if there are any.

    A broker's clock that was set back gives such, and a dead letter that was retried: their windows may be out already.
    """
    whole = batch.record["events"] | (_labels({}, batch.text) if batch.text else {})
    rows = to_rows(whole)
    checked_text(batch.record, "id")
    late = [row for row in rows if row["time_unix_nano"] < state.watermark]
    rest = [row for row in rows if row["time_unix_nano"] >= state.watermark]
    source = message.source
    headers = (("kappa.source", source.name.encode()),)
    try:
        value = orjson.dumps(batch.record | {"events": event_columns(late)})
    except orjson.JSONEncodeError as error:
        raise unexpected("the record", "an object of few levels", str(error)) from None
    time = source.timestamp_unix_milli * NANO_PER_MILLI
    output = Output(batch.record["machine"], value, time, headers, LATE_TOPIC, by_key=True, note=LATE)
    if not rest:
        return output, None
    events = event_columns(rest)
    times, labels = events["time_unix_nano"], {name: events[name] for name in LABELS if name in events}
    record = batch.record | {"events": events}
    return output, Batch(record, times, min(times), max(times), b"", labels, None)


def _controls(state: State, record: Record, message: Message) -> list[Output]:
    """A record's control events as records of the schema `statistics`. A late one takes effect with the next window."""
    machine, identity = checked_machine(record), checked_text(record, "id")
    events = checked_object(record, "events")
    times, _, last = event_times(events, message)
    checked_time("time_unix_nano", last, (message.source.timestamp_unix_milli + 1) * NANO_PER_MILLI)
    bodies = events.get("body", [])
    if len(bodies) != len(times):
        raise unexpected("body", "a list of texts", bodies)
    found = []
    for body, time in zip(bodies, times, strict=True):
        if type(body) is not str:
            raise unexpected("body", "a text", body)
        at = max(time, state.watermark)
        whole = {"id": identity, "machine": machine, "control": parse(body.encode()), "time_unix_nano": at}
        try:
            found.append(Output(machine, orjson.dumps(whole), at))
        except orjson.JSONEncodeError as error:
            raise unexpected("body", "an object of few levels", str(error)) from None
    return found


def _add(state: State, batch: Batch, offset: int, found: Gathered) -> None:
    """Take the events of a record."""
    record, events = batch.record, batch.record["events"]
    machine, numbers = state.catalogue.machine_number(record["machine"]), batch.numbers
    if machine == REFUSED:
        panes = _panes(state, batch.times)
        state.refused.note("", MACHINE, panes, [record["machine"]] * len(panes), offset)
        return
    _note_facts(state, batch, offset)
    if numbers is None:
        cells = {} if "labels" in events else events
        numbers = state.catalogue.numbers(machine, record["kind"], cells | batch.labels)
        if batch.text and record["kind"] == "metric":
            state.catalogue.remember_scrape(machine, batch.text, numbers)
    of_events = numbers[events["labels"]] if "labels" in events else numbers
    if "histogram" in events:
        _note_histograms(state, of_events, batch.times, events["histogram"])
    times, values = batch.times, _values(record["kind"], events)
    bodies = events.get("body", ()) if record["kind"] == "log" else ()
    if (numbers < 0).any():
        kept = _within_limits(state, batch, of_events, offset)
        of_events, times, values = of_events[kept], [times[at] for at in kept], [values[at] for at in kept]
        bodies = [bodies[at] for at in kept] if bodies else ()
    if bodies:
        found.lines.append(Lines.of(of_events, times, values, bodies))
    found.series.append(of_events)
    found.times += times
    found.values += values


def _within_limits(state: State, batch: Batch, of_events: Ints, offset: int) -> list[int]:
    """The places of the events whose series are not too many; the others are noted."""
    record = batch.record
    names = (_labels({}, batch.text) if batch.text else batch.labels)["series"]
    rows, refused = record["events"].get("labels"), np.flatnonzero(of_events < 0)
    of_refused = [names[rows[at] if rows else at] for at in refused.tolist()]
    state.refused.note(record["machine"], record["kind"], _panes(state, batch.times)[refused], of_refused, offset)
    kept: list[int] = np.flatnonzero(of_events >= 0).tolist()
    return kept


def _panes(state: State, times: list[int]) -> Ints:
    """The start of each one's pane."""
    time = np.array(times, np.int64)
    return time - time % state.windows.pane


def _values(kind: str, events: Columns) -> list[float]:
    """Of data points; lines are only counted, and their severity stands in, so that a window has its highest."""
    if kind == "log":
        return [number or 0 for number in events.get("severity_number", [0] * len(events["time_unix_nano"]))]
    return events["value"]


def _note_facts(state: State, batch: Batch, offset: int) -> None:
    machine, inventory = batch.record["machine"], batch.record["inventory"]
    known = state.latest.get(machine)
    if known and known.inventory == inventory:
        inventory = known.inventory  # the same object: it is packed once
    for moment in _latest(batch.times, batch.first, batch.last, state.windows.pane):
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
        if number >= 0 and histogram is not None and state.catalogue.series[number].form == Form.HISTOGRAM:
            state.waiting.append((number, at, spread_of(histogram)))
