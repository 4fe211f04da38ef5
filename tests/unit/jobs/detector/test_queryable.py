import orjson
import pytest

from infra.contract.columnar import to_columns
from jobs.detector.control import not_anomalous, suppress
from jobs.detector.model.scales import Scales
from jobs.detector.queryable import StateQuestion
from jobs.detector.rules import Rule
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import Shard, fold
from jobs.runtime.queryable import InvalidQuestionError, NotKnownError
from tests.unit.jobs.detector.test_shard import (
    FIRST,
    MACHINES,
    SETTINGS,
    SIZE,
    control_event,
    metric,
    record,
    stream,
    watermark,
    with_metric,
)
from tests.unit.jobs.saved_shards import put, saved_shards

WINDOWS = 60


@pytest.fixture(scope="module")
def state():
    return fold(None, stream(WINDOWS), SETTINGS)[0]


@pytest.fixture
def ask(tmp_path):
    """Asks about a state that is in files, beside another shard."""

    def asked(state, **arguments):
        put(tmp_path, Shard(SETTINGS).dump(), shard=0)
        put(tmp_path, state, shard=3)
        return StateQuestion(SETTINGS).answer(saved_shards(tmp_path), arguments)

    return asked


def test_a_machine_has_its_series_with_what_is_expected_of_each(ask, state):
    answer = ask(state, machine="vm-2")
    assert (answer["machine"], answer["shard"]) == ("vm-2", 3)
    assert answer["judged_until_unix_nano"] == (FIRST + WINDOWS - 1) * SIZE
    assert [one["series"] for one in answer["series"]] == [*(f"metric-{n}" for n in range(4)), "session opened for <*>"]
    for number, one in enumerate(answer["series"][:4]):
        expected = one["expected"]
        assert expected["expected"] == pytest.approx(10 * (number + 1), abs=1)
        assert 1 < expected["high"] - expected["expected"] < 8
        assert (one["phase"], one["quiet_until_unix_nano"], one["novelty"]) == ("normal", None, None)
    (count,) = (one["expected"] for one in answer["series"][4:])
    assert 0 <= count["low"] < count["expected"] < count["high"]
    assert count["expected"] == pytest.approx(6, abs=2)


def test_it_is_what_the_detector_holds(ask, state):
    model = Shard(SETTINGS, state).detector.model
    row = [*MACHINES].index("vm-3") * 5 + 1
    (one,) = ask(state, machine="vm-3", series="metric-1")["series"]
    assert one["figures"] == {name: values[row] for name, values in model.figures().items()}


def test_every_column_of_the_model_is_cut_to_the_rows_that_are_asked_for(ask, state):
    """A model with other columns is answered for as well: none is named here."""
    answer = ask(state, machine="vm-1")
    assert len(answer["series"]) == 5
    assert set(Scales(SETTINGS).dump()) <= {name.removeprefix("column/") for name in state}


def test_a_season_is_known_by_the_hours_that_were_seen(tmp_path):
    settings = DetectorSettings(window_seconds=600)
    monday = 1_790_553_600 // 600  # in windows, of which an hour has six
    state = fold(None, [one for window in range(4 * 144) for one in _of_a_day(monday + window)], settings)[0]
    put(tmp_path, state)
    question = StateQuestion(settings)
    (one,) = question.answer(saved_shards(tmp_path), {"machine": "vm-1", "series": "load"})["series"]
    assert {*range(8), *range(10, 16), *range(18, 24)} <= {hour["hour"] for hour in one["season"]} <= {*range(24)}
    for hour in one["season"]:
        assert hour["low"] < hour["expected"] < hour["high"]
        assert hour["expected"] == pytest.approx(50 if 8 <= hour["hour"] < 16 else 20, abs=3)
    assert question.answer(saved_shards(tmp_path), {"machine": "vm-1"})["series"][0]["season"] == []


def test_a_share_that_succeeds_is_shown_as_people_know_it(ask):
    entry = metric("availability", 99.5) | {"unit": "%"}
    records = [[record("vm-1", window, [entry]), watermark(window)] for window in range(WINDOWS)]
    (one,) = ask(fold(None, [part for pair in records for part in pair], SETTINGS)[0], machine="vm-1")["series"]
    assert one["expected"]["low"] < one["expected"]["expected"] == 99.5 < one["expected"]["high"]


def _of_a_day(window):
    """A machine with more load from eight to four."""
    start, end = ((window + at) * 600 * 10**9 for at in (0, 1))
    load = (50.0 if 8 <= window % 144 / 6 < 16 else 20.0) + window * 7 % 5 / 5
    span = {"kind": "tumbling", "size_seconds": 600.0, "start_unix_nano": start, "end_unix_nano": end}
    statistics = to_columns([metric("load", load)])
    yield orjson.dumps({"machine": "vm-1", "window": span, "statistics": statistics})
    yield orjson.dumps({"watermark_unix_nano": end})


def test_what_people_said_and_what_is_open_is_in_it(ask):
    change = with_metric("vm-1", range(40, WINDOWS), 90.0)
    rule = Rule(machine="vm-1", series="metric-3")
    rules = [control_event(30, suppress(one)) for one in (rule, Rule(machine="vm-2"))]
    records = [*rules, *stream(WINDOWS, change)]
    state, novelties = fold(None, records, SETTINGS)
    (start,) = [one for one in novelties if one["phase"] == "start" and one.get("series") == "metric-0"]
    answer = ask(state, machine="vm-1", series="metric-0")
    (one,) = answer["series"]
    assert one["novelty"]["id"] == start["id"]
    assert one["quiet_until_unix_nano"] > start["time_unix_nano"]
    assert answer["rules"] == {rule.id: {"machine": "vm-1", "series": "metric-3"}}
    said = control_event(WINDOWS, not_anomalous(start))
    later = fold(state, [said, watermark(WINDOWS + 1)], SETTINGS)[0]
    (one,) = ask(later, machine="vm-1", series="metric-0")["series"]
    low, high = one["called_normal"]
    assert low <= start["expected"] < start["observed"] < high


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({}, InvalidQuestionError, "machine: is missing"),
        ({"machine": ""}, InvalidQuestionError, "machine: is missing"),
        ({"machine": "none"}, NotKnownError, "machine 'none'"),
        ({"machine": "vm-1", "series": "none"}, NotKnownError, "series 'none'"),
    ],
)
def test_what_is_not_known_is_said(ask, state, arguments, error, said):
    with pytest.raises(error, match=said):
        ask(state, **arguments)


def test_the_answer_is_json(ask, state):
    orjson.dumps(ask(state, machine="vm-1"), option=orjson.OPT_SERIALIZE_NUMPY)
    orjson.dumps(StateQuestion(DetectorSettings()).question().path)
