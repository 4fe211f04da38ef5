from types import SimpleNamespace

import pytest

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
