from jobs.detector.overrides import OperatorOverrides
from jobs.detector.rules import Rule

NOVELTY = {
    "machine": "upf-3",
    "verdict": "anomaly",
    "series": "system.disk.io{direction=read}",
    "observed": 12.0,
    "expected": 10.0,
}


def test_what_was_called_normal_is_so_a_little_beyond_and_on_that_side_only():
    overrides = OperatorOverrides({})
    assert overrides.call_normal(3, observed=60.0, expected=10.0) == (10.0, 65.0)
    assert [overrides.is_normal(3, value) for value in (9.0, 10.0, 64.0, 66.0)] == [False, True, True, False]
    assert not overrides.is_normal(4, 10.0)
    assert overrides.call_normal(3, observed=5.0, expected=10.0) == (4.5, 65.0)


def test_overrides_are_packed_and_unpacked():
    overrides = OperatorOverrides({})
    overrides.rules["r1"] = Rule(machine="upf-*", size=2.0)
    overrides.call_normal(3, 60.0, 10.0)
    overrides.call_calm(2, 9.0)
    overrides.call_gap_normal(1, 4)
    overrides.excused.add(1)
    assert OperatorOverrides(overrides.packed()).packed() == overrides.packed()
    assert OperatorOverrides(overrides.packed()).suppresses(NOVELTY)


def test_a_machine_whose_joint_score_was_called_normal_may_have_it_again():
    overrides = OperatorOverrides({})
    overrides.call_calm(2, 10.0)
    overrides.call_calm(2, 5.0)
    assert [overrides.is_calm(machine, joint) for machine, joint in ((2, 10.9), (2, 11.1), (1, 1.0))] == [
        True,
        False,
        False,
    ]
