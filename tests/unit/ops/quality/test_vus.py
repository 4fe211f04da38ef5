import numpy as np
import pytest

from ops.quality.vus import UNKNOWN, Event, events_of, period_of, vus_pr

# Computed by the package vus 0.0.6 (generate_curve, version "opt", 250 thresholds) of the same scores.
REFERENCE = [
    (1, 400, [(50, 60), (200, 230)], 20, 0.5884032339659205),
    (2, 300, [(0, 5), (100, 103), (110, 115), (295, 300)], 15, 0.5773891518857552),
    (3, 500, [(480, 490)], 31, 0.6246662131098305),
]


@pytest.mark.parametrize(("seed", "rows", "events", "window", "expected"), REFERENCE)
def test_volumes_are_those_of_the_authors_package(
    seed: int, rows: int, events: list[tuple[int, int]], window: int, expected: float
) -> None:
    rng, labels = np.random.default_rng(seed), np.zeros(rows, bool)
    for first, end in events:
        labels[first:end] = True
    scores = rng.random(rows) + labels * rng.random(rows)
    assert vus_pr(labels, scores, window) == pytest.approx(expected, abs=1e-12)


def test_a_score_that_is_the_label_has_nearly_the_whole_volume_and_noise_has_little() -> None:
    labels = np.zeros(2000, bool)
    labels[1000:1100] = True
    assert vus_pr(labels, labels.astype(float), 10) > 0.95
    assert vus_pr(labels, np.random.default_rng(1).random(2000), 10) < 0.15
    assert vus_pr(np.zeros(10, bool), np.arange(10.0), 5) == 0.0


def test_the_window_is_the_period_of_a_series() -> None:
    rows = np.arange(5000)
    assert period_of(np.sin(2 * np.pi * rows / 48)) == 48
    assert period_of(rows.astype(float)) == UNKNOWN


def test_events_are_runs_of_labels() -> None:
    assert events_of(np.array([True, True, False, True])) == [Event(0, 2), Event(3, 4)]
