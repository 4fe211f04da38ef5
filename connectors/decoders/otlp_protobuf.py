"""What OTLP's metrics and logs share as protobuf, read with `opentelemetry-proto`.

Gives the same rows as the JSON decoders of the same data.
"""

import json
from collections.abc import Iterable
from typing import Any, TypeVar

from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from connectors.decoders.otlp_values import Entry
from connectors.decoders.records import UnusableError

Request = TypeVar("Request", bound=Message)


def parse(request: type[Request], value: bytes | None) -> Request:
    """Raises UnusableError."""
    if value is None:
        raise UnusableError("not_protobuf")
    try:
        parsed: Request = request.FromString(value)
    except DecodeError:
        raise UnusableError("not_protobuf") from None
    return parsed


def entries(pairs: Iterable[KeyValue]) -> tuple[Entry, ...]:
    """OTLP's attributes as text, in their order."""
    return tuple([(pair.key, pair.value.string_value or value_text(pair.value)) for pair in pairs])


def value_text(value: AnyValue) -> str | None:
    """An AnyValue as text: a string as it is, arrays and key-value lists in their JSON; null if it's unset."""
    field = value.WhichOneof("value")
    if field == "string_value":
        return str(value.string_value)
    if field is None:
        return None
    if field == "bool_value":
        return str(value.bool_value).lower()
    if field == "double_value":
        return number_text(value.double_value)
    if field == "int_value":
        return str(value.int_value)
    whole: dict[str, Any] = MessageToDict(value)
    return json.dumps(next(iter(whole.values())), separators=(",", ":"), ensure_ascii=False).strip('"')


def number_text(number: float) -> str:
    """The shortest JSON text of a double: 1 for 1.0."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
