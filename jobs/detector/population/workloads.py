"""Machines that come and go as members of a workload (pods of a Deployment, say) are judged as that workload.

The workload is a machine of its own, by its name. Of each metric it has the mean over its members, which a change of
their number leaves as it is; of each log template it has the lines of all. Nothing is kept of a member: that one is
replaced by another is no novelty, and costs no state.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from infra.contract.sharding import shard_key

Record = Mapping[str, Any]
Label = tuple[str, str]  # kind and series

LABELS = ("kind", "series", "name", "unit", "example")


def by_workload(records: Sequence[Record]) -> tuple[list[Record], set[str]]:
    """A window's records, those of all members of a workload as one; and the names of these members.

    The order in which members' records came doesn't show.
    """
    members: dict[str, list[Record]] = {}
    found: list[Record] = []
    for record in records:
        judged = shard_key(record["machine"], record.get("inventory"))
        if judged == record["machine"]:
            found.append(record)
        else:
            members.setdefault(judged, []).append(record)
    found += [_of_members(name, members[name]) for name in sorted(members)]
    return found, {record["machine"] for of_one in members.values() for record in of_one}


def _of_members(workload: str, records: list[Record]) -> Record:
    records.sort(key=lambda one: (one["machine"], one.get("part", 0)))
    return {"machine": workload, "inventory": _common_facts(records), "statistics": _together(records)}


def _common_facts(records: Sequence[Record]) -> dict[str, Any]:
    """The facts that all members share."""
    first, *others = (record["inventory"] for record in records)
    return {name: fact for name, fact in first.items() if all(one.get(name) == fact for one in others)}


def _together(records: Sequence[Record]) -> dict[str, list[Any]]:
    """The statistics of all members as those of one machine: means of means, sums of counts."""
    number: dict[Label, int] = {}
    labels: list[tuple[Any, ...]] = []
    at = np.concatenate([_numbered(record["statistics"], number, labels) for record in records])
    counts = np.concatenate([np.array(record["statistics"]["count"], np.float64) for record in records])
    means = np.concatenate([_means(record["statistics"]) for record in records])
    known = np.isfinite(means)
    total = np.bincount(at[known], means[known], minlength=len(number))
    of = np.bincount(at[known], minlength=len(number))
    with np.errstate(invalid="ignore"):
        mean = total / of  # NaN where no member has a value
    columns = dict(zip(LABELS, map(list, zip(*labels, strict=True)), strict=True))
    return columns | {"count": np.bincount(at, counts).tolist(), "mean": mean.tolist()}


def _numbered(statistics: Record, number: dict[Label, int], labels: list[tuple[Any, ...]]) -> np.ndarray[Any, Any]:
    """The number of each row's series, new ones included."""
    pairs = list(zip(statistics["kind"], statistics["series"], strict=True))
    for row, pair in enumerate(pairs):
        if pair not in number:
            number[pair] = len(number)
            labels.append((*pair, *(statistics[name][row] if name in statistics else None for name in LABELS[2:])))
    return np.array([number[pair] for pair in pairs], np.int64)


def _means(statistics: Record) -> np.ndarray[Any, Any]:
    if "mean" not in statistics:
        return np.full(len(statistics["count"]), np.nan)
    return np.array(statistics["mean"], np.float64)  # null: NaN
