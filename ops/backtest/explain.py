"""Why the detector said a novelty: what the model expected, and what would have been said in other circumstances.

What the record says is taken as it is. The rest comes from a replay of the novelty's partition: the model as it was
before the window in question, the same with other alarm budgets, and the same without what operators have said.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import orjson

from infra.contract.watermarks import watermark_of
from jobs.detector.novelties import Novelty
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import Shard
from ops.backtest.records import Batch
from ops.backtest.replay import Alert, Run, Variant

BUDGETS = (0.1, 0.5, 1.0, 2.0, 10.0)  # times the alarms a day that are set
AS_IT_IS, WITHOUT_ORDERS = "as it is", "without orders"
AFTER = 12  # windows after the novelty's first one that are looked at

# What each statistic compares the value with.
COMPARED = {
    "level": "the usual values of the series",
    "step": "the window before",
    "season": "the usual values at this time of the day or week",
    "sustained_deviation": "the usual values, and it lasts",
    "joint": "what the machine's series usually do together",
    "presence": "how regularly the machine sends",
    "first_seen": "all that was seen before",
    "retired": "the inventory",
}


class Explanation(NamedTuple):
    """What a novelty's record and a replay say.

    `models` are the model's figures of each contributing series just before the novelty's first window. The alerts are
    those of its machine near that time, None where there would have been none: as the replay has it, by alarms a day,
    and without what operators have said.
    """

    novelty: Novelty
    models: dict[str, dict[str, Any]]
    replayed: Alert | None
    budgets: dict[float, Alert | None]
    unordered: Alert | None
    learned_unix_nano: int | None  # end of the first window that was replayed


def variants(settings: DetectorSettings) -> list[Variant]:
    """What the replay is run with: as it is, with each other budget, and without orders."""
    found = [Variant(AS_IT_IS, settings), Variant(WITHOUT_ORDERS, settings, obeys=False)]
    for times in BUDGETS:
        if times != 1.0:
            changed = settings.model_copy(update={"alarms_per_day": settings.alarms_per_day * times})
            found.append(Variant(_name(times), changed))
    return found


def explain(
    novelty: Novelty,
    batches: Iterable[Batch],
    settings: DetectorSettings,
    progress: Callable[[int], object] = lambda _: None,
) -> Explanation:
    """Replay the records of a partition, which end some windows after the novelty's first record.

    `progress` is called with how many of them are read.
    """
    run = Run(variants(settings))
    models: dict[str, dict[str, Any]] = {}
    is_before, read = True, 0
    for batch in batches:
        before, rest = _split(batch, novelty["time_unix_nano"]) if is_before else ([], batch)
        run.feed(before)
        if is_before and rest:
            is_before, models = False, _figures(run.shards[AS_IT_IS], novelty)
        run.feed(rest)
        read += len(batch)
        progress(read)
    found = run.found()
    said = {name: _of(novelty, alerts, AFTER * settings.window_nano) for name, alerts in found.alerts.items()}
    budgets = {settings.alarms_per_day * times: said[_name(times)] for times in BUDGETS}
    return Explanation(novelty, models, said[AS_IT_IS], budgets, said[WITHOUT_ORDERS], found.first_unix_nano)


def _name(times: float) -> str:
    return AS_IT_IS if times == 1.0 else f"{times:g} times the budget"


def _split(batch: Batch, time: int) -> tuple[Batch, Batch]:
    """A batch before, and from, the watermark that closes the window that ends at `time`."""
    for at, value in enumerate(batch):
        watermark = watermark_of(orjson.loads(value)) if b"watermark_unix_nano" in value else None
        if watermark is not None and watermark >= time:
            return batch[:at], batch[at:]
    return batch, []


def _figures(shard: Shard, novelty: Novelty) -> dict[str, dict[str, Any]]:
    """The model's figures of each series that the novelty names, as they are now."""
    detector = shard.detector
    machine = detector.machines.number(novelty["machine"])
    if machine is None:
        return {}
    columns, found = detector.model.figures(), {}
    for series in series_of(novelty):
        rows = (detector.series.row(machine, kind, series) for kind in ("metric", "log"))
        row = next((one for one in rows if one is not None and one < len(detector.model)), None)
        if row is not None:
            found[series] = {
                name: values[row] for name, values in columns.items() if len(values) == len(detector.model)
            }
    return found


def series_of(novelty: Novelty) -> list[str]:
    """The series that a novelty names, the leading one first."""
    named = [novelty.get("series"), *(one["series"] for one in novelty.get("contributors", ()))]
    return list(dict.fromkeys(one for one in named if one))


def _of(novelty: Novelty, alerts: Sequence[Alert], near: int) -> Alert | None:
    """The same novelty; else the alert of its machine that begins nearest to it."""
    own = [alert for alert in alerts if alert.machine == novelty["machine"]]
    same = next((alert for alert in own if alert.id == novelty["id"]), None)
    if same is not None:
        return same
    begin = novelty["time_unix_nano"]
    close = [alert for alert in own if abs(alert.time_unix_nano - begin) <= near]
    return min(close, key=lambda alert: (abs(alert.time_unix_nano - begin), alert.id), default=None)
