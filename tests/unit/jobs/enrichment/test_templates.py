import base64
import csv
import ipaddress
import os
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from connectors.decoders import columns
from infra.contract.schemas import DECODED
from jobs.enrichment.log_lines import rendering
from jobs.enrichment.settings import EnrichmentSettings
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


REPEATED = [
    *(
        "a.",
        "a-",
        "/a",
        "1:",
        "a=",
        "<*>",
        "f",
        "0",
        "user ",
        "'",
        '"',
        "{",
        "a_",
        "\\",
        "é",
        "1,",
        "1 ",
        "b-",
        "a@",
    ),
    *("::", "A(", "+", "a+/", "1-", "a/", "a.b", "Jun ", "a:"),
]
# Characters of which Kubernetes makes the ends of pods' names.
_POD = st.text("bcdfghjklmnpqrstvwxz2456789", min_size=5, max_size=5)
_ASCII = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)


def _mapped(of: Callable[[bytes], str], least: int, most: int) -> st.SearchStrategy[str]:
    return st.binary(min_size=least, max_size=most).map(of)


IDENTIFIERS = {
    "signed, after a prefix": st.integers(-(2**63), 2**63 - 1).map("blk_{}".format),
    "signed": st.integers(-(10**12), 10**12).map(str),
    "float": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "hexadecimal": _mapped(bytes.hex, 4, 32),
    "capital hexadecimal": _mapped(lambda some: some.hex().upper(), 4, 32),
    "0x": st.integers(0, 2**64).map(hex),
    "MAC": _mapped(lambda some: some.hex(":"), 6, 6),
    "UUID": st.uuids(version=4).map(str),
    "UUID after a prefix": st.uuids(version=4).map("req-{}".format),
    "IPv4": st.ip_addresses(v=4).map(str),
    "IPv6": st.integers(2**112, 2**128 - 1).map(ipaddress.IPv6Address).map(str),
    "base32": _mapped(lambda some: base64.b32encode(some).decode(), 10, 40),
    "base64 with a digit": _mapped(lambda some: "x7" + base64.b64encode(some).decode(), 9, 40),
    "base64 of URLs with a digit": _mapped(lambda some: "x7" + base64.urlsafe_b64encode(some).decode(), 9, 40),
    "pod of a deployment": st.tuples(_POD, _POD).map(lambda two: f"web-{two[0]}2-{two[1]}"),
    "pod of a daemon set": _POD.map("kube-proxy-{}".format),
    "path": st.lists(_ASCII, min_size=2, max_size=6).map(lambda names: "/" + "/".join(names)),
    "relative path": st.lists(_ASCII, min_size=3, max_size=6).map("/".join),
    "host": st.lists(_ASCII, min_size=1, max_size=3).map(lambda names: ".".join(names) + ".example.com"),
    "mail": _ASCII.map("{}@mail.corp".format),
    "mixed": st.tuples(_ASCII, st.integers(0, 999), _ASCII).map(lambda three: "{}{}_{}".format(*three)),
    "version": st.tuples(*[st.integers(0, 99)] * 3).map(lambda three: "v{}.{}.{}-rc1".format(*three)),
    "interface": st.tuples(*[st.integers(0, 99)] * 3).map(lambda three: "xe-{}/{}/{}.0".format(*three)),
    "duration": st.tuples(*[st.integers(0, 59)] * 3).map(lambda three: "{}h{}m{}.5s".format(*three)),
}


@pytest.fixture(scope="module")
def in_spark(spark):
    def run(lines):
        frame = spark.createDataFrame([(line,) for line in lines], "body string").coalesce(1)
        return [row[0] for row in frame.select(template(frame["body"])).collect()]

    return run


@pytest.fixture(scope="module")
def rendered(spark):
    """The templates of lines that are rendered as a whole."""

    def run(lines):
        bodies = spark.createDataFrame([(line,) for line in lines], "body string").coalesce(1)
        event = columns.event(time_unix_nano=F.lit(1), body=bodies["body"])
        names = ("json", "first_unix_nano", "last_unix_nano", "series_bytes", "unit_bytes")
        nothing = {name: F.lit(None).cast(DECODED[name].dataType) for name in names}
        frame = bodies.select(F.lit("log").alias("kind"), F.array(event).alias("events")).withColumns(nothing)
        found = rendering(EnrichmentSettings())(frame)
        return [orjson.loads(row.json)["template"][0] for row in found.select("json").collect()]

    return run


