"""One report of what runs beyond one machine."""

import json

from tests.cluster import BENCH, COST, EXECUTORS, STORMS, gather

STORM = {"passed": True, "scenarios": [{"kills": 4, "lost": 0, "duplicated": 0, "wrong": wrong} for wrong in (0, 0)]}


def _write(folder, **changes):
    reports = {**dict.fromkeys(STORMS.values(), STORM), EXECUTORS: {"passed": True}, BENCH: {"cost_ratio": {"a": 1.1}}}
    reports[COST] = {"more_s": {"statistics": 0.2}}
    for name, report in (reports | changes).items():
        (folder / name).write_text(json.dumps(report))


def test_it_passed_once_each_suite_has(tmp_path):
    assert gather(tmp_path) == {
        "passed": False,
        "object_store": None,
        "standalone": None,
        "kubernetes": None,
        "cost_ratio": None,
        "object_store_more_s_a_batch": None,
    }
    _write(tmp_path)
    found = gather(tmp_path)
    assert found["passed"]
    assert (found["standalone"]["kills"], found["standalone"]["same_bytes"]) == (8, True)
    assert found["cost_ratio"] == {"a": 1.1}
    assert found["object_store_more_s_a_batch"] == {"statistics": 0.2}


def test_a_suite_that_failed_or_found_other_content_is_said(tmp_path):
    wrong = {"passed": False, "scenarios": [STORM["scenarios"][0] | {"wrong": 2}]}
    _write(tmp_path, **{STORMS["standalone"]: wrong})
    found = gather(tmp_path)
    assert not found["passed"]
    assert not found["standalone"]["same_bytes"]
    _write(tmp_path, **{EXECUTORS: {"passed": False}})
    assert not gather(tmp_path)["passed"]
