"""What two chains say, compared: their records but for where they stand in the log."""

from collections import Counter
from collections.abc import Iterable, Mapping

import orjson

from infra.contract.columnar import to_rows
from tests.chaos.reading import Record


def by_machine(records: Iterable[Record]) -> Counter[tuple[str, bytes]]:
    """Each record with its key, but for watermarks."""
    return Counter(((one.key or b"").decode(), one.value or b"") for one in records if one.key is not None)


def each_event(records: Iterable[Record]) -> Counter[tuple[str, bytes]]:
    """Each event with its machine, in whichever record it stands."""
    found: Counter[tuple[str, bytes]] = Counter()
    for record in map(parsed, records):
        found.update((record["machine"], orjson.dumps(one)) for one in to_rows(record.get("events", {})))
    return found


def parsed(record: Record) -> Mapping:
    """The JSON of a record's value."""
    return orjson.loads(record.value or b"{}")


def assert_same(what: str, expected: Counter, found: Counter) -> None:
    """Nothing of `expected` is lost, nothing is there twice or beside it; there is something."""
    assert expected, what
    lost, more = expected - found, found - expected
    assert not lost and not more, f"{what}: lost {list(lost)[:3]}, more {list(more)[:3]}"
