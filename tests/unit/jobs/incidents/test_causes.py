from math import log

import pytest

from jobs.incidents.causes import HALF_LIFE, MOST_SUSPECTS, SECOND, Group, Suspect, log_likelihood_ratio, rank
from jobs.incidents.dependencies import goes_by, needs
from jobs.incidents.deviation import Deviation

WINDOW = 10 * SECOND


def suspect(machine, *needed, strength=4.0, passed_on=None, since=100, is_demand=False, window=WINDOW):
    """An affected machine, and what it needs."""
    inherited = strength if passed_on is None else passed_on
    deviation = Deviation(strength, inherited, is_demand, f"{machine} is strange")
    return Suspect(machine, since * SECOND, window, deviation, goes_by(machine, None, {}), needs(needed, {}))


def weights(cause):
    return {reason.evidence: reason.weight for reason in cause.because}


def test_a_machine_that_waits_for_another_is_not_the_cause():
    """The AMF and the SMF wait for the UDM, and each deviates twice as strongly as it."""
    udm, amf, smf = suspect("udm", strength=2.0), suspect("amf", "udm"), suspect("smf", "udm")
    first, second, third = rank([amf, smf, udm], [], 100)
    assert (first.name, first.affected, first.likelihood) == ("udm", 3, 2.0 + 0.5 * (4.0 + 4.0))
    assert weights(first) == {"deviation": 2.0, "dependants": 4.0}
    assert first.because[1].text == "amf, smf depend on it"
    assert first.text() == "machine udm, on which 2 of the others depend"
    assert {second.name, third.name} == {"amf", "smf"}
    assert weights(second) == {"deviation": 4.0, "dependencies": -1.0, "unrelated": -2.0}
    assert second.because[1].text == "it depends on udm, and so may only wait"
    assert second.likelihood == 1.0


def test_the_cause_may_be_some_affected_machines_away():
    chain = [suspect("front", "cart"), suspect("cart", "db"), suspect("db")]
    assert [cause.name for cause in rank(chain, [], 100)] == ["db", "cart", "front"]
    assert rank(chain, [], 100)[0].because[1].text == "cart, front depend on it"


def test_one_that_deviates_far_more_than_what_it_waits_for_is_the_cause_all_the_same():
    loud, faint = suspect("cart", "db", strength=8.0), suspect("db", strength=1.0)
    assert [cause.name for cause in rank([faint, loud], [], 100)] == ["cart", "db"]


def test_what_began_before_it_is_not_explained_by_it():
    db, cart = suspect("db", since=120), suspect("cart", "db", since=100)
    assert "dependants" not in weights(next(cause for cause in rank([db, cart], [], 100) if cause.name == "db"))


def test_when_a_long_window_began_to_be_strange_is_uncertain_by_its_length():
    db = suspect("db", since=120, window=60 * SECOND)
    assert weights(rank([db, suspect("cart", "db", since=100)], [], 100)[0]) == {"deviation": 4.0, "dependants": 2.0}


def test_what_began_long_after_it_counts_less():
    later = 100 + HALF_LIFE // SECOND
    first = rank([suspect("db"), suspect("cart", "db", since=later)], [], 100)[0]
    assert weights(first) == {"deviation": 4.0, "dependants": 2.0, "delay": -2.0}  # half of it explained, half not


def test_a_change_of_demand_comes_from_those_who_ask():
    """The cart fails, so its database is asked for nothing."""
    cart, db = suspect("cart", "db"), suspect("db", is_demand=True)
    assert [cause.name for cause in rank([db, cart], [], 100)] == ["cart", "db"]


def test_a_dependency_has_not_filled_the_memory_of_those_who_wait_for_it():
    cart, db = suspect("cart", "db", strength=6.0, passed_on=0.0), suspect("db")
    first, second = rank([db, cart], [], 100)
    assert (first.name, second.name) == ("cart", "db")
    assert weights(second) == {"deviation": 4.0, "unrelated": -3.0}
    assert second.because[1].text == "what depends on it is strange in its own resources, too"


def test_machines_that_depend_on_each_other_explain_each_other():
    one, other = suspect("a", "b", strength=5.0), suspect("b", "a")
    assert {cause.name: cause.likelihood for cause in rank([one, other], [], 9)} == {"a": 7.0, "b": 6.5}


def test_a_group_weighs_by_how_many_of_it_are_affected_and_how_many_such_groups_there_are():
    guests = [suspect(f"vm-{number}") for number in range(4)]
    first = rank(guests, [Group("hypervisor", "hv-1", 4, 4)], 100)[0]
    assert (first.kind, first.affected, first.machines) == ("hypervisor", 4, 4)
    ratio = 4 * log(25) + 96 * log(100 / 96)
    assert weights(first) == {"share": round(ratio, 3), "rarity": round(-log(25), 3)}
    assert first.likelihood == pytest.approx(ratio - log(25), abs=2e-3)
    assert [reason.text for reason in first.because] == [
        "4 of its 4 machines are affected, of others 0 of 96",
        "it has 4 of 100 machines: there are many such groups",
    ]


def test_of_equal_causes_the_smallest_group_and_then_the_name_counts():
    alone = [suspect("vm-2"), suspect("vm-1")]
    assert [cause.name for cause in rank(alone, [], 100)] == ["vm-1", "vm-2"]
    two = [Group("site", "s", 2, 2), Group("hypervisor", "h", 2, 2)]
    assert [cause.kind for cause in rank(alone, two, 100) if cause.kind != "machine"] == ["hypervisor", "site"]


def test_an_incident_of_a_whole_site_weighs_the_strongest_machines():
    many = [suspect(f"vm-{number:04d}", strength=1.0 + number / 1000) for number in range(MOST_SUSPECTS + 50)]
    named = {cause.name for cause in rank(many, [], 1000)}
    assert named == {one.machine for one in many[50:]}


def test_the_weights_of_a_cause_add_up_to_its_likelihood():
    for cause in rank([suspect("a", "b"), suspect("b", since=95), suspect("c")], [Group("site", "s", 3, 9)], 40):
        assert cause.likelihood == pytest.approx(sum(reason.weight for reason in cause.because), abs=1e-3)
        shown = cause.shown()
        assert [one["weight"] for one in shown["because"]] == [reason.weight for reason in cause.because]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((4, 4, 0, 96), 4 * log(25) + 96 * log(100 / 96)),  # all of them and nobody else
        ((1, 10, 1, 10), 0.0),
        ((0, 10, 5, 10), 0.0),  # fewer than elsewhere speak against it
    ],
)
def test_the_likelihood_ratio_in_closed_form(counts, expected):
    assert log_likelihood_ratio(*counts) == pytest.approx(expected)


def test_more_of_a_group_is_likelier():
    ratios = [log_likelihood_ratio(k, 8, 4 - k, 92) for k in range(1, 5)]
    assert ratios == sorted(ratios)
    assert ratios[-1] > 8
