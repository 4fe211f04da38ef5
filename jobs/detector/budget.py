"""The alarm budget against what was really told."""

from math import exp, log

from jobs.detector.settings import DetectorSettings

TRUSTED = 5.0  # so many alarms a day, beside those allowed, are taken for true: one bad day doesn't blunt the detector
MOST = 3.0  # the threshold rises by at most so much: to a twentieth of the probability


class Budget:
    """How many surprises a shard has told, exponentially forgotten over a day.

    A score is -ln of a probability. If k times as many are told as the budget allows, the probabilities are k times too
    small, and ln k on the threshold sets that right.
    """

    def __init__(self, told: float = 0.0, window: int = 0) -> None:
        self.told, self.window = told, window

    def spend(self, settings: DetectorSettings, window: int, alarms: int) -> None:
        """Note what a window has told."""
        if alarms:
            self.told, self.window = self._left(settings, window) + alarms, window

    def surcharge(self, settings: DetectorSettings, window: int) -> float:
        """What is added to the threshold of this window."""
        allowed = settings.alarms_per_day / settings.shards
        return min(max(log((self._left(settings, window) + TRUSTED) / (allowed + TRUSTED)), 0.0), MOST)

    def _left(self, settings: DetectorSettings, window: int) -> float:
        return self.told * exp(-(window - self.window) / settings.windows_per_day)
