"""New records of `events` into the state of their shard."""

from collections.abc import Iterable
from typing import Any

import orjson

from jobs.statistics.catalogue import Form
from jobs.statistics.histograms import spread_of
from jobs.statistics.panes import Fact, add_fact
from jobs.statistics.state import State

Record = dict[str, Any]


class OutOfOrderError(Exception):
    """An event is older than a tick that came before it: its window may have been told already."""


def take(state: State, records: Iterable[tuple[int, bytes]]) -> list[Record]:
    """Take (offset, value) records in the order of the log, ticks among them; returns the control events, to pass on.

    Raises OutOfOrderError if one contradicts an earlier tick.
    """
    series: list[int] = []
    times: list[int] = []
    values: list[float] = []
    controls: list[Record] = []
    for offset, value in records:
        record = orjson.loads(value)
        if "tick_unix_nano" in record:
            state.tick = max(state.tick, record["tick_unix_nano"])
            continue
        events = record["events"]
        time = [event["time_unix_nano"] for event in events]
        if "retried" in record and min(time) < state.tick:
            continue  # rejected, sent again after a fix, and its window may have been told
        _check_order(state, record, offset, min(time))
        if record["kind"] == "control":
            controls += [_control(record, event) for event in events]
            continue
        _note_facts(state, record, offset, time)
        numbers = state.catalogue.numbers(state.catalogue.machine_number(record["machine"]), record["kind"], events)
        if record["kind"] == "log":
            # Lines are only counted; their severity stands in for the value, so that a window has its highest.
            values += [event.get("severity_number") or 0 for event in events]
        else:
            values += [event["value"] for event in events]
            _note_histograms(state, numbers, time, events)
        series += numbers
        times += time
    state.catalogue.grow()
    if series:
        state.points = state.points.plus(series, times, values)
    return controls


def _control(record: Record, event: Record) -> Record:
    """As JSON of the schema `statistics`."""
    control, time = orjson.loads(event["body"]), event["time_unix_nano"]
    return {"id": record["id"], "machine": record["machine"], "control": control, "time_unix_nano": time}


def _check_order(state: State, record: Record, offset: int, first: int) -> None:
    if first < state.tick:
        raise OutOfOrderError(
            f"record {record['id']} at offset {offset} has an event at {first}, before the tick {state.tick}: "
            "was something else than enrichment writing to `events`, or a broker's clock set back by more than 1 s?"
        )


def _note_facts(state: State, record: Record, offset: int, time: list[int]) -> None:
    first, last = min(time), max(time)
    machine, inventory = record["machine"], record["inventory"]
    known = state.latest.get(machine)
    if known and known.inventory == inventory:
        inventory = known.inventory  # the same object: it is packed once
    fact = Fact(time[0], record["id"], inventory, offset, offset)
    size = state.windows.pane
    for start in {moment - moment % size for moment in (time if last // size > first // size else time[:1])}:
        add_fact(state.facts[start], machine, fact)


def _note_histograms(state: State, numbers: list[int], time: list[int], events: list[Record]) -> None:
    for at in [at for at, event in enumerate(events) if "histogram" in event]:
        if state.catalogue.series[numbers[at]].form == Form.HISTOGRAM:
            state.waiting.append((numbers[at], time[at], spread_of(events[at]["histogram"])))
