"""Which series of a machine are whitened together: groups of at most 32, those of one capacity in one table."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np

from jobs.detector.model.arrays import Bools, Columns, Floats, Ints, of_prefix
from jobs.detector.model.correlations import KINDS, MOST, Correlations, Whitening, learned, no_correlations, pairs

CAPACITIES = (4, 8, 16, 24, MOST)  # a group has the least that holds its series: so a small machine costs little
EMPTY = -1


class Group(NamedTuple):
    """One group: its machine, the rows of its series, and their correlations, (KINDS, pairs)."""

    machine: int
    rows: Sequence[int]
    correlations: Correlations

    @classmethod
    def of(cls, machine: int, rows: Sequence[int]) -> Self:
        """Series of which nothing is known yet."""
        return cls(machine, rows, no_correlations(1, len(rows))[0])

    def followed_by(self, rows: Sequence[int]) -> "Group":
        """With more series. A lower triangle begins with that of its first series."""
        more = Group.of(self.machine, [*self.rows, *rows])
        known = self.correlations.shape[1]
        return more._replace(correlations=np.concatenate([self.correlations, more.correlations[:, known:]], axis=1))

    def only(self, kept: Ints) -> "Group":
        """Of these series only: their places in the group, ascending."""
        first, second = (kept[one] for one in pairs(len(kept)))
        correlations = self.correlations[:, first * (first + 1) // 2 + second]
        return Group(self.machine, [self.rows[one] for one in kept.tolist()], correlations)

    @property
    def capacity(self) -> int:
        return next(capacity for capacity in CAPACITIES if capacity >= len(self.rows))


class GroupTable:
    """All groups of one capacity. `machine` has an element a group, `rows` (groups, capacity) may end with EMPTY."""

    def __init__(self, capacity: int, columns: Columns) -> None:
        """`columns` are those of `dump`; without any there are no groups."""
        self.capacity = capacity
        self.machine: Ints = columns.get("machine", np.zeros(0, np.int64))
        groups, size = len(self.machine), len(pairs(capacity)[0])
        self.rows: Ints = columns.get("rows", np.zeros(0, np.int64)).reshape(groups, capacity)
        learned_before = columns.get("correlations", np.zeros(0, np.float32))
        self.correlations: Correlations = learned_before.reshape(groups, KINDS, size)
        self.whitening = Whitening.of(self.correlations, capacity)

    def __len__(self) -> int:
        return len(self.machine)

    def dump(self) -> Columns:
        """The constructor's `columns`, each of one dimension."""
        rows, correlations = self.rows.reshape(-1), self.correlations.reshape(-1)
        return {"machine": self.machine, "rows": rows, "correlations": correlations}

    def take_out(self, groups: Ints) -> list[Group]:
        """Remove these groups, and return them."""
        taken = []
        for at in groups.tolist():
            rows = self.rows[at][self.rows[at] != EMPTY].tolist()
            known = self.correlations[at][:, : len(pairs(len(rows))[0])]
            taken.append(Group(int(self.machine[at]), rows, known))
        if taken:
            self.machine, self.rows = np.delete(self.machine, groups), np.delete(self.rows, groups, axis=0)
            self.correlations = np.delete(self.correlations, groups, axis=0)
            self.whitening = self.whitening.without(groups)
        return taken

    def append(self, groups: Sequence[Group]) -> None:
        """Add groups of this capacity."""
        if not groups:
            return
        rows = np.full((len(groups), self.capacity), EMPTY)
        correlations = no_correlations(len(groups), self.capacity)
        for at, group in enumerate(groups):
            rows[at, : len(group.rows)] = group.rows
            correlations[at, :, : group.correlations.shape[1]] = group.correlations
        self.machine = np.append(self.machine, [group.machine for group in groups])
        self.rows = np.concatenate([self.rows, rows])
        self.correlations = np.concatenate([self.correlations, correlations])
        self.whitening = self.whitening.followed_by(Whitening.of(correlations, self.capacity))

    def residuals(self, deviations: Floats, found: Floats) -> None:
        """Write into `found` what of these deviations the others don't explain; both (KINDS, rows + 1), the last 0."""
        left = self.whitening.residuals(deviations[:, self.rows].transpose(2, 0, 1))
        found[:, self.rows] = left.transpose(1, 2, 0)

    def learn(self, deviations: Floats, windows: Floats) -> None:
        """A lesson: deviations (KINDS, rows + 1), winsorised, NaN without a value; and the windows seen of each row."""
        of_groups = deviations[:, self.rows].transpose(1, 0, 2)
        self.correlations = learned(self.correlations, of_groups, windows[self.rows][:, None])
        self.whitening = Whitening.of(self.correlations, self.capacity)

    def forget(self, rows: Ints) -> None:
        """What is known of these series, which stay in their groups."""
        first, second = pairs(self.capacity)
        anew = np.isin(self.rows, rows)
        nothing = no_correlations(1, self.capacity)
        self.correlations = np.where((anew[:, first] | anew[:, second])[:, None], nothing, self.correlations)
        self.whitening = Whitening.of(self.correlations, self.capacity)

    def has_room(self) -> Bools:
        """Which groups can have another series, be it with a greater capacity."""
        return np.asarray((self.rows[:, -1] == EMPTY) | (self.capacity < MOST))


