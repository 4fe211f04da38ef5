import math

from ops.console.views.machine import STEPS
from ops.console.views.plot import HEIGHT, WIDTH, plot

STEP = 1000


def point(step, value, low=None, high=None):
    return {"time": step * STEP, "value": value, "low": low, "high": high}


def drawn(*points, novelties=()):
    return plot({"series": "cpu", "points": list(points)}, novelties, 0, STEP)


def novelty(**more):
    absent = dict.fromkeys(("ended", "expected_low", "expected_high", "text"))
    return absent | {"series": "cpu", "started": 0, **more}


def test_a_line_is_broken_where_points_are_missing():
    line = drawn(point(0, 1.0), point(1, 3.0), point(10, 2.0)).line
    assert [part[0] for part in line.replace("L", " L").replace("M", " M").split()] == ["M", "L", "M"]
    assert line.endswith(f"M{10.5 * WIDTH / STEPS},{HEIGHT / 2}h0")


def test_the_greatest_value_is_above_the_least():
    first, last = (part.split(",") for part in drawn(point(0, 1.0), point(1, 3.0)).line[1:].split("L"))
    assert float(last[1]) < float(first[1].removesuffix("h0"))


def test_an_expected_band_is_in_the_range():
    found = drawn(point(0, 100.0), novelties=[novelty(ended=60 * STEP, expected_low=10.0, expected_high=20.0)])
    (band,), (mark,) = found.expected, found.marks
    assert (found.low, found.high) == (10.0, 100.0)
    assert (mark.x, mark.width, mark.height) == (0.0, WIDTH / 2, HEIGHT)
    assert HEIGHT / 2 < band.y < band.y + band.height < HEIGHT


def test_novelties_of_other_series_or_before_the_span_are_not_drawn():
    assert drawn(point(0, 1.0), novelties=[novelty(series="disk"), novelty(started=-9, ended=-1)]).marks == ()


def test_an_open_novelty_lasts_until_now():
    (mark,) = drawn(point(0, 1.0), novelties=[novelty(started=60 * STEP)]).marks
    assert (mark.x, mark.width) == (WIDTH / 2, WIDTH / 2)


def test_a_flat_series_and_the_largest_numbers_can_be_drawn():
    assert f",{HEIGHT / 2}" in drawn(point(0, 5.0)).line
    wide = drawn(point(0, -1.7e308), point(1, 1.7e308)).line
    ys = [float(part.split(",")[1].removesuffix("h0")) for part in wide[1:].split("L")]
    assert all(math.isfinite(y) and 0 <= y <= HEIGHT for y in ys)
