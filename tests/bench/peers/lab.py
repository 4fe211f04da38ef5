"""A lab that has peers beside our jobs: the same broker and raw topic, and from there a chain of each one's own."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from confluent_kafka.admin import NewTopic

from connectors.kafka.admin import connect
from connectors.kafka.offsets import missing
from infra.contract.topics import DEFAULT_MAP
from ops.simulator.encode import METRICS_TOPIC
from tests.bench.chain.lab import Lab
from tests.bench.peers.engines import STAGES, Peer, Stage
from tests.chaos.processes import Job

PORT = 31300  # below those that the kernel gives to clients
LATENESS_MS = 20_000  # of all: ours would learn from the log that less is enough
WINDOWS = Path(__file__).with_name("windows.yaml")
QUIET_SECONDS = 10.0  # without a new record, a stage has written what it can
OURS = "ours"


def name_of(engine: str, stage: str) -> str:
    """What a stage of an engine is called in the lab: ours have the names of their jobs."""
    return stage if engine == OURS else f"{engine} {stage}"


class PeerLab(Lab):
    """Our enrichment and statistics, and each peer's as `PEER enrichment` and `PEER statistics`.

    A peer's statistics read what its own enrichment has written.
    """

    def __init__(self, home: Path, settings: Mapping[str, str], peers: Sequence[Peer]) -> None:
        self.peers = peers
        self.stages: dict[str, tuple[Peer, Stage]] = {}
        own = {"KAPPA_STATISTICS_WINDOWS": str(WINDOWS), "KAPPA_TOPICS_FILE": str(with_lateness(home))}
        super().__init__(home, {**settings, **own}, PORT)

    def move_to(self, generation: str) -> None:
        """The same for all: other topics to write, other groups."""
        super().move_to(generation)
        for peer in self.peers:
            for stage in STAGES:
                name, work = name_of(peer.name, stage), self._work(peer, stage)
                log = self.home / f"{work.group}.log"
                self.stages[name] = peer, work
                self.jobs[name] = Job(name, peer.command(work), peer.environment(), log, program=())

    def _work(self, peer: Peer, stage: str) -> Stage:
        groups = {name: f"{peer.name}.{name}.{self.settings.generation}" for name in STAGES}
        return Stage(
            stage,
            groups[stage],
            METRICS_TOPIC if stage == "enrichment" else groups["enrichment"],
            self.broker.address,
            self.topics["inventory"].name,
            LATENESS_MS,
            self.home / groups[stage],
        )

    def create_topics(self) -> None:
        """Those that the peers write, with as many partitions as ours."""
        work = [stage for _, stage in self.stages.values()]
        names = [stage.group for stage in work]
        names += [f"{stage.group}.late" for stage in work if stage.name == "enrichment"]
        wanted = [NewTopic(name, self.topics["events"].partitions) for name in names]
        admin = connect(self.broker.address)  # without a name it would end before its answer comes
        for created in admin.create_topics(wanted).values() if wanted else ():
            created.result(30)

    def output(self, name: str) -> str:
        """The topic that a stage writes."""
        if name in self.stages:
            return self.stages[name][1].group
        return self.topics["events" if name == "enrichment" else "statistics"].name

    def position(self, stage: str) -> tuple[int, int]:
        """Records that a stage has read, and those that it has not read yet."""
        if stage not in self.stages:
            return super().position(stage)
        peer, work = self.stages[stage]
        ends = self.log.ends([work.topic])
        done = peer.committed(work, self.log, list(ends))
        return sum(done.values()), missing(done, ends)

    def settle(self, name: str) -> None:
        """Wait until a stage writes nothing more: what is still under way would be missed by the comparison."""
        before, since = self._written(name), time.monotonic()
        while time.monotonic() - since < QUIET_SECONDS:
            time.sleep(1)
            if (now := self._written(name)) != before:
                before, since = now, time.monotonic()

    def _written(self, name: str) -> int:
        return sum(self.log.ends([self.output(name)]).values())

    def stop(self, *names: str) -> None:
        """End stages; those that are named once they have written what they can."""
        for name in names:
            self.settle(name)
        super().stop(*names)


@contextmanager
def lab_with(settings: Mapping[str, str], peers: Sequence[Peer]) -> Iterator[PeerLab]:
    """A broker of its own, in a folder that is deleted."""
    with TemporaryDirectory() as folder, PeerLab(Path(folder), settings, peers).up() as lab:
        lab.start()  # no job, but all topics
        lab.create_topics()
        yield lab


def with_lateness(folder: Path) -> Path:
    """The map of the chain, with a lateness that is known beforehand."""
    declared = yaml.safe_load(DEFAULT_MAP.read_text())
    declared["telemetry"]["lateness"] = f"{LATENESS_MS // 1000}s"
    file = folder / "topics.yaml"
    file.write_text(yaml.safe_dump(declared))
    return file
