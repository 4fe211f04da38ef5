import csv
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.enrichment.templates import BODY_LENGTH, TEMPLATE_LENGTH, template, template_of

LOGHUB = Path(os.environ.get("KAPPA_SHARED", "../shared")) / "data" / "loghub"
PIECES = [
    *(" ", "  ", ":", "=", "/", ".", "-", "_", "'", '"', "(", ")", "[", "]", "<*>", ",", "+", "#", "@", "{", "}", "\\"),
    *("user ", "for ", " from ", "10.0.0.1", "fe80::1", "0x1f", "deadbeef01", "5 KB", "Jun 14 15:16:01", "12:00:00"),
    *(
        "2026-11-21T07:16:41Z",
        "/var/log/x",
        "http://a.b/c",
        "vm-1.example.com",
        "req-1",
        "é",
        "日本",
        "\u2028",
        "\n",
        "٣",
    ),
]
LINES = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=30).map("".join)


@pytest.fixture(scope="module")
def in_spark(spark):
    def run(lines):
        frame = spark.createDataFrame([(line,) for line in lines], "body string").coalesce(1)
        return [row[0] for row in frame.select(template(frame["body"])).collect()]

    return run


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("took 19.05 seconds", "took <*> seconds"),
        ("free 5.2 KB of 64172MB", "free <*> of <*>"),
        ("at 2026-11-21T07:16:41.123+01:00 ok", "at <*> ok"),
        ("at Fri Jun 17 07:07:00 2005", "at <*>"),
        ("[req-38101a0b-2096-447d-96ea-a692162415ae] x", "[<*>] x"),
        ("mac 52:54:00:12:34:56 up", "mac <*> up"),
        ("from 10.11.10.1:5672 to fe80::1", "from <*> to <*>"),
        ("open /var/lib/nova/a_b.log failed", "open <*> failed"),
        ("GET http://a.b/c?d=1 now", "GET <*> now"),
        ("lookup of ns.example.com failed", "lookup of <*> failed"),
        ("session opened for user root by (uid=0)", "session opened for user <*> by (uid=<*>)"),
        ("Invalid user  from 10.0.0.1", "Invalid user <*> from <*>"),
        ("check pass; user unknown", "check pass; user unknown"),
        ("service 'nova-api' is \"up\"", "service '<*>' is \"<*>\""),
        ("visible = false, state=ACTIVE", "visible = <*>, state=<*>"),
        ("blocks blk_-12 blk_34", "blocks <*> <*>"),
        ("nodes 10.0.0.1, 10.0.0.2, 10.0.0.3 left", "nodes <*> left"),
        ("java.io.IOException: No space left", "java.io.IOException: No space left"),
        ("", ""),
    ],
)
def test_masks(line, expected):
    assert template_of(line) == expected


def test_null_has_no_template(in_spark):
    assert in_spark([None, "x"]) == [None, "x"]


def test_spark_and_python_agree(in_spark):
    lines = []

    @settings(max_examples=2000, deadline=None, database=None, derandomize=True)
    @given(LINES)
    def gather(line):
        lines.append(line)

    gather()
    assert dict(zip(lines, in_spark(lines), strict=True)) == {line: template_of(line) for line in lines}


@pytest.mark.skipif(not LOGHUB.is_dir(), reason=f"no logs at {LOGHUB} (set KAPPA_SHARED)")
def test_spark_and_python_agree_on_real_logs(in_spark):
    lines = [
        row["Content"]
        for log in sorted(LOGHUB.glob("*/*_structured.csv"))
        for row in csv.DictReader(log.read_text().splitlines())
    ]
    assert len(lines) == 2000 * len(list(LOGHUB.glob("*/*_structured.csv"))) > 0
    assert in_spark(lines) == [template_of(line) for line in lines]


def test_a_template_is_its_own_template():
    for line in ("took 19.05 seconds", "from 10.0.0.1 port 22 ssh2", "a=b /var/log/x 'y'"):
        assert template_of(template_of(line)) == template_of(line)


def test_length_is_bounded():
    assert len(template_of("word " * 10_000)) == TEMPLATE_LENGTH
    assert template_of("1" + " x" * BODY_LENGTH + " 7") == template_of("1" + " x" * BODY_LENGTH + " 8")


@pytest.mark.parametrize(
    "piece", ["a.", "a-", "/a", "1:", "a=", "<*>", "f", "0", "user ", "'", '"', "{", "a_", "\\", "é"]
)
def test_time_is_linear_on_repetitions(piece):
    start = time.process_time()
    template_of(piece * BODY_LENGTH)
    assert time.process_time() - start < 2
