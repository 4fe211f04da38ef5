from functools import cache

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from infra.contract.columnar import to_columns
from infra.contract.json_schema import json_schema
from infra.contract.schemas import NOVELTIES
from infra.errors import UserError
from jobs.detector.control import allow, not_anomalous, reset, suppress
from jobs.detector.rules import Rule
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import fold
from jobs.runtime.packed_state import pack, unpack

SIZE = 10 * 10**9
FIRST = 170_000_000  # the first window's number
SETTINGS = DetectorSettings()
MACHINES = ("vm-1", "vm-2", "vm-3")


def metric(series: str, mean: float) -> dict[str, object]:
    return {"series": series, "name": series, "kind": "metric", "unit": "1", "count": 2, "mean": mean}


def log(template: str, count: int) -> dict[str, object]:
    return {"series": template, "name": "log", "kind": "log", "count": count, "mean": 1.0}


def record(machine: str, window: int, statistics: list[dict[str, object]], size: float = 10.0) -> bytes:
    end = (FIRST + window) * SIZE
    span = {"kind": "tumbling", "size_seconds": size, "start_unix_nano": end - SIZE, "end_unix_nano": end}
    return orjson.dumps(
        {"machine": machine, "inventory": {"site": "s1"}, "window": span, "statistics": to_columns(statistics)}
    )


def watermark(window: int) -> bytes:
    return orjson.dumps({"watermark_unix_nano": (FIRST + window) * SIZE})


def usual(machine: str, window: int) -> list[dict[str, object]]:
    rng = np.random.default_rng([window, MACHINES.index(machine) if machine in MACHINES else 9])
    metrics = [metric(f"metric-{n}", float(10 * (n + 1) + rng.normal())) for n in range(4)]
    return [*metrics, log("session opened for <*>", int(rng.poisson(5)) + 1)]


def stream(windows: int, change: dict[tuple[str, int], list[dict[str, object]] | None] | None = None) -> list[bytes]:
    """All machines in every window; `change` replaces a machine's statistics, or leaves it out."""
    records = []
    for window in range(windows):
        for machine in MACHINES:
            statistics = (change or {}).get((machine, window), usual(machine, window))
            if statistics is not None:
                records.append(record(machine, window, statistics))
        records.append(watermark(window))
    return records


def with_metric(machine: str, windows: range, value: float) -> dict[tuple[str, int], list[dict[str, object]] | None]:
    return {(machine, w): [*usual(machine, w)[1:], metric("metric-0", value + 0.1 * (w % 3))] for w in windows}


def emitted(records: list[bytes]) -> list[dict[str, object]]:
    return fold(None, records, SETTINGS)[1]


def seconds(novelty: dict[str, object]) -> int:
    """Windows after the first."""
    return int(novelty["time_unix_nano"]) // SIZE - FIRST  # type: ignore[call-overload]


def control_event(window: int, control: dict[str, object], after: float = 0.5) -> bytes:
    """A control event within the window of this number."""
    time = int((FIRST + window - 1 + after) * SIZE)
    return orjson.dumps({"id": "c", "machine": control["machine"], "control": control, "time_unix_nano": time})


def inserted(records: list[bytes], *controls: bytes) -> list[bytes]:
    """Each where the chain would write it: before the first watermark that is later."""
    for control in controls:
        time = orjson.loads(control)["time_unix_nano"]
        at = next(n for n, raw in enumerate(records) if orjson.loads(raw).get("watermark_unix_nano", 0) > time)
        records = [*records[:at], control, *records[at:]]
    return records


SILENT = {"verdict": "silence", "observed": 30.0}
HIGH = {"verdict": "anomaly", "kind": "metric", "series": "metric-0", "observed": 40.0, "expected": 10.0}


def test_what_never_failed_and_then_fails_a_little_is_alerted_in_its_own_unit() -> None:
    """By its level alone, 97 after 100 is hardly anything."""
    novelties = emitted(_with_share("availability"))
    (found,) = (one for one in novelties if one["phase"] == "start")
    assert (seconds(found), found["series"], found["observed"], found["expected"]) == (60, "availability", 97.0, 100.0)
    assert found["expected_low"] == pytest.approx(100.0) and found["expected_high"] == pytest.approx(100.0)
    assert found["text"].startswith("availability on vm-1 (at s1) is 97 %; expected 100 to 100 %")
    assert not emitted(_with_share("fill"))