@pytest.fixture(params=["in_spark", "rendered"])
def templates(request):
    """Both ways to templates in the JVM: as an expression, and within lines that are rendered as a whole."""
    return request.getfixturevalue(request.param)


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
        ("blocks blk_-12 blk_34 blk_5 blk_6", "blocks <*>"),
        ("nodes 10.0.0.1, 10.0.0.2, 10.0.0.3 left", "nodes <*> left"),
        ("addr fe80::1%eth0 and ::1", "addr <*> and <*>"),
        ("access denied for 21/Nov/2026:07:16:41 +0000", "access denied for <*> <*>"),
        ('{"level":"info","ts":17.5,"msg":"it is on"}', '{"level":"<*>","ts":<*>,"msg":"it is on"}'),
        ('"GET /a/b?x=1 HTTP/1.1" 200 612', '"GET <*> <*>" <*> <*>'),
        ("at com.foo.Bar.baz(Bar.java:12)", "at com.foo.Bar.baz(Bar.java:<*>)"),
        ("program interrupt......1", "program interrupt......<*>"),
        ("synchronized to LOCAL(0), stratum 10", "synchronized to <*>, stratum <*>"),
        ("größe12 of 日本7", "<*> of <*>"),
        ("12 MB/s of 100%", "<*> of <*>%"),
        ("java.io.IOException: No space left", "java.io.IOException: No space left"),
        ("", ""),
    ],
)
def test_masks(line, expected):
    assert template_of(line) == expected


@pytest.mark.parametrize("kind", IDENTIFIERS)
def test_identifiers_of_a_kind_have_one_template(kind):
    lines = ("got {} ok", "x ({}), y", "id: {}; z", "[{}]", "'{}'", "last {}", "{}: first")

    @settings(max_examples=50, deadline=None, database=None, derandomize=True)
    @given(IDENTIFIERS[kind])
    def is_masked(identifier):
        assert [template_of(line.format(identifier)) for line in lines] == [line.format("<*>") for line in lines]

    is_masked()


@pytest.mark.parametrize(
    "line",
    [
        "and/or",
        "TCP/IP over I/O",
        "half-open, client-side",
        "java.io.IOException: failed",
        "std::vector<int>",
        "a == b",
        "--",
        "x - y / z",
        'msg="started the server"',
        '{"event": "an event of words"}',
        "user_name of __init__",
        "C++ and #include",
        "[preauth] ... *** e.g. this",
    ],
)
def test_words_stay(line):
    assert template_of(line) == line


def test_null_has_no_template(in_spark):
    assert in_spark([None, "x"]) == [None, "x"]


def test_spark_and_python_agree(templates):
    lines = []

    @settings(max_examples=2000, deadline=None, database=None, derandomize=True)
    @given(LINES)
    def gather(line):
        lines.append(line)

    gather()
    assert dict(zip(lines, templates(lines), strict=True)) == {line: template_of(line) for line in lines}


def test_spark_and_python_agree_on_repetitions(templates):
    lines = [piece * BODY_LENGTH for piece in REPEATED]
    assert templates(lines) == [template_of(line) for line in lines]


@pytest.mark.skipif(not LOGHUB.is_dir(), reason=f"no logs at {LOGHUB} (set KAPPA_SHARED)")
def test_spark_and_python_agree_on_real_logs(templates):
    lines = [
        row["Content"]
        for log in sorted(LOGHUB.glob("*/*_structured.csv"))
        for row in csv.DictReader(log.read_text().splitlines())
    ]
    assert len(lines) == 2000 * len(list(LOGHUB.glob("*/*_structured.csv"))) > 0
    assert templates(lines) == [template_of(line) for line in lines]


def test_a_template_is_its_own_template():
    for line in ("took 19.05 seconds", "from 10.0.0.1 port 22 ssh2", "a=b /var/log/x 'y'"):
        assert template_of(template_of(line)) == template_of(line)


def test_length_is_bounded():
    assert len(template_of("word " * 10_000)) == TEMPLATE_LENGTH
    assert template_of("1" + " x" * BODY_LENGTH + " 7") == template_of("1" + " x" * BODY_LENGTH + " 8")


@pytest.mark.parametrize("piece", REPEATED)
def test_time_is_linear_on_repetitions(piece):
    start = time.process_time()
    template_of(piece * BODY_LENGTH)
    assert time.process_time() - start < 2
