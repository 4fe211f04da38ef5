import numpy as np
import pytest

from jobs.detector.population.machines import NEVER, KnownMachines
from jobs.detector.saved_state import NOTHING, Saved


@pytest.fixture
def machines() -> KnownMachines:
    """Two of one hypervisor and one of another, first seen in window 5."""
    made = KnownMachines(NOTHING)
    made.begin(5)
    for name, hypervisor in (("vm-1", "hv-1"), ("vm-2", "hv-1"), ("db-1", "hv-2")):
        made.add(name, 5, {"hypervisor": hypervisor})
    return made


def test_machines_are_numbered_as_they_come(machines: KnownMachines) -> None:
    assert [machines.number(name) for name in ("vm-1", "vm-2", "db-1", "vm-9")] == [0, 1, 2, None]
    assert machines.numbers(["db-1", "vm-1", "db-1"]).tolist() == [0, 2]


def test_missed_windows_are_counted_up_to_a_bound(machines: KnownMachines) -> None:
    everybody = np.arange(3)
    machines.see(5, everybody, most_missed=3)
    machines.see(7, np.array([0]), most_missed=3)
    machines.see(20, np.array([0, 1]), most_missed=3)
    assert machines.missed.tolist() == [1 + 3, 3, 0]
    assert machines.present.tolist() == [3, 2, 1]
    assert machines.last.tolist() == [20, 20, 5]
    assert (machines.newest_window(), machines.age(0, 20)) == (20, 15)


def test_a_machines_place_counts_its_peers_once_a_window(machines: KnownMachines) -> None:
    place = machines.place(0)
    assert place == {"inventory": {"hypervisor": "hv-1"}, "peers": {"machines": 3, "hypervisor": 2}}
    machines.add("vm-3", 5, {"hypervisor": "hv-1"})
    assert machines.place(0)["peers"] == {"machines": 4, "hypervisor": 2}
    machines.start_window()
    assert machines.place(0)["peers"] == {"machines": 4, "hypervisor": 3}


def test_globs_choose_machines(machines: KnownMachines) -> None:
    assert machines.matching("vm-*").tolist() == [True, True, False]


def test_they_go_on_from_what_was_saved(machines: KnownMachines) -> None:
    saved = machines.saved()
    again = KnownMachines(Saved(dict(saved.header), dict(saved.arrays)))
    assert again.number("db-1") == 2
    assert again.saved().header == saved.header
    assert {name: one.tolist() for name, one in again.saved().arrays.items()} == {
        name: one.tolist() for name, one in saved.arrays.items()
    }


def test_what_is_dropped_has_no_name_and_what_is_left_gets_new_numbers(machines: KnownMachines) -> None:
    machines.see(5, np.arange(3), most_missed=3)
    machines.retired_at = {0: 7, 2: 9}
    machines.drop(np.array([0]))
    assert (len(machines), machines.number("vm-1"), machines.number("db-1")) == (2, None, 2)
    assert machines.matching("*").tolist() == [False, True, True]
    assert machines.place(1)["peers"] == {"machines": 2, "hypervisor": 1}
    assert machines.gone_from(10, 20).tolist() == [NEVER, 15, 15]
    assert machines.add("vm-1", 9, None) == 3
    machines.retain(np.array([1, 2, 3]))
    assert machines.names == ["vm-2", "db-1", "vm-1"]
    assert [machines.number(name) for name in machines.names] == [0, 1, 2]
    assert machines.first.tolist() == [5, 5, 9]
    assert machines.retired_at == {1: 9}


def test_a_machine_is_given_three_times_the_longest_gap_it_had(machines: KnownMachines) -> None:
    machines.see(5, np.arange(3), most_missed=3)
    machines.see(11, np.array([0]), most_missed=3)
    machines.see(56, np.array([1]), most_missed=3)
    assert machines.gone_from(10, 100).tolist() == [11 + 3 * 5, 56 + 100, 5 + 10]


def test_facts_say_when_a_machine_is_retired_and_that_it_goes_on(machines: KnownMachines) -> None:
    machines.note_facts(0, {"valid_to_unix_nano": 100}, 90)
    machines.note_facts(0, {"known": True}, 95)  # a window that began before
    assert machines.retired_at == {0: 100}
    machines.note_facts(0, {"known": False}, 100)
    assert machines.retired_at == {}