def _with_share(name: str) -> list[bytes]:
    entries = ((window, metric(name, 97.0 if window == 60 else 100.0)) for window in range(64))
    pairs = [(record("vm-1", window, [entry | {"unit": "%"}]), watermark(window)) for window, entry in entries]
    return [raw for pair in pairs for raw in pair]


@pytest.mark.parametrize("value", [1.7e308, -1e200, 1e30])
def test_a_series_is_judged_on_after_a_value_beyond_all_measure(value: float) -> None:
    change = {("vm-1", 40): [metric("metric-0", value), *usual("vm-1", 40)[1:]]} | with_metric(
        "vm-1", range(150, 153), 60.0
    )
    state, novelties = fold(None, stream(153, change), SETTINGS)
    found = [(seconds(one), one["series"]) for one in novelties if one["machine"] == "vm-1" and "series" in one]
    assert (150, "metric-0") in found
    _, arrays = unpack(state)
    assert all(np.isfinite(column).all() for column in arrays.values() if column.dtype.kind == "f")


@cache
def eventful() -> tuple[tuple[bytes, ...], bytes, list[dict[str, object]]]:
    change = with_metric("vm-1", range(20, 24), 60.0) | {("vm-2", w): None for w in range(25, 33)}
    change |= with_metric("vm-3", range(24, 45), 40.0)
    records = stream(45, change)
    records.insert(100, record("vm-9", 30, [metric("metric-0", 1.0)]))
    records = inserted(
        records,
        control_event(15, reset("metric-3", "vm-*")),
        control_event(22, suppress(Rule(machine="vm-1", series="metric-0"))),
        control_event(28, {"action": "feedback", "machine": "vm-2", "novelty": "x", **SILENT}),
        control_event(29, allow(Rule(machine="vm-1", series="metric-0").id)),
        control_event(29, {"action": "feedback", "machine": "vm-3", "novelty": "y", **HIGH}),
    )
    state, novelties = fold(None, records, SETTINGS)
    return tuple(records), state, novelties


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_any_cut_of_the_log_gives_the_same_bytes(data: st.DataObject) -> None:
    records, whole_state, whole = eventful()
    cuts = data.draw(st.lists(st.integers(0, len(records)), max_size=6).map(sorted))
    state: bytes | None = None
    novelties: list[dict[str, object]] = []
    for first, last in zip([0, *cuts], [*cuts, len(records)], strict=True):
        state, more = fold(state, records[first:last], SETTINGS)
        novelties += more
    assert orjson.dumps(novelties) == orjson.dumps(whole)
    assert state == whole_state


def test_the_eventful_log_has_every_verdict() -> None:
    assert {novelty["verdict"] for novelty in eventful()[2]} == {"anomaly", "state_change", "new_entity", "silence"}


def test_usual_data_cause_nothing() -> None:
    assert emitted(stream(60)) == []


def test_constant_series_cause_nothing() -> None:
    constant = {(m, w): [metric("up", 1.0), metric("errors", 0.0)] for m in MACHINES for w in range(60)}
    assert emitted(stream(60, constant)) == []


def test_an_anomaly_starts_and_ends_under_one_id() -> None:
    start, end = emitted(stream(40, with_metric("vm-1", range(20, 24), 60.0)))
    assert (start["phase"], start["verdict"], start["machine"], start["series"]) == (
        "start",
        "anomaly",
        "vm-1",
        "metric-0",
    )
    assert seconds(start) == 20
    assert start["expected_low"] < 10 < start["expected_high"]
    assert start["observed"] == pytest.approx(60.2)
    assert start["score"] > 14
    assert (end["phase"], end["id"]) == ("end", start["id"])
    assert seconds(end) == 25


def test_a_change_that_stays_is_alerted_once() -> None:
    novelties = emitted(stream(70, with_metric("vm-1", range(20, 70), 60.0)))
    assert [(n["phase"], n["verdict"]) for n in novelties] == [("start", "anomaly"), ("update", "state_change")]
    assert novelties[0]["id"] == novelties[1]["id"]
    assert seconds(novelties[1]) == 20 + SETTINGS.settle_windows - 1


