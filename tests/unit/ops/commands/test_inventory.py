"""The files that `kappa inventory load` takes, and the history that `show` prints."""

import json

import pytest

from infra.errors import UserError
from jobs.enrichment.inventory import parse_fact
from ops.commands.inventory import _entry, _history, _rows

CSV = """machine,type,site,hypervisor,tenant,role,depends_on,valid_from,valid_to
vm-1,virtual,lund,node-3,acme,web,db-1; cache,2026-01-01T00:00:00Z,2026-02-01T00:00:00+01:00
node-3,physical,lund,,,compute,,,
"""
RECORDS = [
    {
        "machine": "vm-1",
        "type": "virtual",
        "site": "lund",
        "hypervisor": "node-3",
        "tenant": "acme",
        "role": "web",
        "depends_on": ["db-1", "cache"],
        "valid_from_unix_nano": 1767225600_000000000,
        "valid_to_unix_nano": 1769900400_000000000,
    },
    {"machine": "node-3", "type": "physical", "site": "lund", "role": "compute"},
]


def records(file):
    return [_entry(file, number, row).record() for number, row in enumerate(_rows(file), 1)]


def test_csv_and_json_give_the_same_records(tmp_path):
    table, objects = tmp_path / "machines.csv", tmp_path / "machines.json"
    table.write_text(CSV)
    keys = CSV.splitlines()[0].split(",")
    objects.write_text(json.dumps([dict(zip(keys, line.split(","), strict=True)) for line in CSV.splitlines()[1:]]))
    assert records(table) == records(objects) == RECORDS


def test_json_has_lists(tmp_path):
    file = tmp_path / "machines.json"
    file.write_text(json.dumps([{"machine": "vm-1", "depends_on": ["db-1", "cache"]}, {"machine": "vm-2"}]))
    assert records(file) == [{"machine": "vm-1", "depends_on": ["db-1", "cache"]}, {"machine": "vm-2"}]


def test_enrichment_reads_what_load_writes():
    machine, fact = parse_fact(json.dumps(RECORDS[0]).encode(), received_ms=7)
    assert (machine, fact["site"], fact["valid_from"]) == ("vm-1", "lund", 1767225600_000000000)
    assert fact["depends_on"] == ["db-1", "cache"]
    assert fact["known_from"] == 7_000_000


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("machine,colour\nvm-1,red\n", "row 1: colour"),
        ("machine,type\n,virtual\n", "row 1: machine"),
        ("machine,type\nvm-1,virtual\nvm-2,cloud\n", "row 2: type"),
        ("machine,valid_from\nvm-1,yesterday\n", "row 1: valid_from"),
        (f"machine,depends_on\nvm-1,{';'.join(['db-1'] * 101)}\n", "row 1: depends_on"),
        (f"machine,depends_on\nvm-1,{'d' * 4_001}\n", "row 1: depends_on=.*: at most 4000 characters"),
    ],
)
def test_a_wrong_row_is_named(tmp_path, text, fault):
    file = tmp_path / "machines.csv"
    file.write_text(text)
    with pytest.raises(UserError, match=fault):
        records(file)


@pytest.mark.parametrize("text", ["{", "{}", "[1]"])
def test_what_is_no_list_of_objects_is_refused(tmp_path, text):
    file = tmp_path / "machines.json"
    file.write_text(text)
    with pytest.raises(UserError, match=r"machines\.json"):
        records(file)


def fact(**record):
    return parse_fact(json.dumps({"machine": "vm-1", **record}).encode(), 1)[1]


def lines(*facts):
    return [(one["site"], one["valid_from"], one["valid_to"]) for one in _history(facts)]


def test_each_fact_ends_where_the_next_one_begins():
    found = lines(fact(site="b", valid_from_unix_nano=20), fact(site="a"), fact(site="c", valid_from_unix_nano=30))
    assert found == [("c", 30, None), ("b", 20, 30), ("a", 0, 20)]


def test_a_fact_has_its_own_earlier_end():
    assert lines(fact(site="a", valid_to_unix_nano=9), fact(site="b", valid_from_unix_nano=20))[1] == ("a", 0, 9)


def test_what_was_corrected_ends_where_it_begins():
    assert lines(fact(site="a"), fact(site="b")) == [("b", 0, None), ("a", 0, 0)]
