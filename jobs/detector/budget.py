"""The alarm budget against the alerts that were really emitted."""

from math import exp, log

from jobs.detector.settings import DetectorSettings

TRUSTED = 5.0  # so many alerts a day, beside those allowed, are taken for true: one bad day doesn't blunt the detector
MOST = 3.0  # the threshold rises by at most so much: to a twentieth of the probability


class Budget:
    """How many alerts a shard has emitted, exponentially forgotten over a day.

    A score is -ln of a probability. If k times as many are emitted as the budget allows, the probabilities are k times
    too small, and ln k on the threshold sets that right.
    """

    def __init__(self, alerts: float = 0.0, window: int = 0) -> None:
        self.alerts, self.window = alerts, window

    def spend(self, settings: DetectorSettings, window: int, alerts: int) -> None:
        """Note the alerts of a window."""
        if alerts:
            self.alerts, self.window = self._left(settings, window) + alerts, window

    def surcharge(self, settings: DetectorSettings, window: int) -> float:
        """What is added to the threshold of this window."""
        allowed = settings.alarms_per_day / settings.shards
        return min(max(log((self._left(settings, window) + TRUSTED) / (allowed + TRUSTED)), 0.0), MOST)

    def _left(self, settings: DetectorSettings, window: int) -> float:
        return self.alerts * exp(-(window - self.window) / settings.windows_per_day)
