import pytest
from pydantic import ValidationError

from jobs.detector.rules import Rule

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


def test_a_rule_about_values_is_none_about_a_machine_as_a_whole():
    whole = {"machine": "upf-3", "verdict": "anomaly", "kind": "machine", "observed": 12.0, "expected": 1.0}
    assert not Rule(machine="upf-*", direction="above").matches(whole)
    assert Rule(machine="upf-*").matches(whole)
