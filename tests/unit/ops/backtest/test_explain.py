import pytest
from rich.console import Console

from jobs.detector.control import suppress
from jobs.detector.rules import Rule
from jobs.detector.shard import fold
from ops.backtest import views
from ops.backtest.explain import explain, series_of
from ops.backtest.orders import Order, with_orders
from tests.unit.ops.backtest.recorded import BURST, FAINT, FIRST, SETTINGS, SIZE, Recorded, stream


def novelty_at(machine, window):
    found = fold(None, stream(), SETTINGS)[1]
    time = (FIRST + window) * SIZE
    return next(
        one for one in found if (one["machine"], one["time_unix_nano"], one["phase"]) == (machine, time, "start")
    )


@pytest.fixture(scope="module")
def burst():
    return novelty_at("vm-a", BURST)


def test_the_replay_finds_the_novelty_and_the_model_as_it_was_before_it(burst):
    told = []
    found = explain(burst, Recorded().read(0), SETTINGS, told.append)
    assert found.replayed is not None
    assert found.replayed.id == burst["id"]
    (figures,) = found.models.values()
    assert list(found.models) == ["cpu"]
    assert figures["seen"] == BURST
    assert figures["mu"] == pytest.approx(10.0, abs=0.5)
    assert found.unordered == found.replayed
    assert told[-1] == len(stream())


def test_a_faint_novelty_needs_a_larger_budget():
    strict = SETTINGS.model_copy(update={"alarms_per_day": 5e-3})
    found = explain(novelty_at("vm-b", FAINT), Recorded().read(0), strict)
    alerted = [alert is not None for _, alert in sorted(found.budgets.items())]
    assert (alerted[0], alerted[-1]) == (False, True)
    assert alerted == sorted(alerted)


def test_without_a_rule_it_would_have_been_alerted(burst):
    rule = Order(1, suppress(Rule(machine="vm-a", series="cpu")) | {"by": "eva"})
    batches = with_orders(Recorded().read(0), [rule], SETTINGS)
    found = explain(burst, batches, SETTINGS)
    assert found.replayed is None
    assert found.unordered is not None
    assert found.unordered.id == burst["id"]
    page = shown(found, burst, [rule])
    assert "suppress rule=" in page
    assert "(by eva)" in page
    assert "Without that: alerted 2023-11-" in page


def shown(found, newest, orders=()):
    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        views.print_explanation(console, found, newest, orders)
    return capture.get()


def test_a_person_is_told_what_was_expected_and_of_which_series(burst):
    page = shown(explain(burst, Recorded().read(0), SETTINGS), burst)
    assert page.startswith(f"anomaly of vm-a: {burst['text']}")
    assert "compared with the usual values of the series; score" in page
    assert "Series that were strange at once (1 of 1)" in page
    assert "Their models just before" in page
    assert "0.5" in page.split("At another alarm budget")[1]
    assert "Operators have said nothing that concerns it." in page


def test_as_json_it_has_all_of_it(burst):
    found = views.explanation_json(explain(burst, Recorded().read(0), SETTINGS), burst, [])
    assert [one["alarms_per_day"] for one in found["budgets"]] == [0.5, 2.5, 5.0, 10.0, 50.0]
    assert found["replayed"]["id"] == found["novelty"]["id"] == burst["id"]
    assert found["learned_from_unix_nano"] == FIRST * SIZE


def test_the_series_of_a_machine_as_a_whole_are_its_contributors():
    assert series_of({"contributors": [{"series": "a"}, {"series": "b"}]}) == ["a", "b"]
    assert series_of({"series": "b", "contributors": [{"series": "a"}, {"series": "b"}]}) == ["b", "a"]
