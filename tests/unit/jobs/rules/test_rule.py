import pytest
from pydantic import ValidationError

from jobs.rules.rule import Events, Machines
from tests.unit.jobs.rules.logs import alerts, change, line, point, record, sequence, watermark


@pytest.mark.parametrize(
    ("globs", "takes"),
    [
        ({}, True),
        ({"machine": "vm-*"}, True),
        ({"machine": "hv-*"}, False),
        ({"site": "lund", "role": "u*"}, True),
        ({"site": "kista"}, False),
        ({"tenant": "?*"}, False),  # a fact that it lacks is the empty text
    ],
)
def test_a_machine_is_watched_if_all_globs_match(globs, takes):
    assert Machines(**globs).takes("vm-1", {"site": "lund", "role": "upf"}) is takes


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({}, "give either metric"),
        ({"metric": "a", "log": "b"}, "give either metric"),
        ({"log": "b", "above": 1}, "above and below are for a metric"),
        ({"log": "("}, "missing )"),
        ({"log": "(a)\\1"}, "neither look-around nor back-references"),
        ({"log": "a" * 501}, "500"),
        ({"severity": "LOUD"}, "ERROR"),
    ],
)
def test_events_that_make_no_sense_are_refused(declared, says):
    with pytest.raises(ValidationError, match="(?s)" + says.replace(")", "\\)")):
        Events(**declared)


def test_log_lines_are_taken_by_body_template_and_severity():
    rule = sequence(first={"log": "disk", "template": "<[*]>$", "severity": "WARN"}, then={"log": "^B"}, within="30s")
    lines = [line(0, "disk 1", 13), line(1, "x 2", 17, "disk <*>"), line(2, "disk 3", 9, "disk <*>")]
    assert alerts([rule], record(*lines, line(3, "B")), watermark(10)) == []
    (alert,) = alerts([rule], record(*lines, line(4, "disk 5", 13, "disk <*>"), line(5, "B")), watermark(10))
    assert alert["observed"][0]["body"] == "disk 5"


def test_an_expression_takes_linear_time():
    """Python's `re` needs 2 ** 30 steps for this."""
    rule = sequence(first={"log": "^(a+)+$"})
    assert alerts([rule], record(line(0, "a" * 30 + "!")), watermark(10)) == []


def test_a_text_names_what_its_kind_knows():
    text = "{name} {machine} {site} {tenant} {role} {series} {before} {after} {seconds} {{}}"
    (alert,) = alerts([change(text=text)], record(point(0, 1), point(2.5, 31)), watermark(10))
    assert alert["text"] == "Hot vm-1 lund  upf temperature{sensor=cpu} 1 31 2.5 {}"


@pytest.mark.parametrize("text", ["{first}", "{machine.__class__}", "{machine!r}", "{seconds:9}", "{}", "{0}"])
def test_a_text_names_nothing_else(text):
    with pytest.raises(ValidationError, match=r"it may name \{machine\}"):
        change(text=text)


def test_an_alert_is_known_by_rule_machine_and_time():
    values = [record(point(0, 1), point(1, 90), machine=name) for name in ("vm-1", "vm-2")]
    found = alerts([change(), change(id="other")], *values, watermark(10))
    assert len({alert["id"] for alert in found}) == 4
    assert [a["id"] for a in alerts([change(severity="critical")], values[0], watermark(5))] == [
        alert["id"] for alert in found if (alert["rule"], alert["machine"]) == ("hot", "vm-1")
    ]
