"""How the references in Python read JSON: what the decoders in the JVM are compared with."""

from collections.abc import Callable
from typing import Any

import orjson

from connectors.decoders.records import UnusableError

_LARGEST = 2**63 - 1


def parse(value: bytes | None) -> Any:
    """A record's JSON. Bytes that aren't UTF-8 become U+FFFD.

    Raises:
        UnusableError: it is no JSON.
    """
    value = value or b""
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        pass
    try:
        return orjson.loads(value.decode(errors="replace"))
    except orjson.JSONDecodeError:
        raise UnusableError("not_json") from None


def integer(value: Any) -> int | None:
    """A 64-bit integer from a JSON number or its digits; null if it is none."""
    if isinstance(value, str):
        try:
            value = int(value) if "_" not in value else None
        except ValueError:
            return None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -_LARGEST - 1 <= value <= _LARGEST else None


def time(value: Any) -> int | None:
    """Nanoseconds; null for 0, which means unknown, and for what isn't a positive 64-bit number."""
    number = integer(value)
    return number if number is not None and number > 0 else None


def double(value: Any) -> float | None:
    """A double from a JSON number or its text, NaN and infinities too; null if it is none."""
    if isinstance(value, float):
        return value
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return None if isinstance(value, str) and "_" in value else float(value)
    except (ValueError, OverflowError):
        return None


def mapping(value: Any) -> dict[str, Any]:
    """A JSON object; null is an empty one. Raises TypeError for anything else."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


def every(convert: Callable[[Any], Any], values: Any) -> list[Any] | None:
    """A list converted; null if it is null, or if one of its values can't be: a histogram has all its buckets or none.

    Raises TypeError if it is no list.
    """
    if values is None:
        return None
    if not isinstance(values, list):
        raise TypeError("not a list")
    found = [convert(value) for value in values]
    return None if any(new is None and old is not None for new, old in zip(found, values, strict=True)) else found


def text(value: Any) -> str | None:
    """A JSON value as text: a string as it is, anything else as its JSON."""
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value).decode()
