import pytest

from ops.simulator.faults import parse
from ops.verify.answers import Answer, Row, dead_letter_answer, false_alarms, late_answer, novelty_answer, report, rows

START = 1_790_000_000_000_000_000
MILLI = START // 1_000_000
SPEC = {
    "cpu_hog": "cpu_hog:vm-1@+60s/30s",
    "silence": "silence:vm-1@+60s/30s",
    "log_burst": "log_burst:vm-1@+60s/30s",
    "state_change": "state_change:vm-1@+60s",
    "late": "late:vm-1@+60s/30s",
    "malformed": "malformed:vm-1@+60s/30s",
    "wrong_clock": "wrong_clock:vm-1@+60s/30s",
}
USER = "system.cpu.utilization{state=user}"


def truth(kind: str) -> dict:
    """A fault that begins 60 s after START, as the simulator writes it down."""
    series = ["audit <*>"] if kind == "log_burst" else []
    return parse(SPEC[kind]).as_dict(START, series, ["vm-2"])


def novelty(
    verdict: str, seconds: float, machine: str = "vm-1", series: str | None = USER, kind: str = "metric"
) -> Answer:
    document = {
        "machine": machine,
        "verdict": verdict,
        "alerted": MILLI + round(seconds * 1000),
        "text": "why",
        "kind": kind,
    }
    return novelty_answer(f"{machine}-{seconds}", document | ({"series": series} if series else {}))


def test_the_first_right_answer_counts():
    answers = [novelty("anomaly", 90), novelty("anomaly", 75), novelty("state_change", 120)]
    assert rows([truth("cpu_hog")], answers, {"vm-1-75": START / 1e9 + 80}) == [
        Row("cpu_hog", "vm-1", START + 60 * 10**9, True, "novelties: anomaly", "why", 15.0, 20.0)
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        novelty("anomaly", 50),  # before it
        novelty("anomaly", 300),  # long after it
        novelty("anomaly", 75, machine="vm-3"),
        novelty("new_entity", 75),
        novelty("anomaly", 75, series="disk"),
        novelty("anomaly", 75, series="sshd <*>", kind="log"),
    ],
)
def test_what_is_no_answer(wrong):
    assert rows([truth("cpu_hog")], [wrong], {}) == [Row("cpu_hog", "vm-1", START + 60 * 10**9, False)]
    assert false_alarms([truth("cpu_hog")], [wrong], frozenset({"vm-1", "vm-3"})) == [wrong]


def test_a_fault_in_the_logs_may_be_answered_for_any_template():
    (row,) = rows([truth("log_burst")], [novelty("anomaly", 80, series="audit *", kind="log")], {})
    assert (row.found, row.delay_s, row.seen_s) == (True, 20.0, None)


def test_silence_has_no_series():
    (row,) = rows([truth("silence")], [novelty("silence", 100, series=None, kind="machine")], {})
    assert (row.found, row.delay_s) == (True, 40.0)


def test_a_change_that_stays_may_be_answered_at_any_time():
    (row,) = rows(
        [truth("state_change")], [novelty("state_change", 900, series="system.memory.utilization{state=used}")], {}
    )
    assert row.delay_s == 840.0


def test_rejected_records_answer_by_code_and_by_key():
    document = {"code": "malformed", "reason": "not JSON", "key": "vm-1", "@timestamp": MILLI + 61_500}
    (row,) = rows([truth("malformed")], [dead_letter_answer("r1", document)], {})
    assert (row.found, row.answer, row.text, row.delay_s) == (True, "events.rejected: malformed", "not JSON", 1.5)
    assert not rows([truth("wrong_clock")], [dead_letter_answer("r1", document)], {})[0].found
    assert rows([truth("wrong_clock")], [dead_letter_answer("r1", {**document, "code": "future"})], {})[0].found


def test_late_records_answer():
    record = {
        "id": "l1",
        "machine": "vm-1",
        "source": {"topic": "t", "timestamp_unix_milli": MILLI + 62_000},
        "events": {"time_unix_nano": [1, 2]},
    }
    (row,) = rows([truth("late")], [late_answer(record)], {})
    assert (row.found, row.text, row.delay_s) == (True, "2 events came late", 2.0)


def test_consequences_are_no_false_alarms():
    consequences = [
        novelty("anomaly", 75),
        novelty("anomaly", 75, machine="vm-2", series="system.cpu.utilization{state=steal}"),
    ]
    assert false_alarms([truth("cpu_hog")], consequences, frozenset({"vm-1", "vm-2"})) == []
    tolerated = novelty("anomaly", 75, series="disk")
    assert false_alarms([truth("silence")], [tolerated], frozenset({"vm-1"})) == []


def test_guests_suffer_in_their_own_series_only():
    alarm = novelty("anomaly", 75, machine="vm-2", series="disk")
    assert false_alarms([truth("cpu_hog")], [alarm], frozenset({"vm-2"})) == [alarm]


def test_a_machine_as_a_whole_answers_by_what_contributed():
    document = {"machine": "vm-1", "verdict": "anomaly", "alerted": MILLI + 75_000, "text": "why", "kind": "machine"}
    whole = [novelty_answer(name, document | {"contributors": [{"series": name}]}) for name in (USER, "disk")]
    (row,) = rows([truth("cpu_hog")], whole, {})
    assert (row.found, row.delay_s) == (True, 15.0)
    assert false_alarms([truth("cpu_hog")], whole, frozenset({"vm-1"})) == whole[1:]


def test_machines_that_were_not_simulated_are_not_judged():
    assert false_alarms([], [novelty("anomaly", 75, machine="laptop")], frozenset({"vm-1"})) == []


FOUND = Row("cpu_hog", "vm-1", START, True, delay_s=15.0, seen_s=17.04)
MISSED = Row("silence", "vm-2", START, False)


def test_the_report():
    assert report([FOUND, MISSED], events_in=100, lost=0, duplicated=0, false_alarms=2) == {
        "passed": False,
        "faults": [
            {"kind": "cpu_hog", "machine": "vm-1", "found": True, "delay_s": 15.0, "seen_s": 17.0},
            {"kind": "silence", "machine": "vm-2", "found": False, "delay_s": None, "seen_s": None},
        ],
        "events_in": 100,
        "events_lost": 0,
        "events_duplicated": 0,
        "false_alarms": 2,
    }


@pytest.mark.parametrize(
    ("table", "lost", "duplicated", "passed"),
    [
        ([FOUND], 0, 0, True),
        ([FOUND], 1, 0, False),
        ([FOUND], 0, 1, False),
        ([FOUND, MISSED], 0, 0, False),
        ([], 0, 0, False),
    ],
)
def test_passed_only_if_all_was_found_and_nothing_lost_or_doubled(table, lost, duplicated, passed):
    assert report(table, 10, lost, duplicated, false_alarms=1)["passed"] is passed
