"""The alarm budget: thresholds that follow the alerts which were really emitted, in both directions.

A score is -ln of a probability, but only as good as the model. So each alert raises the threshold of its class by STEP,
and each window lowers it by STEP times the alerts that the class may raise in a window: in the long run as many are
raised as are allowed (an integral controller). Machines as a whole have one half of the budget. Series have the other,
each *class* of series the share that follows from their number: the series of one metric are a class, and each log
template is one. So a metric that is noise on all machines raises its own threshold, and no other's.
"""

from collections.abc import Iterable

import numpy as np

from jobs.detector.model.arrays import Floats, Ints
from jobs.detector.novelties import Novelty
from jobs.detector.population.series import Definition, KnownSeries
from jobs.detector.saved_state import Saved
from jobs.detector.settings import DetectorSettings

STEP = 0.1
MOST_BELOW, MOST_ABOVE = 3.0, 6.0  # that a threshold goes from where it began


class AlarmBudget:
    """What is added to the thresholds of one shard, in the log's own time."""

    def __init__(self, settings: DetectorSettings, series: KnownSeries, saved: Saved) -> None:
        self.settings, self.series = settings, series
        known = saved.header.get("budget", {"window": None, "machines": 0.0})
        self.window: int | None = known["window"]  # the newest one
        self.of_machines: float = known["machines"]
        self.of_classes: Floats = saved.arrays.get("budget_classes", np.zeros(0))
        self._number_classes()

    def saved(self) -> Saved:
        header = {"budget": {"window": self.window, "machines": self.of_machines}}
        return Saved(header, {"budget_classes": self.of_classes})

    def _number_classes(self) -> None:
        """Classes are numbered in the order in which their first definition stands there."""
        self._classes: dict[tuple[str, str], int] = {}
        self._class_of: Ints = np.zeros(0, np.int64)  # by definition
        self._add_definitions()

    def _add_definitions(self) -> None:
        new = self.series.definitions[len(self._class_of) :]
        numbers = [self._classes.setdefault(_class_of(one), len(self._classes)) for one in new]
        self._class_of = np.concatenate([self._class_of, np.array(numbers, np.int64)])
        self.of_classes = np.append(self.of_classes, np.zeros(len(self._classes) - len(self.of_classes)))

    def start_window(self, window: int) -> None:
        """Lower the thresholds for the time since the window before."""
        self._add_definitions()
        passed, self.window = 0 if self.window is None else window - self.window, window
        lower = 0.5 * STEP * passed * self.settings.alarms_per_window
        self.of_machines = max(self.of_machines - lower, -MOST_BELOW)
        each = np.bincount(self._class_of[self.series.definition], minlength=len(self.of_classes))
        self.of_classes = np.maximum(self.of_classes - lower * each / max(len(self.series), 1), -MOST_BELOW)

    def note(self, emitted: Iterable[Novelty]) -> None:
        """Raise the thresholds of what was alerted in a window."""
        for novelty in emitted:
            if novelty["verdict"] not in ("anomaly", "state_change") or novelty["phase"] != "start":
                continue
            if novelty["kind"] == "machine":
                self.of_machines = min(self.of_machines + STEP, MOST_ABOVE)
            else:
                at = self._classes[_class_of(Definition(novelty["kind"], novelty["series"], novelty.get("name"), None))]
                self.of_classes[at] = min(self.of_classes[at] + STEP, MOST_ABOVE)

    def threshold_of_machines(self, machines: int) -> float:
        """The score from which one of so many machines is alerted as a whole."""
        return self.settings.threshold(machines) + self.of_machines

    def thresholds_of_series(self, rows: Ints) -> Floats:
        """The scores from which these series are alerted."""
        classes = self._class_of[self.series.definition[rows]]
        return self.settings.threshold(len(self.series)) + self.of_classes[classes]

    def renumber(self) -> None:
        """The shard's definitions have changed: classes that none of them is of are dropped."""
        before, offsets = self._classes, self.of_classes
        self.of_classes = np.zeros(0)
        self._number_classes()
        self.of_classes = offsets[[before[one] for one in self._classes]] if before else self.of_classes


def _class_of(definition: Definition) -> tuple[str, str]:
    is_metric = definition.kind == "metric" and definition.name
    return definition.kind, str(definition.name if is_metric else definition.series)
