from ops.backfill.steps import Bucket, cut

# Two partitions; the second one's timestamps don't ascend: offset 21 is older than 20.
FOUND = [
    Bucket("a", 0, 0, 0, 9, 10),
    Bucket("a", 0, 3, 10, 29, 20),
    Bucket("a", 1, 0, 21, 21, 1),
    Bucket("a", 1, 2, 20, 25, 5),
    Bucket("b", 0, 5, 7, 7, 1),
]


def test_each_step_has_whole_buckets_and_about_so_many_records():
    steps = cut(FOUND, 16)
    assert steps.records == [16, 20, 1]
    assert [bound["a", 0] for bound in steps.bounds] == [0, 10, 30, 30]
    assert [bound["b", 0] for bound in steps.bounds] == [7, 7, 7, 8]


def test_offsets_ascend_where_timestamps_do_not():
    assert [bound["a", 1] for bound in cut(FOUND, 11).bounds] == [20, 20, 26, 26, 26]


def test_a_bucket_with_more_records_is_a_step_of_its_own():
    assert cut(FOUND, 1).records == [11, 5, 20, 1]


def test_without_records_there_are_no_steps():
    assert cut([], 10).records == []
