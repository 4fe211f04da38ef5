import pytest
from pydantic import ValidationError

from jobs.detector.rules import Orders, Rule

NOVELTY = {
    "machine": "upf-3",
    "verdict": "anomaly",
    "series": "system.disk.io{direction=read}",
    "observed": 12.0,
    "expected": 10.0,
}
SILENCE = {"machine": "upf-3", "verdict": "silence", "observed": 30.0, "expected_high": 20.0}


@pytest.mark.parametrize(
    ("rule", "matched"),
    [
        ({"machine": "upf-*"}, True),
        ({"machine": "amf-*"}, False),
        ({"series": "system.disk*"}, True),
        ({"series": "system.cpu*"}, False),
        ({"direction": "above"}, True),
        ({"direction": "below"}, False),
        ({"size": 2.0}, True),
        ({"size": 1.9}, False),
        ({"machine": "upf-3", "series": "*disk*", "direction": "above", "size": 5.0}, True),
        ({"machine": "upf-3", "series": "*disk*", "direction": "above", "size": 1.0}, False),
    ],
)
def test_a_rule_is_about_what_meets_all_of_it(rule, matched):
    assert Rule(**rule).matches(NOVELTY) is matched


@pytest.mark.parametrize(
    ("rule", "matched"), [({"machine": "upf-*"}, True), ({"series": "*?"}, False), ({"size": 100.0}, False)]
)
def test_a_silence_is_suppressed_only_by_a_rule_about_whole_machines(rule, matched):
    assert Rule(**rule).matches(SILENCE) is matched


@pytest.mark.parametrize(
    "fields", [{"size": 0}, {"size": float("nan")}, {"direction": "up"}, {"machine": ""}, {"x": 1}]
)
def test_a_rule_that_makes_no_sense_is_refused(fields):
    with pytest.raises(ValidationError):
        Rule(**fields)


def test_the_same_rule_has_the_same_id():
    assert Rule(machine="a*").id == Rule(machine="a*").id != Rule(machine="b*").id


def test_what_was_called_normal_is_so_a_little_beyond_and_on_that_side_only():
    orders = Orders({})
    assert orders.call_normal(3, observed=60.0, expected=10.0) == (10.0, 65.0)
    assert [orders.is_normal(3, value) for value in (9.0, 10.0, 64.0, 66.0)] == [False, True, True, False]
    assert not orders.is_normal(4, 10.0)
    assert orders.call_normal(3, observed=5.0, expected=10.0) == (4.5, 65.0)


def test_orders_are_packed_and_unpacked():
    orders = Orders({})
    orders.rules["r1"] = Rule(machine="upf-*", size=2.0)
    orders.call_normal(3, 60.0, 10.0)
    orders.call_calm(2, 9.0)
    orders.gaps[1] = 4
    orders.excused.add(1)
    assert Orders(orders.packed()).packed() == orders.packed()
    assert Orders(orders.packed()).forbid(NOVELTY)


def test_a_machine_whose_joint_score_was_called_normal_may_have_it_again():
    orders = Orders({})
    orders.call_calm(2, 10.0)
    orders.call_calm(2, 5.0)
    assert [orders.is_calm(machine, joint) for machine, joint in ((2, 10.9), (2, 11.1), (1, 1.0))] == [
        True,
        False,
        False,
    ]


def test_a_rule_about_values_is_none_about_a_machine_as_a_whole():
    whole = {"machine": "upf-3", "verdict": "anomaly", "kind": "machine", "observed": 12.0, "expected": 1.0}
    assert not Rule(machine="upf-*", direction="above").matches(whole)
    assert Rule(machine="upf-*").matches(whole)
