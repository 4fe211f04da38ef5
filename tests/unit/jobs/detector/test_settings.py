from math import log

import pytest

from infra.contract.topics import load_topics
from jobs.detector.job import for_one_shard
from jobs.detector.settings import DetectorSettings
from tests.topics import with_changes


@pytest.mark.parametrize("partitions", [1, 4, 16])
def test_the_budget_is_the_fleets_whatever_the_number_of_shards(partitions):
    """A fleet of 48,000 series raises five false alarms a day: as many judgements times the threshold's probability."""
    settings = for_one_shard(DetectorSettings(), with_changes(load_topics(), partitions=partitions))
    assert settings.threshold(48_000 // partitions) == pytest.approx(log(48_000 * 8640 / 5))


def test_twice_the_budget_is_a_threshold_lower_by_ln_2():
    one, two = DetectorSettings(), DetectorSettings(alarms_per_day=10)
    assert one.threshold(1000) - two.threshold(1000) == pytest.approx(log(2))