class Groups:
    """All groups of a shard."""

    def __init__(self, arrays: Columns) -> None:
        """`arrays` are those of `dump`; without any there are no groups."""
        self.tables = [GroupTable(capacity, of_prefix(_prefix(capacity), arrays)) for capacity in CAPACITIES]

    def dump(self) -> Columns:
        """The constructor's `arrays`."""
        return {_prefix(one.capacity) + name: column for one in self.tables for name, column in one.dump().items()}

    def add(self, rows: Ints, machine: Ints) -> None:
        """Put new series into their machines' groups: first where there is room."""
        new: dict[int, list[int]] = {}
        for row, of in zip(rows.tolist(), machine.tolist(), strict=True):
            new.setdefault(of, []).append(row)
        with_room = self._take_out_with_room(np.unique(machine))
        made: list[Group] = []
        for of, own in new.items():
            group = with_room.get(of, Group.of(of, []))
            room = MOST - len(group.rows)
            made.append(group.followed_by(own[:room]))
            made += [Group.of(of, own[at : at + MOST]) for at in range(room, len(own), MOST)]
        self._append(made)

    def retain(self, rows: Ints, machines: Ints, before: int) -> None:
        """Only these rows and machines are left, under new numbers in this order; there were `before` rows."""
        row_place, machine_place = np.full(before + 1, EMPTY), np.full(int(machines.max(initial=-1)) + 1, EMPTY)
        row_place[rows], machine_place[machines] = np.arange(len(rows)), np.arange(len(machines))
        smaller: list[Group] = []
        for table in self.tables:
            gone = (table.rows != EMPTY) & (row_place[table.rows] == EMPTY)
            for group in table.take_out(np.flatnonzero(gone.any(axis=1))):
                kept = np.flatnonzero(row_place[np.array(group.rows, np.int64)] != EMPTY)
                smaller += [group.only(kept)] if len(kept) else []
        self._append(smaller)
        for table in self.tables:
            table.rows, table.machine = row_place[table.rows], machine_place[table.machine]

    def forget(self, rows: Ints) -> None:
        """What is known of these series, which stay in their groups."""
        for table in self.tables:
            table.forget(rows)

    def residuals(self, deviations: Floats) -> Floats:
        """What of these deviations the others of their groups don't explain; (KINDS, rows + 1), the last 0."""
        found = np.zeros_like(deviations)
        for table in self.tables:
            table.residuals(deviations, found)
        return found

    def learn(self, deviations: Floats, windows: Floats) -> None:
        """A lesson, see GroupTable.learn."""
        for table in self.tables:
            table.learn(deviations, windows)

    def _take_out_with_room(self, machines: Ints) -> dict[int, Group]:
        """Of each of these machines one group that can have another series, by machine; none where there is none."""
        found: dict[int, Group] = {}
        for table in self.tables:
            at = np.flatnonzero(np.isin(table.machine, machines) & table.has_room())
            _, once = np.unique(table.machine[at], return_index=True)
            found |= {group.machine: group for group in table.take_out(at[once])}
            machines = machines[~np.isin(machines, list(found))]
        return found

    def _append(self, groups: Iterable[Group]) -> None:
        by_capacity: dict[int, list[Group]] = {capacity: [] for capacity in CAPACITIES}
        for group in groups:
            by_capacity[group.capacity].append(group)
        for table in self.tables:
            table.append(by_capacity[table.capacity])


def _prefix(capacity: int) -> str:
    return f"groups{capacity}_"
