"""Mutated sample bytes and hostile values: every record has a row, and no data point vanishes.

KAPPA_FUZZ sets the number of values for each format (default 1,500). `make test-fuzz` sends 100,000 through enrichment.
"""

import os
import random
import re

import pytest

from connectors.sources.columns import LARGEST_BYTES
from tests.fuzz.inputs import FORMATS, HOSTILE, expected, mutate, seeds

COUNT = int(os.environ.get("KAPPA_FUZZ", "1500"))


@pytest.mark.parametrize("wire_format", FORMATS)
def test_mutated_bytes_give_rows_and_lose_no_point(decode, samples, wire_format):
    rng = random.Random(wire_format)
    originals = seeds(samples, wire_format)
    values = [mutate(rng.choice(originals), rng) for _ in range(COUNT)]
    usable = 0
    for value, rows in zip(values, decode(wire_format, values), strict=True):
        assert all((row.error is None) == bool(row.events) for row in rows), value
        if any(row.error for row in rows):
            continue
        usable += 1
        assert sum(len(row.events) for row in rows) == expected(wire_format, value), value
    assert usable > COUNT / 10


@pytest.mark.parametrize("wire_format", FORMATS)
def test_what_is_too_large_is_not_read(decode, samples, wire_format):
    value = seeds(samples, wire_format)[0].ljust(LARGEST_BYTES + 1)
    [[row]] = decode(wire_format, [value])
    assert (row.error, row.events) == ("too_large", None)


LARGE_NUMBER = re.compile(rb'(?<!")\b(\d{20,}|[0-9.]+e[0-9]+)')


@pytest.mark.parametrize("wire_format", ["otlp_metrics_json", "lines_json"])
def test_python_and_sparks_expressions_read_the_same(decode, samples, wire_format):
    rng = random.Random(wire_format)
    originals = seeds(samples, wire_format)
    values = [mutate(rng.choice(originals), rng) for _ in range(COUNT)]
    both = zip(decode(wire_format, values), decode(wire_format, values, builtin=True), strict=True)
    same = stricter = 0
    for value, (python, builtin) in zip(values, both, strict=True):
        if LARGE_NUMBER.search(value):
            continue  # as a text, one keeps its digits and the other doesn't
        if any(row.error for row in python):
            continue  # Python takes only RFC 8259 JSON, Spark also NaN without quotes
        if any(row.error for row in builtin):
            stricter += 1
            continue
        same += 1
        assert [facts(row) for row in python] == [facts(row) for row in builtin], value
    assert same > COUNT / 10
    assert stricter <= COUNT / 100


def facts(row):
    """What both forms must agree on."""
    events = [
        {**event.asDict(recursive=True), "value": None if event.value is None else repr(event.value)}
        for event in row.events or []
    ]
    return row.batch, row.machine, row.kind, row.resource, events, row.error


@pytest.mark.parametrize("wire_format", FORMATS)
def test_hostile_values_give_one_row(decode, wire_format):
    for name, rows in zip(HOSTILE, decode(wire_format, list(HOSTILE.values())), strict=True):
        assert len(rows) == 1, name
