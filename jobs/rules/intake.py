"""New records of `events`, as far as the rules look at them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeVar

import orjson
import pyarrow as pa

from infra.contract.dead_letters import InvalidRecordError
from infra.contract.schemas import LABELS
from jobs.rules.rule import Events, Observation, Record, Rule
from jobs.runtime.intake import (
    UNKNOWN_KIND,
    checked_column,
    checked_inventory,
    checked_labels,
    checked_machine,
    checked_numbers,
    checked_object,
    checked_rows,
    event_times,
    parse,
    watermark_in,
)
from jobs.runtime.shard_state import Message, Output

STAGE = "rules"
BODY_CHARACTERS = 1000  # of a log line that are kept
CACHED = 100_000  # answers that a cache holds before it starts again

Asked = tuple[str, Observation]  # the id of the rule that looks at an event, and the event
Selectors = tuple[tuple[str, int, Events], ...]  # with the ids of their rules, and which step of the rule they are
Key = TypeVar("Key")
Value = TypeVar("Value")


class Moment(NamedTuple):
    """A time at which something came of a machine with these inventory facts."""

    time: int
    machine: str
    inventory: str  # JSON with sorted keys


Moments = dict[Moment, list[Asked]]  # what rules look at, by when and where it came; often nothing but that it came


class Line(NamedTuple):
    """A log line of a machine."""

    moment: Moment
    series: str
    body: str
    template: str
    severity: int


class Intake:
    """Finds in records what rules look at. What it remembers are answers that it could find again."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules
        self._by_name: dict[str, tuple[Rule, ...]] = {}  # the rules that may watch a machine of this name
        self._by_facts: dict[tuple[str, str], tuple[Rule, ...]] = {}
        self._by_series: dict[tuple[str, str, tuple[str, ...]], Selectors] = {}

    def read(self, messages: Iterable[Message], watermark: int) -> tuple[Moments, int, list[Output]]:
        """What is in these records, the watermark after them, and the dead letters of those that can't be used.

        Events that are older than a watermark before them are passed over: they are in `events.late`.
        """
        taken: list[tuple[Record, int]] = []
        rejected: list[Output] = []
        for message in messages:
            try:
                record = parse(message.value)
                if (found := watermark_in(record, message)) is not None:
                    watermark = max(watermark, found)
                elif record.get("kind") != "control":  # those are the detector's
                    _check(record, message)
                    taken.append((record, watermark))
            except InvalidRecordError as error:
                rejected.append(Output.of_rejected(STAGE, message, error))
        return self._moments(taken), watermark, rejected

    def watching(self, machine: str, inventory: str) -> tuple[Rule, ...]:
        """The rules that watch a machine with these facts."""

        def find() -> tuple[Rule, ...]:
            facts = orjson.loads(inventory)
            return tuple(rule for rule in self._may_watch(machine) if rule.match.takes(machine, facts))

        return _cached(self._by_facts, (machine, inventory), find)

    def _may_watch(self, machine: str) -> tuple[Rule, ...]:
        return _cached(
            self._by_name, machine, lambda: tuple(rule for rule in self.rules if rule.match.may_take(machine))
        )

    def _moments(self, records: Iterable[tuple[Record, int]]) -> Moments:
        found: Moments = defaultdict(list)
        lines: list[Line] = []
        for record, not_before in records:
            machine = record["machine"]
            rules = self._may_watch(machine)
            if not rules:
                continue
            inventory = orjson.dumps(record.get("inventory") or {}, option=orjson.OPT_SORT_KEYS).decode()
            events = record["events"]
            kept = [place for place, time in enumerate(events["time_unix_nano"]) if time >= not_before]
            if any(rule.WATCHES_PRESENCE for rule in rules):
                for time in {events["time_unix_nano"][place] for place in kept}:
                    found[Moment(time, machine, inventory)] += ()
            if record["kind"] == "log":
                lines += _lines(machine, inventory, events, kept)
            else:
                for time, asked in self._points(machine, inventory, events, kept):
                    found[Moment(time, machine, inventory)].append(asked)
        for moment, asked in self._matched(lines):
            found[moment].append(asked)
        return found

    def _points(
        self, machine: str, inventory: str, events: Mapping[str, list[Any]], kept: Iterable[int]
    ) -> Iterator[tuple[int, Asked]]:
        """The data points that rules look at, with their times."""
        names, watching = events.get("name") or repeat(""), self.watching(machine, inventory)
        selecting = [self._selectors(*one, watching) for one in zip(events["series"], names, strict=False)]
        if not any(selecting):
            return
        rows, values = events.get("labels"), events.get("value")
        for place in kept:
            row, value = rows[place] if rows else place, values[place] if values else None
            for rule, step, selector in selecting[row]:
                if selector.takes_value(value):
                    point = Observation(step, events["series"][row], value, None)
                    yield events["time_unix_nano"][place], (rule, point)

    def _selectors(self, series: str, name: str | None, watching: tuple[Rule, ...]) -> Selectors:
        """Those that look at a series."""

        def find() -> Selectors:
            return tuple(
                (rule.id, step, selector)
                for rule in watching
                for step, selector in enumerate(rule.selectors)
                if selector.takes_series(name or "", series)
            )

        key = (series, name or "", tuple(rule.id for rule in watching))
        return _cached(self._by_series, key, find)

    def _matched(self, lines: Sequence[Line]) -> Iterator[tuple[Moment, Asked]]:
        """The log lines that rules look at: each expression runs once over all of them."""
        if not lines:
            return
        bodies = pa.array([line.body for line in lines], pa.string())
        templates = pa.array([line.template for line in lines], pa.string())
        severities = [line.severity for line in lines]
        for rule in self.rules:
            for step, selector in enumerate(rule.selectors):
                for place in sorted(selector.taken_lines(bodies, templates, severities)):
                    line = lines[place]
                    if any(one is rule for one in self.watching(line.moment.machine, line.moment.inventory)):
                        event = Observation(step, line.series, None, line.body[:BODY_CHARACTERS])
                        yield line.moment, (rule.id, event)


def _check(record: Record, message: Message) -> None:
    """Raises InvalidRecordError unless all that rules look at is as they expect it."""
    kind = record.get("kind")
    if kind not in ("metric", "log"):
        raise InvalidRecordError(UNKNOWN_KIND, f"kind: must be metric, log or control, is {kind!r:.100}")
    checked_machine(record)
    checked_inventory(record)
    events = checked_object(record, "events")
    event_times(events, message)
    checked_rows(events, checked_labels({name: events[name] for name in LABELS if name in events}))
    checked_numbers(events, "value")
    checked_column(events, "severity_number", (int, type(None)), "whole numbers")
    for name in ("body", "template"):
        checked_column(events, name, (str, type(None)), "texts")


def _lines(machine: str, inventory: str, events: Mapping[str, list[Any]], kept: Iterable[int]) -> Iterator[Line]:
    rows, empty = events.get("labels"), [None] * len(events["time_unix_nano"])
    bodies, templates, severities = (events.get(name) or empty for name in ("body", "template", "severity_number"))
    for place in kept:
        series = events["series"][rows[place] if rows else place]
        moment = Moment(events["time_unix_nano"][place], machine, inventory)
        yield Line(moment, series, bodies[place] or "", templates[place] or series, severities[place] or 0)


def _cached(cache: dict[Key, Value], key: Key, find: Callable[[], Value]) -> Value:
    if key not in cache:
        if len(cache) >= CACHED:
            cache.clear()
        cache[key] = find()
    return cache[key]
