"""A shard's parts around a tracker: two machines of three metrics each, and judgements as the model would give them."""

from dataclasses import replace

import numpy as np

from jobs.detector.model.machines import MachineModel
from jobs.detector.model.protocol import Judgement, Turn
from jobs.detector.model.scales import Scales
from jobs.detector.overrides import OperatorOverrides
from jobs.detector.population.machines import KnownMachines
from jobs.detector.population.series import KnownSeries
from jobs.detector.saved_state import NOTHING
from jobs.detector.settings import DetectorSettings
from jobs.detector.trackers.tracker import Inputs

FIRST = 1000  # window
METRICS = ("cpu", "disk", "net")


def inputs() -> Inputs:
    """Machines vm-0 and vm-1, seen in window FIRST; row 3 * machine + metric."""
    settings = DetectorSettings()
    machines, series, model = KnownMachines(NOTHING), KnownSeries(NOTHING), Scales(settings)
    machines.begin(FIRST)
    statistics = {"kind": ["metric"] * 3, "series": list(METRICS), "unit": ["1"] * 3}
    for number in range(2):
        machines.add(f"vm-{number}", FIRST, {"site": "s1"})
        series.rows_of(number, statistics, np.ones(3, bool))
    series.add_new(FIRST)
    model.add(np.zeros(6, bool), np.zeros(6, np.int64), FIRST)
    machine_model = MachineModel()
    machine_model.grow(2)
    machine_model.add(series.machine)
    return Inputs(settings, machines, series, model, machine_model, OperatorOverrides({}))


def judgement(scores: dict[int, float], threshold: float = 14.0, turns: dict[int, Turn] | None = None) -> Judgement:
    """Of all six rows: 5 was expected, and observed but where there is a score."""
    score = np.array([scores.get(row, 0.0) for row in range(6)])
    turn = np.array([int((turns or {}).get(row, Turn.NONE)) for row in range(6)])
    usual = np.full(6, 5.0)
    alert = score >= threshold
    settled = alert & (turn == Turn.CHANGED)
    found = Judgement(
        np.arange(6), score, score, alert, settled, np.zeros(6, int), turn, usual, usual, usual - 1, usual + 1
    )
    return replace(found, observed=np.where(score > 0, 9.0, 5.0))
