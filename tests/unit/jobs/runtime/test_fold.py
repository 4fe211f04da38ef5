"""State between two batches, without Spark."""

from hypothesis import given
from hypothesis import strategies as st

from jobs.runtime.fold import Kept, decoded


@given(st.binary(), st.binary())
def test_state_comes_back_from_its_text_whoever_made_it(one, other):
    kept, elsewhere = Kept(), Kept()
    text = kept.encoded(one)
    assert text.isascii()
    assert kept.decoded(text) is one
    assert kept.decoded(elsewhere.encoded(other)) == other == decoded(elsewhere.encoded(other))
    assert kept.decoded(text) == one
