"""Records whose template OtlpMetricsJson knows: they give what its full reader gives, and the reference."""

import json
import os
import random
import re

import numpy as np
import pytest

from ops.simulator import cloud, encode, signals
from tests.fuzz.inputs import mutate
from tests.unit.connectors.decoders import reference
from tests.unit.connectors.decoders.test_fuzz import LARGE_NUMBER, of_row, referenced

COUNT = int(os.environ.get("KAPPA_FUZZ", "1500"))
START = 1795245484412222354
STEPS = 4  # a template is known after two

NUMBERS = """0 -0 0.0 -0.0 -1.5 -7 0.1 12345678901234567890 1.0 100000000.0 1e5 1E5 1.2e-05 -1e+3 5e-324 1e999
 -1e999 1e-999 00 01 -01 -00 - -- +1 .5 1. -.5 1e 1e+ 1.e5 0x1 1_0 1f NaN Infinity -Infinity
 null true [] {} [1] "7" "-7" "x"
"""
PATTERNS = {
    "asDouble": (
        rb'(?<="asDouble":)[^,}]+',
        [b"9" * 300, b"9" * 301, b"1 ", b" 1", b"\xff", b'"NaN"', b'"1.5"', b'""'],
    ),
    "asInt": (rb'(?<="asInt":")\d+', [b"9" * 300, b"9" * 301, b"9223372036854775808", b" 7", b"\\u0037", b""]),
    "time": (
        rb'(?<="timeUnixNano":")\d+',
        [b"9223372036854775807", b"9223372036854775808", b"9" * 19, b"9" * 20, b" 5", b"5 ", b"\\u0035", b""],
    ),
    "start": (rb'(?<="startTimeUnixNano":")\d+', [b"\\u0035", b"", b" 5", b"9" * 400, b"later"]),
}


