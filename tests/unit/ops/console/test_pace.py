from ops.console.pace import Pace


def test_the_rate_is_that_of_the_last_minute():
    now = [0.0]
    pace = Pace(lambda: now[0])
    rates = []
    for now[0], done in ((0.0, 100), (10.0, 300), (50.0, 700), (100.0, 800)):
        rates.append(pace.rate(done))
    assert rates == [None, 20.0, 12.0, 2.0]


def test_where_nothing_is_done_there_is_none():
    now = [0.0]
    pace = Pace(lambda: now[0])
    pace.rate(5)
    now[0] = 9.0
    assert pace.rate(5) is None
