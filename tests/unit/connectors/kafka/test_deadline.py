import threading

import pytest

from connectors.kafka.deadline import within


def test_it_returns_once_the_call_has():
    done = []
    within(10, lambda: done.append(1))
    assert done == [1]


def test_what_the_call_raises_is_raised():
    with pytest.raises(KeyError, match="gone"):
        within(10, lambda: {}["gone"])


def test_a_call_that_hangs_is_left_behind():
    release = threading.Event()
    with pytest.raises(TimeoutError):
        within(0.05, release.wait)
    release.set()