def test_a_change_of_state_that_reverts_is_undone() -> None:
    novelties = emitted(stream(70, with_metric("vm-1", range(20, 40), 60.0)))
    assert [(n["phase"], n["verdict"]) for n in novelties] == [
        ("start", "anomaly"),
        ("update", "state_change"),
        ("end", "anomaly"),
    ]
    assert len({novelty["id"] for novelty in novelties}) == 1
    assert str(novelties[-1]["text"]).startswith("the change of state is undone: metric-0 on vm-1 is back within ")


def test_a_change_of_state_that_stays_ends_when_it_is_the_new_normal() -> None:
    novelties = emitted(stream(140, with_metric("vm-1", range(20, 140), 60.0)))
    assert [(n["phase"], n["verdict"]) for n in novelties] == [
        ("start", "anomaly"),
        ("update", "state_change"),
        ("end", "state_change"),
    ]
    assert len({novelty["id"] for novelty in novelties}) == 1
    assert "the new state is the normal one now" in str(novelties[-1]["text"])


def test_a_machine_is_missed_though_it_sends_nothing_and_however_the_watermarks_fall() -> None:
    gone = {("vm-2", w): None for w in range(20, 40)}
    whole, watermarks = stream(40, gone), {watermark(w) for w in range(40)}
    seldom = [
        raw
        for raw in whole
        if raw not in watermarks or raw in {watermark(w) for w in range(6, 40, 7)} | {watermark(39)}
    ]
    assert [n for n in emitted(seldom) if n["verdict"] == "silence"] == [
        n for n in emitted(whole) if n["verdict"] == "silence"
    ]
    assert emitted(seldom)


def test_silence_needs_no_event_and_ends_with_one() -> None:
    start, end = emitted(stream(40, {("vm-2", w): None for w in range(20, 30)}))
    assert (start["verdict"], start["machine"], start["kind"], seconds(start)) == ("silence", "vm-2", "machine", 22)
    assert start["since_unix_nano"] == (FIRST + 20) * SIZE
    assert (end["phase"], end["id"], seconds(end)) == ("end", start["id"], 30)


def test_a_new_machine_is_one_novelty() -> None:
    records = stream(20) + [
        raw for w in range(20, 40) for raw in (record("vm-9", w, usual("vm-9", w)), *usual_of_all(w), watermark(w))
    ]
    start, end = emitted(records)
    assert (start["verdict"], start["kind"], start["machine"], seconds(start)) == ("new_entity", "machine", "vm-9", 20)
    assert (end["phase"], end["id"]) == ("end", start["id"])


def usual_of_all(window: int) -> list[bytes]:
    return [record(machine, window, usual(machine, window)) for machine in MACHINES]


def test_a_burst_of_a_known_template_is_an_anomaly() -> None:
    burst = {("vm-1", 30): [*usual("vm-1", 30)[:-1], log("session opened for <*>", 300)]}
    burst["vm-1", 30][-1]["example"] = "session opened for alice"
    start = emitted(stream(31, burst))[0]
    assert (start["verdict"], start["kind"], start["observed"]) == ("anomaly", "log", 300.0)
    assert start["example"] == "session opened for alice"
    assert str(start["text"]).endswith('; for example "session opened for alice"')


def test_a_new_template_that_comes_often_is_a_new_entity() -> None:
    new = {("vm-1", w): [*usual("vm-1", w), log("memory read error on <*>", 4)] for w in range(30, 40)}
    novelties = [n for n in emitted(stream(40, new)) if n["verdict"] == "new_entity"]
    assert [(n["phase"], n["series"]) for n in novelties] == [
        ("start", "memory read error on <*>"),
        ("end", "memory read error on <*>"),
    ]


@pytest.mark.parametrize(
    ("template", "example", "quoted"),
    [
        ("memory read error on <*>", "memory read error on DIMM3", '; for example "memory read error on DIMM3"'),
        ("memory read error", "memory read error", ""),
    ],
)
def test_the_sentence_of_a_new_template_quotes_a_line_that_says_more(template: str, example: str, quoted: str) -> None:
    new = [*usual("vm-1", 30), log(template, 4) | {"example": example}]
    (start,) = emitted(stream(31, {("vm-1", 30): new}))
    assert start["text"] == f'log line "{template}" was never seen before on vm-1 (at s1){quoted}'


