"""The short form of tests/hostile/test_churn.py."""

from tests.hostile.churn import Fleet, measure


def test_machines_that_come_and_go_leave_nothing():
    report = measure(Fleet(days=4, machines=60, names=1_500, window_seconds=1_200, every=1))
    assert report["names"] == 1_500
    assert report["days"] == [1, 2, 3, 4]
    assert max(report["state_bytes"][1:]) < 1.3 * report["state_bytes"][1]
    assert max(report["disk_bytes"][1:]) < 1.3 * report["disk_bytes"][1]
    assert min(report["disk_bytes"]) > 2 * min(report["state_bytes"])
    verdicts = report["verdicts"]
    assert verdicts["gone end"] > 400
    assert verdicts["silence start"] - verdicts["gone end"] < 100
