from types import SimpleNamespace

import pytest

from connectors.kafka import reader
from connectors.kafka.reader import value_of

SPELL = b'{"statistic":"spell"}'
NOW = b'{"statistic":"sustained_deviation"}'


@pytest.mark.parametrize(
    ("headers", "value"),
    [
        ([("kappa.source", b"statistics/0"), ("kappa.schema", b"novelties/1")], NOW),
        ([("kappa.schema", b"novelties/2")], SPELL),
        ([("kappa.schema", None)], SPELL),
        ([], SPELL),
        (None, SPELL),
    ],
)
def test_a_consumed_record_has_the_version_that_its_header_says(headers, value):
    message = SimpleNamespace(value=lambda: SPELL, headers=lambda: headers)
    assert value_of(message) == value


def test_a_tombstone_stays_one():
    assert value_of(SimpleNamespace(value=lambda: None, headers=lambda: None)) is None


def test_what_is_no_json_object_is_passed_over(monkeypatch):
    values = [b'{"a":1}', b"{broken", b"[1]", b"7", None, b'{"a":2}']
    messages = [SimpleNamespace(value=lambda v=v: v, headers=list, partition=lambda: 3) for v in values]
    monkeypatch.setattr(reader, "read_topic", lambda *_: iter(messages))
    assert [*reader.read_records("", "statistics")] == [(3, {"a": 1}), (3, {"a": 2})]
