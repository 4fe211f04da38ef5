"""While a simulated cloud feeds the chain, its parts are killed; then every record must be there, once.

Each scenario is compared with all that the chain was fed since it stands, not only with its own share.
"""

import shutil
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from infra.contract.columnar import to_rows
from tests.chaos.chain import JOBS, SPARK_JOBS
from tests.chaos.processes import Job
from tests.chaos.reading import read_topic
from tests.chaos.storm import KILLS, SEED, job_target, server_target, storm
from tests.waiting import until

START_SECONDS = 400  # on a busy machine a chain takes minutes to hand a record down to its last job
TRANSACTION_SECONDS = 15
AWAY_SECONDS = 60
OUTAGE_SECONDS = 75  # longer than the transactions of the jobs (as set here) and of the indexer (60 s)


def test_storm_over_the_jobs(chain, play):
    with play(chain, "kill -9 of jobs at random moments") as scenario:
        scenario.kills += storm(chain, [job_target(chain, name) for name in JOBS], KILLS, SEED)


@pytest.mark.parametrize("point", ["written", "committed"])
def test_the_dangerous_window(chain, play, point):
    """After Kafka's commit (or Delta's), before Spark's: what was committed must not be written again."""

    def strike(job: Job) -> None:
        chain.hold(job.name)
        job.kill()
        job.extra = {"KAPPA_FAULT": point}
        job.start()
        until(lambda: job.code is not None, START_SECONDS, f"{job.name} does not reach {point!r}")
        assert job.code == -9, job.output()[-600:]
        job.extra = {}
        chain.release(job.name)

    with play(chain, f"kill between Kafka's commit and Spark's: {point}") as scenario:
        with ThreadPoolExecutor() as pool:
            list(pool.map(strike, [chain.jobs[name] for name in SPARK_JOBS]))
        scenario.kills.update(SPARK_JOBS)


def test_storm_over_broker_and_elasticsearch(chain, play):
    targets = [
        server_target("the only broker", chain.servers.kafka, 8.0, 10.0),
        server_target("elasticsearch", [chain.servers.elasticsearch], 15.0, 5.0),
    ]
    with play(chain, "kill -9 of the only broker and of Elasticsearch at random moments") as scenario:
        scenario.kills += storm(chain, targets, KILLS, SEED)


def test_two_copies_of_one_job(chain, play):
    """One fences the other, which says so and ends for good."""
    with play(chain, "two copies of enrichment") as scenario, second_copy(chain, "enrichment") as copies:
        until(lambda: any(is_refused(copy) for copy in copies), START_SECONDS, "both copies run")
        (refused,) = [copy for copy in copies if copy.code == 2]
        said = refused.output().splitlines()[-1]
        scenario.notes[f"{refused.name} said"] = said
        assert "another copy of this job runs" in said, refused.output()[-900:]
        chain.catch_up()
        assert [copy.code for copy in copies if copy is not refused] == [None]


def is_refused(copy: Job) -> bool:
    """Whether it ended for good. If both began one batch at the same time, Spark fails one, to be started again."""
    if copy.code not in (None, 2):
        copy.start()
    return copy.code == 2


def test_two_indexers(chain, play):
    """They share the partitions, whoever rejects a record first; every document is there once all the same."""
    with play(chain, "two copies of the indexer") as scenario, second_copy(chain, "indexer") as (first, second):
        time.sleep(20)
        chain.catch_up()
        scenario.notes["exit codes"] = [first.code, second.code]


@contextmanager
def second_copy(chain, name: str):
    """A second process of a job; the first is not started again until the second is gone."""
    first = chain.jobs[name]
    second = Job(f"{name}-2", first.command, first.environment, chain.home / f"log/{name}-2.log")
    chain.catch_up()
    chain.hold(name)
    second.start()
    try:
        yield first, second
    finally:
        second.stop()
        chain.restart(name)


def test_disk_full_under_delta(chain, play, lot):
    """The archive fails, is started again and again, and goes on once there is space."""
    disk = Path(chain.settings.delta)
    if not disk.is_mount():
        lot.skipped["disk full"] = "needs the right to mount a small tmpfs"
        pytest.skip(lot.skipped["disk full"])
    ballast, archive = disk / "ballast", chain.jobs["archive"]
    with play(chain, "disk full under Delta") as scenario:
        starts = len(archive.sessions)
        with pytest.raises(OSError, match="No space left"), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
        until(lambda: len(archive.sessions) > starts, START_SECONDS, "the archive does not notice")
        assert "No space left" in archive.log.read_text(errors="replace")
        ballast.unlink()
        scenario.notes["failures"] = len(archive.sessions) - starts


