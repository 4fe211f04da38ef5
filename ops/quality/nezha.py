"""Nezha (Yu and others 2023): a system of 46 pods, its metrics a minute and log lines, faults put in one by one.

The records that the statistics job would write of it go through the detector's own fold. Logs were kept for three
minutes a fault only; so a pod's logs are a machine of their own, which is there in those minutes, and its silence
in between says nothing.
"""

import csv
import gzip
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pandas as pd

from infra.contract.columnar import to_columns
from infra.errors import UserError
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import fold
from jobs.enrichment.templates import template_of

MINUTE = 60
PATIENCE = 180  # s after a fault began
AFTERMATH = 600  # s after a fault in which a novelty is no false alarm
TIME_COLUMNS = ("Time", "TimeStamp", "PodName")
LOGS = " (logs)"
WRAPPED = re.compile(r'\{"log":"(.*?)(?:\\n)?","stream":', re.DOTALL)

Record = dict[str, Any]
Minutes = dict[int, dict[str, list[Record]]]  # by window number and machine: its statistics


class Fault(NamedTuple):
    """When (s since the epoch), in which pod, what."""

    time: int
    pod: str
    kind: str


class Recording(NamedTuple):
    faults: list[Fault]
    metrics: Minutes
    logs: Minutes


def load(folder: Path) -> Recording:
    """All days of a folder with faulty-DAY/DAY-fault_list.json, faulty-DAY/metric/ and log/, fault_free/DAY/log/.

    Raises:
        UserError: there is none.
    """
    lists = sorted(folder.glob("faulty-*/*-fault_list.json"))
    if not lists:
        raise UserError(f"--nezha {folder}: no faulty-DAY/DAY-fault_list.json in it; give a folder with Nezha's files")
    faults = [fault for path in lists for fault in _faults(path)]
    metrics = sorted(folder.glob("faulty-*/metric/*_metric.csv.gz"))
    logs = sorted([*folder.glob("faulty-*/log/*_log.csv.gz"), *folder.glob("fault_free/*/log/*_log.csv.gz")])
    return Recording(sorted(faults), _metrics(metrics), _logs(logs))


def _faults(path: Path) -> Iterator[Fault]:
    # The file's time stamps are of another time zone than its times, in some rows.
    for fault in chain.from_iterable(orjson.loads(path.read_bytes()).values()):
        time = datetime.fromisoformat(fault["inject_time"]).replace(tzinfo=UTC)
        yield Fault(int(time.timestamp()), fault["inject_pod"], fault["inject_type"])


def _metrics(paths: list[Path]) -> Minutes:
    minutes: Minutes = defaultdict(dict)
    for path in paths:
        rows = pd.read_csv(path)
        names = [name for name in rows.columns if name not in TIME_COLUMNS]
        values = rows[names].to_numpy(float)
        for stamp, pod, row in zip(rows["TimeStamp"].tolist(), rows["PodName"].tolist(), values, strict=True):
            known = zip(names, row.tolist(), np.isfinite(row).tolist(), strict=True)
            minutes[stamp // MINUTE + 1][pod] = [_metric(name, value) for name, value, finite in known if finite]
    return minutes


def _metric(name: str, value: float) -> Record:
    return {"kind": "metric", "series": name, "name": name, "unit": "1", "count": 1, "mean": value}


def _logs(paths: list[Path]) -> Minutes:
    counts: dict[int, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for path in paths:
        with gzip.open(path) as raw:
            for row in csv.DictReader(TextIOWrapper(raw, encoding="utf-8")):
                minute = int(row["TimeUnixNano"]) // (MINUTE * 10**9) + 1
                if minute < 0:  # a line whose time the collector could not read: enrichment would reject it
                    continue
                counts[minute][row["PodName"] + LOGS][_template(row["Log"])] += 1
    return {minute: {pod: _log(counted) for pod, counted in pods.items()} for minute, pods in counts.items()}


def _template(line: str) -> str:
    """The container runtime has wrapped the line in JSON; of lines that it cut that can't be read back."""
    match = WRAPPED.match(line)
    return template_of(match[1] if match else line)


def _log(counted: Counter[str]) -> list[Record]:
    lines = sorted(counted.items())
    return [{"kind": "log", "series": template, "name": "log", "count": count} for template, count in lines]


def measure(recording: Recording) -> dict[str, dict[str, float]]:
    """By source of evidence: see `figures`."""
    both = {
        minute: recording.metrics.get(minute, {}) | recording.logs.get(minute, {})
        for minute in recording.metrics.keys() | recording.logs.keys()
    }
    return {
        "metrics": figures(recording.faults, novelties(recording.metrics)),
        "metrics_and_logs": figures(recording.faults, novelties(both)),
    }


def novelties(minutes: Minutes) -> list[Record]:
    """What the detector finds in these statistics, each novelty once, when it starts."""
    found = fold(None, list(_records(minutes)), DetectorSettings(window_seconds=float(MINUTE)))[1]
    return [novelty for novelty in found if novelty["phase"] == "start" and not _is_cut(novelty)]


def _is_cut(novelty: Record) -> bool:
    """A silence of logs: the recording ends there."""
    return bool(novelty["verdict"] == "silence" and novelty["machine"].endswith(LOGS))


def _records(minutes: Minutes) -> Iterator[bytes]:
    for minute, machines in sorted(minutes.items()):
        end = minute * MINUTE * 10**9
        window = {
            "kind": "tumbling",
            "size_seconds": float(MINUTE),
            "start_unix_nano": end - MINUTE * 10**9,
            "end_unix_nano": end,
        }
        for machine, statistics in sorted(machines.items()):
            yield orjson.dumps({"machine": machine, "window": window, "statistics": to_columns(statistics)})
        yield orjson.dumps({"watermark_unix_nano": end})


def figures(faults: list[Fault], novelties: list[Record]) -> dict[str, float]:
    """Faults with a novelty of their pod within PATIENCE, those whose pod came first, and false alarms an hour.

    The first is the earliest; of the same minute the most surprising.
    """
    ranked = sorted((novelty["time_unix_nano"] / 1e9, -novelty["score"], novelty["machine"]) for novelty in novelties)
    pods = [(time, machine.removesuffix(LOGS)) for time, _, machine in ranked]
    seen = [[pod for time, pod in pods if fault.time < time <= fault.time + PATIENCE] for fault in faults]
    false = sum(not any(fault.time < time <= fault.time + AFTERMATH for fault in faults) for time, _ in pods)
    hours = max(pods[-1][0] - pods[0][0], 3600.0) / 3600.0 if pods else 1.0
    return {
        "faults": len(faults),
        "found_within_3_minutes": sum(fault.pod in after for fault, after in zip(faults, seen, strict=True)),
        "right_pod_first": sum(after[:1] == [fault.pod] for fault, after in zip(faults, seen, strict=True)),
        "false_alarms_per_hour": false / hours,
    }