def test_windows_of_another_size_are_not_used() -> None:
    other = [record("vm-1", w, [metric("metric-0", 1e6)], size=60.0) for w in range(60)]
    assert fold(None, other, SETTINGS) == fold(None, [], SETTINGS)


def test_a_state_of_another_version_is_refused_with_what_to_do() -> None:
    header, arrays = unpack(fold(None, stream(3), SETTINGS)[0])
    former = pack({"orders": header.pop("overrides"), **header}, arrays)
    with pytest.raises(UserError, match="state of another version; start a new generation"):
        fold(former, [], SETTINGS)


def test_a_machine_alerts_one_surprise_at_a_time() -> None:
    everything = {("vm-1", 30): [metric(f"metric-{n}", 1e4) for n in range(4)]}
    starts = [n for n in emitted(stream(31, everything)) if n["phase"] == "start"]
    assert len(starts) == 1
    assert "; also metric-" in str(starts[0]["text"])


def test_an_anomaly_names_the_series_that_contributed_and_their_share() -> None:
    everything = {("vm-1", 30): [metric(f"metric-{n}", 1e4) for n in range(4)]}
    start = emitted(stream(31, everything))[0]
    contributors = start["contributors"]
    assert {one["series"] for one in contributors} == {f"metric-{n}" for n in range(4)}
    scores = [one["score"] for one in contributors]
    assert scores == sorted(scores, reverse=True)
    assert [one["share"] for one in contributors] == pytest.approx([score / sum(scores) for score in scores])
    assert [one["series"] for one in contributors if one["score"] == start["score"]] == [start["series"]]
    assert all(one["observed"] == 1e4 > one["expected_high"] > one["expected"] > 0 for one in contributors)
    assert (start["contributing"], start["window_seconds"]) == (4, 10.0)


def test_a_novelty_names_its_five_strongest_series_and_counts_them_all() -> None:
    noise = np.random.default_rng(3).normal(10.0, 1.0, (31, 9))
    noise[30] = 1e4
    noisy = {("vm-1", w): [metric(f"m-{n}", x) for n, x in enumerate(noise[w].tolist())] for w in range(31)}
    start = emitted(stream(31, noisy))[0]
    assert (len(start["contributors"]), start["contributing"]) == (5, 9)
    assert str(start["text"]).endswith("and 5 more")


def test_a_novelty_says_where_its_machine_stands() -> None:
    facts = {"known": True, "site": "s1", "hypervisor": "hv-1", "tenant": "t1", "role": "upf"}
    records = [
        orjson.dumps(orjson.loads(raw) | {"inventory": facts}) if b'"machine"' in raw else raw
        for raw in stream(40, with_metric("vm-1", range(20, 24), 60.0) | {("vm-2", w): None for w in range(25, 40)})
    ]
    surprise, silence = [novelty for novelty in emitted(records) if novelty["phase"] == "start"]
    assert surprise["inventory"] == silence["inventory"] == facts
    assert "metric-0 on vm-1 (upf of t1 on hv-1 at s1) is 60.2; expected " in str(surprise["text"])
    assert silence["text"] == "vm-2 (upf of t1 on hv-1 at s1) has sent nothing for 30 s; gaps of up to 20 s are usual"


SCHEMA = Draft202012Validator(json_schema("novelties", NOVELTIES))


def test_every_record_of_every_verdict_meets_the_schema() -> None:
    for novelty in eventful()[2]:
        SCHEMA.validate(novelty)


def test_every_start_says_what_was_seen_by_which_statistic() -> None:
    starts = {str(n["verdict"]): n for n in eventful()[2] if n["phase"] == "start"}
    assert {verdict: n["statistic"] for verdict, n in starts.items()} == {
        "anomaly": "level",
        "silence": "presence",
        "new_entity": "first_seen",
    }
    assert (starts["silence"]["observed"], starts["silence"]["expected_high"]) == (30.0, 20.0)


def test_a_small_shift_that_stays_is_alerted_by_the_mean_of_its_windows() -> None:
    def shifted(window: int) -> list[dict[str, object]]:
        first, *rest = usual("vm-1", window)
        return [metric("metric-0", float(first["mean"]) + 3.0), *rest]  # type: ignore[arg-type]

    novelties = emitted(stream(800, {("vm-1", w): shifted(w) for w in range(600, 800)}))
    start = novelties[0]
    assert (start["phase"], start["machine"], start["series"]) == ("start", "vm-1", "metric-0")
    assert "in the mean of 120 s" in str(start["text"])
    assert {novelty["id"] for novelty in novelties} == {start["id"]}


