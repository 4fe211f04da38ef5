"""A window's record that is too large for one: several records, each with some of its series.

Kafka's brokers take a megabyte by default and ours ten, and a record is held several times while it is read. How a
record is cut depends on its bytes alone.
"""

from typing import Any

import orjson

Record = dict[str, Any]


def in_parts(value: bytes, most: int) -> list[bytes]:
    """The record as records of at most `most` bytes: nearly always itself, else parts of equally many series.

    A part has `part` and `parts` beside `window`, and an id of its own. One series is never cut.
    """
    if len(value) <= most:
        return [value]
    whole = orjson.loads(value)
    series = len(whole["statistics"]["series"])
    parts = min(-(-len(value) // most), series)
    while True:
        found = [orjson.dumps(_part(whole, number, parts, series)) for number in range(parts)]
        if parts == series or max(map(len, found)) <= most:
            return found
        parts = min(parts + 1 + parts // 4, series)


def _part(whole: Record, number: int, parts: int, series: int) -> Record:
    rows = slice(number * series // parts, (number + 1) * series // parts)
    columns = {name: column[rows] for name, column in whole["statistics"].items()}
    known = {name: column for name, column in columns.items() if any(cell is not None for cell in column)}
    head = {"id": f"{whole['id']}/{number + 1}", "part": number + 1, "parts": parts}
    return {name: head.pop(name, value) for name, value in whole.items()} | head | {"statistics": known}
