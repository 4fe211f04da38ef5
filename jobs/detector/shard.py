"""The detector's packed fold: all records of one partition of `statistics`, in offset order, through one call.

Windows wait until a watermark closes them; then every series of the shard takes the step at once. So the result depends
on the records alone: `fold(a + b)` is `fold(b)` after `fold(a)`, byte for byte.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from math import log
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from jobs.detector import novelties
from jobs.detector.budget import Budget
from jobs.detector.model import EPISODE_SCORE, Ints, Judgement, Phase, Statistic, Turn
from jobs.detector.model_conjugate import JEFFREYS, GammaPoisson
from jobs.detector.model_machines import CALM, FIELDS, Joint, Machines
from jobs.detector.model_scales import SCALES, Scales
from jobs.detector.model_tails import Floats
from jobs.detector.novelties import Novelty
from jobs.detector.rules import Orders, Rule
from jobs.detector.settings import DetectorSettings
from jobs.runtime.packed_state import Parts, pack, unpack

Record = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

SILENCE_SCORE = 4.0  # a machine is missed when so many silent windows had a probability below e^-4
MOST_GAPS = 100  # windows: more say nothing more
NEW_TEMPLATE_SCORE = 8.0  # a new template is told when so many lines of it, after never any, score this
NEWS_SCORE = 2.5  # and any new series only where its machine seldom has news
COMPACT_EVERY = 360  # windows
NOT_ANOMALOUS = "not-anomalous"
CONTRIBUTORS = 5  # series that a novelty names


def fold(state: Parts | None, records: Sequence[bytes], settings: DetectorSettings) -> tuple[Parts, list[Novelty]]:
    """Fold JSON records of `statistics` (watermarks included) into the state; returns it and the novelties to send."""
    shard = Shard(settings, state)
    told = shard.feed(records)
    return shard.dump(), told


class Open(NamedTuple):
    """A novelty of a series that has not ended, and the length of the windows that told it, in windows."""

    scale: int
    record: Novelty


class Whole(NamedTuple):
    """A novelty of a machine as a whole that has not ended, and the rows that contributed most."""

    rows: list[int]
    record: Novelty


class Shard:
    """The state between two calls, unpacked. `machines`, `definitions` and rows only grow, but for `_compact`."""

    def __init__(self, settings: DetectorSettings, state: Parts | None = None) -> None:
        self.settings = settings
        header, arrays = unpack(state) if state else (_empty_header(), _empty_arrays())
        self.machines: list[str] = header["machines"]
        self.inventories: list[dict[str, Any] | None] = header["inventories"]
        self.definitions: list[list[str | None]] = header["definitions"]  # kind, series, name, unit
        self.open: dict[int, Open] = {int(row): Open(scale, record) for row, scale, record in header["open"]}
        self.whole: dict[int, Whole] = {
            int(machine): Whole(rows, record) for machine, rows, record in header.get("whole", ())
        }
        self.silent: dict[int, Novelty] = {int(machine): record for machine, record in header["silent"]}
        self.young: list[tuple[int, Novelty]] = [(due, record) for due, record in header["young"]]
        self.budget = Budget(*header.get("budget", ()))
        self.orders = Orders(header.get("orders", {}))
        self.first_window: int | None = header["first_window"]
        self.window: int = header["window"]  # the newest one that took its step
        # The newest one that a watermark has closed, if it has data or not.
        self.closed: int = header["closed"]
        self.series = {name: arrays[name] for name in _SERIES_ARRAYS}
        self.life = {name: arrays[name] for name in _MACHINE_ARRAYS}
        self.model = Scales(settings, arrays)
        self.machine_model = Machines({name: arrays[_JOINT + name] for name in FIELDS if _JOINT + name in arrays})
        self.machine_model.grow(len(self.machines) - len(self.machine_model))
        self.joint: Joint | None = None  # of the newest window
        self.pending = _split(arrays["pending"], arrays["pending_lengths"])
        self.census: Counter[tuple[str, str]] | None = None  # of this window: how many machines are in each place
        self.machine_index = {name: index for index, name in enumerate(self.machines)}
        self._index_series()

    def dump(self) -> Parts:
        header = {
            "machines": self.machines,
            "inventories": self.inventories,
            "definitions": self.definitions,
            "open": [(row, *told) for row, told in self.open.items()],
            "whole": [(machine, *told) for machine, told in self.whole.items()],
            "silent": list(self.silent.items()),
            "young": self.young,
            "orders": self.orders.packed(),
            "budget": (self.budget.told, self.budget.window),
            "first_window": self.first_window,
            "window": self.window,
            "closed": self.closed,
        }
        waiting = np.frombuffer(b"".join(self.pending), np.uint8)
        lengths = np.array([len(raw) for raw in self.pending], np.int64)
        arrays: Arrays = {**self.series, **self.life, "pending": waiting, "pending_lengths": lengths}
        machines = {_JOINT + name: column for name, column in self.machine_model.dump().items()}
        return pack(header, arrays | machines | self.model.dump())

    @property
    def watermark(self) -> int:
        """What follows is told of windows that end then or later: novelties have the times of windows' ends."""
        return self.closed * self.settings.window_nano + 1

    def feed(self, records: Iterable[bytes]) -> list[Novelty]:
        """Take records in offset order; returns what the watermarks among them made known."""
        told: list[Novelty] = []
        waiting = [(orjson.loads(raw), raw) for raw in self.pending]
        for raw in records:
            record = orjson.loads(raw)
            if record.get("watermark_unix_nano") is not None:
                waiting = self._watermark(record["watermark_unix_nano"], waiting, told)
            elif "control" in record or self._is_ours(record["window"]):
                waiting.append((record, raw))
        self.pending = [raw for _, raw in waiting]
        return told

    def _is_ours(self, window: Record) -> bool:
        return bool(window["kind"] == "tumbling" and window["size_seconds"] == self.settings.window_seconds)

    def _watermark(
        self, time: int, waiting: list[tuple[Record, bytes]], told: list[Novelty]
    ) -> list[tuple[Record, bytes]]:
        """Step all windows that end by `time`; returns the records that still wait."""
        watermark = time // self.settings.window_nano
        self.closed = max(self.closed, watermark)
        due: dict[int, list[Record]] = {}
        later: list[tuple[Record, bytes]] = []
        controls = sorted(
            (one for one in waiting if "control" in one[0]), key=lambda one: (one[0]["time_unix_nano"], one[1])
        )
        for record, raw in waiting:
            if "control" in record:
                continue
            window = record["window"]["end_unix_nano"] // self.settings.window_nano
            if window > watermark:
                later.append((record, raw))
            elif window > self.window:
                due.setdefault(window, []).append(record)
        for window in self._windows_to_step(sorted(due), watermark):
            while controls and controls[0][0]["time_unix_nano"] // self.settings.window_nano < window:
                told += self._obey(controls.pop(0)[0]["control"], window)
            told += self._step(window, due.get(window, []))
            self.window = window
        return later + controls

    def _windows_to_step(self, due: list[int], watermark: int) -> list[int]:
        """Those with data, and so many empty ones after each that every silence is seen."""
        if self.first_window is None and not due:
            return []
        patience = 10 * self.settings.silence_windows
        last_heard = int(self.life["last"].max(initial=0)) or due[0]
        windows = set(due)
        for heard, following in zip([last_heard, *due], [*due, watermark + 1], strict=True):
            windows.update(range(max(heard, self.window) + 1, min(following, heard + patience + 1)))
        return sorted(windows)

    def _step(self, window: int, records: list[Record]) -> list[Novelty]:
        if self.first_window is None:
            self.first_window = window
        time = window * self.settings.window_nano
        self.census = None
        present, machine_news = self._meet_machines(window, records)
        told = self._grow_up(window, time) + self._hear(window, time, present) + machine_news
        known = len(self.model)
        rows, values, samples = self._observations(window, records, present)
        if len(rows):
            threshold = self.settings.threshold(len(self.model)) + self.budget.surcharge(self.settings, window)
            judgements = self.model.step(window, rows, values, samples, threshold)
            for scale, judgement in zip(SCALES, judgements, strict=False):
                told += self._tell(judgement, scale, time)
            told += self._judge_machines(judgements[0], window, time)
            alarms = sum(one["verdict"] == "anomaly" and one["phase"] == "start" for one in told)
            self.budget.spend(self.settings, window, alarms)
            told += self._tell_new_series(judgements[0], known, window, time)
        told += self._miss(window, time)
        if window % COMPACT_EVERY == 0:
            self._compact(window)
        return told

    # Machines

    def _meet_machines(self, window: int, records: list[Record]) -> tuple[Ints, list[Novelty]]:
        """The machines of this window (index, ascending) and what is told of new ones."""
        told = []
        for record in records:
            name = record["machine"]
            if name not in self.machine_index:
                told += self._add_machine(name, window, record)
            self.inventories[self.machine_index[name]] = record.get("inventory")
        return np.unique([self.machine_index[record["machine"]] for record in records]).astype(np.int64), told

    def _add_machine(self, name: str, window: int, record: Record) -> list[Novelty]:
        self.machine_index[name] = len(self.machines)
        self.machines.append(name)
        self.inventories.append(record.get("inventory"))
        added = {"first": window, "last": window - 1, "present": 0, "missed": 0, "news": 0}
        self.life = {key: np.append(column, added[key]) for key, column in self.life.items()}
        self.machine_model.grow(1)
        if self.first_window is None or window - self.first_window < self.settings.warmup_windows:
            return []
        lived = (window - self.first_window) * max(len(self.machines) - 1, 1)
        novelty = novelties.start(
            name,
            "new_entity",
            "machine",
            window * self.settings.window_nano,
            **self._place(len(self.machines) - 1),
            score=log(lived + 1.0),
            statistic="first_seen",
        )
        novelty["text"] = novelties.new_machine_text(novelty)
        if self.orders.forbid(novelty):
            return []
        self.young.append((window + self.settings.warmup_windows, novelty))
        return [novelty]

    def _place(self, machine: int) -> dict[str, Any]:
        """Where a machine is, and how many machines of this shard are there too: fields of its novelty."""
        if self.census is None:
            places = [(kind, name) for one in self._every_place() for kind, name in one.items()]
            self.census = Counter(places)
        here = novelties.places(self.machines[machine], self.inventories[machine])
        peers = {kind: self.census[kind, name] for kind, name in here.items()}
        return {"inventory": self.inventories[machine], "peers": {"machines": len(self.machines), **peers}}

    def _every_place(self) -> Iterator[dict[str, str]]:
        return map(novelties.places, self.machines, self.inventories)

    def _grow_up(self, window: int, time: int) -> list[Novelty]:
        """End the novelty of what is no longer new."""
        grown = [record for due, record in self.young if due <= window]
        self.young = [(due, record) for due, record in self.young if due > window]
        return [novelties.later(record, "end", time, text=f"{record['text']}; it is known now") for record in grown]

    def _hear(self, window: int, time: int, present: Ints) -> list[Novelty]:
        """Note who spoke; a silent machine that speaks again ends its silence."""
        gap = np.minimum(window - self.life["last"][present] - 1, self.settings.silence_windows)
        self.life["missed"][present] += gap
        self.life["present"][present] += 1
        self.life["last"][present] = window
        self.orders.excused.difference_update(present.tolist() if self.orders.excused else ())
        back = [machine for machine in present.tolist() if machine in self.silent]
        return [
            novelties.later(self.silent.pop(machine), "end", time, text=f"{self.machines[machine]} speaks again")
            for machine in back
        ]

    def _miss(self, window: int, time: int) -> list[Novelty]:
        """Machines that were regular and have now been silent for too long."""
        gap = window - self.life["last"]
        candidates = (gap >= self.settings.silence_windows) & (self.life["present"] >= self.settings.warmup_windows)
        scores = (
            (machine, self._silence_score(machine, int(gap[machine])))
            for machine in np.flatnonzero(candidates).tolist()
        )
        told = []
        for machine, score in scores:
            usual = score < SILENCE_SCORE or self.orders.is_usual_gap(machine, int(gap[machine]))
            if not usual and machine not in self.silent:
                told += self._silence(machine, time, score)
        return told

    def _silence_score(self, machine: int, gap: int) -> float:
        """-ln of the probability of `gap` missed windows in a row: presence is Bernoulli, its rate Beta."""
        spoke, missed = self.life["present"][machine] + 1.0, self.life["missed"][machine] + 1.0
        return sum(log((spoke + missed + i) / (missed + i)) for i in range(min(gap, MOST_GAPS)))

    def _usual_gap(self, machine: int) -> int:
        """The most windows that this machine may miss in a row without being called silent."""
        gap = self.settings.silence_windows - 1
        while gap < MOST_GAPS and self._silence_score(machine, gap + 1) < SILENCE_SCORE:
            gap += 1
        return gap

    def _silence(self, machine: int, time: int, score: float) -> list[Novelty]:
        last, seconds = int(self.life["last"][machine]), self.settings.window_seconds
        record = novelties.start(
            self.machines[machine],
            "silence",
            "machine",
            time,
            since_unix_nano=(last + 1) * self.settings.window_nano,
            **self._place(machine),
            score=score,
            statistic="presence",
            unit="s",
            observed=(time - last * self.settings.window_nano) / 1e9,
            expected_low=0.0,
            expected_high=self._usual_gap(machine) * seconds,
        )
        if self.orders.forbid(record):
            return []
        self.silent[machine] = {**record, "text": novelties.silence_text(record)}
        return [self.silent[machine]]

    # Series

    def _index_series(self) -> None:
        self.definition_index = {
            f"{kind}{series}": index for index, (kind, series, _, _) in enumerate(self.definitions)
        }
        pairs = zip(self.series["machine"].tolist(), self.series["definition"].tolist(), strict=True)
        self.row_index = {pair: row for row, pair in enumerate(pairs)}
        self.row_cache: dict[int, tuple[tuple[list[str], list[str], bytes], Ints]] = {}

    def _observations(self, window: int, records: list[Record], present: Ints) -> tuple[Ints, Floats, Floats]:
        """Rows, values and samples of this window; each row once, absent templates as zeros."""
        known = len(self.row_index)
        parts = [self._of_record(record) for record in records]
        self._add_series(window, list(islice(self.row_index, known, None)))
        if not parts:
            return np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
        rows, values, samples = (np.concatenate(column) for column in zip(*parts, strict=True))
        rows, at = np.unique(rows, return_index=True)
        values, samples = values[at], samples[at]
        self.series["heard"][rows] = window
        absent = self._absent_counts(rows, present)
        zeros = np.zeros(len(absent))
        return np.concatenate([rows, absent]), np.concatenate([values, zeros]), np.concatenate([samples, zeros + 1.0])

    def _of_record(self, record: Record) -> tuple[Ints, Floats, Floats]:
        told, machine = record["statistics"], self.machine_index[record["machine"]]
        samples = np.array(told["count"], np.float64)
        means = np.array(told["mean"], np.float64) if "mean" in told else np.full(len(samples), np.nan)
        values = np.where([kind == "log" for kind in told["kind"]], samples, means)
        usable = np.isfinite(values)  # the first point of a counter has no rate yet
        labels = (told["kind"], told["series"], usable.tobytes())
        cached = self.row_cache.get(machine)
        if cached is None or cached[0] != labels:
            rows = self._rows(machine, told, np.flatnonzero(usable).tolist())
            cached = self.row_cache[machine] = (labels, rows)
        return cached[1], values[usable], samples[usable]

    def _rows(self, machine: int, told: Record, usable: list[int]) -> Ints:
        """The rows of a record's series; new ones get the next numbers, and are added when the window is read."""
        pairs = [(machine, self._definition(told, at)) for at in usable]
        return np.array([self.row_index.setdefault(pair, len(self.row_index)) for pair in pairs], np.int64)

    def _definition(self, told: Record, at: int) -> int:
        kind, series = told["kind"][at], told["series"][at]
        index = self.definition_index.get(f"{kind}{series}")
        if index is None:
            index = self.definition_index[f"{kind}{series}"] = len(self.definitions)
            self.definitions.append([kind, series, *(told[name][at] if name in told else None for name in _NAMED)])
        return index

    def _add_series(self, window: int, pairs: list[tuple[int, int]]) -> None:
        """Of machine and definition; all of a window at once, as each time copies the state of all."""
        if not pairs:
            return
        machines, definitions = np.array(pairs, np.int64).T
        is_count = np.array([self.definitions[index][0] == "log" for index in definitions.tolist()])
        self.model.add(is_count, np.maximum(self.life["present"][machines] - 1, 0), window)
        added = {"machine": machines, "definition": definitions, "heard": np.full(len(pairs), window)}
        self.series = {name: np.concatenate([column, added[name]]) for name, column in self.series.items()}

    def _absent_counts(self, rows: Ints, present: Ints) -> Ints:
        here = np.zeros(len(self.machines), bool)
        here[present] = True
        absent = (self.model.windows.columns["is_count"] > 0) & here[self.series["machine"]]
        absent[rows] = False
        return np.flatnonzero(absent)

    # Novelties of series

    def _tell(self, judgement: Judgement, scale: int, time: int) -> list[Novelty]:
        """What this window says. One machine tells one surprise at a time; the others keep it company."""
        told = []
        for at in np.flatnonzero(judgement.turn).tolist():
            told += self._tell_turn(judgement, at, scale, time)
        return told + self._tell_starts(judgement, scale, time)

    def _tell_turn(self, judgement: Judgement, at: int, scale: int, time: int) -> list[Novelty]:
        """An update or end of a novelty; nothing of an episode that was not told, or only kept company."""
        row, turn = int(judgement.rows[at]), Turn(judgement.turn[at])
        told = self.open.get(row)
        if told is None or told.scale != scale:
            return []
        record = told.record
        if turn == Turn.STARTED:
            return self._learned_early(row, time)
        now = {"observed": float(judgement.observed[at]), "score": float(judgement.score[at])}
        now["probability"] = float(np.exp(-now["score"]))
        if turn == Turn.CHANGED:
            text = novelties.state_change_text(record, now["observed"])
            record = novelties.later(
                record, "update", time, verdict="state_change", observed=now["observed"], text=text
            )
            self.open[row] = Open(scale, record)
            return [record]
        del self.open[row]
        if turn == Turn.LEARNED:
            return [novelties.later(record, "end", time, **now, text=novelties.learned_text(record))]
        text = novelties.returned_text(record, time, undone=turn == Turn.UNDONE)
        return [novelties.later(record, "end", time, **now, verdict="anomaly", text=text)]

    def _tell_starts(self, judgement: Judgement, scale: int, time: int) -> list[Novelty]:
        """One novelty a machine, led by its strongest series; none where the machine's surprise is already told."""
        news = np.flatnonzero(judgement.told)
        strongest_first = news[np.lexsort((judgement.rows[news], -judgement.score[news]))]
        by_machine: dict[int, list[int]] = {}
        for at in strongest_first.tolist():
            known = self.open.get(int(judgement.rows[at]))
            if known is None or known.record["verdict"] != "anomaly":
                by_machine.setdefault(int(self.series["machine"][judgement.rows[at]]), []).append(at)
        busy = self._machines_in_episode() | {
            machine for machine, (_, record) in self.whole.items() if record["verdict"] == "anomaly"
        }
        told: list[Novelty] = []
        for machine, positions in sorted(by_machine.items()):
            for at in positions:
                told += self._learned_early(int(judgement.rows[at]), time)
            if machine not in busy:
                told += self._tell_strongest(judgement, machine, positions, scale, time)
        return told

    def _tell_strongest(
        self, judgement: Judgement, machine: int, positions: list[int], scale: int, time: int
    ) -> list[Novelty]:
        """The first of these that nobody has called normal, or suppressed."""
        for at in positions:
            record = self._surprise(judgement, machine, at, scale, time)
            row = int(judgement.rows[at])
            if not self.orders.is_normal(row, record["observed"]) and not self.orders.forbid(record):
                self.open[row] = Open(scale, record)
                return [record]
        return []

    def _machines_in_episode(self) -> set[int]:
        """Those that tell a surprise of single windows; one of a larger scale lasts too long to silence all others."""
        phase, machine = self.model.windows.columns["phase"], self.series["machine"]
        of_windows = (
            row for row, (scale, record) in self.open.items() if scale == 1 and record["verdict"] == "anomaly"
        )
        return {int(machine[row]) for row in of_windows if phase[row]}

    def _learned_early(self, row: int, time: int) -> list[Novelty]:
        """A new surprise in a changed state makes that state final."""
        told = self.open.pop(row, None)
        if told is None:
            return []
        return [novelties.later(told.record, "end", time, text=novelties.learned_text(told.record))]

    def _surprise(self, judgement: Judgement, machine: int, lead: int, scale: int, time: int) -> Novelty:
        row = int(judgement.rows[lead])
        kind, _, name, _ = self._describe(row)
        record = novelties.start(
            self.machines[machine],
            "anomaly",
            str(kind),
            time,
            **self._place(machine),
            name=name,
            statistic=Statistic(judgement.statistic[lead]).name.lower(),
            window_seconds=scale * self.settings.window_seconds,
            **self._evidence(judgement, lead),
            **self._explained(judgement, self._contributors(judgement, machine)),
        )
        record["text"] = novelties.anomaly_text(record, scale > 1)
        return record

    def _contributors(self, judgement: Judgement, machine: int) -> list[int]:
        """The series of a machine that are surprised at once, told or not: places in the judgement, strongest first."""
        of_machine = self.series["machine"][judgement.rows] == machine
        at = np.flatnonzero(of_machine & (judgement.told | (judgement.score >= EPISODE_SCORE)))
        strongest_first: list[int] = at[np.lexsort((judgement.rows[at], -judgement.score[at]))].tolist()
        return strongest_first

    def _explained(self, judgement: Judgement, contributors: list[int]) -> dict[str, Any]:
        return novelties.explained([self._evidence(judgement, at) for at in contributors], CONTRIBUTORS)

    def _evidence(self, judgement: Judgement, at: int) -> dict[str, Any]:
        _, series, _, unit = self._describe(int(judgement.rows[at]))
        return {
            "series": series,
            "unit": unit,
            "score": float(judgement.score[at]),
            "observed": float(judgement.observed[at]),
            "expected": float(judgement.expected[at]),
            "expected_low": float(judgement.low[at]),
            "expected_high": float(judgement.high[at]),
        }

    def _describe(self, row: int) -> list[str | None]:
        return self.definitions[int(self.series["definition"][row])]

    # Novelties of machines as a whole

    def _judge_machines(self, judgement: Judgement, window: int, time: int) -> list[Novelty]:
        """What the series of each machine say together, where none of them has told it."""
        # Machines have as large a budget as series.
        threshold = self.settings.threshold(len(self.machines)) + self.budget.surcharge(self.settings, window)
        owner = self.series["machine"][judgement.rows]
        self.joint = self.machine_model.step(owner, self._unexcused(judgement), threshold, window)
        told = self._follow_machines(judgement, time)
        busy = {*self.whole, *self.series["machine"][list(self.open)].tolist()}
        new = self.machine_model.tell(self.joint, np.array(sorted(busy), np.int64), threshold, window)
        for machine, now, score in zip(new.machines.tolist(), new.now.tolist(), new.score.tolist(), strict=True):
            told += self._machine_surprise(judgement, machine, {"observed": now, "score": score}, time)
        return told

    def _unexcused(self, judgement: Judgement) -> Floats:
        """The scores; 0 of a value that has returned to the usual, and where a person's order says that it is none."""
        inside = (judgement.observed >= judgement.low) & (judgement.observed <= judgement.high)
        scores = np.where(inside & (judgement.turn != Turn.STARTED), 0.0, judgement.score)
        if not (self.orders.normal or self.orders.rules):
            return scores
        loud = np.flatnonzero(scores >= EPISODE_SCORE).tolist()
        scores[[at for at in loud if self._is_excused(judgement, at)]] = 0.0
        return scores

    def _is_excused(self, judgement: Judgement, at: int) -> bool:
        row, evidence = int(judgement.rows[at]), self._evidence(judgement, at)
        novelty = {"machine": self.machines[self.series["machine"][row]], "verdict": "anomaly", **evidence}
        return self.orders.is_normal(row, evidence["observed"]) or self.orders.forbid(novelty)

    def _machine_surprise(
        self, judgement: Judgement, machine: int, figures: dict[str, float], time: int
    ) -> list[Novelty]:
        contributors = [at for at in self._contributors(judgement, machine) if not self._is_excused(judgement, at)]
        record = novelties.start(
            self.machines[machine],
            "anomaly",
            "machine",
            time,
            **self._place(machine),
            statistic="joint",
            window_seconds=self.settings.window_seconds,
            expected=1.0,
            expected_low=0.0,
            expected_high=CALM,
            **figures,
            **self._explained(judgement, contributors),
        )
        record["text"] = novelties.machine_text(record)
        if len(contributors) < 2 or self.orders.is_calm(machine, record["observed"]) or self.orders.forbid(record):
            return []
        rows = judgement.rows[contributors]
        self.model.quiet.note(rows, judgement.score[contributors], time // self.settings.window_nano)
        self.whole[machine] = Whole(rows[:CONTRIBUTORS].tolist(), record)
        return [record]

    def _follow_machines(self, judgement: Judgement, time: int) -> list[Novelty]:
        """Updates and ends of what is told of machines."""
        told: list[Novelty] = []
        if self.joint is None or not self.whole:
            return told
        now = dict(zip(self.joint.machines.tolist(), self.joint.now.tolist(), strict=True))
        undone = set(judgement.rows[judgement.turn == Turn.UNDONE].tolist())
        for machine, novelty in list(self.whole.items()):
            if machine in now:
                is_undone = not undone.isdisjoint(novelty.rows)
                told += self._follow(machine, time, is_calm=now[machine] < CALM, undone=is_undone)
        return told

    def _follow(self, machine: int, time: int, *, is_calm: bool, undone: bool) -> list[Novelty]:
        """A machine is calm when no window surprises and none of its contributors is still in an episode."""
        rows, record = self.whole[machine]
        phases = self.model.windows.columns["phase"][rows]
        changed = bool(2 * (phases == Phase.CHANGED).sum() > len(rows))
        is_over = (time - record["since_unix_nano"]) // self.settings.window_nano >= self.settings.undo_windows
        settled = is_calm and not (phases == Phase.EPISODE).any()
        if record["verdict"] == "anomaly" and changed and settled:
            text = novelties.machine_changed_text(record)
            changed_record = novelties.later(record, "update", time, verdict="state_change", text=text)
            self.whole[machine] = Whole(rows, changed_record)
            return [changed_record]
        if not is_over and (changed if record["verdict"] == "state_change" else not settled):
            return []
        del self.whole[machine]
        verdict = "anomaly" if undone else record["verdict"]
        return [novelties.later(record, "end", time, verdict=verdict, text=novelties.machine_calm_text(record, time))]

    # Novelties of what is new

    def _tell_new_series(self, judgement: Judgement, known: int, window: int, time: int) -> list[Novelty]:
        """New series of machines that are old enough: one novelty a machine, and only where news are rare."""
        at = np.flatnonzero(judgement.rows >= known)
        machines = self.series["machine"][judgement.rows[at]]
        told = []
        for machine in np.unique(machines).tolist():
            lived = window - int(self.life["first"][machine])
            if lived >= self.settings.warmup_windows:
                told += self._tell_news(judgement, at[machines == machine], machine, lived, window)
        return told

    def _tell_news(self, judgement: Judgement, at: Ints, machine: int, lived: int, window: int) -> list[Novelty]:
        rows = judgement.rows[at]
        is_count = self.model.windows.columns["is_count"][rows] > 0
        unheard = GammaPoisson(np.full(len(at), JEFFREYS), np.full(len(at), lived + 1.0))
        scores = np.where(is_count, unheard.score(judgement.observed[at]), NEW_TEMPLATE_SCORE)
        if scores.max() < NEW_TEMPLATE_SCORE:
            return []
        rarity = self._news_score(machine, lived)
        self.life["news"][machine] += 1
        if rarity < NEWS_SCORE or any(int(row) in self.open for row in rows):
            return []
        score = float(scores.max()) if is_count.all() else rarity
        strongest_first = np.argsort(-scores, kind="stable")
        seen = float(judgement.observed[at][strongest_first[0]])
        return self._new_series(machine, rows[strongest_first], seen, window, score)

    def _news_score(self, machine: int, lived: int) -> float:
        """-ln of the probability of a window with new series: their number is Poisson, its rate Gamma (Jeffreys)."""
        quiet = (0.5 + int(self.life["news"][machine])) * float(np.log1p(1.0 / (lived + 1.0)))
        return -float(np.log(-np.expm1(-quiet)))

    def _new_series(self, machine: int, rows: Ints, observed: float, window: int, score: float) -> list[Novelty]:
        kind, series, name, unit = self._describe(int(rows[0]))
        never = {"expected": 0.0, "expected_low": 0.0, "expected_high": 0.0} if kind == "log" else {}
        novelty = novelties.start(
            self.machines[machine],
            "new_entity",
            str(kind),
            window * self.settings.window_nano,
            **self._place(machine),
            series=series,
            name=name,
            unit=unit,
            score=score,
            statistic="first_seen",
            window_seconds=self.settings.window_seconds,
            observed=observed,
            contributing=len(rows),
            **never,
        )
        novelty["text"] = novelties.new_series_text(novelty, len(rows) - 1)
        if self.orders.forbid(novelty):
            return []
        self.young.append((window + self.settings.warmup_windows, novelty))
        return [novelty]

    # Control events

    def _obey(self, control: Record, window: int) -> list[Novelty]:
        """Do what a person says, before `window` takes its step."""
        time = window * self.settings.window_nano
        match control["action"]:
            case "feedback":
                return self._call_normal(control, time)
            case "reset":
                return self._begin_anew(control, window, time)
            case "suppress":
                rule = self.orders.rules[control["rule"]] = Rule.of(control)
                return self._end(rule.matches, time, f"suppressed by rule {control['rule']}")
            case _:
                self.orders.rules.pop(control["rule"], None)
                return []

    def _call_normal(self, control: Record, time: int) -> list[Novelty]:
        """A novelty is none: it ends, if it hasn't, and what it told isn't told again."""
        machine = self.machine_index.get(control["machine"])
        if machine is None:
            return []
        what = "a person says that this is normal"
        if control["verdict"] == "silence":
            self.orders.gaps[machine] = max(
                self.orders.gaps.get(machine, 0), int(control["observed"] // self.settings.window_seconds)
            )
            if machine in self.silent:
                self.orders.excused.add(machine)
        elif control["verdict"] != "new_entity" and control["kind"] == "machine":
            self.orders.call_calm(machine, control["observed"])
        elif control["verdict"] != "new_entity":
            definition = self.definition_index.get(f"{control['kind']}{control['series']}", -1)
            row = self.row_index.get((machine, definition))
            if row is not None:
                low, high = self.orders.call_normal(row, control["observed"], control["expected"])
                what = f"{what}, as are values of {low:.4g} to {high:.4g}"
        ended = self._end(lambda novelty: novelty["id"] == control["novelty"], time, what)
        known = orjson.loads(control.get("told", "{}"))
        if not ended and known.get("time_unix_nano", time) < time:  # it was over
            ended = [novelties.ended(known, time, what)]
        return [record | {"feedback": NOT_ANOMALOUS} for record in ended]

    def _begin_anew(self, control: Record, window: int, time: int) -> list[Novelty]:
        """Some series begin as if they had never been seen, but aren't told as new."""
        machines = np.array([fnmatchcase(name, control["machine"]) for name in self.machines], bool)
        series = np.array([fnmatchcase(str(series), control["series"]) for _, series, _, _ in self.definitions], bool)
        rows = np.flatnonzero(machines[self.series["machine"]] & series[self.series["definition"]])
        if not len(rows):
            return []
        order = np.arange(len(self.model))
        is_count = self.model.windows.columns["is_count"][rows] > 0
        order[rows] = self.model.add(is_count, np.zeros(len(rows), np.int64), window)
        self.model.retain(order)
        anew = set(rows.tolist())
        self.orders.renumber({row: row for row in self.orders.normal if row not in anew})
        ids = {told.record["id"] for row, told in self.open.items() if row in anew}
        ids |= {told.record["id"] for told in self.whole.values() if not anew.isdisjoint(told.rows)}
        return self._end(lambda novelty: novelty["id"] in ids, time, "its series begins anew, a person says")

    def _end(self, wanted: Callable[[Novelty], bool], time: int, why: str) -> list[Novelty]:
        """End those that are told and not over, and forget them."""
        records = [told.record for told in self.open.values()] + [told.record for told in self.whole.values()]
        records += [*self.silent.values(), *(record for _, record in self.young)]
        ended = [record for record in records if wanted(record)]
        ids = {record["id"] for record in ended}
        self.open = {row: told for row, told in self.open.items() if told.record["id"] not in ids}
        self.whole = {machine: told for machine, told in self.whole.items() if told.record["id"] not in ids}
        self.silent = {machine: record for machine, record in self.silent.items() if record["id"] not in ids}
        self.young = [(due, record) for due, record in self.young if record["id"] not in ids]
        return [novelties.ended(record, time, why) for record in ended]

    def _compact(self, window: int) -> None:
        """Drop series that were not heard of for a long time and have nothing to tell."""
        heard = self.series["heard"] > window - self.settings.expire_windows
        heard[[*self.open, *(row for told in self.whole.values() for row in told.rows)]] = True
        if heard.all():
            return
        rows = np.flatnonzero(heard)
        self._renumber(rows)

    def _renumber(self, rows: Ints) -> None:
        self.model.retain(rows)
        self.series = {name: column[rows] for name, column in self.series.items()}
        used, self.series["definition"] = np.unique(self.series["definition"], return_inverse=True)
        self.definitions = [self.definitions[index] for index in used.tolist()]
        place = {int(row): at for at, row in enumerate(rows)}
        self.open = {place[row]: told for row, told in self.open.items()}
        self.whole = {
            machine: Whole([place[row] for row in rows], record) for machine, (rows, record) in self.whole.items()
        }
        self.orders.renumber(place)
        self._index_series()


_NAMED = ("name", "unit")
_SERIES_ARRAYS = ("machine", "definition", "heard")
_JOINT = "machine_"  # before the names of their model's columns
_MACHINE_ARRAYS = ("first", "last", "present", "missed", "news")


def _empty_header() -> dict[str, Any]:
    lists: dict[str, list[Any]] = {
        name: [] for name in ("machines", "inventories", "definitions", "open", "silent", "young")
    }
    return {**lists, "orders": {}, "budget": (), "first_window": None, "window": -1, "closed": -1}


def _empty_arrays() -> Arrays:
    arrays: Arrays = {name: np.zeros(0, np.int64) for name in (*_SERIES_ARRAYS, *_MACHINE_ARRAYS, "pending_lengths")}
    return arrays | {"pending": np.zeros(0, np.uint8)}


def _split(raw: NDArray[np.uint8], lengths: Ints) -> list[bytes]:
    ends = np.cumsum(lengths).tolist()
    data = raw.tobytes()
    return [data[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]
