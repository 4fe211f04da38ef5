"""Window sizes from the environment."""

import pytest

from infra.errors import UserError
from jobs.statistics.settings import load_settings

VARIABLE = "KAPPA_STATISTICS_TUMBLING_SECONDS"


def test_sizes_are_sorted(monkeypatch):
    monkeypatch.setenv(VARIABLE, "[60, 10]")
    assert load_settings().tumbling_seconds == (10, 60)


@pytest.mark.parametrize("value", ["[]", "[0]", "[-10]", "[10, 10]", "[10, 15]", "[10.5]", '["ten"]', "ten", "10"])
def test_a_wrong_list_is_named(monkeypatch, value):
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(UserError, match=VARIABLE):
        load_settings()
