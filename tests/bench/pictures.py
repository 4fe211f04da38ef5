"""Draws the machine of SMD on which the detector is best, and the one on which it is worst, with what it alerted.

Example: python -m tests.bench.pictures ../shared/data/smd
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # files only: no screen is needed
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from jobs.detector.model.arrays import Bools, Floats
from ops.quality import smd, smd_scores
from ops.quality.vus import events_of

OUT = Path("docs/history/pictures")
TRUTH, SCORE, RIGHT, WRONG = "#f3c6c0", "#37506d", "#2a7d46", "#c0392b"


def draw(machine: smd.Machine, scores: Floats, alerts: Bools, area: float) -> None:
    """Write the machine's picture: its score a minute, the labelled incidents, and the alerts."""
    figure, axes = plt.subplots(figsize=(11, 3), dpi=110, layout="constrained")
    _show(axes, machine, scores, alerts)
    axes.set_title(f"{machine.name}: AUC-PR {area:.2f}", loc="left")
    figure.savefig(OUT / f"{machine.name}.png", metadata={"Software": None})
    plt.close(figure)


def _show(axes: Axes, machine: smd.Machine, scores: Floats, alerts: Bools) -> None:
    for first, end in events_of(machine.labels):
        axes.axvspan(first, end, color=TRUTH, label="labelled incident")
    axes.plot(scores, color=SCORE, linewidth=0.6, label="score of the machine")
    for inside, color, label in ((True, RIGHT, "alert in an incident"), (False, WRONG, "false alarm")):
        at = (alerts & (machine.labels == inside)).nonzero()[0]
        axes.plot(at, [-0.06 * scores.max()] * len(at), "^", color=color, markersize=5, label=label)
    axes.set(xlabel="minutes of the test", xlim=(0, len(scores)))
    named = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    axes.legend(named.values(), named.keys(), loc="upper right", fontsize="small", ncols=4, framealpha=0.9)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("smd", type=Path, help="a folder with the files of SMD")
    machines = smd.load(parser.parse_args().smd)
    ours = smd.ours(machines)
    areas = {name: one["auc_pr"] for name, one in smd_scores.areas(machines, ours.scores).items()}
    OUT.mkdir(parents=True, exist_ok=True)
    ranked = sorted(machines, key=lambda machine: areas[machine.name])
    for machine in (ranked[-1], ranked[0]):
        draw(machine, ours.scores[machine.name], ours.alerts[machine.name], areas[machine.name])
        print(f"{OUT / machine.name}.png: AUC-PR {areas[machine.name]:.3f}")


if __name__ == "__main__":
    main()
