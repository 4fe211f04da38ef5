import json

from jobs.enrichment.inventory import is_repeated, newest_first, parse_fact


def fact(known=1, **record):
    return parse_fact(json.dumps({"machine": "vm-1", **record}).encode(), known)[1]


def test_what_is_said_again_is_known_since_it_was_said_first():
    before = [fact(known=1, site="a"), fact(known=2, site="b", valid_from_unix_nano=20)]
    assert is_repeated(fact(known=3, site="a"), before)
    assert not is_repeated(fact(known=3, site="b"), before)
    assert not is_repeated(fact(known=3, site="a", valid_from_unix_nano=30), before)


def test_what_was_corrected_and_is_said_again_is_no_repetition():
    assert not is_repeated(fact(known=3, site="a"), [fact(known=1, site="a"), fact(known=2, site="b")])


def test_of_facts_that_began_together_the_last_one_comes_first():
    facts = [fact(site="a"), fact(site="b", valid_from_unix_nano=20), fact(site="c")]
    assert [one["site"] for one in newest_first(facts)] == ["b", "c", "a"]


def test_an_empty_text_says_nothing():
    found = fact(workload="", site="lab")
    assert (found["workload"], found["site"]) == (None, "lab")
