"""Packing state into bytes and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from jobs.runtime.packed_state import Packed, pack, still_packed, unpack

KINDS = ("<i8", "<f8", "|u1", "|b1", "<i4")
columns = st.dictionaries(
    st.text(max_size=5),
    st.sampled_from(KINDS).flatmap(
        lambda kind: arrays(kind, array_shapes(min_dims=1, max_dims=1, min_side=0, max_side=20))
    ),
    max_size=4,
)
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8)
values = st.recursive(
    scalars.filter(lambda value: value not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
headers = st.dictionaries(st.text(max_size=5), values, max_size=3)


@given(headers, columns)
def test_round_trip(header, table):
    found_header, found = unpack(pack(header, table))
    assert found_header == header
    assert list(found) == list(table)
    for name, column in table.items():
        assert found[name].dtype == column.dtype
        assert found[name].tobytes() == column.tobytes()


@given(headers, columns)
def test_the_same_content_gives_the_same_bytes(header, table):
    parts = pack(header, table)
    assert parts == pack(header, {name: column.copy() for name, column in table.items()})
    assert parts == pack(*unpack(parts))


@given(headers, columns)
def test_parts_are_unpacked_in_whatever_order_they_are(header, table):
    parts = pack(header, table)
    assert len(parts) == 1 + len(header) + len(table)
    found_header, found = unpack(dict(sorted(parts.items())))
    assert (list(found_header), list(found)) == (list(header), list(table))


def test_what_has_not_changed_is_an_equal_part():
    one = pack({"a": 1, "b": "x"}, {"n": np.arange(5), "m": np.arange(3.0)})
    other = pack({"a": 2, "b": "x"}, {"n": np.arange(9), "m": np.arange(3.0)})
    assert {name for name in one if one[name] != other[name]} == {"head", "value/a", "column/n"}


@given(headers, columns)
def test_a_column_that_is_packed_keeps_its_bytes(header, table):
    parts = pack(header, {name: Packed.of(column) for name, column in table.items()})
    assert parts == pack(header, table)
    again = pack(*still_packed(parts))
    assert again == parts
    assert all(again[f"column/{name}"] is parts[f"column/{name}"] for name in table)


def test_unpacked_columns_can_be_written_to_and_are_nobody_elses():
    parts = pack({}, {"a": np.arange(3)})
    _, table = unpack(parts)
    table["a"][0] = 99
    assert unpack(parts)[1]["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("values", "width"), [([-128, 127], 1), ([0, 128], 2), ([-(2**15) - 1], 4), ([2**31 - 1], 4), ([0, 2**31], 8)]
)
def test_whole_numbers_take_as_many_bytes_as_they_need(values, width):
    thousand = np.array(values * 1000)
    parts = pack({}, {"n": thousand})
    assert len(parts["column/n"]) <= thousand.size * width
    assert unpack(parts)[1]["n"].tolist() == values * 1000


@pytest.mark.parametrize(
    ("steps", "width"), [([0, 127], 1), ([-(2**15), 2**15 - 1], 2), ([2**31, -(2**31)], 8), ([2**62, 2**62], 8)]
)
def test_numbers_near_each_other_are_held_as_differences(steps, width):
    times = 1_795_245_484_412_222_354 + np.cumsum(np.array(steps * 1000))
    parts = pack({}, {"time": times})
    assert len(parts["column/time"]) <= times.size * width
    assert unpack(parts)[1]["time"].tolist() == times.tolist()
