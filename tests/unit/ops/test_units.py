import pytest

from infra.errors import UserError
from ops.units import seconds_of, size


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (12_345, "12.3 kB"),
        (5e9, "5 GB"),
        (2e15, "2 PB"),
        (3e19, "3e+04 PB"),
    ],
)
def test_a_size_has_three_digits_and_one_unit(count, shown):
    assert size(count) == shown


@pytest.mark.parametrize(("duration", "seconds"), [("10m", 600), ("90s", 90), ("1500ms", 1.5)])
def test_a_duration_has_seconds(duration, seconds):
    assert seconds_of(duration, "--deadline") == seconds


def test_what_is_no_duration_is_refused_with_its_option():
    with pytest.raises(UserError, match=r"--deadline '10 minutes': write a whole number and a unit"):
        seconds_of("10 minutes", "--deadline")
