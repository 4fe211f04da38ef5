from rich.console import Console

from ops.backtest.compare import Change, Comparison
from ops.backtest.replay import Alert, Found
from ops.backtest.views import Report, print_report

SECOND = 10**9
BEGIN = 1_700_000_000 * SECOND


def alert(identity, machine, seconds):
    time = BEGIN + seconds * SECOND
    return Alert(identity, time, machine, "anomaly", "cpu", 21.5, f"cpu on {machine} is 60", "state_change", time)


def shown(report, limit=50):
    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        print_report(console, report, BEGIN, limit)
    return [line.rstrip() for line in capture.get().splitlines()]


ALERTS = {"before": [alert("a", "vm-1", 10)], "after": [alert("b", "vm-1", 20), alert("c", "vm-2", 30)]}
CHANGES = [Change("moved", *ALERTS["before"], ALERTS["after"][0]), Change("added", None, ALERTS["after"][1])]


def test_a_report_lists_the_changes_and_counts_them():
    found = Found(ALERTS, BEGIN - 3600 * SECOND, BEGIN + 60 * SECOND)
    lines = shown(Report(found, {"alarms_per_day": "20"}, Comparison(CHANGES, 4)))
    assert [line.split()[:3] for line in lines[1:4]] == [
        ["~", "2023-11-14", "22:13:40"],
        ["was", "2023-11-14", "22:13:30"],
        ["+", "2023-11-14", "22:13:50"],
    ]
    assert lines[3].endswith("vm-2     state_change  21.5   cpu on vm-2 is 60")
    assert lines[4:] == [
        "2023-11-14 22:13:20 to 2023-11-14 22:14:20, learned from 2023-11-14 21:13:20 on",
        "1 alerts with the settings as they are, 2 with alarms_per_day=20: 1 added, 0 gone, 1 moved, 4 the same",
    ]


def test_what_is_left_out_is_said():
    found = Found(ALERTS, BEGIN + 10 * SECOND, BEGIN + 60 * SECOND)
    lines = shown(Report(found, {}, Comparison(CHANGES, 0)), limit=1)
    assert lines[3:] == [
        "… and 1 more: -n, or --json",
        "2023-11-14 22:13:20 to 2023-11-14 22:14:20, learned from 2023-11-14 22:13:30 on",
        "what is recorded begins only then: before it, nothing could be alerted",
        "1 alerts as recorded, 2 with this code and its settings: 1 added, 0 gone, 1 moved, 0 the same",
    ]
