import copy
import json
from collections import defaultdict

import pytest

from infra.contract.columnar import to_columns
from infra.errors import UserError
from ops.simulator import check
from ops.simulator.faults import SECOND
from ops.simulator.simulation import Scrape
from ops.simulator.truth import Truth

WINDOW = 10 * SECOND


@pytest.fixture
def folder(tmp_path, simulate):
    simulation = simulate("late:vm-03@+20s", "silence:vm-06@+20s")
    with Truth(tmp_path, simulation) as truth:
        for record in simulation.records():
            truth.delivered(record, record.timestamp_ms)
    return tmp_path


@pytest.fixture
def statistics(folder):
    """What a faultless statistics job would write: a record a machine and window, then a watermark."""
    windows = defaultdict(list)
    for line in map(json.loads, (folder / "windows.jsonl").read_text().splitlines()):
        windows[line["machine"], line["start_unix_nano"]] += [
            {"kind": line["kind"], "series": series, **{k: v for k, v in figures.items() if k != "identity"}}
            for series, figures in line["series"].items()
            if series != "*"
        ]
    records = [
        {
            "machine": machine,
            "window": {
                "kind": "tumbling",
                "size_seconds": 10.0,
                "start_unix_nano": start,
                "end_unix_nano": start + WINDOW,
            },
            "statistics": found,
        }
        for (machine, start), found in windows.items()
    ]
    return [*records, {"watermark_unix_nano": max(start for _, start in windows) + WINDOW}]


def compare(folder, records, **more):
    """The comparison of records whose statistics are held as rows, to be changed."""
    return check.compare(
        folder,
        [r | {"statistics": to_columns(r["statistics"])} if "statistics" in r else r for r in records],
        **more,
    )


def one_metric(statistics):
    return next(s for s in statistics[5]["statistics"] if s["kind"] == "metric")


def test_a_faultless_chain_passes(folder, statistics):
    report = compare(folder, statistics)
    assert report.as_dict() == {
        "passed": True,
        "cells": report.cells,
        "events": json.loads((folder / "totals.json").read_text())["accepted"],
        "lost": 0,
        "duplicated": 0,
        "wrong": 0,
        "examples": [],
    }


def test_a_lost_event_is_told(folder, statistics):
    one_metric(statistics)["count"] -= 1
    report = compare(folder, statistics)
    assert (report.lost, report.duplicated, report.passed) == (1, 0, False)
    (example,) = report.examples
    assert (example["problem"], example["machine"]) == ("lost", statistics[5]["machine"])
    assert example["series"] == one_metric(statistics)["series"]


def test_a_lost_window_counts_all_its_events(folder, statistics):
    lost = statistics.pop(5)
    events = sum(statistic["count"] for statistic in lost["statistics"])
    assert compare(folder, statistics).lost == events


def test_a_window_told_twice_is_duplicated(folder, statistics):
    twice = copy.deepcopy(statistics[5])
    report = compare(folder, [*statistics, twice])
    assert (report.lost, report.duplicated) == (0, sum(s["count"] for s in twice["statistics"]))


def test_a_wrong_sum_is_told(folder, statistics):
    one_metric(statistics)["sum"] *= 1.0001
    report = compare(folder, statistics)
    assert (report.lost, report.duplicated, report.wrong) == (0, 0, 1)


def test_a_line_with_an_unusual_value_counts_once(folder, statistics):
    record = next(r for r in statistics if any(s["kind"] == "log" for s in r["statistics"]))
    of_template = next(s for s in record["statistics"] if s["kind"] == "log")
    about = {"template": of_template["series"], "parameter": "2"}
    record["statistics"].append(of_template | {"series": "path <below 1 ms>", "count": 1, "attributes": about})
    assert compare(folder, statistics).passed


def test_a_log_line_doubled_is_told(folder, statistics):
    record = next(r for r in statistics if any(s["kind"] == "log" for s in r["statistics"]))
    next(s for s in record["statistics"] if s["kind"] == "log")["count"] += 1
    assert compare(folder, statistics).duplicated == 1


