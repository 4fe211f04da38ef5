from tests.unit.jobs.rules.logs import SECOND, absence, alerts, line, point, record, shown, watermark


def test_nothing_for_longer_than_that_is_an_alert_as_soon_as_the_watermark_says_so():
    values = [record(point(0, 1)), record(point(10, 1))]
    assert alerts([absence()], *values, watermark(310)) == []
    (alert,) = alerts([absence()], *values, watermark(310.001))
    assert shown([alert]) == [("vm-1", "start", 310, 10)]
    assert alert["text"] == "Gone: nothing of vm-1 for 300 s"
    assert (alert["observed"], alert["inventory"]["site"]) == ([], "lund")


def test_it_is_over_with_the_next_event():
    start, end = alerts([absence()], record(point(0, 1)), watermark(400), record(point(450, 1)), watermark(500))
    assert shown([start, end]) == [("vm-1", "start", 300, 0), ("vm-1", "end", 450, 0)]
    assert start["id"] == end["id"]
    assert end["text"] == "Gone: nothing of vm-1 for 300 s (over after 450 s)"


def test_an_event_at_the_last_moment_is_in_time():
    assert alerts([absence()], record(point(0, 1)), record(point(300, 1)), watermark(550)) == []


def test_a_machine_that_never_had_such_an_event_lacks_it_since_it_was_first_seen():
    rule = absence(of={"log": "heartbeat"})
    values = [record(point(second, 1)) for second in range(0, 1000, 10)]
    assert shown(alerts([rule], *values, watermark(1000))) == [("vm-1", "start", 300, 0)]
    values += [record(line(200, "heartbeat ok")), record(line(700, "heartbeat ok"))]
    expected = [("vm-1", "start", 500, 200), ("vm-1", "end", 700, 200)]
    assert shown(alerts([rule], *values, watermark(1000))) == expected


def test_a_cooldown_delays_it():
    rule = absence(cooldown="20m")
    values = [record(point(0, 1)), record(point(400, 1)), watermark(5000)]
    assert shown(alerts([rule], *values)) == [
        ("vm-1", "start", 300, 0),
        ("vm-1", "end", 400, 0),
        ("vm-1", "start", 1500, 400),
    ]


def test_a_watermark_at_the_end_of_a_cooldown_changes_nothing():
    rule = absence(**{"for": "30s"}, cooldown="1m")
    first = [record(point(0, 1)), record(point(35, 1)), watermark(90)]  # an alert at 30, and a cooldown until 90
    assert shown(alerts([rule], *first, record(point(90, 1)), watermark(91))) == shown(alerts([rule], *first))


def test_it_is_over_when_the_machine_is_evicted():
    found = alerts([absence()], record(point(0, 1)), watermark(900), watermark(1001), ttl=1000 * SECOND)
    assert shown(found) == [("vm-1", "start", 300, 0), ("vm-1", "end", 1000, 0)]
    again = alerts([absence()], record(point(0, 1)), record(point(2000, 1)), watermark(2100), ttl=1000 * SECOND)
    assert shown(again) == shown(found)


def test_it_is_over_when_the_rule_does_not_watch_the_machine_any_more():
    rule = absence(match={"role": "upf"}, of={"log": "heartbeat"})
    moved = record(point(400, 1), inventory={"known": True, "role": "amf"})
    found = alerts([rule], record(point(0, 1)), moved, watermark(5000))
    assert shown(found) == [("vm-1", "start", 300, 0), ("vm-1", "end", 400, 0)]
