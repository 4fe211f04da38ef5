"""Novelties of what was never seen before: machines, and series of machines that seldom have new ones."""

from collections.abc import Iterable, Mapping
from math import expm1, log, log1p
from typing import NamedTuple

import numpy as np

from jobs.detector import novelties
from jobs.detector.model.arrays import Bools, Floats, Ints
from jobs.detector.model.conjugate import JEFFREYS, GammaPoisson
from jobs.detector.model.protocol import Judgement
from jobs.detector.novelties import Novelty
from jobs.detector.saved_state import Saved
from jobs.detector.trackers.tracker import Inputs

NEW_TEMPLATE_SCORE = 10.0  # a new template is alerted when so many lines of it, after never any, score this
NEW_SERIES_SCORE = 2.5  # and any new series only where its machine seldom has new ones


class Beginnings(NamedTuple):
    """Series that are new: the row of each, what was observed of it so far, and in how many windows, one or two."""

    rows: Ints
    observed: Floats
    windows: Floats

    def where(self, wanted: Bools) -> "Beginnings":
        """Those that are wanted."""
        return Beginnings(self.rows[wanted], self.observed[wanted], self.windows[wanted])


class Started(NamedTuple):
    """A novelty, the series that it is about, and the score of each."""

    novelty: Novelty
    rows: Ints
    scores: Floats


class NewEntityTracker:
    """The novelties of what is still new, and how often each machine has had new series.

    A template may begin just before a window's end. So one whose first window had too few lines is judged once more, by
    its first two windows as one.
    """

    def __init__(self, inputs: Inputs, saved: Saved) -> None:
        self.inputs, self.settings = inputs, inputs.settings
        self.young: list[tuple[int, Novelty]] = [(due, record) for due, record in saved.items("young")]
        self.news = saved.ints("news")  # by machine: windows with new series
        self.begun_in: int | None = saved.header.get("begun_in")
        self.begun = {int(row): float(lines) for row, lines in saved.items("begun")}  # templates of that window

    def saved(self) -> Saved:
        header = {"young": self.young, "begun_in": self.begun_in, "begun": list(self.begun.items())}
        return Saved(header, {"news": self.news})

    def open_novelties(self) -> Iterable[Novelty]:
        return [record for _, record in self.young]

    def discard(self, ids: set[str]) -> None:
        self.young = [(due, record) for due, record in self.young if record["id"] not in ids]

    def end_known(self, window: int) -> list[Novelty]:
        """End the novelties of what is no longer new."""
        time = self.settings.end_of(window)
        known = [record for due, record in self.young if due <= window]
        self.young = [(due, record) for due, record in self.young if due > window]
        return [novelties.later(record, "end", time, text=f"{record['text']}; it is known now") for record in known]

    def retain_machines(self, machines: Ints) -> None:
        """Only these machines are left, under new numbers in the same order."""
        self.news = self.news[machines]

    def add_machine(self, machine: int, window: int, *, seen_before: bool = False) -> list[Novelty]:
        """A machine is seen for the first time, or again after it was gone; none while the shard itself warms up."""
        self.news = np.append(self.news, 0)
        machines = self.inputs.machines
        assert machines.first_window is not None
        lived = window - machines.first_window
        if lived < self.settings.warmup_windows:
            return []
        novelty = novelties.start(
            machines.names[machine],
            "new_entity",
            "machine",
            self.settings.end_of(window),
            **self.inputs.place(machine),
            score=log(lived * max(len(machines) - 1, 1) + 1.0),
            statistic="first_seen",
            seen_before=seen_before or None,
        )
        novelty["text"] = novelties.new_machine_text(novelty)
        return self._start(novelty, window)

    def renumber(self, place: Mapping[int, int]) -> None:
        """Series have new rows, or none any more."""
        self.begun = {place[row]: lines for row, lines in self.begun.items() if row in place}

    def judge(self, judgement: Judgement, known: int, window: int, open_rows: set[int]) -> list[Started]:
        """One novelty for the new series (rows from `known` on) of each machine that is old enough and seldom has any.

        The series of `open_rows` have a novelty already.
        """
        new = self._beginnings(judgement, known, window)
        machines = self.inputs.series.machine[new.rows]
        started: list[Started] = []
        for machine in np.unique(machines).tolist():
            if self.inputs.machines.age(machine, window) >= self.settings.warmup_windows:
                started += self._judge_machine(machine, new.where(machines == machine), window, open_rows)
        return started

    def _beginnings(self, judgement: Judgement, known: int, window: int) -> Beginnings:
        """The series from `known` on, and once more the templates that have begun in the window before."""
        before = self.begun if self.begun_in == window - 1 else {}
        self.begun_in, self.begun = window, {}
        at = np.flatnonzero((judgement.rows >= known) | np.isin(judgement.rows, list(before)))
        rows = judgement.rows[at]
        observed = judgement.observed[at] + np.array([before.get(row, 0.0) for row in rows.tolist()])
        return Beginnings(rows, observed, np.where(rows >= known, 1.0, 2.0))

    def _judge_machine(self, machine: int, new: Beginnings, window: int, open_rows: set[int]) -> list[Started]:
        """The new series of one machine."""
        age = self.inputs.machines.age(machine, window)
        is_count = self.inputs.model.is_count(new.rows)
        never_seen = GammaPoisson(np.full(len(new.rows), JEFFREYS), (age + 1.0) / new.windows)
        scores = np.where(is_count, never_seen.score(new.observed), NEW_TEMPLATE_SCORE)
        if scores.max() < NEW_TEMPLATE_SCORE:
            first = new.where(new.windows == 1.0)
            self.begun |= zip(first.rows.tolist(), first.observed.tolist(), strict=True)
            return []
        rarity = self._rarity(machine, age)
        self.news[machine] += 1
        if rarity < NEW_SERIES_SCORE or not open_rows.isdisjoint(new.rows.tolist()):
            return []
        score = float(scores.max()) if is_count.all() else rarity
        strongest_first = np.argsort(-scores, kind="stable")
        observed = float(new.observed[strongest_first[0]])
        found = self._start_series(new.rows[strongest_first], observed, window, score)
        return [Started(novelty, new.rows, scores) for novelty in found]

    def _rarity(self, machine: int, age: int) -> float:
        """-ln of the probability of a window with new series: their number is Poisson, its rate Gamma (Jeffreys)."""
        expected = (0.5 + int(self.news[machine])) * log1p(1.0 / (age + 1.0))
        return -log(-expm1(-expected))

    def _start_series(self, rows: Ints, observed: float, window: int, score: float) -> list[Novelty]:
        definition = self.inputs.series.describe(int(rows[0]))
        machine = int(self.inputs.series.machine[rows[0]])
        name = self.inputs.machines.names[machine]
        never = {"expected": 0.0, "expected_low": 0.0, "expected_high": 0.0} if definition.kind == "log" else {}
        novelty = novelties.start(
            name,
            "new_entity",
            definition.kind,
            self.settings.end_of(window),
            **self.inputs.place(machine),
            series=definition.series,
            name=definition.name,
            unit=definition.unit,
            score=score,
            statistic="first_seen",
            window_seconds=self.settings.window_seconds,
            observed=observed,
            contributing=len(rows),
            example=self.inputs.examples.of(name, definition.kind, definition.series),
            **never,
        )
        novelty["text"] = novelties.new_series_text(novelty, len(rows) - 1)
        return self._start(novelty, window)

    def _start(self, novelty: Novelty, window: int) -> list[Novelty]:
        if self.inputs.overrides.suppresses(novelty):
            return []
        self.young.append((window + self.settings.warmup_windows, novelty))
        return [novelty]
