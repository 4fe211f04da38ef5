import json
from collections import Counter, defaultdict
from hashlib import sha256

import numpy as np
import pytest

from ops.simulator.faults import SECOND
from ops.simulator.simulation import Lines, Malformed, Scrape
from ops.simulator.truth import Truth, line_identity, value_identity

FAULTS = (
    "late:vm-03@+20s",
    "malformed:vm-04@+20s",
    "wrong_clock:vm-05@+20s",
    "silence:vm-06@+20s",
    "log_burst:vm-07@+9s",
)


def written(folder, name):
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def write(folder, simulation, delay_ms=0):
    records = list(simulation.records())
    with Truth(folder, simulation) as truth:
        for record in records:
            truth.delivered(record, record.timestamp_ms + delay_ms)
    return records


def events(records):
    """(machine, kind, time, content) of each event, from the wire."""
    for record in records:
        if isinstance(record.content, Scrape):
            scope = json.loads(record.value)["resourceMetrics"][0]["scopeMetrics"][0]
            for metric in scope["metrics"]:
                for point in metric.get("gauge", metric.get("sum"))["dataPoints"]:
                    labels = ",".join(f"{a['key']}={a['value']['stringValue']}" for a in point.get("attributes", []))
                    series = f"{metric['name']}{{{labels}}}" if labels else metric["name"]
                    value = float(point.get("asDouble", point.get("asInt")))
                    yield record, "metric", int(point["timeUnixNano"]), series, value
        elif isinstance(record.content, Lines):
            for line in json.loads(record.value)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]:
                yield record, "log", int(line["timeUnixNano"]), "*", line["body"]["stringValue"]


def fate(record, time):
    age = record.timestamp_ms * 1_000_000 - time
    return "late" if age > 20 * SECOND else "future" if -age > 10 * SECOND else "accepted"


@pytest.fixture
def written_truth(tmp_path, simulate):
    simulation = simulate(*FAULTS, seconds=90)
    return tmp_path, write(tmp_path, simulation)


def test_windows_equal_a_recount_of_the_bytes_that_were_sent(written_truth):
    folder, records = written_truth
    expected = defaultdict(list)
    for record, kind, time, series, content in events(records):
        if fate(record, time) == "accepted":
            expected[record.key.decode(), kind, time - time % (10 * SECOND), series].append((time, content))
    found = {
        (line["machine"], line["kind"], line["start_unix_nano"], series): figures
        for line in written(folder, "windows")
        for series, figures in line["series"].items()
        if line["kind"] == "metric" or series == "*"
    }
    assert found.keys() == expected.keys()
    for where, members in expected.items():
        times, contents = zip(*members, strict=True)
        identity = value_identity if where[1] == "metric" else line_identity
        content = np.array(contents) if where[1] == "metric" else contents
        assert found[where]["count"] == len(members)
        assert found[where]["identity"] == int(identity(np.array(times), content).sum())
        if where[1] == "metric":
            assert found[where]["sum"] == pytest.approx(sum(contents), rel=1e-12)
            assert (found[where]["min"], found[where]["max"]) == (min(contents), max(contents))


def test_templates_of_a_window_add_up_to_all_its_lines(written_truth):
    for line in written(written_truth[0], "windows"):
        if line["kind"] == "log":
            everything = line["series"].pop("*")
            assert sum(figures["count"] for figures in line["series"].values()) == everything["count"]
            assert sum(figures["identity"] for figures in line["series"].values()) % 2**64 == everything["identity"]


def test_totals_equal_a_recount(written_truth):
    folder, records = written_truth
    fates = Counter(fate(record, time) for record, _, time, *_ in events(records))
    malformed = sum(isinstance(record.content, Malformed) for record in records)
    totals = json.loads((folder / "totals.json").read_text())
    assert totals == {
        **fates,
        "malformed": malformed,
        "rejected": fates["future"] + malformed,
        "produced": sum(fates.values()) + malformed,
    }
    assert min(totals.values()) > 0


def test_late_and_rejected_records_can_be_found_by_content(written_truth):
    folder, records = written_truth
    late = [(r, kind, time, content) for r, kind, time, _, content in events(records) if fate(r, time) == "late"]
    assert sum(line["events"] for line in written(folder, "late")) == len(late)
    assert {line["machine"] for line in written(folder, "late")} == {"vm-03"}
    identities = sum(
        int(
            (
                value_identity(np.array([t]), np.array([c])) if kind == "metric" else line_identity(np.array([t]), [c])
            ).sum()
        )
        for _, kind, t, c in late
    )
    assert sum(line["identity"] for line in written(folder, "late")) % 2**64 == identities % 2**64
    hashes = {line["sha256"] for line in written(folder, "rejected") if line["code"] == "malformed"}
    assert hashes == {sha256(r.value).hexdigest() for r in records if isinstance(r.content, Malformed)}
    assert {line["machine"] for line in written(folder, "rejected") if line["code"] == "future"} == {"vm-05"}


def test_faults_are_written_once_they_have_begun(tmp_path, simulate):
    write(tmp_path, simulate("silence:vm-03@+5s", "cpu_hog:vm-04@+10m", seconds=20))
    assert [fault["spec"] for fault in written(tmp_path, "faults")] == ["silence:vm-03@+5s"]


def test_what_kafka_got_too_late_is_late(tmp_path, simulate):
    write(tmp_path, simulate(seconds=20), delay_ms=60_000)
    totals = json.loads((tmp_path / "totals.json").read_text())
    assert totals["accepted"] == 0
    assert totals["late"] == totals["produced"] > 0
    assert written(tmp_path, "windows") == []


def test_totals_are_there_only_when_the_truth_is_whole(tmp_path, simulate):
    write(tmp_path, simulate(seconds=10))
    with Truth(tmp_path, simulate(seconds=10)):
        assert not (tmp_path / "totals.json").exists()
    assert (tmp_path / "totals.json").exists()


def test_lines_and_otlp_have_the_same_truth(tmp_path, simulate):
    for form in ("otlp", "lines"):
        write(tmp_path / form, simulate(seconds=30, format=form))
    otlp, lines = (
        {(w["machine"], w["kind"], w["start_unix_nano"]): w["series"] for w in written(tmp_path / form, "windows")}
        for form in ("otlp", "lines")
    )
    assert otlp == lines


def test_identity_sees_a_change_of_time_or_value():
    times, values = np.array([1, 2, 3]), np.array([0.5, 0.5, 1.5])
    plain = value_identity(times, values).sum()
    assert plain == value_identity(times[::-1], values[::-1]).sum()
    assert plain != value_identity(times + np.array([0, 0, 1]), values).sum()
    assert plain != value_identity(times[[1, 0, 2]], values[[0, 2, 1]]).sum()
