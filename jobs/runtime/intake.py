"""Checks of records before a fold takes anything of them. What fails is raised as InvalidRecordError: a dead letter.

Whoever may write an internal topic may write anything there. What a fold reads must therefore have the right types, and
numbers, texts and times within bounds; else one record could stop the job, each time that it is started again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import orjson

from infra.contract.dead_letters import InvalidRecordError
from infra.contract.inventory import DEPENDS_ON, MOST_DEPENDENCIES, PLACES, VALID_TO, WORKLOAD
from infra.contract.schemas import LABELS
from infra.contract.watermarks import watermark_of
from jobs.runtime.shard_state import LATEST_MILLI, Message

Record = dict[str, Any]
T = TypeVar("T")

NOT_JSON, NOT_EXPECTED, UNKNOWN_KIND = "not_json", "not_expected", "unknown_kind"
AHEAD, LATE = "ahead", "late"

NANO_PER_MILLI = 1_000_000
LATEST_NANO = LATEST_MILLI * NANO_PER_MILLI
# How far an event may be ahead of its record's Kafka timestamp. Of coalesced records that is the first one's, and in a
# replay of a small fleet one record may hold months. What is further ahead would wait in the state for ever.
AHEAD_NANO = 366 * 86_400 * 10**9
MACHINE_CHARACTERS = 1_000
TEXT_CHARACTERS = 65_536  # of a series' name, a unit, a sentence: several of them make a record
LARGEST_COUNT = 2**53  # a larger whole number isn't exact as a float
LARGEST_NUMBER = 1e300  # a larger one would be infinite once it is added or multiplied
_NUMBERS = (int, float)


def unexpected(field: str, wanted: str, found: object) -> InvalidRecordError:
    """The error of a field that isn't what it must be."""
    return InvalidRecordError(NOT_EXPECTED, f"{field}: must be {wanted}, is {_shown(found)}")


def parse(value: bytes | None) -> Record:
    """A record's JSON, which must be an object."""
    try:
        record = orjson.loads(value or b"")
    except orjson.JSONDecodeError as error:
        raise InvalidRecordError(NOT_JSON, f"no JSON: {error}") from None
    if type(record) is not dict:
        raise unexpected("the record", "an object", record)
    return record


def watermark_in(record: Mapping[str, Any], message: Message) -> int | None:
    """The time of a record if it is a watermark record; else None.

    It can't be ahead of its own Kafka timestamp, which a broker keeps near its clock: one that was would make all
    events late until then, and what a fold writes would have a time that no broker takes.
    """
    watermark = watermark_of(record)
    if watermark is None:
        return None
    checked_time("watermark_unix_nano", watermark)
    if watermark // NANO_PER_MILLI > message.source.timestamp_unix_milli:
        raise InvalidRecordError(AHEAD, f"watermark {watermark} is ahead of its Kafka timestamp")
    return watermark


def checked_time(field: str, time: object, latest: int = LATEST_NANO) -> int:
    """A time in ns, after 1970 and not after `latest`."""
    if type(time) is not int or not 0 <= time <= LATEST_NANO:
        raise unexpected(field, "a time in nanoseconds from 1970 to 2200", time)
    if time > latest:
        raise InvalidRecordError(AHEAD, f"{field}: {time} is too far ahead of the record's Kafka timestamp")
    return time


def latest_event(message: Message) -> int:
    """The latest time, ns, that an event of this record may have."""
    return message.source.timestamp_unix_milli * NANO_PER_MILLI + AHEAD_NANO


def checked_text(record: Mapping[str, Any], field: str, most: int = TEXT_CHARACTERS) -> str:
    """A field that must be a text, not empty and of at most so many characters."""
    text = record.get(field)
    if type(text) is not str or not 0 < len(text) <= most:
        raise unexpected(field, f"a text of 1 to {most} characters", text)
    return text


def checked_optional_text(record: Mapping[str, Any], field: str, most: int = TEXT_CHARACTERS) -> None:
    """The same of a field that may be absent or empty."""
    text = record.get(field)
    if text is not None and (type(text) is not str or len(text) > most):
        raise unexpected(field, f"a text of at most {most} characters", text)


def checked_machine(record: Mapping[str, Any]) -> str:
    """The machine that a record is of."""
    return checked_text(record, "machine", MACHINE_CHARACTERS)


def checked_number(
    record: Mapping[str, Any], field: str, least: float = -LARGEST_NUMBER, most: float = LARGEST_NUMBER
) -> float:
    """A field that must be a number that can be calculated with."""
    number = record.get(field)
    if type(number) not in _NUMBERS or not least <= number <= most:  # type: ignore[operator]
        raise unexpected(field, f"a number from {least:g} to {most:g}", number)
    return number  # type: ignore[return-value]


def checked_object(record: Mapping[str, Any], field: str) -> Record:
    """A field that must be an object."""
    found = record.get(field)
    if type(found) is not dict:
        raise unexpected(field, "an object", found)
    return found


