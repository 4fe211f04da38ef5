import pytest

from infra.errors import UserError
from ops.capacity.costs import DEFAULT, fit, read_costs


def test_a_line_goes_through_two_points():
    line = fit([(1.0, 30.0), (10.0, 3.0)])
    assert (line.at(1), line.at(10)) == (pytest.approx(30), pytest.approx(3))


def test_below_one_point_a_window_each_event_has_one_of_its_own():
    line = fit([(1.0, 30.0), (10.0, 3.0)])
    assert line.at(0.2) == line.at(1)


@pytest.mark.parametrize(("stage", "deviation"), [("enrichment", 0.12), ("statistics", 0.09)])
def test_the_lines_of_the_shipped_costs_are_near_what_was_measured(stage, deviation):
    points = getattr(read_costs(), stage).points
    line = fit(points)
    assert max(abs(line.at(count) / cost - 1) for count, cost in points) <= deviation


def test_a_wrong_file_is_refused_with_the_field(tmp_path):
    file = tmp_path / "costs.yaml"
    file.write_text(DEFAULT.read_text().replace("cpu_us_an_update: 10.2", "cpu_us_an_update: -1"))
    with pytest.raises(UserError, match=r"detector\.cpu_us_an_update: Input should be greater than 0"):
        read_costs(file)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match=r"--costs .*none\.yaml"):
        read_costs(tmp_path / "none.yaml")
