import numpy as np
import pytest

from infra.errors import UserError
from ops.quality.blame import Blamed, hit_rates, read


def weights(windows, *ranked):
    """In each window, the series in this order."""
    return np.tile([ranked.index(series) * -1.0 for series in range(len(ranked))], (windows, 1))


def test_the_share_of_the_blamed_among_as_many_that_rank_highest():
    blamed = {"m": [Blamed(2, 5, frozenset({0, 1, 2, 3}))]}
    alerts = {"m": np.array([False, False, False, True, False, False])}
    found = hit_rates(blamed, alerts, {"m": weights(6, 0, 4, 1, 5, 6, 2, 3)})
    assert found == {"events": 1, "hit_rate_100": 0.5, "hit_rate_150": 0.75}


def test_it_is_the_window_of_the_first_alert_that_counts():
    ranks = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    found = hit_rates({"m": [Blamed(0, 3, frozenset({0}))]}, {"m": np.array([False, True, True])}, {"m": ranks})
    assert found["hit_rate_100"] == 1.0


def test_events_that_no_alert_found_are_left_out():
    blamed = {"m": [Blamed(0, 2, frozenset({0})), Blamed(3, 4, frozenset({1}))]}
    alerts = {"m": np.array([True, False, False, False])}
    assert hit_rates(blamed, alerts, {"m": weights(4, 0, 1)})["events"] == 1
    assert hit_rates(blamed, {"m": np.zeros(4, bool)}, {"m": weights(4, 0, 1)}) == {
        "events": 0,
        "hit_rate_100": None,
        "hit_rate_150": None,
    }


def test_lines_count_series_from_one(tmp_path):
    folder = tmp_path / "interpretation_label"
    folder.mkdir()
    (folder / "m.txt").write_text("4629-4688:9,10\n\n5486-5491:18\n")
    assert read(tmp_path, "m") == [Blamed(4629, 4688, frozenset({8, 9})), Blamed(5486, 5491, frozenset({17}))]
    assert read(tmp_path, "other") == []
    (folder / "m.txt").write_text("4629:9\n")
    with pytest.raises(UserError, match=r"m\.txt: '4629:9': write first-end:series,series"):
        read(tmp_path, "m")
