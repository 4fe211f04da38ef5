import pytest

from ops.units import size


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
