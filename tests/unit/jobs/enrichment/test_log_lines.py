import random

import pytest

from infra.contract.topics import load_topics
from jobs.enrichment import transform
from jobs.enrichment.log_lines import rendering
from jobs.enrichment.settings import EnrichmentSettings
from jobs.enrichment.transform import enrichment
from tests.unit.jobs.enrichment.test_transform import NANO, NOW, batch, frames, line, point

TEXTS = [
    "",
    "x",
    'a "b" \\ c',
    "\x00\x1f\x7f",
    "größe 12",
    "日本 7",
    "😀",
    "\u2028/\t\n",
    "from 10.0.0.1 port 22",
    None,
]
KEYS = ["a", "log.file.path", 'k"', "ключ", ""]


def lines(rng):
    """A few lines, of which some have odd texts, no attributes or no severity."""

    def one():
        texts = [rng.choice(TEXTS) for _ in range(2)]
        keys = rng.sample(KEYS, rng.randrange(len(KEYS)))
        attributes = {key: rng.choice(TEXTS) for key in keys} if rng.random() < 0.9 else None
        time = NOW - rng.randrange(5) * NANO
        return line(texts[0], time) | {
            "severity_text": texts[1],
            "severity_number": rng.choice([None, 9, 17]),
            "attributes": attributes,
            "template": rng.choice([None, "old"]),
            "series": rng.choice([None, "old"]),
        }

    return [one() for _ in range(rng.randrange(1, 6))]


ODD = {
    "no time": [line("x", None), line("y")],
    "a time before time": [line("x", -1)],
    "late": [line("x", NOW - 3_600 * NANO), line("y", NOW - 3_600 * NANO)],
    "late in part": [line("x", NOW - 3_600 * NANO), line("y")],
    "future": [line("x", NOW + 3_600 * NANO)],
    "a value": [line("x"), point(type="log")],
    "a long body": [line("x" * 200)],
    "a body of many bytes": [line("日" * 60)],
    "a long severity": [line("x") | {"severity_text": "s" * 100}],
    "a long value": [line("x") | {"attributes": {"a": "v" * 100}}],
    "a long key": [line("x") | {"attributes": {"k" * 100: "v"}}, line("y")],
    "many attributes": [line("x") | {"attributes": {str(n): "" for n in range(9)}}],
}
LIMITS = {"body_characters": 100, "attribute_characters": 50, "attribute_key_bytes": 60, "attributes": 8}


def everything(frame):
    """All columns of all records, in an order of their own."""
    return sorted(tuple(map(str, row)) for row in frame.collect())


@pytest.fixture
def both(spark, monkeypatch):
    """What enrichment makes of batches with lines rendered as a whole, and with expressions alone."""

    def run(batches):
        with_lines = enrichment(load_topics(), settings=EnrichmentSettings(**LIMITS))
        monkeypatch.setattr(transform, "rendering", lambda _: lambda decoded: decoded)
        alone = enrichment(load_topics(), settings=EnrichmentSettings(**LIMITS))
        return [everything(enrich(*frames(spark, batches))) for enrich in (with_lines, alone)]

    return run


def test_lines_become_the_same_bytes_as_by_expressions(both):
    rng = random.Random("lines")
    found, expected = both([batch(*lines(rng), kind="log", offset=offset) for offset in range(300)])
    assert found == expected
    assert len(found) == 300


def test_what_is_judged_line_by_line_is_judged_the_same(both):
    found, expected = both([batch(*odd, kind="log", offset=offset) for offset, odd in enumerate(ODD.values())])
    assert found == expected
    assert len(found) > len(ODD)


def test_other_events_are_not_rendered(both):
    control = point(value=None, series=None, name=None, type="control", body="{}")
    found, expected = both(
        [batch(point()), batch(control, kind="control", offset=8), batch(error="not_json", offset=9)]
    )
    assert found == expected
    assert len(found) == 3


def test_lines_are_rendered(spark):
    """Else the tests above would compare expressions with themselves."""
    decoded, _ = frames(spark, [batch(line("took 17 s"), kind="log"), batch(*ODD["no time"], kind="log", offset=8)])
    kept, judged = rendering(EnrichmentSettings())(decoded).collect()
    assert (kept.events, kept.first_unix_nano, kept.last_unix_nano) == (None, NOW, NOW)
    assert '"template":["took <*> s"]' in kept.json
    assert (judged.json, len(judged.events)) == (None, 2)
