"""Novelties of what was never seen before: machines, and series of machines that seldom have new ones."""

from collections.abc import Iterable
from math import expm1, log, log1p

import numpy as np

from jobs.detector import novelties
from jobs.detector.model.arrays import Ints
from jobs.detector.model.conjugate import JEFFREYS, GammaPoisson
from jobs.detector.model.protocol import Judgement
from jobs.detector.novelties import Novelty
from jobs.detector.saved_state import Saved
from jobs.detector.trackers.tracker import Inputs

NEW_TEMPLATE_SCORE = 8.0  # a new template is alerted when so many lines of it, after never any, score this
NEW_SERIES_SCORE = 2.5  # and any new series only where its machine seldom has new ones


class NewEntityTracker:
    """The novelties of what is still new, and how often each machine has had new series."""

    def __init__(self, inputs: Inputs, saved: Saved) -> None:
        self.inputs, self.settings = inputs, inputs.settings
        self.young: list[tuple[int, Novelty]] = [(due, record) for due, record in saved.items("young")]
        self.news = saved.ints("news")  # by machine: windows with new series

    def saved(self) -> Saved:
        return Saved({"young": self.young}, {"news": self.news})

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

    def judge(self, judgement: Judgement, known: int, window: int, open_rows: set[int]) -> list[Novelty]:
        """One novelty for the new series (rows from `known` on) of each machine that is old enough and seldom has any.

        The series of `open_rows` have a novelty already.
        """
        at = np.flatnonzero(judgement.rows >= known)
        machines = self.inputs.series.machine[judgement.rows[at]]
        emitted = []
        for machine in np.unique(machines).tolist():
            if self.inputs.machines.age(machine, window) >= self.settings.warmup_windows:
                emitted += self._judge_machine(judgement, at[machines == machine], window, open_rows)
        return emitted

    def _judge_machine(self, judgement: Judgement, at: Ints, window: int, open_rows: set[int]) -> list[Novelty]:
        """The new series of one machine, at these places in the judgement."""
        rows = judgement.rows[at]
        machine = int(self.inputs.series.machine[rows[0]])
        age = self.inputs.machines.age(machine, window)
        is_count = self.inputs.model.is_count(rows)
        never_seen = GammaPoisson(np.full(len(at), JEFFREYS), np.full(len(at), age + 1.0))
        scores = np.where(is_count, never_seen.score(judgement.observed[at]), NEW_TEMPLATE_SCORE)
        if scores.max() < NEW_TEMPLATE_SCORE:
            return []
        rarity = self._rarity(machine, age)
        self.news[machine] += 1
        if rarity < NEW_SERIES_SCORE or not open_rows.isdisjoint(rows.tolist()):
            return []
        score = float(scores.max()) if is_count.all() else rarity
        strongest_first = np.argsort(-scores, kind="stable")
        seen = float(judgement.observed[at][strongest_first[0]])
        return self._start_series(rows[strongest_first], seen, window, score)

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
