"""Our enrichment and statistics beside those of peers: each with a backlog, and under a load that leaves it time."""

import time
from collections.abc import Sequence
from statistics import mean
from typing import Any

import orjson

from ops.simulator.encode import METRICS_TOPIC
from tests.bench.chain.lab import Every, Usage
from tests.bench.chain.latency import Latencies, by_content
from tests.bench.chain.trial import USAGE_SECONDS, Shape, alone, fill
from tests.bench.peers.content import Compared, compare, read_windows
from tests.bench.peers.engines import STAGES, Peer
from tests.bench.peers.lab import OURS, PeerLab, lab_with, name_of

ROUNDS = 2

Figures = dict[str, float]
Report = dict[str, dict[str, Figures]]  # engine -> stage -> figures


def versus(shape: Shape, rate: int, peers: Sequence[Peer], rounds: int = ROUNDS) -> dict[str, Any]:
    """The same backlog through our stages and the peers', each alone on the machine, and whether all say the same.

    `backlog` has the means of the rounds, and by how much our rate is that of a peer.
    """
    engines = [OURS, *(peer.name for peer in peers)]
    found: list[Report] = []
    compared: list[dict[str, Compared]] = []
    with lab_with(shape.of_backlog().settings, peers) as lab:
        events = fill(lab, shape, rate, METRICS_TOPIC)
        for number in range(rounds):
            lab.move_to(f"round{number}")
            lab.start()
            lab.create_topics()
            found.append({engine: _chain(lab, engine, events) for engine in engines})
            compared.append(_compared(lab))
    return {"events": events, "backlog": summary(found), "rounds": found} | judged(compared)


def _chain(lab: PeerLab, engine: str, events: int) -> dict[str, Figures]:
    """One stage after the other: the second reads what the first has written."""
    return {stage: alone(lab, name_of(engine, stage), events) for stage in STAGES}


def _compared(lab: PeerLab) -> dict[str, Compared]:
    ours, *theirs = (
        read_windows(lab.broker.address, lab.output(name_of(engine, "statistics")))
        for engine in (OURS, *(peer.name for peer in lab.peers))
    )
    return {peer.name: compare(ours, windows) for peer, windows in zip(lab.peers, theirs, strict=True)}


def summary(rounds: Sequence[Report]) -> Report:
    """The mean of each figure, the highest of memory, and the ratio of our rate to each engine's."""
    found = {engine: {stage: _mean([one[engine][stage] for one in rounds]) for stage in STAGES} for engine in rounds[0]}
    for stages in found.values():
        for stage, figures in stages.items():
            figures["ratio"] = round(found[OURS][stage]["events_per_s"] / figures["events_per_s"], 2)
    return found


def _mean(rounds: Sequence[Figures]) -> Figures:
    of = {name: [one[name] for one in rounds] for name in rounds[0]}
    return {name: max(values) if name == "peak_megabytes" else round(mean(values), 2) for name, values in of.items()}


def judged(rounds: Sequence[dict[str, Compared]]) -> dict[str, Any]:
    """How many results of each peer differ from ours; it is passed if some were compared and none differs."""
    different = {peer: sum(one[peer].different for one in rounds) for peer in rounds[0]}
    compared = {peer: sum(one[peer].results for one in rounds) for peer in rounds[0]}
    return {
        "passed": all(compared.values()) and not any(different.values()),
        "compared": compared,
        "different": different,
    }


def beside(shape: Shape, rate: int, peers: Sequence[Peer]) -> dict[str, Any]:
    """How late ours and each peer's results are under a load that leaves them time, each as quick as it can be.

    One chain after the other, on a broker of its own: all at once, each would wait for the others' CPU time.
    """
    first = {OURS: _under_load(shape, rate, None)}
    return first | {peer.name: _under_load(shape, rate, peer) for peer in peers}


def _under_load(shape: Shape, rate: int, peer: Peer | None) -> dict[str, Any]:
    names = {stage: name_of(peer.name if peer else OURS, stage) for stage in STAGES}
    with lab_with(shape.of_backlog().settings, [peer] if peer else []) as lab:
        lab.start(*names.values())
        load = lab.load(rate, shape.warm + shape.seconds, shape.machines, singles=False)
        time.sleep(shape.warm)
        usage = Usage(lab.leaders(*names.values()))
        written = {stage: lab.output(name) for stage, name in names.items()}
        before = usage.look()
        with (
            Every(USAGE_SECONDS, usage.look),
            Latencies(lab.broker.address, tuple(written.values()), by_content) as latencies,
        ):
            time.sleep(shape.seconds)
        after = usage.look()
        lab.check()
        sent = orjson.loads(load.communicate(timeout=120)[0])
    found, million = latencies.quantiles(), sent["events"] / sent["seconds"] * shape.seconds / 1e6
    spent = {name: {"cpu_seconds_per_million": round((after[name] - before[name]) / million, 2)} for name in after}
    return {stage: found[topic] | spent[names[stage]] for stage, topic in written.items()} | {"load": sent}
