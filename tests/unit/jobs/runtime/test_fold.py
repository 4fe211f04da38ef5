import numpy as np
import pytest

from jobs.runtime.fold import Input, Output, in_pieces
from jobs.runtime.packed_state import pack, unpack


def told(state, batch):
    """Tells each record with the number of those before it, and keeps how it was called."""
    header, _ = unpack(state) if state else ({"seen": 0, "calls": []}, {})
    outputs = []
    for number, value in zip(batch.offsets, batch.values, strict=True):
        outputs.append(Output(f"{batch.topic}/{batch.shard}", b"%d %s" % (header["seen"], value), number))
        header["seen"] += 1
    header["calls"].append([list(batch.offsets), list(batch.partitions)])
    return pack(header, {"none": np.empty(0)}), outputs


BATCH = Input("events", 3, [5, 6, 8, 9], [b"a" * 4, b"b" * 3, b"c" * 50, b"d"], [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("size", "offsets"),
    [(1000, [[5, 6, 8, 9]]), (8, [[5, 6, 8], [9]]), (5, [[5, 6], [8], [9]]), (1, [[5], [6], [8], [9]])],
)
def test_a_batch_is_folded_in_pieces_as_at_once(size, offsets):
    whole, at_once = told(None, BATCH)
    state, outputs = in_pieces(told, None, BATCH, size)
    header, _ = unpack(state)
    assert outputs == at_once
    assert header["seen"] == unpack(whole)[0]["seen"] == 4
    assert [call[0] for call in header["calls"]] == offsets
    assert [number for call in header["calls"] for number in call[1]] == BATCH.partitions


def test_a_state_goes_into_the_first_piece():
    before, _ = told(None, BATCH)
    _, outputs = in_pieces(told, before, BATCH, 1)
    assert [output.value.split()[0] for output in outputs] == [b"4", b"5", b"6", b"7"]
