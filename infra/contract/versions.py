"""The versions of the chain's records, and how a record of a former version becomes one of this version.

A record says in its header `kappa.schema` what it is, such as `statistics/4`. While an upgrade rolls through the jobs,
and where an old topic is read again, a job meets records of other versions than its own:

- A former one is up-cast, from each version to the next, before anything else looks at it.
- A later one is taken as it is: unknown fields are passed over, and one that lacks what the job needs is a dead letter.
"""

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from infra.contract.watermarks import watermark_value

HEADER = "kappa.schema"

# By the name of a schema in `infra.contract.schemas`. One that has changed so that a reader must know gets the next
# number, and an up-caster from the number before.
VERSIONS = {"events": 3, "statistics": 4, "novelties": 2, "incidents": 2}  # the others have 1

Record = dict[str, Any]
Upcaster = Callable[[Record], Record]

_WATERMARK_OF_0_1_0 = b'{"tick_unix_nano":'  # the whole record but for a number and the brace; it has no header


def version_header(schema: str) -> tuple[str, bytes]:
    """The header of a record of this version."""
    return HEADER, f"{schema}/{VERSIONS.get(schema, 1)}".encode()


def upcast(value: bytes | None, version: bytes | None) -> bytes | None:
    """The bytes that this version has for a record; the same ones if it isn't of a former version that can be up-cast.

    Nothing is checked: what is no JSON, or not as its version says, comes back as it is, and the job rejects it.

    Args:
        value: the record's bytes.
        version: the value of its header `kappa.schema`, None if it has none.
    """
    if value is None:
        return None
    if version is None:
        return _upcast_watermark(value)
    steps = _CHAINS.get(version)
    if steps is None:
        return value
    try:
        record = orjson.loads(value)
        for step in steps:
            record = step(record)
        return orjson.dumps(record)
    except (AttributeError, KeyError, TypeError, ValueError):
        return value


def _upcast_watermark(value: bytes) -> bytes:
    if not value.startswith(_WATERMARK_OF_0_1_0):
        return value
    number = value[len(_WATERMARK_OF_0_1_0) : -1].strip()
    return watermark_value(int(number)) if number.isdigit() else value


def _statistics_of_3(record: Record) -> Record:
    """In feedback the novelty's newest record was called `told`."""
    control = record.get("control")
    if control is None or "told" not in control:
        return record
    renamed = {"novelty_record" if name == "told" else name: said for name, said in control.items()}
    return record | {"control": renamed}


def _novelties_of_1(record: Record) -> Record:
    """A sustained deviation was called a spell."""
    return record | {"statistic": "sustained_deviation"} if record.get("statistic") == "spell" else record


def _incidents_of_1(record: Record) -> Record:
    """Causes had no reasons, and an incident never became a part of another: the fields are absent."""
    return record


# From the version that is named to the one after it.
UPCASTERS: dict[str, Upcaster] = {
    "statistics/3": _statistics_of_3,
    "novelties/1": _novelties_of_1,
    "incidents/1": _incidents_of_1,
}


def _chains() -> Iterator[tuple[bytes, list[Upcaster]]]:
    """Each former version with the up-casters from it to this one."""
    for schema, present in VERSIONS.items():
        steps: list[Upcaster] = []
        for former in range(present - 1, 0, -1):
            if (step := UPCASTERS.get(f"{schema}/{former}")) is None:
                break
            steps = [step, *steps]
            yield f"{schema}/{former}".encode(), steps


_CHAINS = dict(_chains())
