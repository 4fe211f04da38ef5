"""SMD, or a folder of its form: the detector beside peers, and beside what TSB-AD has published."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jobs.detector.model.arrays import Floats
from ops.quality import blame, smd, smd_scores, tsb_ad
from ops.quality.peers import PEERS

# The machines of SMD on which constants of the detector were chosen; all others only judged them.
CHOSE = ("machine-1-3", "machine-1-4", "machine-1-6", "machine-1-8")


def measure(folder: Path, interval: float, peers: Sequence[str]) -> dict[str, Any]:
    """The detector, as `ours`, and the peers; see `_figures`."""
    machines = smd.load(folder)
    ours = smd.ours(machines, interval)
    shipped = smd_scores.found(machines, ours.alerts, interval)
    blamed = {machine.name: blame.read(folder, machine.name) for machine in machines}
    interpretation = blame.hit_rates(blamed, ours.alerts, ours.ranks)
    figures = _figures(machines, ours.scores, interval)
    found = {"ours": figures | {"shipped": shipped, "interpretation": interpretation}}
    return found | {name: _of_peer(machines, smd.peer(machines, PEERS[name]), interval) for name in peers}


def beside_published(folder: Path, published: Path, figures: Mapping[str, Any]) -> dict[str, Any]:
    """VUS-PR of `figures`, which hold those of SMD, beside what TSB-AD has published on the same files."""
    volumes = {name: one["vus_pr"] for name, one in figures["smd"]["ours"]["machines"].items()}
    return tsb_ad.beside(tsb_ad.load(published), smd.load(folder), volumes)


def _of_peer(machines: Sequence[smd.Machine], scores: dict[str, Floats], interval: float) -> dict[str, Any]:
    smoothed = _figures(machines, smd_scores.smoothed(scores), interval)
    return _figures(machines, scores, interval) | {"smoothed": smoothed}


def _figures(machines: Sequence[smd.Machine], scores: Mapping[str, Floats], interval: float) -> dict[str, Any]:
    """Means of all machines, of those that chose constants and of those that judged them; and each machine's own."""
    by_machine = smd_scores.areas(machines, scores)
    halves = {
        "of_those_that_chose": [name for name in by_machine if name in CHOSE],
        "of_those_that_judged": [name for name in by_machine if name not in CHOSE],
    }
    means = {half: _means([by_machine[name] for name in names]) for half, names in halves.items() if names}
    figures: dict[str, Any] = _means(list(by_machine.values())) | smd_scores.at_budget(machines, scores, interval)
    return figures | means | {"machines": by_machine}


def _means(figures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([one[name] for one in figures])) for name in figures[0]}
