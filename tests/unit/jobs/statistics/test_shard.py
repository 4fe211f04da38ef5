"""The statistics fold: what it emits, and that no cut of the log shows in it."""

import base64
import math
from collections import defaultdict
from functools import partial
from itertools import pairwise

import jsonschema
import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.contract.columnar import event_columns, to_rows
from infra.contract.json_schema import json_schema
from infra.contract.schemas import LABELS, SCHEMAS
from jobs.runtime.shard_state import Input
from jobs.statistics import shard
from jobs.statistics.catalogue import LABELS_BEGIN, SCRAPE_BYTES
from jobs.statistics.intake import take
from jobs.statistics.limits import Limits
from jobs.statistics.parameters import LEAST_PANES
from jobs.statistics.rows import NANO
from jobs.statistics.settings import Windows
from jobs.statistics.shard import DEFAULT_LIMITS, EARLY, IDLE_SERIES, Shard
from jobs.statistics.state import ChangedLayoutError, ChangedWindowsError, State
from tests.unit.jobs.folds import cuts_of, fed


def windows(*declared, **more):
    return Windows.model_validate({"windows": declared, **more})


TEN = windows({"kind": "tumbling", "size": "10s"})
NESTED = windows({"kind": "tumbling", "size": "10s"}, {"kind": "tumbling", "size": "30s"})
ALL = windows(
    {"kind": "tumbling", "size": "10s"},
    {"kind": "tumbling", "size": "30s", "early": "10s"},
    {"kind": "sliding", "size": "60s", "slide": "30s"},
    {"kind": "session", "gap": "15s", "least": 2, "early": "10s"},
    {"kind": "count", "values": 3, "names": ["cpu*"]},
    state_ttl="50s",
)
INVENTORY = {"known": True, "type": "virtual", "site": "lund"}


def watermark(seconds):
    return orjson.dumps({"watermark_unix_nano": int(seconds * NANO)})


def metric(time, value, series="cpu{core=0}", unit="1", **more):
    return {
        "time_unix_nano": int(time * NANO),
        "series": series,
        "name": "cpu",
        "value": value,
        "unit": unit,
        "attributes": {"core": "0"},
        **more,
    }


def line(time, template="disk <*> failed", severity=17):
    return {"time_unix_nano": int(time * NANO), "series": template, "body": "x", "severity_number": severity}


def record(*events, machine="vm-1", id="otlp-0-1-0", inventory=None, kind="metric", **more):
    facts = inventory or INVENTORY
    fields = {"id": id, "machine": machine, "kind": kind, "inventory": facts}
    return orjson.dumps({**fields, **more, "events": event_columns(events)})


def log_of(values):
    return Input("events", 3, range(len(values)), values)


def run(values, declared=TEN, cuts=(), cold=False, limits=DEFAULT_LIMITS):
    """Fold the values, cut into batches before the given positions; all outputs. Cold: each batch by another worker."""
    return fed(partial(Shard, declared, limits=limits), log_of(values), dict.fromkeys(cuts, cold))[1]


def folded(declared, *values):
    """The state that a log leaves."""
    return fed(partial(Shard, declared), log_of(values))[0]


def data(outputs):
    """The final records, without watermarks."""
    return [output for output in outputs if output.key is not None and output.topic is None]


def early(outputs):
    return [in_rows(output.value) for output in outputs if output.topic == EARLY]


def finals(outputs):
    return [in_rows(output.value) for output in data(outputs)]


def in_rows(value):
    """A record with its statistics as rows."""
    record = orjson.loads(value)
    return record | {"statistics": to_rows(record["statistics"])} if "statistics" in record else record


def test_a_complete_window_is_emitted_once_with_all_its_statistics():
    values = [record(metric(101, 2.0), metric(103, 4.0)), record(metric(102, 9.0)), watermark(110), watermark(125)]
    (found,) = finals(run(values))
    assert found == {
        "id": "vm-1/10s/100000000000",
        "machine": "vm-1",
        "inventory": INVENTORY,
        "window": {
            "kind": "tumbling",
            "size_seconds": 10.0,
            "start_unix_nano": 100 * NANO,
            "end_unix_nano": 110 * NANO,
        },
        "statistics": [
            {
                "series": "cpu{core=0}",
                "kind": "metric",
                "name": "cpu",
                "unit": "1",
                "attributes": {"core": "0"},
                "count": 3,
                "sum": 15.0,
                "mean": 5.0,
                "variance": 13.0,
                "min": 2.0,
                "max": 9.0,
                "first": 2.0,
                "last": 4.0,
                "p50": 4.0,
                "p95": 9.0,
                "p99": 9.0,
            }
        ],
    }


def test_the_output_says_where_it_came_from_and_when_it_is():
    (window, end) = run([record(metric(101, 2.0)), record(metric(102, 2.0)), watermark(112)])
    assert (window.key, window.time_unix_nano, window.origin) == ("vm-1", 110 * NANO, INVENTORY["site"])
    assert window.headers == (("kappa.source", b"events/3/0-1"), ("kappa.schema", b"statistics/4"))
    assert (end.key, end.value, end.time_unix_nano) == (None, watermark(112), 112 * NANO)


