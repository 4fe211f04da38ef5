"""What a fleet of pods leaves in the state of statistics and detector: after two days nothing more."""

import pytest

from tests.hostile.churn import Fleet, measure


@pytest.mark.timeout(3600)
def test_thirty_days_of_a_thousand_machines_with_a_hundred_thousand_names_cost_what_two_days_do():
    report = measure(Fleet())
    assert report["names"] == 100_000
    assert report["days"] == [2, 5, 10, 15, 20, 25, 30]
    assert max(report["state_bytes"]) < 1.25 * report["state_bytes"][0]
    assert max(report["window_seconds"]) < 1.5 * report["window_seconds"][0]
    verdicts = report["verdicts"]
    assert verdicts["gone end"] > 30_000
    # Every silence ends, but those of the machines that are silent now.
    assert verdicts["silence start"] - verdicts["gone end"] < 1_000
