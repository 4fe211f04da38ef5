import pytest

from infra.errors import UserError
from ops.capacity.advice import Room, Seen, Target, advise, cores_of

NOTHING = Seen({"q": 100.0}, 1_000.0, 0.0)
TARGET = Target(busy=0.6, catch_up_seconds=600)
TWO_CORES, FOUR_CORES = Room(2, 4), Room(4, 4)


def advice(batch_seconds, rows, lag=0.0, before=NOTHING, room=TWO_CORES):
    """Of a minute."""
    after = Seen({"q": 100.0 + batch_seconds}, 1_000.0 + rows, lag)
    return advise("detector", (before, after), 60.0, room, TARGET)


def test_a_job_that_is_half_busy_stays():
    found = advice(30, 6_000)
    assert (found.busy, found.rows_per_second, found.says) == (0.5, 100.0, "stay")


def test_one_that_is_always_busy_needs_more_cores():
    found = advice(60, 6_000)
    assert (found.cores_needed, found.says) == (4, "4 cores")


def test_what_does_not_get_read_counts_as_what_comes_in():
    """A hundred rows a second are read, nearly as many stay; and what stays is to be read within ten minutes."""
    found = advice(60, 6_000, lag=5_700.0)
    assert found.lag_per_second == 95
    assert found.cores_needed == 7  # 2 cores * (100 + 95 + 9.5) / 100 at 60 %


def test_a_lag_has_to_be_gone_within_the_time_that_is_wanted():
    waiting = Seen({"q": 100.0}, 1_000.0, 60_000.0)
    found = advice(42, 6_000, lag=60_000.0, before=waiting)
    assert (found.lag_per_second, found.cores_needed) == (0, 5)  # 2 cores * 70 % * (100 + 100) / 100 at 60 %


def test_what_waits_for_a_job_that_is_not_busy_does_not_wait_for_cores():
    found = advice(6, 60, lag=6_000.0)
    assert (found.busy, found.lag_per_second, found.says) == (0.1, 100.0, "stay")


def test_more_cores_than_partitions_need_partitions_first():
    found = advice(60, 6_000, lag=5_700.0)
    assert (found.partitions_needed, found.says) == (7, "7 cores and, before them, 7 partitions")


def test_fewer_are_advised_only_where_a_third_would_do():
    assert advice(15, 6_000, room=FOUR_CORES).says == "stay"
    assert advice(6, 6_000, room=FOUR_CORES).says == "1 core"


def test_the_busiest_query_decides_and_a_new_one_counts_from_its_start():
    before = Seen({"a": 10.0}, 0.0, 0.0)
    after = Seen({"a": 22.0, "b": 30.0}, 60.0, 0.0)
    assert advise("archive", (before, after), 60.0, Room(2, 4), TARGET).busy == 0.5


def test_a_job_that_was_started_again_counts_from_there():
    before, after = Seen({"q": 500.0}, 90_000.0, 0.0), Seen({"q": 30.0}, 6_000.0, 0.0)
    found = advise("detector", (before, after), 60.0, TWO_CORES, TARGET)
    assert (found.busy, found.rows_per_second) == (0.5, 100.0)


def test_a_job_that_reads_nothing_stays_as_it_is():
    found = advice(0, 0)
    assert (found.busy, found.cores_needed, found.says) == (0.0, 2, "stay")


def test_of_one_whose_batch_has_not_ended_nothing_is_known():
    assert advice(0, 0, lag=500.0).says == "no batch has ended: watch it longer"


@pytest.mark.parametrize(("master", "cores"), [("local", 1), ("local[2]", 2), ("local[16,4]", 16)])
def test_cores_of_a_master(master, cores):
    assert cores_of(master) == cores


@pytest.mark.parametrize("master", ["local[*]", "spark://host:7077", "k8s://https://kubernetes"])
def test_cores_elsewhere_have_to_be_given(master):
    with pytest.raises(UserError, match="give them by --cores"):
        cores_of(master)
