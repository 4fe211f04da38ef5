"""Who may write, as it is kept at the broker."""

from jobs.runtime.commits import LOSERS, Ownership


def test_nobody_owns_what_has_no_metadata():
    assert Ownership.parse("") == Ownership()


def test_it_is_read_as_it_was_written():
    ownership = Ownership("a process 7 0f", "a", ("b", "c"))
    assert Ownership.parse(ownership.format()) == ownership


def test_whoever_loses_is_remembered_and_whoever_wins_is_not():
    first = Ownership().passed_to("t1", "a")
    second = first.passed_to("t2", "b")
    assert (first.lost, second.lost) == ((), ("a",))
    assert second.passed_to("t3", "a") == Ownership("t3", "a", ("b",))


def test_a_restart_on_one_host_loses_to_nobody():
    assert Ownership("t1", "a").passed_to("t2", "a").lost == ()


def test_only_the_last_losers_are_remembered_so_that_it_fits_into_an_offsets_metadata():
    ownership = Ownership()
    for number in range(100):
        ownership = ownership.passed_to(f"t{number}", f"{number:0253d}")
    assert len(ownership.lost) == LOSERS
    assert len(ownership.format()) < 4096
