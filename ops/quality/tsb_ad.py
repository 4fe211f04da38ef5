"""What TSB-AD (Liu and Paparrizos 2024) has published: VUS-PR of 23 detectors on files that are SMD's test sets."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from infra.errors import UserError
from ops.quality.smd import Machine
from ops.quality.vus import events_of

TABLE = "multi_VUS-PR.csv"
_FACTS = ("ts_len", "anomaly_len", "num_anomaly")  # by which a file is known
_NO_DETECTORS = ("file", *_FACTS, "avg_anomaly_len", "anomaly_ratio", "point_anomaly", "seq_anomaly")


def load(folder: Path) -> pd.DataFrame:
    """The published table, one row a file.

    Raises:
        UserError: it isn't there.
    """
    path = folder / TABLE
    if not path.exists():
        raise UserError(f"--tsb-ad {folder}: no {TABLE} in it; give the folder with TSB-AD's published results")
    return pd.read_csv(path)


def beside(published: pd.DataFrame, machines: Sequence[Machine], ours: Mapping[str, float]) -> dict[str, Any]:
    """Means over the machines that are among the published files: ours, and all others', the best first.

    `ours` is VUS-PR by machine.
    """
    files = {machine.name: row for machine in machines if (row := _file_of(published, machine)) is not None}
    if not files:
        return {"machines": []}
    table = published.loc[list(files.values())].drop(columns=[*_NO_DETECTORS], errors="ignore")
    means = table.mean().sort_values(ascending=False)
    return {
        "machines": sorted(files),
        "ours": float(np.mean([ours[name] for name in files])),
        "published": {str(name): float(value) for name, value in means.items()},
    }


def _file_of(published: pd.DataFrame, machine: Machine) -> int | None:
    """The row of the file with this machine's labels: as long, with as many events of as many rows."""
    facts = (len(machine.labels), int(machine.labels.sum()), len(events_of(machine.labels)))
    is_smd = published["file"].str.contains("_SMD_")
    same = np.logical_and.reduce([published[name] == fact for name, fact in zip(_FACTS, facts, strict=True)])
    rows = published.index[is_smd & same].tolist()
    return int(rows[0]) if rows else None
