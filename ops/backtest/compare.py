"""Which alerts another run of the detector would add, and which it wouldn't raise."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, NamedTuple

from ops.backtest.replay import Alert

Kind = Literal["added", "gone", "moved"]


class Change(NamedTuple):
    """An alert that only one of two runs has, or that both have of a machine, but not the same."""

    kind: Kind
    before: Alert | None
    after: Alert | None

    @property
    def alert(self) -> Alert:
        """The one that there is; of two the later run's."""
        found = self.after or self.before
        assert found is not None
        return found


class Comparison(NamedTuple):
    """The changes in the order of time, and how many alerts are the same."""

    changes: list[Change]
    same: int

    def count(self, kind: Kind) -> int:
        return sum(change.kind == kind for change in self.changes)


def compare(before: Sequence[Alert], after: Sequence[Alert], near_nano: int) -> Comparison:
    """The differences between the alerts of two runs.

    Alerts of one id are the same: machine, series, verdict and beginning. Of the others, those of one machine that
    begin within `near_nano` of each other are one that has moved: it begins at another time, or by another series.
    """
    shared = {alert.id for alert in before} & {alert.id for alert in after}
    left = defaultdict(list)
    for alert in before:
        if alert.id not in shared:
            left[alert.machine].append(alert)
    changes = []
    for alert in after:
        if alert.id in shared:
            continue
        nearest = min(left[alert.machine], key=lambda one: _distance(one, alert), default=None)
        if nearest is not None and _distance(nearest, alert) <= near_nano:
            left[alert.machine].remove(nearest)
            changes.append(Change("moved", nearest, alert))
        else:
            changes.append(Change("added", None, alert))
    changes += [Change("gone", alert, None) for alerts in left.values() for alert in alerts]
    order = sorted(changes, key=lambda one: (one.alert.time_unix_nano, one.alert.machine, one.alert.id))
    return Comparison(order, len(shared))


def _distance(one: Alert, other: Alert) -> int:
    return abs(one.time_unix_nano - other.time_unix_nano)
