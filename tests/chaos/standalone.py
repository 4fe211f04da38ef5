"""Spark's own cluster manager on this machine: a master, and workers that start the executors of every application."""

import secrets
import shutil
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from random import Random

import orjson
import psutil
import pyspark

from infra.files import write_private
from infra.jdk import SPARK_JAVA, find_jdk
from infra.local.server import Server
from tests.chaos.chain import SHORT_LIVED, Chain
from tests.chaos.processes import CODE
from tests.chaos.storm import Target, job_target
from tests.integration.conftest import free_ports
from tests.waiting import until

WORKERS = 2
DEPLOY = "org.apache.spark.deploy"
RESOURCES = ("--cores", "16", "--memory", "12g", "--work-dir", "work")  # enough for an executor of each application
EXECUTOR = "CoarseGrainedExecutorBackend"
START_SECONDS = 90.0
SPARK_HOME = Path(pyspark.__file__).parent

# Of every application: an executor of one core on each worker, which comes and goes with the work; a task that is slow
# is begun once more elsewhere.
CONF = {
    "spark.cores.max": str(WORKERS),
    "spark.executor.cores": "1",
    "spark.executor.memory": "640m",
    "spark.driver.host": "127.0.0.1",
    "spark.speculation": "true",
    "spark.speculation.interval": "500ms",
    "spark.speculation.quantile": "0.5",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": str(WORKERS),
}


class Daemon(Server):
    """A master or a worker; with it die the executors that it has started."""

    flag = "KAPPA_CHAOS_PORT"

    def __init__(self, name: str, home: Path, port: int, *command: str) -> None:
        """`command` is the class and its arguments; its page, which says that it is there, takes the next port."""
        super().__init__(name, home, (port, port + 1))
        self._class, *self._arguments = command

    @property
    def address(self) -> str:
        return f"spark://127.0.0.1:{self.ports[0]}"

    def check(self) -> None:
        find_jdk(SPARK_JAVA, "Spark")

    def prepare(self) -> tuple[list[str | Path], dict[str, str]]:
        self.folder.mkdir(parents=True, exist_ok=True)
        port, page = map(str, self.ports)
        places = ("--host", "127.0.0.1", "--port", port, "--webui-port", page)
        environment = {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "JAVA_HOME": str(find_jdk(SPARK_JAVA, "Spark")),
            "JAVA_TOOL_OPTIONS": SHORT_LIVED,
            "PYTHONPATH": CODE,
        }
        return [SPARK_HOME / "bin" / "spark-class", self._class, *places, *self._arguments], environment

    def ready(self) -> bool:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.ports[1]}/json/", timeout=5) as page:
            return bool(orjson.loads(page.read()))
        return False

    def executors(self) -> list[psutil.Process]:
        """The executors that it has started and that live."""
        return [one for one in (self.running.group() if self.running else []) if _is_executor(one)]


def _is_executor(process: psutil.Process) -> bool:
    try:
        return any(EXECUTOR in argument for argument in process.cmdline())
    except psutil.Error:
        return False


class Standalone:
    """A master and workers with a secret of their own."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True)
        secret = secrets.token_urlsafe(24)
        self.conf = CONF | {
            "spark.authenticate": "true",
            "spark.authenticate.secret": secret,
            "spark.network.crypto.enabled": "true",
        }
        file = home / "spark.properties"
        own = {name: value for name, value in self.conf.items() if name.startswith(("spark.auth", "spark.network"))}
        write_private(file, "".join(f"{name} {value}\n" for name, value in own.items()).encode())
        options, port = ("--properties-file", str(file)), free_ports(2 * (1 + WORKERS))
        self.master = Daemon("master", home, port, f"{DEPLOY}.master.Master", *options)
        worker = (f"{DEPLOY}.worker.Worker", *options, *RESOURCES, self.master.address)
        self.workers = [Daemon(f"worker-{n}", home, port + 2 * n, *worker) for n in range(1, WORKERS + 1)]

    @property
    def environment(self) -> dict[str, str]:
        """By which a job runs here."""
        return {"KAPPA_SPARK_MASTER": self.master.address, "KAPPA_SPARK_CONF": orjson.dumps(self.conf).decode()}

    def up(self) -> None:
        """Returns once all of it answers."""
        for one in (self.master, *self.workers):
            one.spawn()
            until(one.ready, START_SECONDS, f"{one.name} does not answer")

    def down(self) -> None:
        """End all of it."""
        for one in (*self.workers, self.master):
            one.kill()

    def executors(self) -> list[psutil.Process]:
        """Those of all applications."""
        return [one for worker in self.workers for one in worker.executors()]


def executor_target(cluster: Standalone) -> Target:
    """An executor of whichever application, with its shuffle files, and its copies of states."""

    def strike(rng: Random) -> None:
        until(lambda: bool(cluster.executors()), START_SECONDS, "no executor runs")
        with suppress(psutil.NoSuchProcess, IndexError):  # it has just been given back
            rng.choice(cluster.executors()).kill()

    return Target("executors", lambda: len(cluster.executors()) > WORKERS, strike, 10.0, 15.0)


def worker_target(cluster: Standalone) -> Target:
    """A worker with all its executors and what lies on its disk; it comes back."""

    def strike(rng: Random) -> None:
        worker = rng.choice(cluster.workers)
        worker.kill()
        shutil.rmtree(worker.folder, ignore_errors=True)
        time.sleep(rng.uniform(0, 5))
        worker.spawn()

    return Target("workers", lambda: all(one.ready() for one in cluster.workers), strike, 20.0, 40.0)


def driver_target(chain: Chain, name: str, nodes: Path) -> Target:
    """A driver, which comes back on another node: nothing of what lay on the disk of the former is there."""
    target = job_target(chain, name)

    def strike(rng: Random) -> None:
        job = chain.jobs[name]
        former = job.extra.get("KAPPA_HOME")
        job.extra = {"KAPPA_HOME": str(nodes / f"{name}-{len(job.sessions)}")}
        target.strike(rng)
        if former:
            shutil.rmtree(former, ignore_errors=True)

    return Target(f"driver of {name}", target.ready, strike, target.start_seconds, target.work_seconds)
