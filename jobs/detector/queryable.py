"""What the running detector answers of a machine: `GET /state?machine=&series=`."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from jobs.detector.model import outlook
from jobs.detector.model.arrays import Columns, Ints
from jobs.detector.model.protocol import Phase
from jobs.detector.model.scales import Scales
from jobs.detector.model.window_model import WindowModel
from jobs.detector.population.series import Definition
from jobs.detector.settings import DetectorSettings
from jobs.runtime.queryable import Arguments, InvalidQuestionError, NotKnownError, Question, SavedShard

View = dict[str, Any]

MOST_SERIES = 2_000  # of a machine, in one answer


class StateQuestion:
    """Answers with the models of a machine's series, as they are after the newest batch."""

    def __init__(self, settings: DetectorSettings) -> None:
        self.settings = settings
        self._model_columns = set(Scales(settings).dump())

    def question(self) -> Question:
        """As the runtime takes it."""
        return Question("/state", self.answer)

    def answer(self, shards: Sequence[SavedShard], arguments: Arguments) -> View:
        """The state of `machine`, or of its `series` alone. Raises InvalidQuestionError and NotKnownError."""
        name, series = arguments.get("machine"), arguments.get("series")
        if not name:
            raise InvalidQuestionError("machine: is missing; ask /state?machine=NAME&series=NAME, or without series")
        for shard in shards:
            if (number := _number(shard, name)) is not None:
                return self._machine(shard, number, series)
        raise NotKnownError(f"machine {name!r}: the detector doesn't know it")

    def _machine(self, shard: SavedShard, number: int, series: str | None) -> View:
        rows = np.flatnonzero(shard.column("machine") == number)
        definitions = [Definition(*one) for one in shard.value("definitions")]
        numbers = shard.column("definition")[rows]
        if series is not None:
            rows = rows[[definitions[at].series == series for at in numbers.tolist()]]
            numbers = shard.column("definition")[rows]
            if not len(rows):
                raise NotKnownError(f"series {series!r}: the detector doesn't know it on this machine")
        rows, numbers = rows[:MOST_SERIES], numbers[:MOST_SERIES]
        described = [definitions[at] for at in numbers.tolist()]
        models = self._series(shard, rows, described, with_season=series is not None)
        return {**self._of_machine(shard, number), "shard": shard.number, "series": list(models)}

    def _of_machine(self, shard: SavedShard, number: int) -> View:
        overrides, end_of = shard.value("overrides"), self.settings.end_of
        about = shard.value("machines")[number]
        return {
            "machine": about,
            "window_seconds": self.settings.window_seconds,
            "judged_until_unix_nano": end_of(shard.value("window")),
            "first_seen_unix_nano": end_of(int(shard.column("first")[number])),
            "last_seen_unix_nano": end_of(int(shard.column("last")[number])),
            "longest_gap_windows": int(shard.column("longest_gap")[number]),
            "inventory": shard.value("inventories")[number],
            "calm_score": dict(overrides["calm"]).get(number),
            "usual_gap_windows": dict(overrides["gaps"]).get(number),
            "rules": {name: rule for name, rule in overrides["rules"] if _concerns(rule, about)},
        }

    def _series(
        self, shard: SavedShard, rows: Ints, described: Sequence[Definition], *, with_season: bool
    ) -> Iterator[View]:
        scales = Scales(self.settings, self._model(shard, rows))
        model = scales.windows
        assert isinstance(model, WindowModel)
        band, figures = outlook.level(model)._asdict(), scales.figures()
        normal = {row: ends for row, *ends in shard.value("overrides")["normal"]}
        opened = {row: novelty for row, _, novelty in shard.value("open")}
        until, heard = scales.cooldown.columns["until"], shard.column("heard")[rows]
        for at, (row, definition) in enumerate(zip(rows.tolist(), described, strict=True)):
            hours = outlook.season(model, at) if with_season else []
            yield {
                "series": definition.series,
                "kind": definition.kind,
                "unit": definition.unit,
                "phase": Phase(int(model.state.phase[at])).name.lower(),
                "expected": _in_own_unit(definition, {name: float(one[at]) for name, one in band.items()}),
                "season": [{"hour": hour["hour"], **_in_own_unit(definition, hour)} for hour in hours],
                "last_seen_unix_nano": self.settings.end_of(int(heard[at])),
                "quiet_until_unix_nano": self.settings.end_of(int(until[at])) if until[at] else None,
                "called_normal": normal.get(row),
                "novelty": opened.get(row),
                "figures": {name: values[at] for name, values in figures.items()},
            }

    def _model(self, shard: SavedShard, rows: Ints) -> Columns:
        """The columns of the model with these rows only; a column may have several numbers a row."""
        count = max(len(shard.column("machine")), 1)
        columns = {name: shard.column(name) for name in self._model_columns & {*shard.columns}}
        return {name: one.reshape(count, len(one) // count)[rows].reshape(-1) for name, one in columns.items()}


def _number(shard: SavedShard, machine: str) -> int | None:
    """The number of a machine; one that was dropped has none."""
    dropped = shard.column("dropped")
    known = (number for number, name in enumerate(shard.value("machines")) if name == machine and not dropped[number])
    return next(known, None)


def _in_own_unit(definition: Definition, band: Mapping[str, float]) -> View:
    """What the model expects of a series, as people know it."""
    expected, *ends = (definition.complement(band[name]) for name in ("expected", "low", "high"))
    return {"expected": expected, "low": min(ends), "high": max(ends)}


def _concerns(rule: Mapping[str, Any], machine: str) -> bool:
    """Whether a rule may suppress novelties of a machine."""
    return fnmatchcase(machine, rule.get("machine", "*"))
