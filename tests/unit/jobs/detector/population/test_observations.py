import numpy as np
import pytest

from infra.contract.columnar import to_columns
from jobs.detector.model.scales import Scales
from jobs.detector.population.machines import KnownMachines
from jobs.detector.population.observations import ObservationReader, Observations
from jobs.detector.population.series import KnownSeries
from jobs.detector.saved_state import NOTHING
from jobs.detector.settings import DetectorSettings

CPU = {"series": "cpu", "kind": "metric", "count": 2, "mean": 5.0}
LINES = {"series": "opened <*>", "kind": "log", "count": 3, "mean": 1.0}


@pytest.fixture
def reader() -> ObservationReader:
    """Of two machines that are seen for the first time."""
    machines = KnownMachines(NOTHING)
    for name in ("vm-1", "vm-2"):
        machines.add(name, 1, None)
    return ObservationReader(machines, KnownSeries(NOTHING), Scales(DetectorSettings()))


def read(reader: ObservationReader, window: int, **statistics: list[dict[str, object]]) -> Observations:
    """`vm1` and `vm2` are the machines."""
    names = {"vm1": "vm-1", "vm2": "vm-2"}
    records = [{"machine": names[name], "statistics": to_columns(entries)} for name, entries in statistics.items()]
    present = reader.machines.numbers(record["machine"] for record in records)  # type: ignore[misc]
    return reader.read(window, records, present)


def test_a_metric_is_its_mean_and_a_template_its_lines(reader: ObservationReader) -> None:
    rows, values, samples = read(reader, 1, vm1=[CPU, LINES])
    assert (rows.tolist(), values.tolist(), samples.tolist()) == ([0, 1], [5.0, 3.0], [2.0, 3.0])
    assert reader.model.is_count().tolist() == [False, True]


def test_a_template_without_lines_counts_as_zero_where_its_machine_is_present(reader: ObservationReader) -> None:
    read(reader, 1, vm1=[CPU, LINES], vm2=[CPU, LINES])
    rows, values, samples = read(reader, 2, vm2=[CPU])
    assert (rows.tolist(), values.tolist(), samples.tolist()) == ([2, 3], [5.0, 0.0], [2.0, 1.0])
    assert reader.series.last.tolist() == [1, 1, 2, 1]


def test_a_counters_first_point_is_no_value(reader: ObservationReader) -> None:
    without_rate = {name: value for name, value in CPU.items() if name != "mean"}
    assert read(reader, 1, vm1=[without_rate, LINES]).rows.tolist() == [0]
    assert reader.series.describe(0).series == "opened <*>"


def test_a_window_without_records_is_empty(reader: ObservationReader) -> None:
    assert [len(column) for column in read(reader, 1)] == [0, 0, 0]


def test_a_series_counts_once_a_window(reader: ObservationReader) -> None:
    records = [{"machine": "vm-1", "statistics": to_columns([CPU | {"mean": mean}])} for mean in (5.0, 9.0)]
    assert reader.read(1, records, np.array([0])).values.tolist() == [5.0]
