from math import log

import pytest

from jobs.detector.budget import MOST, TRUSTED, Budget
from jobs.detector.settings import DetectorSettings

SETTINGS = DetectorSettings()  # five a day
DAY = 8640  # windows


def spent(*alerts):
    budget = Budget()
    for window, count in alerts:
        budget.spend(SETTINGS, window, count)
    return budget


def test_who_keeps_to_the_budget_pays_nothing():
    assert spent().surcharge(SETTINGS, 0) == 0.0
    assert spent((0, 5)).surcharge(SETTINGS, 1) == 0.0


def test_who_alerts_too_much_pays_by_how_much():
    assert spent((0, 45)).surcharge(SETTINGS, 0) == pytest.approx(log((45 + TRUSTED) / (5 + TRUSTED)))


def test_the_surcharge_is_bounded():
    assert spent((0, 10_000)).surcharge(SETTINGS, 0) == MOST


def test_past_alerts_are_forgotten_within_days():
    budget = spent((0, 45))
    paid = [budget.surcharge(SETTINGS, day * DAY) for day in range(4)]
    assert paid == sorted(paid, reverse=True)
    assert paid[3] == 0.0


def test_a_shard_has_its_part_of_the_budget():
    quarter = SETTINGS.model_copy(update={"shards": 4})
    assert spent((0, 10)).surcharge(quarter, 0) == pytest.approx(log((10 + TRUSTED) / (1.25 + TRUSTED)))


def test_notes_in_any_order_of_calls_add_up():
    apart, together = spent((100, 3), (100, 4), (700, 2)), spent((100, 7), (700, 2))
    assert apart.surcharge(SETTINGS, 900) == pytest.approx(together.surcharge(SETTINGS, 900))