def checked_inventory(record: Mapping[str, Any]) -> Record | None:
    """The facts of the record's machine, which may be absent: texts by name, null, whether they are known, a time."""
    inventory = record.get("inventory")
    if inventory is None:
        return None
    if type(inventory) is not dict:
        raise unexpected("inventory", "an object of texts", inventory)
    if inventory.get(VALID_TO) is not None:
        checked_time(f"inventory.{VALID_TO}", inventory[VALID_TO])
    checked_names(f"inventory.{DEPENDS_ON}", inventory.get(DEPENDS_ON))
    texts = (fact for name, fact in inventory.items() if name not in (VALID_TO, DEPENDS_ON))
    if not all(type(fact) in (str, bool, type(None)) for fact in texts):
        raise unexpected("inventory", "an object of texts", inventory)
    for place in (*PLACES, WORKLOAD):
        checked_optional_text(inventory, place, MACHINE_CHARACTERS)
    if sum(map(len, inventory)) + sum(len(str(fact)) for fact in inventory.values()) > TEXT_CHARACTERS:
        raise unexpected("inventory", f"at most {TEXT_CHARACTERS} characters", inventory)
    return inventory


def checked_names(field: str, names: object) -> None:
    """What a machine depends on: a list of so many names at most, or nothing."""
    if names is None:
        return
    if type(names) is not list or len(names) > MOST_DEPENDENCIES:
        raise unexpected(field, f"a list of at most {MOST_DEPENDENCIES} names", names)
    for name in names:
        if type(name) is not str or not 0 < len(name) <= MACHINE_CHARACTERS:
            raise unexpected(field, f"a list of names of 1 to {MACHINE_CHARACTERS} characters", name)


def checked_columns(table: object, rows: int | None = None) -> dict[str, list[Any]]:
    """A table: an object of lists of one length, that of `rows` if it is given."""
    if type(table) is not dict or not table:
        raise unexpected("the table", "an object of lists", table)
    length = rows
    for name, column in table.items():
        if type(column) is not list:
            raise unexpected(name, "a list", column)
        length = len(column) if length is None else length
        if len(column) != length:
            raise unexpected(name, f"as long as the other columns, {length}", f"{len(column)} values")
    return table


def checked_column(table: Mapping[str, Sequence[Any]], name: str, types: Collection[type], wanted: str) -> None:
    """A column of a table, if it is there, whose values must be of these types."""
    column = table.get(name)
    if column is not None and not set(map(type, column)) <= set(types):
        raise unexpected(name, f"a list of {wanted}", column)


def checked_texts(table: Mapping[str, Sequence[Any]], name: str, *, required: bool = False) -> None:
    """A column of texts, each of a bounded length; null where there is none, unless it is required."""
    if required and name not in table:
        raise unexpected(name, "a list of texts", None)
    checked_column(table, name, (str,) if required else (str, type(None)), "texts")
    # Where all of them are shorter together, which is cheap to know, each is.
    texts = [text for text in table.get(name, ()) if text]
    if sum(map(len, texts)) > TEXT_CHARACTERS and max(map(len, texts)) > TEXT_CHARACTERS:
        raise unexpected(name, f"texts of at most {TEXT_CHARACTERS} characters", "longer ones")


def checked_numbers(table: Mapping[str, Sequence[Any]], name: str, *, required: bool = False) -> None:
    """A column of numbers; null where there is none, unless it is required."""
    if required and name not in table:
        raise unexpected(name, "a list of numbers", None)
    checked_column(table, name, _NUMBERS if required else (*_NUMBERS, type(None)), "numbers")


def event_times(events: Mapping[str, list[Any]], message: Message) -> tuple[list[int], int, int]:
    """The times of the events of a record of `events`, the least and the greatest; their columns have one length."""
    times = events.get("time_unix_nano")
    if type(times) is not list or not times:
        raise unexpected("time_unix_nano", "a list of times", times)
    try:
        first, last, is_whole = min(times), max(times), type(sum(times)) is int
    except TypeError:
        raise unexpected("time_unix_nano", "a list of times", times) from None
    if not is_whole:
        raise unexpected("time_unix_nano", "a list of times in nanoseconds", times)
    checked_time("time_unix_nano", first)
    checked_time("time_unix_nano", last, latest_event(message))
    of_labels = LABELS if "labels" in events else ()  # they have rows of their own
    for name, column in events.items():
        if type(column) is not list or (len(column) != len(times) and name not in of_labels):
            raise unexpected(name, f"a list as long as time_unix_nano, {len(times)}", column)
    return times, first, last


def checked_labels(table: dict[str, list[Any]]) -> int:
    """The columns of LABELS of a record of `events`; returns how many rows they have."""
    checked_columns(table)
    checked_texts(table, "series", required=True)
    for name in ("name", "unit", "type", "temporality"):
        checked_texts(table, name)
    checked_column(table, "monotonic", (bool, type(None)), "true or false")
    return len(table["series"])


def checked_rows(events: Mapping[str, list[Any]], rows: int) -> None:
    """Each event has one of so many rows of labels: the one that `labels` names, or its own."""
    at = events.get("labels")
    if at is None:
        if len(events["time_unix_nano"]) != rows:
            raise unexpected("series", f"as long as time_unix_nano, {len(events['time_unix_nano'])}", f"{rows} rows")
        return
    try:
        is_known = type(sum(at)) is int and min(at) >= 0 and max(at) < rows
    except TypeError:
        is_known = False
    if not is_known:
        raise unexpected("labels", f"a list of rows from 0 to {rows - 1}", at)


def checked_each(check: Callable[[T], object], values: Iterable[T | None]) -> None:
    """Check each value that isn't null."""
    for value in values:
        if value is not None:
            check(value)


def _shown(found: object) -> str:
    text = repr(found) if not isinstance(found, list | dict) else f"{type(found).__name__} of {len(found)}"
    return text if len(text) <= 100 else f"{text[:100]}..."