def test_a_window_that_never_was_is_duplicated(folder, statistics):
    ghost = copy.deepcopy(statistics[5])
    ghost["window"]["start_unix_nano"] -= 1000 * WINDOW
    assert compare(folder, [*statistics, ghost]).duplicated > 0


def test_windows_after_the_last_watermark_are_not_asked_for(folder, statistics):
    middle = statistics[-1]["watermark_unix_nano"] - 3 * WINDOW
    kept = [r for r in statistics[:-1] if r["window"]["end_unix_nano"] <= middle]
    report = compare(folder, [*kept, {"watermark_unix_nano": middle}])
    assert report.passed
    assert compare(folder, kept, until_unix_nano=middle + WINDOW).lost > 0


def test_nothing_compared_is_not_passed(folder):
    assert not compare(folder, []).passed


def test_other_machines_and_window_sizes_are_passed_over(folder, statistics):
    other, minute = copy.deepcopy(statistics[5]), copy.deepcopy(statistics[5])
    other["machine"], minute["window"]["size_seconds"] = "a-real-host", 60.0
    assert compare(folder, [*statistics, other, minute]).passed


def events_of(simulation):
    """`events` records of the metrics, as enrichment would write them."""
    for record in simulation.records():
        if isinstance(record.content, Scrape):
            content = record.content
            names = [instrument.series for instrument in simulation.instruments[content.machine]]
            found = [
                {"time_unix_nano": content.time_unix_nano, "series": series, "value": value}
                for series, value in zip(names, content.values.tolist(), strict=True)
            ]
            yield {"machine": record.key.decode(), "kind": "metric", "events": to_columns(found)}
        elif lines := getattr(record.content, "lines", None):
            found = [{"time_unix_nano": s.line.time_unix_nano, "body": s.line.body} for s in lines]
            yield {"machine": record.key.decode(), "kind": "log", "events": to_columns(found)}


def test_events_are_compared_down_to_their_content(folder, simulate):
    records = list(events_of(simulate("silence:vm-06@+20s")))
    late = check.compare_events(folder, records)
    assert {example["machine"] for example in late.examples} == {"vm-03"}
    assert late.duplicated == json.loads((folder / "totals.json").read_text())["late"]


def test_a_changed_value_is_wrong_though_the_count_agrees(tmp_path, simulate):
    simulation = simulate(seconds=20)
    with Truth(tmp_path, simulation) as truth:
        for record in simulation.records():
            truth.delivered(record, record.timestamp_ms)
    records = list(events_of(simulation))
    assert check.compare_events(tmp_path, records).passed
    records[0]["events"]["time_unix_nano"][0] += 1
    report = check.compare_events(tmp_path, records)
    assert (report.lost, report.duplicated, report.wrong) == (0, 0, 1)


def test_a_folder_without_truth_is_refused(tmp_path):
    with pytest.raises(UserError, match="can't be read; give the --truth of a run"):
        check.compare(tmp_path / "nowhere", [])


def test_a_counter_is_compared_by_its_growth(folder, statistics):
    """Rates have other figures than the counter; what it grew by since the window before is its sum."""
    ordered = sorted(statistics[:-1], key=lambda record: record["window"]["start_unix_nano"])
    series = next(s["series"] for s in ordered[0]["statistics"] if s["series"].startswith("system.network.io"))
    before = {}
    for record in ordered:
        for one in record["statistics"]:
            if one["series"] == series:
                last = before.get(record["machine"], one["max"])
                before[record["machine"]] = one["max"]
                one |= {"rate": True, "sum": one["max"] - last, "min": 0.1, "max": 0.2}
    counters = [s for r in ordered for s in r["statistics"] if s.get("rate")]
    assert compare(folder, statistics).passed
    counters[-1]["sum"] += 1.0
    assert compare(folder, statistics).wrong == 1
