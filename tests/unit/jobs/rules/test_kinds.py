import pytest
import yaml

from infra.errors import UserError
from jobs.rules.absence import Absence
from jobs.rules.change import Change
from jobs.rules.kinds import KINDS, load_rules
from jobs.rules.rule import SECOND
from jobs.rules.sequence import EventSequence

DAY = 86_400 * SECOND
GOOD = {"id": "hot", "name": "Hot", "kind": "change", "series": "t*", "by": 20, "within": "1m"}


@pytest.fixture
def file(tmp_path):
    def write(*rules, text=None):
        path = tmp_path / "rules.yaml"
        path.write_text(text or yaml.safe_dump({"rules": list(rules)}))
        return path

    return write


def test_each_kind_is_a_class(file):
    steps = {"first": {"log": "a"}, "then": {"metric": "b", "below": 1}, "within": "30s"}
    rules = load_rules(
        file(
            GOOD,
            {"id": "b", "name": "B", "kind": "sequence", **steps},
            {"id": "c", "name": "C", "kind": "absence", "for": "5m", "match": {"site": "lund"}},
        ),
        DAY,
    )
    assert [type(rule) for rule in rules] == [Change, EventSequence, Absence] == list(KINDS.values())
    assert (rules[0].within, rules[1].then.below, rules[2].lasting) == (60 * SECOND, 1.0, 300 * SECOND)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"by": -3}, "rule hot: by=-3: Input should be greater than 0"),
        ({"by": None}, "rule hot: by=None: "),
        ({"within": "60"}, "rule hot: within='60': write a whole number and a unit"),
        ({"within": "2d"}, "rule hot: looks back 172800 s, .*KAPPA_RULES_STATE_TTL=86400s; raise that"),
        ({"kind": "rise"}, "rule hot: kind='rise': there are change, sequence, absence"),
        ({"withn": "1m"}, "rule hot: withn='1m': Extra inputs"),
        ({"match": {"sites": "x"}}, "rule hot: match.sites='x': Extra inputs"),
        ({"text": "{first}"}, "rule hot: text names {first}; it may name {machine}"),
        ({"id": "Hot!"}, "rule Hot!: id='Hot!': "),
        ({"kind": "sequence"}, "rule hot: first: is missing"),
    ],
)
def test_a_wrong_rule_is_one_line_that_names_rule_field_and_value(file, changes, says):
    with pytest.raises(UserError, match=f"rules.yaml: {says}") as raised:
        load_rules(file({**GOOD, **changes}), DAY)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rules: {a: 1}", "must be a map with one field, rules"),
        ("[]", "must be a map with one field, rules"),
        ("rules: [3]", "rule 1: must be a map of fields, not 3"),
        ("rules: [", "not YAML"),
        (yaml.safe_dump({"rules": [GOOD, GOOD]}), "rule hot: id='hot': another rule has it"),
    ],
)
def test_a_wrong_file_is_refused(file, text, says):
    with pytest.raises(UserError, match=says):
        load_rules(file(text=text), DAY)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"KAPPA_RULES_FILE=.*none.yaml: No such file"):
        load_rules(tmp_path / "none.yaml", DAY)
