import pytest

from infra.errors import UserError
from jobs.detector.shard import fold
from ops.state.state import Series, _of_shard, matching, top
from tests.unit.jobs.detector.test_shard import SETTINGS, stream, with_metric


@pytest.fixture(scope="module")
def known() -> list[Series]:
    """metric-0 of vm-1 has an open anomaly."""
    return list(_of_shard(3, fold(None, stream(22, with_metric("vm-1", range(20, 22), 60.0)), SETTINGS)[0]))


def test_each_series_has_its_model_and_its_open_novelty(known: list[Series]) -> None:
    found = {(one["machine"], one["series"]): one for one in known}
    assert len(found) == 3 * 5
    strange, usual = found["vm-1", "metric-0"], found["vm-2", "metric-0"]
    assert (strange["phase"], strange["novelty"]["verdict"], strange["shard"]) == ("episode", "anomaly", 3)
    assert (usual["phase"], usual["novelty"], usual["kind"], usual["unit"]) == ("normal", None, "metric", "1")
    assert (usual["mu"], usual["seen"]) == (pytest.approx(10.0, abs=1.0), 22)


def test_series_are_found_by_a_part_of_their_name(known: list[Series]) -> None:
    assert [one["machine"] for one in matching(known, "session", None)] == ["vm-1", "vm-2", "vm-3"]
    assert [one["machine"] for one in matching(known, "session", "vm-2")] == ["vm-2"]
    with pytest.raises(UserError, match="series 'none': the detector knows none on vm-2"):
        matching(known, "none", "vm-2")


def test_the_greatest_come_first(known: list[Series]) -> None:
    assert [(one["machine"], one["series"]) for one in top(known, "phase", 1)] == [("vm-1", "metric-0")]
    figures = [one["mu"] for one in top(known, "mu", 4)]
    assert figures == sorted(figures, reverse=True)
    with pytest.raises(UserError, match="--by none: the model has mu, kappa"):
        top(known, "none", 1)
