import pytest

from jobs.runtime.shard_state import Input

BATCH = Input("events", 3, [5, 6, 8, 9], [b"a" * 4, b"b" * 3, b"c" * 50, b"d"], [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("size", "offsets"),
    [(1000, [[5, 6, 8, 9]]), (8, [[5, 6, 8], [9]]), (5, [[5, 6], [8], [9]]), (1, [[5], [6], [8], [9]])],
)
def test_a_batch_is_cut_into_pieces_of_about_so_many_bytes(size, offsets):
    pieces = list(BATCH.in_pieces(size))
    assert [piece.offsets for piece in pieces] == offsets
    for name in ("values", "partitions"):
        assert [one for piece in pieces for one in getattr(piece, name)] == getattr(BATCH, name)
    assert {(piece.topic, piece.shard) for piece in pieces} == {("events", 3)}


def test_a_batch_without_records_is_one_piece():
    assert [piece.offsets for piece in Input("events", 3, [], []).in_pieces()] == [[]]


def test_a_batch_is_parted_by_offsets_of_its_partitions():
    before, after = BATCH.parted({("events", 0): 6, ("events", 1): 9, ("another", 0): 99})
    assert (before.offsets, before.partitions, before.values) == ([5, 8], [0, 1], [b"a" * 4, b"c" * 50])
    assert (after.offsets, after.partitions, after.values) == ([6, 9], [0, 1], [b"b" * 3, b"d"])


def test_a_batch_without_partitions_is_of_its_shard():
    before, after = Input("events", 3, [5, 6], [b"a", b"b"]).parted({("events", 3): 6})
    assert (before.offsets, after.offsets) == ([5], [6])
    assert Input("events", 3, [5], [b"a"]).parted({})[1].offsets == [5]
