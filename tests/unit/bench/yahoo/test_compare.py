"""Comparing an engine's counts with the truth finds each way to be wrong."""

import pytest

from tests.bench.yahoo.compare import Comparison, compare

TRUTH = {("a", 0): 3, ("b", 0): 5, ("a", 10_000): 2}
RIGHT = [("a", 0, 3), ("b", 0, 5), ("a", 10_000, 2)]


def compared(counts, *, truth=TRUTH, updates=False):
    records = [{"campaign": campaign, "window_start": start, "count": count} for campaign, start, count in counts]
    return compare(truth, records, lambda start: start < 20_000, updates=updates)


def test_the_right_counts_pass_in_any_order():
    assert compared(RIGHT[::-1]) == Comparison(3, 0, 0, 0, 0, 0)
    assert compared(RIGHT).facts()["passed"] is True


@pytest.mark.parametrize(
    ("counts", "fault"),
    [
        (RIGHT[1:], "missing"),
        ([("a", 0, 4), *RIGHT[1:]], "wrong"),
        ([*RIGHT, ("c", 0, 1)], "unknown"),
        ([*RIGHT, ("a", 0, 3)], "repeated"),
        ([("a", 0, 4), *RIGHT], "decreased"),
    ],
)
def test_each_fault_is_found_and_fails(counts, fault):
    found = compared(counts)
    assert getattr(found, fault) == 1
    assert not found.passed


def test_of_updates_the_last_one_counts():
    growing = [("a", 0, 1), ("b", 0, 5), ("a", 0, 3), ("a", 10_000, 2)]
    assert compared(growing, updates=True).passed
    assert compared(growing).repeated == 1
    assert compared([*growing, ("a", 0, 2)], updates=True).decreased == 1


def test_windows_that_the_end_of_the_load_may_leave_open_do_not_count():
    assert compared([*RIGHT, ("a", 20_000, 7)]).passed


def test_to_have_compared_nothing_is_no_success():
    assert not compared([], truth={}).passed
