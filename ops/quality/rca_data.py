"""Recorded faults with known causes: Sock Shop and PetShop, each file as its publishers have it."""

from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pandas as pd

from infra.errors import UserError

Values = dict[str, dict[str, float]]  # of one window, by machine and series
Dependencies = Mapping[str, list[str]]  # by machine: what it needs

# Of Sock Shop (github.com/microservices-demo), by its documentation; the recordings don't say it.
SOCKSHOP_CALLS = {
    "front-end": ["carts", "catalogue", "orders", "user"],
    "orders": ["carts", "orders-db", "payment", "shipping", "user"],
    "carts": ["carts-db"],
    "catalogue": ["catalogue-db"],
    "user": ["user-db"],
    "shipping": ["rabbitmq"],
    "queue-master": ["rabbitmq"],
}
PETSHOP_UNITS = {"availability": "%"}  # of the other metrics none is known
SOCKSHOP_METRICS = {"cpu": "cpu", "mem": "memory", "lod": "requests", "lat": "latency"}


class Case(NamedTuple):
    """A recorded fault: its windows, where it was put in, and where it was seen, if that is known.

    `before` are windows of the same day without a fault.
    """

    name: str
    before: list[Values]
    windows: list[Values]
    cause: str
    target: str | None


class Recording(NamedTuple):
    """Windows of normal operation, and faults that each follow them."""

    normal: list[Values]
    cases: list[Case]


class System(NamedTuple):
    """What was recorded of one system."""

    window_seconds: float
    dependencies: Dependencies
    recordings: list[Recording]


def load(folder: Path) -> dict[str, System]:
    """The systems in a folder that has sockshop/SERVICE-FAULT/RUN/, petshop/TRAFFIC/, or both.

    Raises:
        UserError: it has neither.
    """
    found = {}
    if runs := sorted((folder / "sockshop").glob("*-*/*")):
        found["sockshop"] = System(1.0, SOCKSHOP_CALLS, [_sockshop(run) for run in runs])
    if traffics := sorted((folder / "petshop").glob("*/graph.csv")):
        found["petshop"] = _petshop([path.parent for path in traffics])
    if not found:
        raise UserError(f"--rca {folder}: no sockshop/SERVICE-FAULT/RUN and no petshop/TRAFFIC/graph.csv in it")
    return found


def _sockshop(run: Path) -> Recording:
    normal, fault = (_sockshop_windows(_file(run, part)) for part in ("normal", "anomalous"))
    name = run.parent.name
    return Recording(normal, [Case(f"{name}/{run.name}", [], fault, name.rpartition("-")[0], None)])


def _sockshop_windows(path: Path) -> list[Values]:
    rows = pd.read_csv(path).drop(columns="time")
    return _windows(rows, [_sockshop_series(column) for column in rows.columns])


def _sockshop_series(column: str) -> tuple[str, str]:
    """`carts_lat_50` is the median latency of carts."""
    machine, metric, *rest = column.split("_")
    return machine, " ".join([SOCKSHOP_METRICS[metric], *rest])


def _petshop(traffics: list[Path]) -> System:
    graphs = [pd.read_csv(traffic / "graph.csv", index_col=0) for traffic in traffics]
    needed: dict[str, list[str]] = {}
    for graph in graphs:
        for caller, row in graph.iterrows():
            needed[str(caller)] = sorted({*needed.get(str(caller), []), *row.index[row > 0]})
    recordings = [Recording(_petshop_windows(_file(t / "noissue", "metrics")), list(_issues(t))) for t in traffics]
    return System(300.0, needed, recordings)


def _issues(traffic: Path) -> Iterator[Case]:
    """All of one day; of each the first window ends before the fault, so it tells the others what that day was like."""
    paths = sorted(traffic.glob("*/issue_*"), key=lambda path: _target(path)["target"]["timestamp"])
    recorded = [_petshop_windows(_file(path, "metrics")) for path in paths]
    for at, path in enumerate(paths):
        told = _target(path)
        name = f"{traffic.name}/{path.parent.name}/{path.name}"
        before = [windows[0] for other, windows in enumerate(recorded) if other != at]
        yield Case(name, before, recorded[at], told["root_cause"]["node"], told["target"]["node"])


def _target(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads((path / "target.json").read_bytes())
    return found


def _petshop_windows(path: Path) -> list[Values]:
    rows = pd.read_csv(path, header=[0, 1, 2], index_col=0)
    names = rows.columns.to_frame().to_numpy(str).tolist()
    return _windows(rows, [(machine, f"{metric} {statistic}") for machine, metric, statistic in names])


def _windows(rows: pd.DataFrame, series: list[tuple[str, str]]) -> list[Values]:
    found = []
    for row in rows.to_numpy(float).tolist():
        window: Values = {}
        for (machine, name), value in zip(series, row, strict=True):
            if isfinite(value):
                window.setdefault(machine, {})[name] = value
        found.append(window)
    return found


def _file(folder: Path, name: str) -> Path:
    """A CSV file, compressed or not. Raises UserError if it isn't there."""
    for path in (folder / f"{name}.csv.gz", folder / f"{name}.csv"):
        if path.exists():
            return path
    raise UserError(f"--rca: {folder / name}.csv.gz is missing")
