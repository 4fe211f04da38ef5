"""Mutated sample bytes and hostile values: every record has a row, and no data point vanishes.

KAPPA_FUZZ sets the number of values for each format (default 1,500). `make test-fuzz` sends 100,000 through enrichment.
"""

import os
import random
import re

import orjson
import pytest

from connectors.decoders import records
from connectors.decoders.columns import LARGEST_BYTES
from connectors.decoders.records import UnusableError
from tests.fuzz.inputs import FORMATS, HOSTILE, expected, mutate, seeds
from tests.unit.connectors.decoders import reference, reference_lines, reference_logs
from tests.unit.connectors.decoders.test_decoders import EXPONENTIAL, HISTOGRAM, SUMMARY, metrics

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


def agree(decode, wire_format, originals, rng, read, kind="metric"):
    """Whether the JVM decodes originals and mutations of them as a reference's `read` does, with usable ones among."""
    values = [*originals, *(mutate(rng.choice(originals), rng) for _ in range(2 * COUNT))]
    other_shape = {"lines_json": "not_line"}.get(wire_format, "not_otlp")
    usable = of_another_shape = 0
    for value, rows in zip(values, decode(wire_format, values), strict=True):
        if LARGE_NUMBER.search(value) or b"\\ud800" in value:
            continue  # Python's parser rewrites the one, and refuses the other
        found = [of_row(row) if row.kind == "metric" or row.error else of_lines(row) for row in rows]
        wanted = referenced(value, read, kind)
        if found != wanted:
            # A key that stands twice, first with another shape; a time that is a list.
            assert other_shape in {rows[0].error, wanted[0][4]}, value
            of_another_shape += 1
            continue
        usable += not any(row.error for row in rows)
    assert usable > COUNT / 10
    assert of_another_shape <= COUNT / 100


def test_the_jvm_reads_lines_as_the_reference_does(decode, samples):
    def one_row_each(*given):
        return [[row] for [row] in decode(*given)]

    originals = [*seeds(samples, "lines_json"), LOG]
    agree(one_row_each, "lines_json", originals, random.Random("lines_json"), reference_lines.read)


LOG = (
    b'{"time_unix_nano":1795245484412222354,"machine":"pm-1","body":"link 7 is down","severity_text":"warn",'
    b'"attributes":{"unit":"nova","pid":17}}'
)


def of_lines(row):
    """The same of log lines, which come as events."""
    events = [known(event.asDict()) for event in row.events]
    return row.batch, row.machine, row.resource, events, row.error, row["count"], row.kind


def test_the_jvm_reads_otlp_logs_as_the_reference_does(decode, samples):
    originals = [*seeds(samples, "otlp_logs_json"), LOGS]
    agree(decode, "otlp_logs_json", originals, random.Random("otlp_logs_json"), reference_logs.read, "log")


LOGS = (
    b'{"resourceLogs":[{"resource":{"attributes":[{"key":"host.name","value":{"stringValue":"vm-1"}}]},"scopeLogs":'
    b'[{"logRecords":[{"timeUnixNano":"1795245484412222354","severityNumber":9,"severityText":"info","body":'
    b'{"stringValue":"link 7 is down"},"attributes":[{"key":"pid","value":{"intValue":"17"}},{"key":"pid","value":'
    b'{"arrayValue":{"values":[{"boolValue":true}]}}},{"key":"a"}]},{"observedTimeUnixNano":1795245484412222354,'
    b'"severityText":"Warn","body":{"kvlistValue":{"values":[]}}},{"severityText":"-"},null]},null]},null]}'
)


def test_the_jvm_reads_otlp_metrics_as_the_reference_does(decode, samples):
    originals = [*seeds(samples, "otlp_metrics_json"), *map(metrics, (HISTOGRAM, EXPONENTIAL, SUMMARY))]
    agree(decode, "otlp_metrics_json", originals, random.Random("reference"), reference.read)


def of_row(row):
    """What the JVM and the reference must agree on."""
    events = row.json and in_doubles(row.json)
    spans = (row.first_unix_nano, row.last_unix_nano, row.series_bytes, row.unit_bytes)
    return row.batch, row.machine, row.resource, row.json and (events, *spans), row.error, row["count"], row.kind


def in_doubles(text):
    """Columns in their order, with the values as numbers are read later."""
    columns = orjson.loads(text)
    values = [value and repr(float(value)) for value in columns.get("value", ())]
    return list((columns | {"value": values}).items())


def referenced(value, read, kind="metric"):
    """The same by a reference's `read`."""
    nothing = (None, None, None, None)
    try:
        batches = read(value)
    except UnusableError as error:
        return [(*nothing, str(error), None, kind)]
    return [of_batch(*batch) for batch in enumerate(batches)] or [(*nothing, "no_events", None, kind)]


def of_batch(number, batch):
    machine, resource, events = batch.machine, batch.resource, batch.events
    if not events or machine is None:
        error, count = ("no_machine", len(events)) if events else ("no_events", None)
        return number, machine, resource, None, error, count, batch.kind
    if batch.kind == "log":
        as_rows = [event | {"attributes": dict(event["attributes"])} for event in events]
        return number, machine, resource, list(map(known, as_rows)), None, None, batch.kind
    rendered = records.render(events)
    spans = [rendered.get(name) for name in ("first_unix_nano", "last_unix_nano", "series_bytes", "unit_bytes")]
    return number, machine, resource, (in_doubles(rendered["json"]), *spans), None, None, batch.kind


def known(event):
    """An event without its nulls."""
    return {name: value for name, value in event.items() if value is not None}


@pytest.mark.parametrize("wire_format", FORMATS)
def test_hostile_values_give_one_row(decode, wire_format):
    for name, rows in zip(HOSTILE, decode(wire_format, list(HOSTILE.values())), strict=True):
        assert len(rows) == 1, name
