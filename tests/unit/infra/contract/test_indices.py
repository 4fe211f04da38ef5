from datetime import timedelta

import pytest

from infra.contract.indices import load_lifecycles
from infra.errors import UserError

DAY = timedelta(days=1)


def window(kind: str, seconds: float) -> dict:
    return {"window": {"kind": kind, "size_seconds": seconds}}


def test_the_projects_own_declarations():
    found = load_lifecycles()
    assert {*found.kinds} == {"statistics", "novelties", "incidents", "rejected"}
    assert found.of("statistics", window("tumbling", 10.0)) is None
    minute = found.of("statistics", window("tumbling", 60.0))
    assert minute and (minute.name, minute.period, minute.retention) == ("1m", DAY, 30 * DAY)
    for other in (window("sliding", 300.0), {"window": {"kind": "count", "values": 60}}, {}):
        found_other = found.of("statistics", other)
        assert found_other and (found_other.name, found_other.retention) == ("other", 30 * DAY)
    ten_seconds, *_ = found.kinds["statistics"]
    assert (ten_seconds.name, ten_seconds.retention) == ("10s", 3 * DAY)
    assert {kind: found.of(kind, {}).retention / DAY for kind in ("novelties", "incidents", "rejected")} == {
        "novelties": 365,
        "incidents": 365,
        "rejected": 30,
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("kinds: []", "kinds"),
        ("kinds: {rejected: 3}", "rejected: must be a map"),
        ("kinds: {rejected: {period: 1d}}", "rejected: retention: is missing"),
        ("kinds: {rejected: {period: 90m, retention: 1d, documents: 1, bytes: 1}}", "rejected.*whole hours"),
        ("kinds: {rejected: {period: 1d, retention: 1d, documents: 9000000000, bytes: 1}}", "rejected: documents="),
        ("kinds: {rejected: {period: 1d, retention: 1d, documents: 1, bytes: many}}", "rejected: bytes="),
        ("kinds: {rejected: {period: 1d, retention: 1d, documents: 1, bytes: 1, colour: red}}", "colour"),
        ("kinds: {statistics: {windows: [{size: 10s}]}}", "statistics.windows"),
        ("kinds: {statistics: {windows: [{name: a}, {name: a}]}}", "each name once"),
        ("kinds: {statistics: {windows: [{name: a-b, period: 1d, retention: 1d, documents: 1, bytes: 1}]}}", "name="),
        ("- [", "can't be read"),
    ],
)
def test_a_wrong_declaration_is_named(tmp_path, text, fault):
    file = tmp_path / "indices.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=fault):
        load_lifecycles(file)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"no\.yaml: can't be read"):
        load_lifecycles(tmp_path / "no.yaml")
