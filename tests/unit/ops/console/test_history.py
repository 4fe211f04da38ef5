import pytest

from ops.console.history import History


@pytest.fixture
def clock():
    return [10_000.0]


@pytest.fixture
def history(clock):
    return History(lambda: clock[0])


def row(lag, read, query="detector"):
    return {"query": query, "lag": lag, "metrics": None if read is None else {"input_rows": read}}


def test_the_lag_of_the_last_hour_has_the_worst_of_each_minute(history, clock):
    for seconds, lag in ((0, 5), (10, 9), (20, 7), (3_000, 100), (3_010, None)):
        clock[0] = 10_000.0 + seconds
        history.note([row(lag, None)])
    clock[0] = 10_000.0 + 3_050
    lags = history.of("detector")["lags"]
    assert (len(lags), [(place, lag) for place, lag in enumerate(lags) if lag is not None]) == (60, [(9, 9), (59, 100)])
    clock[0] += 3_600
    assert set(history.of("detector")["lags"]) == {None}


def test_the_rate_is_that_of_the_last_minute(history, clock):
    for seconds in range(0, 150, 10):
        clock[0] = 10_000.0 + seconds
        history.note([row(0, 50.0 * seconds if seconds < 70 else 3_500.0 + 20.0 * (seconds - 70))])
    assert history.of("detector")["rate"] == 20.0


@pytest.mark.parametrize("reads", [[5.0], [None, None], [9.0, 3.0]])
def test_of_a_process_that_is_new_or_silent_there_is_no_rate(history, clock, reads):
    for read in reads:
        clock[0] += 10
        history.note([row(0, read)])
    assert history.of("detector")["rate"] is None


def test_of_what_was_never_seen_nothing_is_known(history):
    assert history.of("none") == {"lags": [None] * 60, "rate": None}
