"""Looks, mark and watch on a real broker, without Spark: a copy of a job is what its driver commits."""

import json
import uuid

import pytest
from confluent_kafka import Producer, TopicPartition
from typer.testing import CliRunner

from connectors.kafka import admin
from infra.contract.topics import load_topics
from jobs.runtime.commits import BatchCommitter
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.savepoints.saved import commit, tasks_of
from ops.upgrade import cli, mark, verdict, watch
from ops.upgrade.looks import Chain, Stand
from ops.upgrade.mark import Before, Mark, before_of

QUERY = "detector"
NOTHING = Stand("", 0, 0, 0, has_committed=False)


@pytest.fixture
def settings(servers, tmp_path, monkeypatch):
    """Of a generation of this test's own, whose topics are there; the environment says the same."""
    name = f"t{uuid.uuid4().hex[:8]}"
    for variable, value in {"KAFKA_BOOTSTRAP": servers.bootstrap, "HOME": str(tmp_path), "GENERATION": name}.items():
        monkeypatch.setenv(f"KAPPA_{variable}", value)
    settings = Settings()
    client = admin.connect(servers.bootstrap)
    admin.apply(client, [*topics_of(settings).derived, load_topics()["sink.progress"]])
    yield settings
    admin.delete(client, [topic.name for topic in topics_of(settings).derived])


@pytest.fixture
def chain(settings):
    """Detector and indexer, to be looked at."""
    chain = Chain(settings, topics_of(settings), ["detector", "indexer"])
    yield chain
    chain.close()


@pytest.fixture
def hurried(monkeypatch):
    """A watch whose minutes are a second."""
    monkeypatch.setattr(verdict, "SECONDS", 0.5)
    monkeypatch.setattr(verdict, "LONG_SECONDS", 1.5)
    monkeypatch.setattr(watch, "POLL_SECONDS", 0.05)


def topics_of(settings):
    return JOBS.topics_in(load_topics(), settings.generation)


class Copy:
    """A copy of the detector as far as the broker sees it: a driver that takes over, and commits batches."""

    def __init__(self, settings, planned=-1):
        self.reads = topics_of(settings)["statistics"].name
        self.committer = BatchCommitter(
            tasks_of(settings, settings.query_of(QUERY), "r"), lambda: planned, yields=False
        )
        self.next = planned + 1

    def do(self, offset):
        """A batch, which ends at this offset of the first partition."""
        self.committer.check(self.next)
        self.committer.commit(self.next, {(self.reads, 0): offset})
        self.next += 1


def arrive(settings, count):
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap})
    for _ in range(count):
        producer.produce(topics_of(settings)["statistics"].name, b"{}", partition=0)
    assert producer.flush(30) == 0


def test_a_look_says_who_writes_what_is_committed_and_what_is_unread(settings, chain):
    assert chain.look().stands == {"detector": NOTHING, "indexer": NOTHING}
    arrive(settings, 10)
    copy = Copy(settings)
    copy.do(4)
    assert chain.look().stands["detector"] == Stand(copy.committer.token, 1, 6, 10)
    copy.do(10)
    arrive(settings, 1)
    assert chain.look().stands["detector"] == Stand(copy.committer.token, 2, 1, 11)

    again = Copy(settings, planned=1)
    assert chain.look().stands["detector"] == Stand(again.committer.token, 2, 1, 11)
    assert again.committer.token != copy.committer.token


def test_a_job_without_a_driver_is_seen_by_its_group(settings, chain):
    arrive(settings, 3)
    read = topics_of(settings)["statistics"].name
    group = settings.query_of("indexer")
    commit(tasks_of(settings, group, ""), group, [TopicPartition(read, 0, 1)])
    looks = [chain.look()]
    assert looks[0].stands["indexer"] == Stand("", 0, 2, 3)
    assert before_of(looks) == {"indexer": Before(lag=2)}


def test_a_mark_is_read_as_it_was_written_and_takes_the_place_of_the_one_before(settings):
    for mode, name in (("savepoint", "upgrade.x"), ("checkpoint", None)):
        written = Mark(mode=mode, taken=mode, savepoint=name, queries={QUERY: Before(owner="a process 7 0f", lag=5)})
        mark.write(written, settings)
        assert mark.read(settings) == written


def test_an_upgrade_as_the_command_line_sees_it(settings, hurried, monkeypatch):
    monkeypatch.setattr(cli, "MEASURED_SECONDS", 0)
    arrive(settings, 10)
    former = Copy(settings)
    former.do(9)
    begun = call("begin", "--json")
    assert begun["queries"] == {QUERY: {"owner": former.committer.token, "lag": 1}}

    # The former copy still writes.
    late = call("watch", "--deadline", "1s", "--json", code=1)
    assert late["why"] == "detector: no copy of the new image has begun to write"

    # A new one goes on.
    new = Copy(settings, planned=0)
    new.do(10)
    ready = call("watch", "--deadline", "60s", "--json")
    assert ready["ready"] and ready["why"] == "each of 1 queries goes on; their lag is as before, or falls"
    assert ready["queries"][QUERY] == {
        "owner": new.committer.token, "batches": 2, "lag": 0, "end": 10, "has_committed": True,
    }  # fmt: skip

    # One that is started again with each look.
    monkeypatch.setattr(Chain, "look", started_again(settings, Chain.look))
    failed = call("watch", "--deadline", "60s", "--json", code=1)
    assert failed["why"].startswith("detector: was started 4 times in ")
    assert call("back", "--json") == {
        "savepoint": None, "restored": False, "why": "the former image goes on from its checkpoints: start it",
    }  # fmt: skip


def started_again(settings, look):
    def starting(chain):
        Copy(settings, planned=1)
        return look(chain)

    return starting


def call(*arguments, code=0):
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == code, done.exception or done.output
    return json.loads(done.stdout)