def test_usual_data_cause_nothing_for_an_hour() -> None:
    assert emitted(stream(360)) == []


def test_what_a_person_calls_normal_ends_and_is_not_alerted_again() -> None:
    spikes = with_metric("vm-1", range(20, 24), 60.0) | with_metric("vm-1", range(230, 232), 61.0)
    log = stream(240, spikes)
    start = emitted(log)[0]
    assert [seconds(n) for n in emitted(log) if n["phase"] == "start"] == [20, 230]
    (first, end) = emitted(inserted(log, control_event(22, not_anomalous(start))))
    assert first == start
    assert (end["phase"], end["id"], seconds(end)) == ("end", start["id"], 22)
    assert "a person says that this is normal, as are values of 9.9" in str(end["text"])
    assert end["feedback"] == "not-anomalous"


def test_a_novelty_that_is_over_is_emitted_once_more_when_a_person_calls_it_normal() -> None:
    log = stream(60, with_metric("vm-1", range(20, 24), 60.0))
    start, end = emitted(log)
    said = control_event(50, not_anomalous(start, end))
    last = emitted(inserted(log, said))[-1]
    assert seconds(last) == 50
    assert last == end | {name: last[name] for name in ("time_unix_nano", "text", "feedback")}
    assert last["feedback"] == "not-anomalous"
    assert str(last["text"]).startswith(f"{end['text']}: a person says that this is normal, as are values of 9.9")
    SCHEMA.validate(last)
    early = control_event(10, not_anomalous(start, end))
    assert [n["phase"] for n in emitted(inserted(log, early))] == []


def test_what_is_beyond_the_value_called_normal_is_alerted() -> None:
    spikes = with_metric("vm-1", range(20, 24), 60.0) | with_metric("vm-1", range(230, 232), 90.0)
    log = stream(240, spikes)
    starts = [
        n for n in emitted(inserted(log, control_event(26, not_anomalous(emitted(log)[0])))) if n["phase"] == "start"
    ]
    assert [seconds(n) for n in starts] == [20, 230]


def test_a_control_event_takes_effect_at_its_time_wherever_it_stands_before_the_watermark() -> None:
    log = stream(60, with_metric("vm-1", range(20, 24), 60.0))
    control = control_event(40, reset("metric-0", "vm-1"))
    at = log.index(watermark(39))
    late = [fold(None, [*log[:n], control, *log[n:]], SETTINGS) for n in (0, 50, at, at + 1, at + 2)]
    assert all(found == late[0] for found in late)


def test_reset_series_warm_up_and_are_no_new_entities() -> None:
    gone = with_metric("vm-1", range(100, 130), 60.0)
    assert emitted(inserted(stream(130, gone), control_event(100, reset("metric-0", "vm-1")))) == []
    others = emitted(inserted(stream(130, gone), control_event(100, reset("metric-0", "vm-2"))))
    assert others[0]["machine"] == "vm-1"


def test_a_novelty_of_a_reset_series_ends() -> None:
    log = inserted(stream(60, with_metric("vm-1", range(20, 60), 60.0)), control_event(25, reset("*", "vm-1")))
    start, end = emitted(log)
    assert (end["phase"], end["id"], seconds(end)) == ("end", start["id"], 25)
    assert "begins anew, a person says" in str(end["text"])


def test_a_rule_holds_from_its_time_until_it_is_taken_back() -> None:
    rule = Rule(machine="vm-?", series="metric-0", direction="above", size=60.0)
    spikes: dict[tuple[str, int], list[dict[str, object]] | None] = {}
    for window in (120, 240, 360):
        spikes |= with_metric("vm-1", range(window, window + 2), 60.0)
    log = stream(370, spikes)
    assert [seconds(n) for n in emitted(log) if n["phase"] == "start"] == [120, 240, 360]
    ruled = inserted(log, control_event(200, suppress(rule)), control_event(300, allow(rule.id)))
    assert [seconds(n) for n in emitted(ruled) if n["phase"] == "start"] == [120, 360]


