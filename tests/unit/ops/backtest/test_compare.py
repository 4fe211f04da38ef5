from ops.backtest.compare import compare
from ops.backtest.replay import Alert


def alert(identity, time=100, machine="vm-1", **fields):
    known = {"verdict": "anomaly", "series": "cpu", "score": 20.0, "text": "t"} | fields
    return Alert(identity, time, machine, **known, last_verdict="anomaly", last_unix_nano=time)


def kinds(before, after, near=10):
    found = compare(before, after, near)
    return [(one.kind, one.before and one.before.id, one.after and one.after.id) for one in found.changes], found.same


def test_alerts_of_one_id_are_the_same():
    assert kinds([alert("a")], [alert("a")]) == ([], 1)


def test_what_only_one_run_has_is_added_or_gone_in_the_order_of_time():
    before, after = [alert("a", 300), alert("b", 100)], [alert("c", 200, "vm-2")]
    assert kinds(before, after) == ([("gone", "b", None), ("added", None, "c"), ("gone", "a", None)], 0)


def test_an_alert_of_the_same_machine_nearby_has_moved():
    assert kinds([alert("a", 100)], [alert("b", 110)]) == ([("moved", "a", "b")], 0)
    assert kinds([alert("a", 100)], [alert("b", 111)]) == ([("gone", "a", None), ("added", None, "b")], 0)
    assert kinds([alert("a", 100)], [alert("b", 100, "vm-2")])[0][0][0] == "gone"


def test_each_alert_has_moved_at_most_once():
    changes, _ = kinds([alert("a", 100)], [alert("b", 101), alert("c", 102)])
    assert changes == [("moved", "a", "b"), ("added", None, "c")]


def test_kinds_are_counted():
    found = compare([alert("a")], [alert("b", 500), alert("c", 900)], 10)
    assert [found.count(kind) for kind in ("added", "gone", "moved")] == [2, 1, 0]
