"""One chain for as many scenarios as pass on it, and the report."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.chaos import report
from tests.chaos.chain import Chain
from tests.chaos.report import Scenario
from tests.chaos.standalone import Standalone
from tests.chaos.verify import verify
from tests.integration.conftest import free_ports
from tests.object_store.store import BUCKET, PYTHON, ObjectStore

FIRST_PORT = int(os.environ.get("KAPPA_CHAOS_PORT", "25000"))
DELTA_MEGABYTES = 2_000


class Lot:
    """The chain that stands, and what was found so far."""

    def __init__(self) -> None:
        self.chain: Chain | None = None
        self.scenarios: list[Scenario] = []
        self.skipped: dict[str, str] = {}
        self.failed = False
        self._built = 0
        self._homes: list[Path] = []

    def get(self, brokers: int = 1, *, secured: bool = False, storage: Mapping[str, str] | None = None) -> Chain:
        """A chain with so many brokers, on which no scenario has failed; its tables are on a small disk by default."""
        if (stands := self.chain) and (
            stands.failed
            or (len(stands.servers.kafka), stands.secured) != (brokers, secured)
            or storage not in (None, stands.storage)
        ):
            self.close()
        if self.chain is None:
            home = Path(tempfile.mkdtemp(prefix="chaos-"))
            self._homes.append(home)
            self._built += 1
            delta, port = small_disk(home / "delta"), FIRST_PORT + 20 * self._built
            self.chain = Chain(
                home / "kappa", port, brokers, secured=secured, storage=storage or {"KAPPA_DELTA": str(delta)}
            )
            self.chain.up()
        return self.chain

    def close(self) -> None:
        """End the chain; what a failed scenario left stays to be looked at."""
        if self.chain is None:
            return
        self.chain.down()
        home = self._homes[-1]
        if not self.chain.failed:
            release_disk(home / "delta")
            shutil.rmtree(home, ignore_errors=True)
        self.chain = None

    def save(self) -> None:
        """Write the report as of now."""
        report.save(self.scenarios, self.skipped, self.failed)


def small_disk(folder: Path) -> Path:
    """A folder on a small disk of its own, so that it can be filled; where that isn't allowed, just a folder."""
    folder.mkdir()
    options = f"size={DELTA_MEGABYTES}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=False, stderr=subprocess.DEVNULL)
    return folder


def release_disk(folder: Path) -> None:
    """Undo `small_disk`."""
    if folder.is_mount():
        subprocess.run(["umount", folder], check=True)


@pytest.fixture(scope="session")
def lot(request):
    lot = Lot()
    yield lot
    lot.close()
    lot.failed = request.session.testsfailed > 0
    lot.save()


@pytest.fixture
def chain(lot) -> Chain:
    """The whole chain with one broker."""
    return lot.get()


@pytest.fixture
def cluster(lot) -> Chain:
    """The whole chain with three brokers."""
    return lot.get(brokers=3)


@pytest.fixture
def secured_cluster(lot) -> Chain:
    """The same, secured: each application is a user of its own with exactly its rights."""
    return lot.get(brokers=3, secured=True)


@pytest.fixture
def object_store(monkeypatch):
    """A server of S3's protocol, which this process uses too."""
    if not PYTHON.exists():
        pytest.skip(f"{PYTHON} is missing: `make test-object-store` makes it")
    store = ObjectStore(free_ports(1))
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    yield store
    store.close()


@pytest.fixture
def store_chain(lot, object_store) -> Chain:
    """The whole chain with one broker, which keeps checkpoints and tables in an object store."""
    places = {"KAPPA_CHECKPOINTS": f"s3a://{BUCKET}/checkpoints", "KAPPA_DELTA": f"s3a://{BUCKET}/delta"}
    yield lot.get(storage=places | object_store.environment)
    lot.close()


@pytest.fixture
def standalone(tmp_path_factory):
    """A master and workers of Spark's own cluster manager."""
    found = Standalone(tmp_path_factory.mktemp("standalone") / "cluster")
    try:
        found.up()
        yield found
    finally:
        found.down()


@pytest.fixture
def spread_chain(lot, standalone, tmp_path) -> Chain:
    """The whole chain with one broker; its drivers have other disks than those of checkpoints and tables."""
    shared = {f"KAPPA_{name.upper()}": str(tmp_path / "shared" / name) for name in ("checkpoints", "delta")}
    yield lot.get(storage=shared | standalone.environment | {"KAPPA_HOME": str(tmp_path / "nodes" / "first")})
    lot.close()


@pytest.fixture
def play(lot):
    """Play a scenario: its block happens while the simulator feeds; then all is compared, record by record."""

    @contextmanager
    def play(chain: Chain, name: str):
        scenario, began = Scenario(name), time.monotonic()
        lot.scenarios.append(scenario)
        chain.failed = True  # until the end says otherwise
        try:
            chain.feed()
            yield scenario
            _settle(chain, scenario)
            _compare(chain, scenario)
        except BaseException as error:
            scenario.notes["error"] = f"{type(error).__name__}: {error}"[:2000]
            raise
        finally:
            scenario.seconds = time.monotonic() - began
            lot.save()
        assert scenario.passed, scenario.notes
        chain.failed = False

    return play


def _settle(chain: Chain, scenario: Scenario) -> None:
    last_blow = time.monotonic()
    chain.catch_up()
    scenario.recovered_s = time.monotonic() - last_blow
    scenario.events += chain.end_feed()
    chain.settle()
    scenario.settled = True


def _compare(chain: Chain, scenario: Scenario) -> None:
    findings = verify(chain)
    scenario.lost, scenario.duplicated, scenario.wrong = findings.lost, findings.duplicated, findings.wrong
    scenario.notes["compared"] = findings.compared
    if findings.examples:
        scenario.notes["differences"] = findings.examples
