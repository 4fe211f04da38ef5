import pytest

from infra.contract.shares import whole_of


@pytest.mark.parametrize(
    ("series", "unit", "whole"),
    [
        ("availability Average", "%", 100.0),
        ("CallSetupSuccessRate{cell=7}", "%", 100.0),
        ("attach.success.percent", None, 100.0),
        ("PodSuccessRate(%)", "1", 100.0),
        ("registration.success_ratio", "1", 1.0),
        ("service_availability", None, 1.0),
        ("http.requests.success", "1", None),
        ("http.requests{outcome=success}", "%", None),
        ("unsuccessful.calls", "%", None),
        ("cpu.idle", "%", None),
        ("availability.checks", "{check}", None),
    ],
)
def test_a_share_that_succeeds_has_a_whole_and_nothing_else(series, unit, whole):
    assert whole_of(series, unit) == whole
