"""Grouping accuracy of log templates on LogHub's labelled logs, ours beside drain3's, in one run.

Grouping accuracy (Zhu et al., "Tools and Benchmarks for Automated Log Parsing", 2019): the share of the lines whose
group holds exactly the lines of its true template. Lines are LogHub's `Content`. drain3 runs with its default
parameters: `drain3` with the masks of its own example configuration, `drain3_plain` without masks. How many lines a
second become templates is measured of each in Python, and of ours inside Spark, as CPU time of one core.

Usage: python -m tests.bench.templates.grouping [--logs FOLDER] [--report build/templates.json]
FOLDER may be a checkout of github.com/logpai/loghub.
"""

import argparse
import csv
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean

from drain3 import TemplateMiner
from drain3.masking import MaskingInstruction
from drain3.template_miner_config import TemplateMinerConfig

from jobs.enrichment.templates import template_of
from tests.bench.templates.speed import lines_per_second

# The sets whose lines were read while the masks were written. The others judge them.
READ = frozenset(
    ("Android", "Apache", "BGL", "HPC", "Linux", "OpenSSH", "OpenStack", "Spark", "Thunderbird"),
)

# drain3's examples/drain3.ini, the masks that its documentation recommends to start from.
DRAIN3_MASKS = (
    (r"((?<=[^A-Za-z0-9])|^)(([0-9a-f]{2,}:){3,}([0-9a-f]{2,}))((?=[^A-Za-z0-9])|$)", "ID"),
    (r"((?<=[^A-Za-z0-9])|^)(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})((?=[^A-Za-z0-9])|$)", "IP"),
    (r"((?<=[^A-Za-z0-9])|^)([0-9a-f]{6,} ?){3,}((?=[^A-Za-z0-9])|$)", "SEQ"),
    (r"((?<=[^A-Za-z0-9])|^)([0-9A-F]{4} ?){4,}((?=[^A-Za-z0-9])|$)", "SEQ"),
    (r"((?<=[^A-Za-z0-9])|^)(0x[a-f0-9A-F]+)((?=[^A-Za-z0-9])|$)", "HEX"),
    (r"((?<=[^A-Za-z0-9])|^)([\-\+]?\d+)((?=[^A-Za-z0-9])|$)", "NUM"),
    (r"(?<=executed cmd )(\".+?\")", "CMD"),
)

Grouping = Callable[[list[str]], list[object]]


def ours(lines: list[str]) -> list[object]:
    """Each line's template."""
    return [template_of(line) for line in lines]


def drain3(lines: list[str], masks: Iterable[tuple[str, str]] = DRAIN3_MASKS) -> list[object]:
    """The cluster that each line is in once all lines are learned."""
    config = TemplateMinerConfig()
    config.masking_instructions = [MaskingInstruction(pattern, name) for pattern, name in masks]
    miner = TemplateMiner(config=config)
    return [miner.add_log_message(line)["cluster_id"] for line in lines]


def drain3_plain(lines: list[str]) -> list[object]:
    """drain3 without masks."""
    return drain3(lines, masks=())


def grouping_accuracy(found: Iterable[object], truth: Iterable[object]) -> float:
    """Share of the lines whose found group is exactly one true group."""
    by_found, by_truth = defaultdict(set), defaultdict(set)
    for line, (group, label) in enumerate(zip(found, truth, strict=True)):
        by_found[group].add(line)
        by_truth[label].add(line)
    exact = {frozenset(lines) for lines in by_truth.values()}
    correct = sum(len(lines) for lines in by_found.values() if frozenset(lines) in exact)
    return correct / sum(map(len, by_found.values()))


MINERS: dict[str, Grouping] = {"ours": ours, "drain3": drain3, "drain3_plain": drain3_plain}


def read(log: Path) -> tuple[list[str], list[str]]:
    """The lines of one `*_structured.csv`, and the true template of each."""
    with log.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["Content"] for row in rows], [row["EventTemplate"] for row in rows]


def measure(lines: list[str], truth: list[str]) -> dict[str, dict[str, float]]:
    """Accuracy and lines a second of each miner."""
    return {name: _measure(group, lines, truth) for name, group in MINERS.items()}


def _measure(group: Grouping, lines: list[str], truth: list[str]) -> dict[str, float]:
    start = time.perf_counter()
    found = group(lines)
    seconds = time.perf_counter() - start
    return {"accuracy": round(grouping_accuracy(found, truth), 4), "lines_per_second": round(len(lines) / seconds)}


def means(sets: dict[str, dict[str, dict[str, float]]]) -> dict[str, float]:
    """The mean accuracy of each miner over some sets."""
    return {name: round(mean(found[name]["accuracy"] for found in sets.values()), 4) for name in MINERS} if sets else {}


def main() -> None:
    shared = Path(os.environ.get("KAPPA_SHARED", "../shared"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=Path, default=shared / "data" / "loghub", help="a folder a log set")
    parser.add_argument("--report", type=Path, default=Path("build/templates.json"))
    options = parser.parse_args()
    logs = {log.parent.name: read(log) for log in sorted(options.logs.glob("*/*_structured.csv"))}
    if not logs:
        parser.error(f"--logs: {options.logs} has no folder with a *_structured.csv; give one of LogHub's form")
    sets = {name: measure(*log) for name, log in logs.items()}
    report = {
        "metric": "grouping accuracy",
        "mean": means(sets),
        "mean_of_sets_not_read": means({name: found for name, found in sets.items() if name not in READ}),
        "sets": sets,
        "spark_lines_per_cpu_second": lines_per_second({name: lines for name, (lines, _) in logs.items()}),
    }
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(json.dumps(report, indent=2) + "\n")
    print(options.report.read_text())


if __name__ == "__main__":
    main()