def test_a_window_that_ends_after_its_machine_fell_silent_does_not_show_how_far_the_site_is():
    outputs = data(run([record(metric(121, 1.0)), watermark(150)], NESTED))
    assert [(one.time_unix_nano // NANO, one.origin) for one in outputs] == [(130, INVENTORY["site"]), (150, None)]


def test_a_window_waits_for_the_watermark_that_ends_it():
    assert data(run([record(metric(101, 2.0)), watermark(109.999)])) == []
    assert len(data(run([record(metric(101, 2.0)), watermark(109.999), watermark(110)], cuts=(2,)))) == 1


def test_without_a_watermark_nothing_is_emitted():
    assert run([record(metric(101, 2.0)), record(metric(500, 2.0))]) == []


def test_windows_come_by_end_then_size_then_machine_and_then_the_watermark():
    values = [
        record(metric(121, 1.0), machine="b"),
        record(metric(101, 1.0), machine="b"),
        record(metric(121, 1.0), machine="a"),
        watermark(150),
    ]
    outputs = run(values, NESTED)
    shown = [(r["window"]["end_unix_nano"] // NANO, r["window"]["size_seconds"], r["machine"]) for r in finals(outputs)]
    assert shown == [(110, 10, "b"), (120, 30, "b"), (130, 10, "a"), (130, 10, "b"), (150, 30, "a"), (150, 30, "b")]
    assert outputs[-1].value == watermark(150)


def test_a_larger_window_holds_what_the_smaller_ones_in_it_hold():
    values = [record(metric(time, float(time))) for time in (90, 101, 119)]
    found = {(r["window"]["size_seconds"], r["window"]["start_unix_nano"] // NANO): r for r in finals(
        run([*values[:2], watermark(101), *values[2:], watermark(120)], NESTED, cuts=(1, 3))
    )}  # fmt: skip
    assert set(found) == {(10, 90), (10, 100), (10, 110), (30, 90)}
    assert found[30, 90]["statistics"][0]["sum"] == 310.0


def test_log_lines_are_counted_by_template_with_their_highest_severity():
    values = [record(line(101, severity=9), line(102, severity=17), line(103, "ok", 9), kind="log"), watermark(110)]
    (found,) = finals(run(values))
    assert found["statistics"] == [
        {"series": "disk <*> failed", "kind": "log", "count": 2, "severity_number": 17, "example": "x"},
        {"series": "ok", "kind": "log", "count": 1, "severity_number": 9, "example": "x"},
    ]


def test_a_line_without_severity_has_none():
    bare = {"time_unix_nano": 101 * NANO, "series": "plain", "body": "plain"}
    (found,) = finals(run([record(bare, kind="log"), watermark(110)]))
    assert found["statistics"] == [{"series": "plain", "kind": "log", "count": 1, "example": "plain"}]


def test_the_example_of_a_template_is_the_first_line_of_the_newest_pane_in_every_window():
    lines = [(115, "disk 7 failed"), (113, "disk 9 failed"), (113, "disk 8 failed"), (102, "disk 1 failed")]
    values = [record(line(time) | {"body": body}, kind="log") for time, body in lines]
    log = [*values, record(metric(114, 1.0)), watermark(110), watermark(120)]
    for cuts in ((), (1, 3), (2, 4, 5)):
        found = {
            (r["window"]["size_seconds"], r["window"]["start_unix_nano"] // NANO): [
                row.get("example") for row in r["statistics"]
            ]
            for r in finals(run(log, NESTED, cuts=cuts))
        }
        assert found == {
            (10, 100): ["disk 1 failed"],
            (10, 110): ["disk 8 failed", None],
            (30, 90): ["disk 8 failed", None],
        }


def test_of_a_long_line_256_characters_are_the_example():
    long = line(101) | {"body": "ä" * 1000}
    (found,) = finals(run([record(long, kind="log"), watermark(110)]))
    assert found["statistics"][0]["example"] == "ä" * 256


def test_a_line_without_a_text_has_no_example():
    (found,) = finals(run([record(line(101) | {"body": None}, kind="log"), watermark(110)]))
    assert "example" not in found["statistics"][0]


def test_values_of_two_units_do_not_add_up():
    (found,) = finals(run([record(metric(101, 1.0, unit="s"), metric(102, 1000.0, unit="ms")), watermark(110)]))
    assert [(s["unit"], s["sum"]) for s in found["statistics"]] == [("ms", 1000.0), ("s", 1.0)]


def test_a_window_has_the_facts_of_its_latest_record():
    moved = {"known": True, "site": "kista"}
    values = [record(metric(104, 1.0), id="b", inventory=moved), record(metric(101, 1.0), id="a"), watermark(110)]
    assert finals(run(values))[0]["inventory"] == moved


def late(outputs):
    """What went to events.late: id and the times, in seconds, of its events."""
    found = [orjson.loads(output.value) for output in outputs if output.topic == "events.late"]
    for one in found:
        jsonschema.validate(one, json_schema("events", SCHEMAS["events"]))
    return [(one["id"], [time // NANO for time in one["events"]["time_unix_nano"]]) for one in found]


@pytest.mark.parametrize("more", [{}, {"retried": True}])
def test_events_before_an_earlier_watermark_are_late_data_and_the_rest_of_the_record_goes_on(more):
    whole = record(metric(109, 9.0), metric(111, 3.0), metric(104, 8.0), id="otlp-0-77-0", **more)
    outputs = run([watermark(110), whole, record(metric(112, 4.0)), watermark(120)])
    assert late(outputs) == [("otlp-0-77-0", [109, 104])]
    (found,) = finals(outputs)
    assert (found["statistics"][0]["count"], found["statistics"][0]["sum"]) == (2, 7.0)
    (output,) = (output for output in outputs if output.topic)
    assert (output.key, output.by_key, output.note) == ("vm-1", True, "late")


def test_late_events_of_coalesced_scrapes_are_told_apart():
    """As enrichment writes a record of several scrapes: labels once, and which of them each event has."""
    whole = orjson.loads(record(metric(109, 1.0, "a"), metric(109, 2.0, "b")))
    times = [109 * NANO, 109 * NANO, 111 * NANO, 111 * NANO]
    whole["events"] |= {"time_unix_nano": times, "value": [1.0, 2.0, 3.0, 4.0], "labels": [0, 1, 0, 1]}
    names = sorted(whole["events"], key=lambda name: (name in LABELS, name == "series"))
    names = [name for name in names if name not in LABELS] + ["series", "name", "unit", "attributes"]
    whole["events"] = {name: whole["events"][name] for name in names}
    known = orjson.dumps(whole | {"id": "first"})  # its labels are known as text when the second comes
    assert LABELS_BEGIN in known
    outputs = run([known, watermark(110), orjson.dumps(whole), watermark(120)])
    assert late(outputs) == [("otlp-0-1-0", [109, 109])]
    first, second = finals(outputs)
    assert [(s["series"], s["count"], s["sum"]) for s in first["statistics"]] == [("a", 1, 1.0), ("b", 1, 2.0)]
    assert [(s["series"], s["count"], s["sum"]) for s in second["statistics"]] == [("a", 2, 6.0), ("b", 2, 8.0)]


def test_values_beyond_the_largest_float_stay_numbers():
    huge = math.ldexp(1.0, 1023)
    (found,) = finals(run([record(metric(101, huge), metric(102, huge)), watermark(110)]))
    assert found["statistics"][0]["mean"] == huge
    assert all(found["statistics"][0][name] is not None for name in ("sum", "variance"))


def counter(time, value, series="net{dir=in}", **more):
    more = {"type": "sum", "temporality": "cumulative", "monotonic": True, **more}
    return metric(time, float(value), series, unit="By", **more)


def only(outputs, kind="tumbling", size=10.0):
    """The statistics of each window of a kind, one machine's one series."""
    found = [r for r in finals(outputs) if r["window"]["kind"] == kind]
    return [r["statistics"][0] for r in found if kind != "tumbling" or r["window"]["size_seconds"] == size]


def test_a_counter_becomes_a_rate_across_windows():
    log = [
        record(*(counter(time, value) for time, value in [(101, 50), (106, 100), (111, 200), (116, 400)])),
        watermark(120),
    ]
    first, second = only(run(log))
    assert (first["rate"], first["unit"]) == (True, "By/s")
    assert (first["count"], first["sum"], first["mean"]) == (2, 50.0, 10.0)
    assert (second["count"], second["sum"], second["mean"], second["min"], second["max"]) == (
        2,
        300.0,
        30.0,
        20.0,
        40.0,
    )


def test_the_first_point_of_a_counter_is_only_counted():
    (found,) = only(run([record(counter(101, 50)), watermark(110)]))
    assert found == {
        "series": "net{dir=in}",
        "kind": "metric",
        "name": "cpu",
        "unit": "By/s",
        "rate": True,
        "attributes": {"core": "0"},
        "count": 1,
    }


def test_a_reset_between_two_windows_is_growth_from_zero():
    values = [(101, 900), (106, 1000), (111, 20), (116, 120)]
    _, second = only(run([record(*(counter(*point) for point in values)), watermark(120)]))
    assert (second["sum"], second["first"], second["last"]) == (120.0, 4.0, 20.0)


def test_what_keeps_falling_is_no_counter():
    """As collectd sends it unless configured otherwise: rates, under a counter's type."""
    values = [(100 + 5 * n, 7.5 if n % 2 else 3.5) for n in range(40)]
    found = only(run([record(*(counter(*point) for point in values)), watermark(300)]))
    assert "rate" not in found[-1]
    assert (found[-1]["unit"], found[-1]["mean"], found[-1]["min"], found[-1]["max"]) == ("By", 5.5, 3.5, 7.5)


@pytest.mark.parametrize("more", [{"monotonic": False}, {"temporality": "delta"}, {"type": "gauge"}])
def test_other_sums_are_taken_as_they_are(more):
    (found,) = only(run([record(counter(101, 50, **more), counter(106, 40, **more)), watermark(110)]))
    assert ("rate" in found, found["unit"], found["sum"]) == (False, "By", 90.0)


def histogram(time, counts, total, **more):
    spread = {"count": sum(counts), "sum": total, "bounds": [1.0, 2.0], "counts": counts}
    more = {"type": "histogram", "temporality": "cumulative", "histogram": spread, **more}
    return metric(time, total / max(sum(counts), 1), "latency", unit="s", **more)


def test_a_histogram_gives_its_observations_since_the_window_before():
    log = [record(histogram(101, [1, 0, 0], 0.5), histogram(111, [1, 10, 0], 15.5)), watermark(120)]
    first, second = only(run(log))
    assert (first["count"], "observations" in first) == (1, False)
    assert (second["count"], second["observations"], second["sum"], second["mean"]) == (1, 10, 15.0, 1.5)
    assert (second["p50"], second["p95"]) == (1.5, 2.0)


def test_delta_histograms_add_up_over_larger_windows():
    events = [histogram(time, [1, 1, 0], 2.0, temporality="delta") for time in (91, 96, 101, 111)]
    found = only(run([record(*events), watermark(120)], NESTED), size=30.0)
    assert [(s["count"], s["observations"], s["sum"], s["p50"]) for s in found] == [(4, 8, 8.0, 1.0)]


def test_the_missing_share_is_against_the_usual_interval():
    times = [*range(100, 160, 2), 160, 162, *range(170, 180, 2)]
    found = only(run([record(*(metric(time, 1.0) for time in times)), watermark(180)]))
    assert [s.get("missing") for s in found] == [None, 0.0, 0.0, 0.0, 0.0, 0.0, 0.6, 0.0]


def test_a_sliding_window_holds_the_panes_under_it():
    values = [record(metric(time, float(time))) for time in (91, 125, 130, 155)]
    found = [r for r in finals(run([*values, watermark(180)], ALL)) if r["window"]["kind"] == "sliding"]
    shown = [(r["window"]["start_unix_nano"] // NANO, r["window"]["end_unix_nano"] // NANO) for r in found]
    assert shown == [(60, 120), (90, 150), (120, 180)]
    assert [r["statistics"][0]["sum"] for r in found] == [91.0, 91 + 125 + 130.0, 125 + 130 + 155.0]
    assert found[1]["id"] == "vm-1/60s-30s/90000000000"
    assert (found[1]["window"]["size_seconds"], found[1]["window"]["slide_seconds"]) == (60.0, 30.0)


def test_a_session_ends_after_its_gap():
    times = (101, 104, 112, 140, 141, 142, 200)
    outputs = run([record(*(line(time) for time in times), kind="log"), watermark(300)], ALL)
    found = [r for r in finals(outputs) if r["window"]["kind"] == "session"]
    shown = [(r["window"]["start_unix_nano"] // NANO, r["window"]["end_unix_nano"] // NANO) for r in found]
    assert shown == [(101, 127), (140, 157)]  # one line alone is no burst
    assert [r["statistics"][0] for r in found] == [
        {"series": "disk <*> failed", "kind": "log", "count": 3, "severity_number": 17}
    ] * 2
    assert len({r["id"] for r in found}) == 2


def test_a_session_goes_on_over_panes_and_batches():
    values = [record(line(time), kind="log") for time in range(101, 200, 9)]
    log = [value for n, value in enumerate(values) for value in (value, watermark(100 + 9 * n))] + [watermark(400)]
    found = [r for r in finals(run(log, ALL, range(len(log)))) if r["window"]["kind"] == "session"]
    assert [r["statistics"][0]["count"] for r in found] == [len(values)]


def test_a_count_window_is_every_so_many_values():
    log = [
        record(*(metric(100 + 4 * n, float(n)) for n in range(8))),
        record(metric(101, 9.0, "load", name="load")),
        watermark(200),
    ]
    found = [r for r in finals(run(log, ALL)) if r["window"]["kind"] == "count"]
    assert [(r["statistics"][0]["first"], r["statistics"][0]["last"]) for r in found] == [(0.0, 2.0), (3.0, 5.0)]
    assert [r["statistics"][0]["count"] for r in found] == [3, 3]
    assert found[0]["window"] == {
        "kind": "count",
        "size_seconds": 8.000000001,
        "values": 3,
        "start_unix_nano": 100 * NANO,
        "end_unix_nano": 108 * NANO + 1,
    }


def test_early_results_are_prefixes_that_the_final_record_replaces():
    values = [record(metric(time, 1.0)) for time in (91, 101, 111)]
    outputs = run([*values, watermark(120)], ALL)
    (final,) = [r for r in finals(outputs) if r["window"]["size_seconds"] == 30.0]
    running = [r for r in early(outputs) if r["window"]["size_seconds"] == 30.0]
    assert [(r["until_unix_nano"] // NANO, r["statistics"][0]["count"]) for r in running] == [(100, 1), (110, 2)]
    assert {r["id"] for r in running} == {final["id"]}
    assert all(r["provisional"] for r in running)
    assert (final["statistics"][0]["count"], "provisional" in final) == (3, False)


def test_an_open_session_can_be_followed():
    outputs = run([record(*(line(time) for time in (101, 103, 112)), kind="log"), watermark(200)], ALL)
    (final,) = [r for r in finals(outputs) if r["window"]["kind"] == "session"]
    running = [r for r in early(outputs) if r["window"]["kind"] == "session"]
    assert [r["statistics"][0]["count"] for r in running] == [2, 3]
    assert {r["id"] for r in running} == {final["id"]}


def test_a_series_that_was_silent_for_long_is_reset():
    log = [record(counter(101, 50)), watermark(110), record(counter(200, 90)), watermark(210)]
    assert [("sum" in found) for found in only(run(log, ALL))] == [False, False]
    assert [("sum" in found) for found in only(run(log, TEN))] == [False, True]


def test_state_of_other_windows_is_refused():
    with pytest.raises(ChangedWindowsError, match="start a new generation"):
        Shard(NESTED, folded(TEN, watermark(100)))


def test_state_of_another_layout_is_refused(monkeypatch):
    state = folded(TEN, watermark(100))
    monkeypatch.setattr("jobs.statistics.state.LAYOUT", 5)
    with pytest.raises(ChangedLayoutError, match="has the layout 4, this version 5"):
        State(TEN, state)


def test_the_state_does_not_grow_with_history():
    """New series in every window, as containers have: what is long closed and silent is forgotten."""
    fold, sizes = Shard(ALL), []
    for window in range(60):
        time = 10 * window
        events = [
            metric(time + 1 + n, float(n), series=f"cpu{{pod={window}-{pod}}}") for pod in range(100) for n in (0, 5)
        ]
        events += [counter(time + 2, time, series=f"net{{pod={window}-{pod}}}") for pod in range(100)]
        logs = [line(time + n, f"failed {window}") for n in range(9)]
        values = [record(*events), record(*logs, kind="log"), watermark(time + 10)]
        fold.feed(Input("events", 0, range(3 * window, 3 * window + 3), values))
        sizes.append(sum(map(len, fold.dump().values())))
    kept = State(ALL, fold.dump())
    assert len(kept.catalogue) <= 3 * (IDLE_SERIES + 200)
    assert not kept.points
    assert not kept.facts
    assert max(sizes[30:]) <= max(sizes[:30]) * 1.05


def test_known_labels_are_those_of_the_machine_and_its_present_numbers():
    """Labels are looked up by their bytes: the same of two machines, and after series were forgotten."""
    kept, both = State(TEN), (metric(101, 1.0), metric(101, 2.0, "cpu{core=1}"))
    records = [record(*both, machine=machine) for machine in ("vm-1", "vm-2", "vm-1")]
    take(kept, log_of([record(metric(101, 1.0, "first")), *records]).messages())
    assert kept.points[100 * NANO].series.tolist() == [0, 1, 2, 3, 4, 1, 2]
    kept.retain(np.arange(1, 5))
    kept.points.clear()
    take(kept, log_of(records).messages())
    assert kept.points[100 * NANO].series.tolist() == [0, 1, 2, 3, 0, 1]
    assert len(kept.catalogue) == 4


def test_few_known_labels_are_kept(monkeypatch):
    monkeypatch.setattr("jobs.statistics.catalogue.SCRAPES_BYTES", 2 * (SCRAPE_BYTES + 8))
    kept = State(TEN)
    take(kept, log_of([record(metric(101, 1.0, f"cpu{{core={n % 5}}}")) for n in range(20)]).messages())
    assert kept.points[100 * NANO].series.tolist() == [0, 1, 2, 3, 4] * 4
    assert len(kept.catalogue._scrapes) <= 2


def test_text_that_looks_like_the_begin_of_labels_is_only_text():
    begin = LABELS_BEGIN.decode()
    odd = {"series": begin, "name": begin, "unit": begin, "attributes": {begin: begin, "series": begin}}
    metrics = record(metric(101, 2.0, **odd), resource={"series": "[", begin: begin}, machine=begin)
    lines = record(line(101, template=begin) | {"body": begin}, kind="log", machine=begin)
    (found,) = finals(run([metrics, lines, watermark(110)]))
    assert (found["machine"], [one["series"] for one in found["statistics"]]) == (begin, [begin, begin])
    assert found["statistics"][1]["attributes"] == odd["attributes"]


def test_the_state_survives_packing():
    kept = State(ALL)
    values = [
        record(metric(101, 2.5), counter(102, 7), histogram(103, [1, 2, 3], 6.0)),
        record(*(line(time) for time in (101, 102, 115)), kind="log"),
        watermark(113),
    ]
    take(kept, log_of(values).messages())
    list(shard.close(kept, 0))
    again = State(ALL, kept.packed())
    assert again.packed() == kept.packed()
    assert again.catalogue.series == kept.catalogue.series
    assert (again.watermark, again.facts, again.latest, again.totals) == (
        kept.watermark,
        kept.facts,
        kept.latest,
        kept.totals,
    )


@pytest.mark.parametrize("cold", [False, True])
def test_panes_to_which_nothing_comes_stay_the_same_parts(cold):
    """Points of open panes, and what closed ones say until the larger windows are complete."""
    log = [record(metric(101, 2.5), metric(112, 1.0), metric(125, 3.0)), watermark(110), record(metric(126, 4.0))]
    fold, state = Shard(ALL), {}
    for offset, value in enumerate(log):
        before = state
        if cold and before:
            fold = Shard(ALL, before)
        fold.feed(Input("events", 3, [offset], [value]))
        state = fold.dump()
    stayed = {name for name in state if state[name] is before.get(name)}
    panes = {name for name in state if "@" in name}
    assert panes - stayed == {f"column/points/{field}@{120 * NANO}" for field in ("series", "time", "value")}
    assert {f"column/points/value@{110 * NANO}", f"column/panes/mean@{10 * NANO}/{100 * NANO}"} <= stayed


machines = st.sampled_from(["vm-1", "vm-2"])
values_of = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.3])
times = st.integers(0, 400).map(lambda n: n / 10)  # after the last watermark
gauges = st.builds(
    metric, times, values_of, st.sampled_from(["cpu{core=0}", "cpu{core=1}", "load"]), st.sampled_from(["1", "s"])
)
counters = st.builds(counter, times, st.integers(0, 50), st.sampled_from(["net{dir=in}", "net{dir=out}"]))
histograms = st.builds(
    histogram,
    times,
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
    st.floats(0, 99),
    temporality=st.just("delta"),
)
metrics = gauges | counters | histograms
lines = st.builds(line, times, st.sampled_from(["up", "down <*>"]), st.integers(0, 24))
inventories = st.sampled_from([INVENTORY, {"known": True, "site": "kista"}])
batches = st.tuples(machines, st.just("metric"), st.lists(metrics, min_size=1, max_size=4), inventories) | st.tuples(
    machines, st.just("log"), st.lists(lines, min_size=1, max_size=4), inventories
)
segments = st.lists(st.tuples(st.integers(1, 25), st.lists(batches, max_size=5)), min_size=1, max_size=6)


def build_log(segments):
    """Each segment: its records, in two orders, none older than the watermark before; then the next watermark."""
    log, now, number = [], 100, 0
    for step, found in segments:
        records = []
        for machine, kind, events, inventory in found:
            shifted = [event | {"time_unix_nano": event["time_unix_nano"] + now * NANO} for event in events]
            records.append(record(*shifted, machine=machine, kind=kind, id=f"id-{number}", inventory=inventory))
            number += 1
        now += step
        log.append((records, watermark(now)))
    return log


def flat(log):
    return [value for records, end in log for value in (*records, end)]


@settings(max_examples=30)
@given(segments.map(build_log), st.data())
def test_neither_cuts_nor_workers_show_in_state_and_data(log, chosen):
    values = flat(log)
    whole_state, whole = fed(partial(Shard, ALL), log_of(values))
    state, outputs = fed(partial(Shard, ALL), log_of(values), chosen.draw(cuts_of(len(values))))
    assert data(outputs) == data(whole)
    assert early(outputs) == early(whole)
    assert state == whole_state


@settings(max_examples=30)
@given(segments.map(build_log))
def test_a_batch_for_each_record_gives_every_watermark_that_ends_a_pane_and_the_same_data(log):
    values = flat(log)
    outputs = run(values, ALL, range(len(values)), cold=True)
    assert data(outputs) == data(run(values, ALL))
    ends = [orjson.loads(end)["watermark_unix_nano"] for _, end in log]
    ending = [end for before, end in pairwise([0, *ends]) if end // ALL.pane > before // ALL.pane]
    assert [output.time_unix_nano for output in outputs if output.key is None] == ending


def test_a_watermark_within_a_pane_is_not_passed_on():
    log = [record(metric(101, 2.0)), watermark(110), watermark(113), record(metric(115, 3.0)), watermark(119.999)]
    assert run([*log, watermark(120)], cuts=range(1, 6))[-1].value == watermark(120)
    assert [output.value for output in run(log, cuts=range(1, 5)) if output.key is None] == [watermark(110)]


@settings(max_examples=30)
@given(segments.map(build_log), st.data())
def test_the_order_of_records_between_two_watermarks_does_not_show(log, chosen):
    shuffled = [(chosen.draw(st.permutations(records)), end) for records, end in log]
    assert as_bytes(run(flat(shuffled), ALL)) == as_bytes(run(flat(log), ALL))


@settings(max_examples=30)
@given(segments.map(build_log))
def test_how_enrichment_gathered_events_does_not_show(log):
    together = [(gathered(records), end) for records, end in log]
    assert as_bytes(run(flat(together), ALL)) == as_bytes(run(flat(log), ALL))


def gathered(records):
    """The same events as enrichment would write them if they came in one batch: their labels once."""
    groups, others = defaultdict(list), []
    for value in records:
        one = orjson.loads(value)
        if one["kind"] == "log" or "histogram" in one["events"]:
            others.append(value)
        else:
            groups[one["machine"], orjson.dumps(one["inventory"])] += to_rows(one["events"])
    return [*others, *(_with_labels_once(*group, events) for group, events in groups.items())]


def _with_labels_once(machine, inventory, events):
    labels = [{name: event[name] for name in LABELS if name in event} for event in events]
    distinct = sorted({orjson.dumps(one): one for one in labels}.values(), key=orjson.dumps)
    columns = {
        **{name: [event[name] for event in events] for name in ("time_unix_nano", "value")},
        "labels": [distinct.index(one) for one in labels],
        **event_columns(distinct),
    }
    head = {"id": "together", "machine": machine, "kind": "metric", "inventory": orjson.loads(inventory)}
    return orjson.dumps(head | {"events": columns})


def as_bytes(outputs):
    """What is written, but for the headers: offsets tell the order in which records came."""
    return [(output.topic, output.key, output.value, output.time_unix_nano) for output in outputs]


@settings(max_examples=30)
@given(segments.map(build_log))
def test_every_record_fits_the_schema(log):
    schema = json_schema("statistics", SCHEMAS["statistics"])
    for found in [orjson.loads(output.value) for output in run(flat(log), ALL)]:
        jsonschema.validate(found, schema)


@settings(max_examples=30)
@given(segments.map(build_log))
def test_no_two_final_records_share_an_id(log):
    identities = [found["id"] for found in finals(run(flat(log), ALL))]
    assert len(identities) == len(set(identities))


def control(time, action="reset"):
    body = orjson.dumps({"action": action, "machine": "vm-*", "series": "cpu*"}).decode()
    return record(
        {"time_unix_nano": int(time * NANO), "type": "control", "body": body}, machine="vm-*", id="c-1", kind="control"
    )


def test_a_control_event_is_passed_on_before_the_next_watermark_whatever_the_cut():
    values = [
        record(metric(101, 1.0)),
        control(105),
        record(metric(106, 1.0)),
        watermark(110),
        control(112),
        watermark(121),
    ]
    for cuts in ((), (1,), (2,), (1, 2, 3, 4, 5)):
        outputs = sorted(run(values, cuts=cuts), key=lambda output: output.time_unix_nano)  # as the sink does
        found = [orjson.loads(output.value) for output in outputs]
        at = [record["time_unix_nano"] // NANO for record in found if "control" in record]
        assert at == [105, 112]
        watermarks = [n for n, one in enumerate(found) if one.get("watermark_unix_nano", 0) > 105 * NANO]
        assert found.index(next(one for one in found if "control" in one)) < watermarks[0]
    passed = next(one for one in finals(run(values)) if "control" in one)
    assert passed == {
        "id": "c-1",
        "machine": "vm-*",
        "control": {"action": "reset", "machine": "vm-*", "series": "cpu*"},
        "time_unix_nano": 105 * NANO,
    }
    jsonschema.validate(passed, json_schema("statistics", SCHEMAS["statistics"]))


def test_a_late_control_event_takes_effect_with_the_next_window():
    for cuts in ((), (1,)):
        (passed,) = finals(run([watermark(110), control(109)], cuts=cuts))
        assert (passed["id"], passed["time_unix_nano"]) == ("c-1", 110 * NANO)


def changed(value, **fields):
    """A record of which some fields are others; `events` are columns that are added, None takes one away."""
    found, events = orjson.loads(value), fields.pop("events", {})
    found = {name: one for name, one in (found | fields).items() if one is not None}
    if events:
        found["events"] = {name: one for name, one in (found["events"] | events).items() if one is not None}
    return orjson.dumps(found)


GOOD = record(metric(101, 1.0), metric(102, 2.0))
WRONG = {
    "not_json": [b"", b"{", b"\xff", GOOD[:-1], GOOD + b"}", GOOD[:-3] + b"?]}}"],
    "unknown_kind": [changed(GOOD, kind="trace"), changed(GOOD, kind=None), changed(GOOD, kind=["metric"])],
    "not_expected": [
        b"[]",
        b"7",
        changed(GOOD, machine=None),
        changed(GOOD, machine=""),
        changed(GOOD, machine="m" * 1001),
        changed(GOOD, inventory=None),
        changed(GOOD, inventory={"site": {"deep": 1}}),
        changed(GOOD, events={"time_unix_nano": None}),
        changed(GOOD, events={"time_unix_nano": []}),
        changed(GOOD, events={"time_unix_nano": [1.5, 2]}),
        changed(GOOD, events={"time_unix_nano": ["1", "2"]}),
        changed(GOOD, events={"time_unix_nano": [-1, 2]}),
        changed(GOOD, events={"time_unix_nano": [1, 2**63]}),
        changed(GOOD, events={"value": [1.0]}),
        changed(GOOD, events={"value": [1.0, None]}),
        changed(GOOD, events={"value": None}),
        changed(GOOD, events={"series": ["cpu", 7]}),
        changed(GOOD, events={"series": None}),
        changed(GOOD, events={"unit": ["1"]}),
        changed(GOOD, events={"attributes": [{"core": {"deep": 1}}, {}]}),
        changed(GOOD, events={"labels": [0, 2]}),
        changed(GOOD, events={"labels": [0, -1]}),
        changed(GOOD, events={"histogram": [7, None]}),
        changed(GOOD, events={"histogram": [{"count": 2**60}, None]}),
        changed(record(line(101), kind="log"), events={"severity_number": [2**40]}),
        changed(control(101), events={"body": ["[]"]}),
        changed(control(101), events={"body": [7]}),
        changed(control(101), id=None),
        orjson.dumps({"watermark_unix_nano": -1}),
        orjson.dumps({"watermark_unix_nano": 2**62 * 2}),
        orjson.dumps({"watermark_unix_nano": 1.5}),
    ],
}


@pytest.mark.parametrize(
    ("code", "wrong"), [(code, wrong) for code, values in WRONG.items() for wrong in values], ids=str
)
def test_what_cannot_be_used_is_a_dead_letter_and_changes_nothing_else(code, wrong):
    good = [record(metric(103, 1.0), machine="vm-2"), watermark(110)]
    without = run(good)
    outputs = run([good[0], wrong, good[1]])
    (letter,) = (output for output in outputs if output.topic == "events.rejected")
    found = orjson.loads(letter.value)
    jsonschema.validate(found, json_schema("rejected", SCHEMAS["rejected"]))
    assert (found["stage"], found["code"], found["source"]["offset"]) == ("statistics", code, 1)
    assert base64.b64decode(found["value"]) == wrong
    assert (letter.key, letter.by_key, letter.note) == ("events/3/1", True, code)
    assert [output.value for output in outputs if output.topic is None and output.key] == [
        output.value for output in without if output.key
    ]


def test_a_watermark_ahead_of_its_own_kafka_timestamp_moves_nothing():
    values = [record(metric(101, 1.0)), watermark(500), watermark(110)]
    outputs = Shard(TEN).feed(Input("events", 3, range(3), values, timestamps=[105_000, 120_000, 121_000]))
    (letter,) = (output for output in outputs if output.topic == "events.rejected")
    assert (letter.note, letter.time_unix_nano) == ("ahead", 120 * NANO)
    assert [orjson.loads(output.value) for output in outputs if output.key is None] == [
        {"watermark_unix_nano": 110 * NANO}
    ]


def test_an_event_years_ahead_of_its_records_kafka_timestamp_is_rejected():
    ahead = record(metric(101 + 400 * 86_400, 1.0))
    outputs = Shard(TEN).feed(Input("events", 3, [0], [ahead], timestamps=[105_000]))
    assert [output.note for output in outputs] == ["ahead"]


def requests(pane, *statuses):
    """Lines of one template in a pane of 10 s, and the watermark after it."""
    events = [
        line(pane * 10 + n / 100, "GET status: <*>", 9) | {"body": f"GET status: {status}"}
        for n, status in enumerate(statuses)
    ]
    return [record(*events, kind="log", id=f"otlp-0-{pane}-0"), watermark(pane * 10 + 10)]


USUAL_REQUESTS = [value for pane in range(10, 60) for value in requests(pane, *[200] * 15, 404)]


def logs_of(found):
    return [
        {name: cell for name, cell in row.items() if name not in ("kind", "severity_number")}
        for one in found
        for row in one["statistics"]
    ]


def test_lines_with_a_new_value_of_a_parameter_are_a_series_of_their_own():
    log = [*USUAL_REQUESTS, *requests(60, 200, 503, 200, 503)]
    for cuts in ((), (3, 50, 80, 81)):
        found = finals(run(log, cuts=cuts, cold=True))
        assert {row["series"] for row in logs_of(found[:-1])} == {"GET status: <*>"}
        assert logs_of(found[-1:]) == [
            {"series": "GET status: <*>", "count": 4, "example": "GET status: 200"},
            {
                "series": "GET status: <503>",
                "attributes": {"template": "GET status: <*>", "parameter": "1"},
                "count": 2,
                "example": "GET status: 503",
            },
        ]


@pytest.mark.parametrize("behind", [1, 2, 5])
def test_what_is_new_does_not_depend_on_where_the_watermarks_stand(behind):
    """A status is new right after the pane that made the usual ones known; late watermarks come after its lines."""

    def found(behind):
        log = []
        for pane in range(10, 45):
            lines, _ = requests(pane, *[200] * 30, 503 if pane >= 10 + LEAST_PANES else 404)
            log += [lines, watermark((pane - behind) * 10 + 10)]
        return finals(run([*log, watermark(600)], cuts=(3, 50, 60), cold=True))

    assert [row["series"] for row in logs_of(found(0))].count("GET status: <503>") == 5
    assert found(behind) == found(0)


def test_a_machine_may_have_no_parameters():
    log = [*USUAL_REQUESTS, *requests(60, 503)]
    found = finals(run(log, limits=Limits(parameters=0)))
    assert {row["series"] for row in logs_of(found)} == {"GET status: <*>"}


def test_a_series_of_a_parameter_is_none_beyond_the_limit_of_templates():
    log = [*USUAL_REQUESTS, *requests(60, 503)]
    found = run(log, limits=Limits(templates=1))
    assert {row["series"] for row in logs_of(finals(found))} == {"GET status: <*>"}
    assert not [one for one in found if one.topic == "events.rejected"]
