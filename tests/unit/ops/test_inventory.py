import json

from jobs.enrichment.inventory import parse_fact
from ops.inventory import history


def fact(**record):
    return parse_fact(json.dumps({"machine": "vm-1", **record}).encode(), 1)[1]


def lines(*facts):
    return [(one["site"], one["valid_from"], one["valid_to"]) for one in history(facts)]


def test_each_fact_ends_where_the_next_one_begins():
    found = lines(fact(site="b", valid_from_unix_nano=20), fact(site="a"), fact(site="c", valid_from_unix_nano=30))
    assert found == [("c", 30, None), ("b", 20, 30), ("a", 0, 20)]


def test_a_fact_has_its_own_earlier_end():
    assert lines(fact(site="a", valid_to_unix_nano=9), fact(site="b", valid_from_unix_nano=20))[1] == ("a", 0, 9)


def test_what_was_corrected_ends_where_it_begins():
    assert lines(fact(site="a"), fact(site="b")) == [("b", 0, None), ("a", 0, 0)]
