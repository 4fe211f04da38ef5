"""Records of `statistics`, checked whole before the detector takes anything of them."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from infra.contract.dead_letters import InvalidRecordError
from infra.settings import describe
from jobs.detector.rules import Rule
from jobs.runtime.intake import (
    LARGEST_COUNT,
    MACHINE_CHARACTERS,
    NANO_PER_MILLI,
    checked_column,
    checked_columns,
    checked_inventory,
    checked_machine,
    checked_number,
    checked_numbers,
    checked_object,
    checked_optional_text,
    checked_text,
    checked_texts,
    checked_time,
    parse,
    unexpected,
)
from jobs.runtime.shard_state import Message

Record = dict[str, Any]

NOT_CONTROL = "not_control"
ACTIONS = ("feedback", "reset", "suppress", "allow", "retire")
# What an operator names: an id, a glob, a verdict. A glob becomes a regular expression, which must stay small.
NAME_CHARACTERS = 1_000
RECORD_CHARACTERS = 1_000_000
LONGEST_GAP = 1e10  # seconds
_NOVELTY_TEXTS = ("id", "verdict", "machine", "kind", "text")


def check_window(record: Mapping[str, Any], message: Message) -> None:
    """Raises InvalidRecordError unless a record of a window says by what the window is measured, and when it ended."""
    checked_machine(record)
    window = checked_object(record, "window")
    checked_text(window, "kind")
    checked_number(window, "size_seconds", 0.0)
    checked_time("window.end_unix_nano", window.get("end_unix_nano"), _after(message))


def check_statistics(record: Mapping[str, Any]) -> None:
    """Raises InvalidRecordError unless the detector can judge the record's series."""
    checked_inventory(record)
    statistics = checked_columns(record.get("statistics"))
    checked_texts(statistics, "series", required=True)
    checked_texts(statistics, "kind", required=True)
    if not set(statistics["kind"]) <= {"metric", "log"}:
        raise unexpected("kind", "a list of metric and log", statistics["kind"])
    for name in ("name", "unit", "example"):
        checked_texts(statistics, name)
    checked_column(statistics, "count", (int,), "whole numbers")
    if not all(0 <= count <= LARGEST_COUNT for count in statistics.get("count", [-1])):
        raise unexpected("count", f"a list of whole numbers from 0 to {LARGEST_COUNT}", statistics.get("count"))
    checked_numbers(statistics, "mean")


def check_controlled(record: Mapping[str, Any], message: Message) -> None:
    """Raises InvalidRecordError unless a record that carries a control event says something that can be done."""
    checked_time("time_unix_nano", record.get("time_unix_nano"), _after(message))
    check_control(record.get("control"))


def check_control(control: object) -> None:
    """Raises InvalidRecordError, code not_control, unless a control event can be obeyed."""
    try:
        _check_control(control)
    except InvalidRecordError as error:
        raise InvalidRecordError(NOT_CONTROL, error.reason) from None


def _check_control(control: Any) -> None:
    if type(control) is not dict:
        raise unexpected("control", "an object", control)
    action = control.get("action")
    if action not in ACTIONS:
        raise unexpected("action", f"one of {', '.join(ACTIONS)}", action)
    checked_text(control, "machine", MACHINE_CHARACTERS)
    checked_optional_text(control, "by", NAME_CHARACTERS)
    match action:
        case "feedback":
            _check_feedback(control)
        case "reset":
            checked_text(control, "series", NAME_CHARACTERS)
        case "suppress":
            _check_rule(control)
        case "retire":
            checked_time("valid_to_unix_nano", control.get("valid_to_unix_nano"))
        case _:
            checked_text(control, "rule", NAME_CHARACTERS)


def _check_feedback(control: Mapping[str, Any]) -> None:
    checked_text(control, "novelty", NAME_CHARACTERS)
    verdict = checked_text(control, "verdict", NAME_CHARACTERS)
    if verdict == "silence":
        if checked_number(control, "observed", 0.0) > LONGEST_GAP:
            raise unexpected("observed", f"at most {LONGEST_GAP:g} seconds", control["observed"])
    elif verdict not in ("new_entity", "gone"):
        is_machine = checked_text(control, "kind", NAME_CHARACTERS) == "machine"
        checked_number(control, "observed", 0.0 if is_machine else -1e300)
        if not is_machine:
            checked_text(control, "series")
            checked_number(control, "expected")
    if control.get("novelty_record") is not None:
        known_novelty(control)


def known_novelty(control: Mapping[str, Any]) -> Record:
    """The newest record of the novelty that feedback is about; empty if it isn't given."""
    text = control.get("novelty_record")
    if text is None:
        return {}
    record = parse(checked_text(control, "novelty_record", RECORD_CHARACTERS).encode())
    for name in _NOVELTY_TEXTS:
        checked_text(record, name)
    checked_machine(record)
    checked_inventory(record)
    for name in ("time_unix_nano", "since_unix_nano"):
        checked_time(f"novelty_record.{name}", record.get(name))
    checked_number(record, "score")
    if _depth(record) > MOST_LEVELS:
        raise unexpected("novelty_record", f"at most {MOST_LEVELS} levels deep", record)
    return record


MOST_LEVELS = 5  # of a novelty's record: the record, its contributors, one of them, its fields


def _depth(value: object) -> int:
    """How many levels an object has; it stops counting where there are too many."""
    levels, inside = 0, [value]
    while inside and levels <= MOST_LEVELS:
        levels += 1
        nested = [one for one in inside if isinstance(one, dict | list)]
        inside = [one for outer in nested for one in (outer.values() if isinstance(outer, dict) else outer)]
    return levels


def _check_rule(control: Mapping[str, Any]) -> None:
    checked_text(control, "rule", NAME_CHARACTERS)
    checked_optional_text(control, "series", NAME_CHARACTERS)
    try:
        Rule.of(control)
    except ValidationError as error:
        raise InvalidRecordError(NOT_CONTROL, describe(error)) from None


def _after(message: Message) -> int:
    """The latest time that a record may speak of: what it says was known when it was written."""
    return (message.source.timestamp_unix_milli + 1) * NANO_PER_MILLI
