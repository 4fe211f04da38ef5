"""A savepoint of all jobs, taken while the chain runs; then their checkpoints are lost, and it goes on from there."""

import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from infra.errors import UserError
from jobs.archive.tables import tables
from ops.replay.registry import Registry
from ops.savepoints import chain as sets
from ops.savepoints import cut, rotation, savepoints
from ops.simulator import check
from tests.chaos import verify
from tests.chaos.reading import read_topic
from tests.integration.ops.small_chain import PATIENCE, RUNNING, SECONDS, SmallChain

JOBS = ("enrichment", "statistics", "detector", "incidents", "archive")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(6 * PATIENCE)]


def compared(chain: SmallChain) -> verify.Findings:
    """What differs between the simulator's truth, the topics, the folds of their sources and the tables."""
    found = verify.Findings()
    log = {topic.name: read_topic(chain.settings.kafka_bootstrap, topic.name) for topic in chain.topics.archived}
    events = [orjson.loads(record.value) for record in log["events"]]
    found.truth("events: truth", check.compare_events(chain.truth, verify._without_watermarks(events)))
    ids = Counter(record["id"] for record in verify._without_watermarks(events))
    found.multisets("events: ids", Counter(ids.keys()), ids)
    verify._compare_refused(found, chain.truth, log["events.late"], log["events.rejected"])
    verify.compare_statistics(found, log["events"], log["statistics"])
    verify.compare_novelties(found, log["statistics"], log["novelties"])
    expected = Counter(verify._expected_incidents(log["novelties"], chain.topics["novelties"].partitions))
    found.multisets("incidents: fold", expected, Counter(verify._untimed(log["incidents"])))
    for table in tables(chain.topics):
        if table.query in RUNNING:
            verify._compare_table(found, chain, table, [r for topic in table.topics for r in log[topic.name]])
    return found


def create(chain: SmallChain, name: str):
    return sets.create(name, chain.settings, JOBS, chain.topics, chain.spark)


def test_a_chain_goes_on_from_its_savepoint_and_nothing_is_lost_or_doubled(small_chain: SmallChain, tmp_path: Path):
    chain, registry = small_chain, Registry.read(small_chain.settings.kafka_bootstrap)
    # It is taken while the chain is at work.
    chain.start_and_move()
    saved = create(chain, "all")
    chain.feed_until(190)
    chain.stop()

    assert {*saved.queries} == {*RUNNING} and saved == savepoints.read("all", chain.settings)
    cut.check_consistent({query: one.offsets for query, one in saved.queries.items()}, saved.ends)
    went_on = {query for query, one in saved.queries.items() if chain.committed(query, one.topics) != one.offsets}
    assert {"enrichment", "statistics", "detector", "incidents"} <= went_on

    # It moves as one file, and what is changed on the way is noticed.
    savepoints.export(saved, chain.settings, tmp_path / "all.tgz")
    copy = savepoints.take_in(tmp_path / "all.tgz", "copy", chain.settings)
    assert sets.verify(copy, chain.settings) == len(saved.files) > 0
    (Path(chain.settings.savepoint_of("copy")) / "checkpoint/detector/metadata").write_bytes(b"x")
    with pytest.raises(UserError, match=r"checkpoint/detector/metadata: has 1 bytes with the SHA-256"):
        sets.restore(copy, chain.settings, registry, chain.topics)

    # What doesn't fit is refused before anything is touched.
    other = chain.settings.model_copy(update={"shuffle_partitions": 3})
    with pytest.raises(UserError, match="KAPPA_SHUFFLE_PARTITIONS=3: the state of savepoint 'all' is laid out in 2"):
        sets.restore(saved, other, registry, chain.topics)
    assert Path(chain.settings.checkpoint_of("detector"), "written.json").exists() is False

    shutil.rmtree(chain.settings.checkpoint_of(""))
    sets.restore(saved, chain.settings, registry, chain.topics)
    chain.start()
    chain.feed_until(SECONDS)
    chain.stop()

    found = compared(chain)
    assert (found.lost, found.duplicated, found.wrong) == (0, 0, 0), found.examples
    assert min(found.compared[name] for name in ("statistics: fold", "novelties: fold", "incidents: fold")) > 0


def test_only_the_newest_of_a_schedule_are_kept(small_chain: SmallChain):
    now = datetime(2026, 9, 21, tzinfo=UTC)
    for day in range(2):
        rotation.rotate_all(
            "nightly", 1, small_chain.settings, lambda name: create(small_chain, name), now + timedelta(days=day)
        )
    names = [saved.name for saved in savepoints.every(small_chain.settings)]
    assert names == ["all", "copy", "nightly.live.20260922T000000Z"]
