"""What a fold leaves is kept out of Python's searches for cycles, and what others leave is found in the end."""

import gc
import weakref

import pytest

from jobs.runtime.cycles import SEARCH_EVERY, no_search_for_cycles


class Node:
    """An object that refers to itself."""

    def __init__(self):
        self.me = self


@pytest.fixture(autouse=True)
def as_before():
    yield
    gc.unfreeze()
    gc.enable()


def test_what_was_made_is_in_no_search():
    with no_search_for_cycles():
        assert not gc.isenabled()
        state = {number: [number] for number in range(1_000)}
    assert gc.isenabled()
    assert not {id(each) for each in state.values()} & {id(each) for each in gc.get_objects()}


def test_it_is_freed_when_nobody_refers_to_it():
    class Part:
        """Something that can be watched."""

    with no_search_for_cycles():
        part = Part()
    watched = weakref.ref(part)
    del part
    assert watched() is None


def test_a_cycle_is_found_after_so_many_folds():
    with no_search_for_cycles():
        watched = weakref.ref(Node())
    gc.collect()
    assert watched() is not None
    for _ in range(SEARCH_EVERY):
        with no_search_for_cycles():
            pass
    assert watched() is None


def test_after_an_error_python_searches_again():
    with pytest.raises(ValueError, match="odd"), no_search_for_cycles():
        raise ValueError("odd")
    assert gc.isenabled()