def test_network_cut_between_jobs_and_broker(chain, play):
    """Bytes stop in both directions, connections stay open, as behind a dead switch."""
    chain.restart(*JOBS, KAPPA_KAFKA_BOOTSTRAP=chain.proxied_bootstrap)
    with play(chain, "network cut between jobs and broker") as scenario:
        for seconds in (5, 20, 45):
            chain.catch_up()
            chain.proxy.cut()
            time.sleep(seconds)
            chain.proxy.heal()
        scenario.notes["seconds cut"] = [5, 20, 45]


def test_broker_down_longer_than_transactions_live(chain, play):
    chain.restart(*SPARK_JOBS, KAPPA_TRANSACTION_TIMEOUT_SECONDS=str(TRANSACTION_SECONDS))
    chain.restart("indexer")
    (broker,) = chain.servers.kafka
    with play(chain, "broker down for longer than the transaction timeout") as scenario:
        chain.catch_up()
        until(chain.is_writing, START_SECONDS, "no open transaction is seen", 0)
        broker.kill()
        scenario.kills["the only broker"] += 1
        time.sleep(OUTAGE_SECONDS)
        broker.spawn()
        scenario.notes["seconds down"] = OUTAGE_SECONDS


def test_lost_checkpoint(chain, play):
    """The job refuses, nothing is written twice; a new generation tells everything again."""
    job, folder = chain.jobs["statistics"], Path(chain.settings.checkpoint_of("statistics"))
    with play(chain, "checkpoint lost") as scenario:
        chain.catch_up()
        chain.hold(job.name)
        job.kill()
        scenario.kills[job.name] += 1
        kept = shutil.move(folder, chain.home / "kept")
        job.start()
        until(lambda: job.code is not None, START_SECONDS, "it does not refuse")
        scenario.notes["it said"] = job.output().splitlines()[-1]
        assert job.code == 2 and "the checkpoint was lost or replaced" in scenario.notes["it said"]
        shutil.rmtree(folder)
        shutil.move(kept, folder)
        chain.restart(job.name)


def test_way_back_by_a_new_generation(chain, play):
    """As docs/how-to/operate.md says after a lost checkpoint: the same events again, beside the old ones."""
    with play(chain, "way back from a lost checkpoint: a new generation") as scenario:
        chain.catch_up()
        before = single_events(chain)
        chain.begin_generation("v2")
    after = single_events(chain)
    scenario.notes["events as before"] = (before & after).total()
    assert not [*(before - after)][:3]


def single_events(chain) -> Counter:
    """The events of the present generation, each with its facts: how they are put into records, the batches decide."""
    records = read_topic(chain.settings.kafka_bootstrap, chain.topics["events"].name)
    found: Counter = Counter()
    for record in (orjson.loads(record.value) for record in records if record.key is not None):
        common = [record.get(name) for name in ("machine", "kind", "resource", "inventory")]
        found.update(orjson.dumps([common, event]) for event in to_rows(record["events"]))
    return found


def test_storm_over_one_broker_of_three(cluster, play):
    target = server_target("one of three brokers", cluster.servers.kafka, 5.0, 5.0)
    with play(cluster, "kill -9 of one of three brokers at random moments") as scenario:
        scenario.kills += storm(cluster, [target], KILLS, SEED)


def test_storm_on_a_secured_cluster_while_passwords_change(secured_cluster, play):
    """Each application has its own user, with no other rights than it needs."""
    chain = secured_cluster
    with play(chain, "kill -9 of one of three secured brokers and of jobs while passwords change") as scenario:
        chain.catch_up()
        targets = [server_target("one of three brokers", chain.servers.kafka, 5.0, 5.0)]
        targets += [job_target(chain, name) for name in ("statistics", "indexer")]
        with ThreadPoolExecutor(1) as pool:
            storming = pool.submit(storm, chain, targets, max(1, KILLS // 4), SEED)
            for user in JOBS:
                chain.rotate_password(user)
                scenario.notes.setdefault("passwords changed", []).append(user)
            scenario.kills += storming.result()


def test_storm_on_an_object_store(object_store, store_chain, play):
    """Checkpoints and tables are in S3; the store is slow, then throttles, then is gone for a minute."""
    chain = store_chain
    with play(chain, "kill -9 of jobs while an object store is slow, throttles and is gone") as scenario:
        chain.catch_up()
        object_store.trouble(delay_s=0.2)
        scenario.kills += storm(chain, [job_target(chain, name) for name in SPARK_JOBS], max(1, KILLS // 4), SEED)
        object_store.trouble(refused=0.1)
        scenario.kills += storm(chain, [job_target(chain, name) for name in SPARK_JOBS], max(1, KILLS // 4), SEED + 1)
        object_store.trouble()
        with object_store.away():
            time.sleep(AWAY_SECONDS)
