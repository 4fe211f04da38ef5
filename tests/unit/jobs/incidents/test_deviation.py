from math import log

import pytest

from jobs.incidents.deviation import FROM_OR_TO_NOTHING, LEAST_SPREAD, QUANTILE, Deviation


def seen(series, observed, expected, width=0.0):
    """A contributor whose 99 % interval is so wide on each side."""
    bounds = {"expected_low": expected - width, "expected_high": expected + width}
    return {"series": series, "observed": observed, "expected": expected, "score": 20.0, **bounds}


def novelty(*contributors, **fields):
    return {"verdict": "anomaly", "kind": "metric", "score": 20.0, "text": "it is strange", **fields} | (
        {"contributors": list(contributors)} if contributors else {}
    )


def test_a_deviation_is_measured_by_the_spread_that_the_model_expected():
    found = Deviation.of(novelty(seen("cpu", 0.9, 0.0, width=0.1 * QUANTILE)))
    assert found.strength == pytest.approx(log(1 + 9))
    assert found.text == "cpu is 0.9, expected 0: 9 times as far off as is usual"


def test_a_percent_of_the_level_is_the_least_spread_however_quiet_a_series_was():
    assert Deviation.of(novelty(seen("mem", 102.0, 100.0))).strength == pytest.approx(log(1 + 0.02 / LEAST_SPREAD))


@pytest.mark.parametrize(("observed", "size"), [(1.0, FROM_OR_TO_NOTHING), (3e8, FROM_OR_TO_NOTHING), (0.0, 0.0)])
def test_what_comes_from_nothing_deviates_like_what_falls_to_nothing_however_large_it_is(observed, size):
    assert Deviation.of(novelty(seen("errors", observed, 0.0))).strength == pytest.approx(log(1 + size))


def test_of_a_share_that_succeeds_what_is_missing_is_compared():
    share = seen("requests.availability", 97.0, 99.9, width=0.01 * QUANTILE)
    assert Deviation.of(novelty(share)).strength == pytest.approx(log(1 + 2.9 / (LEAST_SPREAD * 99.9)), rel=0.01)
    assert Deviation.of(novelty(share | {"unit": "%"})).strength == pytest.approx(log(1 + 2.9 / 0.01), rel=0.01)


def test_the_strongest_series_counts_and_the_most_surprising_one_says_whether_it_is_demand():
    found = Deviation.of(novelty(seen("requests", 3.0, 1.0, width=1.0), seen("latency", 9.0, 1.0, width=1.0)))
    assert (found.text[:12], found.is_demand) == ("latency is 9", True)
    assert not Deviation.of(novelty(seen("latency", 9.0, 1.0), seen("requests", 3.0, 1.0))).is_demand


def test_a_machines_own_resources_are_nothing_that_a_dependency_can_have_caused():
    both = Deviation.of(novelty(seen("cpu", 9.0, 1.0), seen("latency", 2.0, 1.0)))
    assert (both.strength, both.passed_on) == (pytest.approx(log(1 + 800)), pytest.approx(log(1 + 100)))
    assert Deviation.of(novelty(seen("cpu", 9.0, 1.0))).passed_on == 0.0


def test_without_contributors_the_novelty_itself_is_the_evidence():
    alone = novelty(**{**seen("latency", 2.0, 1.0), "verdict": "anomaly"})
    assert Deviation.of(alone).strength == pytest.approx(log(1 + 100))


@pytest.mark.parametrize(
    ("verdict", "score", "size"), [("silence", 9.0, 100.0), ("gone", 0.0, 100.0), ("new_entity", 12.0, 12.0)]
)
def test_what_has_no_values_deviates_as_if_all_were_gone_or_by_its_score(verdict, score, size):
    found = Deviation.of(novelty(verdict=verdict, score=score, observed=40.0, expected_high=20.0))
    assert (found.strength, found.text) == (pytest.approx(log(1 + size)), "it is strange")