def replaced(pattern, by, which):
    """Replace one occurrence of a pattern: the first, the one in the middle or the last."""

    def change(value):
        places = [found.span() for found in re.finditer(pattern, value)]
        begin, end = places[(len(places) - 1) * which // 2]
        return value[:begin] + by + value[end:]

    return change


def restructured(change):
    """Change the points of the first metric."""

    def run(value):
        request = json.loads(value)
        metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
        change(metrics, metrics[0]["gauge"]["dataPoints"])
        return json.dumps(request, separators=(",", ":"), ensure_ascii=False).encode()

    return run


def spread(metrics, _):
    metrics[1] = {"name": "h", "histogram": {"dataPoints": [{"timeUnixNano": str(START), "count": "2", "sum": 3.0}]}}


def each_second_value_first(_, points):
    points[1::2] = [dict(reversed(point.items())) for point in points[1::2]]


STRUCTURES = {
    "unchanged": lambda value: value,
    "whitespace": lambda value: value.replace(b'"asDouble":', b'"asDouble": ', 3),
    "whitespace before": lambda value: b"\n" + value,
    "truncated": lambda value: value[:-1],
    "truncated in a number": lambda value: value[: value.rindex(b'"asInt":"') + 11],
    "ends with a number": lambda value: value[: value.rindex(b'"asInt":"') + 9] + b"77",
    "garbage after": lambda value: value + b"]",
    "whitespace after": lambda value: value + b" \n",
    "another attribute": lambda value: value.replace(b'"user"', b'"usr"'),
    "another resource": lambda value: value.replace(b'"linux"', b'"other"'),
    "no machine": lambda value: value.replace(b'"host.name"', b'"host.nom"'),
    "an attribute of two bytes": lambda value: value.replace(b'"user"', '"usér"'.encode()),
    "not UTF-8": lambda value: value.replace(b'"user"', b'"us\xffr"'),
    "an escaped attribute": lambda value: value.replace(b'"user"', b'"us\\u00e9\\"]r"'),
    "times doubled": lambda value: value.replace(b'"timeUnixNano"', b'"timeUnixNano":"7","timeUnixNano"'),
    "values doubled": lambda value: value.replace(b'"asDouble"', b'"asDouble":7,"asDouble"'),
    "both values": lambda value: value.replace(b'"asInt"', b'"asDouble":0.5,"asInt"'),
    "null, then a value": lambda value: value.replace(b'"asInt"', b'"asDouble":null,"asInt"'),
    "no value": lambda value: value.replace(b'"asInt"', b'"flags":1,"asInt"'),
    "numeric times": lambda value: re.sub(rb'"timeUnixNano":"(\d+)"', rb'"timeUnixNano":\1', value),
    "two resources": lambda value: value[:-2] + b"," + value[len(b'{"resourceMetrics":[') :],
    "a resource more": lambda value: value[:-2] + b",{}]}",
    "the mark in an attribute": lambda value: value.replace(b'"linux"', b'"imeUnixNano\\":\\"5"'),
    "a point less": restructured(lambda _, points: points.pop(1)),
    "a point more": restructured(lambda _, points: points.append(points[1])),
    "points reversed": restructured(lambda _, points: points.reverse()),
    "metrics reversed": restructured(lambda metrics, _: metrics.reverse()),
    "no start": restructured(lambda _, points: [point.pop("startTimeUnixNano") for point in points]),
    "values first": restructured(each_second_value_first),
    "a histogram": restructured(spread),
}
MUTATIONS = STRUCTURES | {
    f"{name} {which} {by!r}": replaced(pattern, by, which)
    for name, (pattern, others) in PATTERNS.items()
    for by in [*NUMBERS.encode().split(), *others]
    for which in range(3)
}


def scrapes(prefix, machines, steps):
    """Consecutive scrapes: a list for each machine."""
    cluster = cloud.build(machines, 1, prefix)
    instruments = [[signal.instrument for signal in signals.of_role(machine.role)] for machine in cluster]
    templates = [encode.MetricTemplate(m, own, START) for m, own in zip(cluster, instruments, strict=True)]
    source = signals.Signals(cluster, 1, 10.0)
    found = [[] for _ in cluster]
    for step in range(steps):
        numbers = encode.numbers(source.advance(np.full(len(cluster), 10.0 * step)))
        for machine, template in enumerate(templates):
            found[machine].append(template.fill(START + step * 10**10, numbers[machine]))
    return found


@pytest.fixture
def assert_the_same(decode):
    """Records through the decoder, where they may be of a known template, and each with a beginning of its own."""

    def run(values):
        unknown = [b" " * number + value for number, value in enumerate(values, 1)]
        known, read = decode("otlp_metrics_json", values), decode("otlp_metrics_json", unknown)
        for value, found, wanted in zip(values, known, read, strict=True):
            assert [decoded_row(row) for row in found] == [decoded_row(row) for row in wanted], value
            if not (LARGE_NUMBER.search(value) or b"\\ud800" in value or "not_otlp" in {row.error for row in found}):
                assert [of_row(row) for row in found] == referenced(value, reference.read), value

    return run


def decoded_row(row):
    spans = (row.first_unix_nano, row.last_unix_nano, row.series_bytes, row.unit_bytes)
    return row.batch, row.machine, row.resource, row.json, *spans, row.error


def test_mutations_of_a_known_template(assert_the_same):
    [good, *_] = scrapes("mutated-", 2, STEPS)
    # Each of them among good ones, and often enough to have a template of its own.
    changed = [value for change in MUTATIONS.values() for scrape in good for value in (scrape, change(scrape))]
    assert_the_same([*good, *changed, *(value for change in MUTATIONS.values() for value in map(change, good))])


def test_mutated_bytes_among_known_templates(assert_the_same):
    rng = random.Random("templates")
    machines = scrapes("fuzzed-", 4, 50)
    good = [value for step in zip(*machines, strict=True) for value in step]
    assert_the_same([value for _ in range(COUNT) for value in (mutate(rng.choice(good), rng), rng.choice(good))])


def test_machines_that_begin_alike(assert_the_same):
    first = scrapes("alike-", 2, 2 * STEPS)[1]
    second = [value.replace(b'"name":"upf.', b'"name":"upg.').replace(b'"wait"', b'"waits"') for value in first]
    assert first != second
    assert_the_same([value for pair in zip(first, second, strict=True) for value in pair])
