"""A chain on servers of its own, driven by the commands that an operator types."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil
import yaml

from connectors.kafka import admin
from connectors.kafka.producer import CollectorProducer
from infra.contract.topics import DEFAULT_MAP, TopicMap, load_topics
from infra.jars import default_jars
from infra.local import LocalServers
from jobs.runtime.settings import Settings
from ops.replay.progress import CatchUp
from ops.replay.promotion import watch
from ops.replay.registry import Registry
from ops.simulator import feed
from ops.simulator.faults import SECOND, parse
from ops.simulator.simulation import Settings as Cloud
from ops.simulator.simulation import Simulation

PATIENCE_SECONDS = 900
TRANSCRIPT = Path("build/replay.txt")  # what an operator would have seen
SIMULATED_SECONDS = 300
FAULTS = (
    "late:vm-05@+60s/30s",
    "malformed:vm-03@+60s/20s",
    "log_burst:vm-04@+120s/30s",
    "cpu_hog:vm-02@+140s/60s",
    "silence:vm-06@+150s/60s",
)


class Chain:
    """Servers and the folder of one installation."""

    def __init__(self, home: Path, port: int) -> None:
        self.home = home
        self.servers = LocalServers(home, kafka_port=port, elasticsearch_port=port + 2, jars=default_jars())
        self.topics_file = home / "topics.yaml"
        self.settings = Settings(
            home=home,
            kafka_bootstrap=self.servers.bootstrap,
            elasticsearch_url=self.servers.elasticsearch_url,
            topics_file=self.topics_file,
        )
        self.processes: list[subprocess.Popen[bytes]] = []
        self.environment_changes: dict[str, str] = {}

    @property
    def topics(self) -> TopicMap:
        return load_topics(self.topics_file)

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "KAPPA_HOME": str(self.home),
            "KAPPA_JARS": str(default_jars()),
            "KAPPA_TOPICS_FILE": str(self.topics_file),
            "KAPPA_KAFKA_BOOTSTRAP": self.settings.kafka_bootstrap,
            "KAPPA_ELASTICSEARCH_URL": self.settings.elasticsearch_url,
            "KAPPA_METRICS_PORT": "0",
            "KAPPA_ARCHIVE_TRIGGER_SECONDS": "1",
            "KAPPA_MAX_OFFSETS_PER_TRIGGER": "600",  # several batches even of this little data
            **self.environment_changes,
        }

    def up(self) -> None:
        """Servers and topics; the sender's clock stands in for the broker's, so that minutes pass in seconds."""
        self.servers.up()
        declared = yaml.safe_load(DEFAULT_MAP.read_text())
        declared["telemetry"]["timestamp"] = declared["topics"]["inventory"]["timestamp"] = "CreateTime"
        self.topics_file.write_text(yaml.safe_dump(declared, sort_keys=False))
        admin.apply(admin.connect(self.settings.kafka_bootstrap), self.topics)

    def down(self) -> None:
        """End all that was started here."""
        for process in self.processes:
            kill(process)
        self.servers.down()

    def feed(self, seconds: int = SIMULATED_SECONDS, **changes: object) -> int:
        """Simulated telemetry that ends now; how many records."""
        start = (int(datetime.now(UTC).timestamp()) - seconds) * SECOND
        faults = tuple(parse(fault) for fault in FAULTS)
        cloud = Cloud(
            **{"start_unix_nano": start, "duration": seconds * SECOND, "machines": 10, "faults": faults, **changes}
        )
        simulation = Simulation(cloud)
        producer = CollectorProducer(self.settings.kafka_bootstrap, simulation.topics())
        return feed.run(simulation, producer, live=False).records

    def run_live(self) -> None:
        """Run the live generation until it has read everything."""
        process = self.start("run", "all")
        self.wait_until_caught_up("live")
        stop(process)

    def kappa(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """Run a command to its end; its output. It must end with one of these codes."""
        done = subprocess.run(
            [sys.executable, "-m", "ops.cli", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        _note(arguments, done)
        assert done.returncode in codes, f"{arguments}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        return done.stdout + (done.stderr if done.returncode == 2 else "")

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start a command in the background."""
        log = self.home / f"command-{len(self.processes)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "ops.cli", *arguments],
                env={**self.environment, **environment},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def wait_until_caught_up(self, name: str, *jobs: str) -> None:
        """Returns when these jobs of the generation, or each of its jobs, have read what there is."""
        registry = Registry.read(self.settings.kafka_bootstrap)
        watched = watch(name, registry, self.settings)
        if jobs:
            watched.generation = watched.generation.model_copy(update={"jobs": jobs})
        catch_up = CatchUp(watched)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while group := catch_up.look():
            assert time.monotonic() < deadline, f"{name}: waiting for {group}"
            dead = [process.args for process in self.processes if process.poll() not in (None, 0, -signal.SIGKILL)]
            assert not dead, f"ended: {dead}"
            time.sleep(0.5)

    def diff(self, first: str, second: str, *arguments: str) -> dict:
        """What `kappa replay diff --json` says."""
        return json.loads(self.kappa("replay", "diff", first, second, "--json", *arguments, codes=(0, 1)))


def _note(arguments: tuple[str, ...], done: subprocess.CompletedProcess[str]) -> None:
    TRANSCRIPT.parent.mkdir(exist_ok=True)
    with TRANSCRIPT.open("a") as transcript:
        transcript.write(f"$ kappa {shlex.join(arguments)}\n{done.stdout}{done.stderr}({done.returncode})\n\n")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a command in good order."""
    process.send_signal(signal.SIGTERM)
    assert process.wait(180) == 0


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a command and all that it started, as a power cut would."""
    for one in descendants(process):
        one.kill()
    process.kill()
    process.wait()


def descendants(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """What a command has started, at any depth."""
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
