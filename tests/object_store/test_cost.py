"""What a batch costs more whose checkpoint is in an object store than one whose checkpoint is on a disk."""

import json
import shutil
import statistics
import tempfile
from pathlib import Path

import orjson
import pytest

from tests.integration.conftest import free_ports
from tests.object_store.store import BUCKET, ObjectStore
from tests.replay.chain import Chain, stop

REPORT = Path("build/object-store-cost.json")
MOST_SECONDS = 0.5
JOBS = "enrichment", "statistics"  # without a state in the checkpoint, and with one
SMALL = {"KAPPA_MAX_OFFSETS_PER_TRIGGER": "60"}  # so that there are some twenty batches
pytestmark = pytest.mark.timeout(900)


def batches(storage: dict[str, str]) -> dict[str, list[float]]:
    """The seconds of each batch of each query, over the same minutes of a simulated cloud."""
    home = Path(tempfile.mkdtemp(prefix="cost-"))
    chain = Chain(home, free_ports(4))
    chain.environment_changes |= SMALL | storage
    found: dict[str, list[float]] = {}
    try:
        chain.up()
        chain.feed()
        for number, job in enumerate(JOBS):
            process = chain.start("run", job)
            chain.wait_until_caught_up("live", job)
            stop(process)
            for line in (home / f"command-{number}.log").read_text().splitlines():
                if '"event": "batch"' in line:
                    told = json.loads(line)
                    found.setdefault(told["query"], []).append(told["milliseconds"]["triggerExecution"] / 1000)
        assert set(found) == set(JOBS)
        return found
    finally:
        chain.down()
        shutil.rmtree(home, ignore_errors=True)


def warm(seconds: list[float]) -> float:
    """The median of the second half: Java compiles in the first."""
    assert len(seconds) >= 6
    return statistics.median(seconds[len(seconds) // 2 :])


def test_a_batch_costs_little_more_than_on_a_disk():
    store = ObjectStore(free_ports(1))
    try:
        places = {"KAPPA_CHECKPOINTS": f"s3a://{BUCKET}/checkpoints", "KAPPA_DELTA": f"s3a://{BUCKET}/delta"}
        far = batches(places | store.environment)
    finally:
        store.close()
    near = batches({})
    facts = {query: {"disk_s": warm(near[query]), "object_store_s": warm(far[query])} for query in near}
    more = {query: round(one["object_store_s"] - one["disk_s"], 3) for query, one in facts.items()}
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_bytes(orjson.dumps({"more_s": more, "batches": facts}, option=orjson.OPT_INDENT_2))
    assert max(more.values()) <= MOST_SECONDS, facts