def test_a_rule_lets_the_next_strongest_series_speak() -> None:
    everything = {("vm-1", 30): [metric(f"metric-{n}", 1e4) for n in range(4)]}
    log = stream(31, everything)
    strongest = emitted(log)[0]["series"]
    ruled = emitted(inserted(log, control_event(20, suppress(Rule(series=str(strongest))))))
    assert len(ruled) == 1
    assert ruled[0]["series"] != strongest


def test_what_a_new_rule_is_about_ends() -> None:
    log = stream(40, with_metric("vm-1", range(20, 40), 60.0))
    start, end = emitted(inserted(log, control_event(24, suppress(Rule(machine="vm-1")))))
    assert (end["phase"], end["id"], seconds(end)) == ("end", start["id"], 24)
    assert "suppressed by rule" in str(end["text"])


def test_a_silence_that_a_person_calls_normal_ends_and_is_not_alerted_again() -> None:
    gaps = {("vm-2", w): None for w in (*range(20, 30), *range(40, 46), *range(60, 80))}
    log = stream(90, gaps)
    starts = [n for n in emitted(log) if n["phase"] == "start"]
    assert [seconds(n) for n in starts] == [22, 42, 62]
    said = control_event(27, not_anomalous({**starts[0], "observed": 80.0}))
    found = emitted(inserted(log, said))
    assert [(n["phase"], seconds(n)) for n in found] == [("start", 22), ("end", 27), ("start", 68), ("end", 80)]


def test_a_new_machine_that_a_rule_is_about_is_not_emitted() -> None:
    log = stream(20) + [
        raw for w in range(20, 40) for raw in (record("vm-9", w, usual("vm-9", w)), *usual_of_all(w), watermark(w))
    ]
    assert emitted(inserted(log, control_event(10, suppress(Rule(machine="vm-9"))))) == []


def weak(machine: str, window: int, shift: float) -> list[dict[str, object]]:
    """Twenty metrics, all of them off by so many deviations."""
    rng = np.random.default_rng([window, MACHINES.index(machine)])
    values = rng.normal(size=20) if not shift else np.full(20, shift + 0.1 * (window % 3))
    return [metric(f"metric-{n}", 10.0 * (n + 1) + value) for n, value in enumerate(values.tolist())]


@cache
def weakly_strange(last: int = 110) -> tuple[bytes, ...]:
    """vm-1 is so from window 60 to 67, by less than any of its series would alert."""
    strange = {(m, w): weak(m, w, 4.6 * (m == "vm-1" and 60 <= w < 68)) for m in MACHINES for w in range(last)}
    return tuple(stream(last, strange))


def test_many_weak_surprises_at_once_are_one_novelty_of_the_machine() -> None:
    start, *later = emitted(list(weakly_strange()))
    assert (start["verdict"], start["kind"], start["machine"], seconds(start)) == ("anomaly", "machine", "vm-1", 60)
    assert (start["statistic"], start["contributing"], "series" in start) == ("joint", 20, False)
    assert max(one["score"] for one in start["contributors"]) < SETTINGS.threshold(60)  # type: ignore[attr-defined]
    assert str(start["text"]).startswith("vm-1 (at s1) is strange as a whole: metric-")
    assert str(start["text"]).endswith("and 17 more together")
    assert {novelty["id"] for novelty in later} == {start["id"]}
    SCHEMA.validate(start)


def test_the_novelties_of_a_machine_as_a_whole_are_the_same_however_the_log_is_cut() -> None:
    records = weakly_strange(80)
    whole = fold(None, records, SETTINGS)
    state, novelties = None, []
    for first in range(0, len(records), 7):
        state, more = fold(state, records[first : first + 7], SETTINGS)
        novelties += more
    assert (state, novelties) == whole
    assert {novelty["kind"] for novelty in novelties} == {"machine"}


def test_a_machine_as_a_whole_that_a_person_calls_normal_ends_and_is_not_alerted_again() -> None:
    start = emitted(list(weakly_strange(62)))[0]
    records = inserted(list(weakly_strange(80)), control_event(62, not_anomalous(start)))
    assert [(n["phase"], seconds(n)) for n in emitted(records)] == [("start", 60), ("end", 62)]
    early = inserted(list(weakly_strange(80)), control_event(50, not_anomalous(start)))
    assert emitted(early) == []
