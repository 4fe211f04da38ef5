"""The commit of a micro-batch, which makes its progress visible: to operators as consumer-group offsets, to the jobs
downstream as watermark records. And which copy of a job may commit: the last that has begun.

To begin, a copy opens the query's driver-side transactional writer, which fences those before it, and commits a token
of its own as metadata in the consumer group `<query>.owner`. Only then may Spark read the checkpoint. A copy that is
fenced plans at most one batch more, which the new one finds in the checkpoint: docs/explanation/exactly-once.md.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, TopicPartition

from connectors.kafka.client import fetch_committed, open_consumer, topic_partitions
from connectors.kafka.markers import MarkedWriter, ProgressSettings, read_markers
from connectors.kafka.retries import retrying
from connectors.kafka.transactions import FENCED, Row
from infra.contract.offsets import Offsets
from infra.errors import UserError

WATCH_SECONDS = 30.0  # in which a copy at work commits a batch, if there is anything to do
LOSERS = 8  # that are remembered; more than are ever started by mistake


@dataclass(frozen=True)
class Ownership:
    """Which copy may write: its token and host, and the hosts of those that have lost to it or to those before it."""

    token: str = ""
    host: str = ""
    lost: tuple[str, ...] = ()

    @classmethod
    def parse(cls, metadata: str) -> "Ownership":
        """Read what `format` has written; nobody, if it is empty."""
        fields = json.loads(metadata or "{}")
        return cls(**{**fields, "lost": tuple(fields.get("lost", ()))})

    def format(self) -> str:
        """As the metadata of an offset."""
        return json.dumps(asdict(self))

    def passed_to(self, token: str, host: str) -> "Ownership":
        """The ownership of the copy that takes over from this one."""
        lost = [name for name in dict.fromkeys((*self.lost, self.host)) if name and name != host]
        return Ownership(token, host, tuple(lost[-LOSERS:]))


def owner_group(query: str) -> str:
    """The consumer group whose metadata says which copy of a query may write."""
    return f"{query}.owner"


def owner_of(consumer: Consumer, progress_topic: str) -> Ownership:
    """Which copy of a query may write; `consumer` names the query's owner group. Raises KafkaException."""
    (found,) = fetch_committed(consumer, [TopicPartition(progress_topic, 0)])
    return Ownership.parse(found.metadata or "")


def present_owner(settings: ProgressSettings) -> Ownership:
    """Which copy of the query that `settings` name may write, asked of the broker until it answers."""
    with open_consumer(settings.connection, owner_group(settings.query)) as consumer:
        return retrying(settings.retry_seconds)(lambda: owner_of(consumer, settings.progress_topic))


class TakenOverError(UserError):
    """Another copy of this job has begun to write: this one must end, and not be started again."""


def taken_over(query: str, owner: Ownership) -> TakenOverError:
    """The error of a copy that isn't the owner."""
    return TakenOverError(f"{query}: another copy of this job runs on {owner.token or '?'}; stop one of them")


def driver_of(settings: ProgressSettings) -> ProgressSettings:
    """The settings of the writer of a query's driver, whose marker says how many batches are committed."""
    return replace(settings, query=f"{settings.query}.driver")


def batches_done(driver: ProgressSettings) -> int:
    """How many batches of a query are committed, of which `driver` has the driver's settings."""
    return max((marker.done for marker in read_markers(driver, [0], "read_uncommitted").values()), default=0)


class BatchCommitter:
    """Commits a micro-batch: its watermark records and its consumer-group offsets, in one driver-side transaction.

    The consumer group is named as the query, so that ordinary tools see the lag: Spark itself commits no offsets. The
    transactional id stays the same for the life of the process, so a second copy of the job fences the first one here.
    """

    def __init__(self, settings: ProgressSettings, planned: Callable[[], int], *, yields: bool = True) -> None:
        """Take over from whichever copy has written so far; `settings` are those of the query's sink.

        `planned` gives the number of the batch that the checkpoint has planned last, -1 for none. What was written was
        planned before, so a checkpoint that knows less is an old one. With `yields`, a copy on a host that has lost
        before doesn't take over from one that works.

        Raises ProgressError if another checkpoint was the last to write, or an older state of this one is given: before
        that one's job is fenced. Raises TakenOverError if it yields, or a third copy begins at the same time.
        """
        self.query, self._settings, self._host = settings.query, settings, socket.gethostname()
        self.token = f"{self._host} process {os.getpid()} {uuid4().hex[:8]}"
        driver = driver_of(settings)
        for marker in read_markers(driver, [0], "read_uncommitted").values():
            marker.check(driver, planned(), 1)
        former = present_owner(settings)
        if yields and self._host in former.lost:
            self._yield_to(former, driver)
        self._writer = MarkedWriter(driver, 0)
        with open_consumer(settings.connection, settings.query) as consumer:
            self._group = consumer.consumer_group_metadata()
        with self._owned():
            self._leave_token(former)

    @property
    def committed(self) -> int:
        """How many batches of the query are committed."""
        return self._writer.marker.done if self._writer.marker else 0

    def check(self, batch_id: int) -> None:
        """Raises ProgressError if `batch_id` of this checkpoint can't follow on what was committed last, and
        TakenOverError if another copy of this job has begun: before anything of the batch is written."""
        if self._writer.marker:
            self._writer.marker.check(self._writer.settings, batch_id, 1)
        with self._owned():
            self._writer.confirm()

    def commit(self, batch_id: int, end: Offsets, watermarks: Iterable[Row] = ()) -> None:
        """Commit the batch that ends at the offsets `end`; does nothing if an earlier attempt did.

        Raises TakenOverError if another copy of this job runs.
        """
        with self._owned():
            if self._writer.begin_batch(batch_id, 1):
                self._writer.produce(watermarks)
                self._writer.send_offsets(topic_partitions(end), self._group)
                self._writer.commit()

    def check_owner(self) -> None:
        """Raises TakenOverError if another copy of this job has begun since."""
        if (owner := present_owner(self._settings)).token != self.token:
            raise taken_over(self.query, owner)

    @contextmanager
    def _owned(self) -> Iterator[None]:
        """Turns the error of a fenced writer into TakenOverError, unless the broker fenced a slow transaction."""
        try:
            yield
        except KafkaException as error:
            self._writer.abandon()
            if error.args[0].code() in FENCED:
                self.check_owner()
            raise

    def _yield_to(self, owner: Ownership, driver: ProgressSettings) -> None:
        """Raises TakenOverError if the owner, which has taken over from a copy on this host, commits batches.

        A container that is always started again would take over from it in turns for ever.
        """
        before, deadline = batches_done(driver), time.monotonic() + WATCH_SECONDS
        while time.monotonic() < deadline:
            if batches_done(driver) > before:
                raise taken_over(self.query, owner)
            time.sleep(1)

    def _leave_token(self, former: Ownership) -> None:
        metadata = former.passed_to(self.token, self._host).format()
        with open_consumer(self._settings.connection, owner_group(self.query)) as consumer:
            group = consumer.consumer_group_metadata()
        self._writer.begin()
        self._writer.send_offsets([TopicPartition(self._settings.progress_topic, 0, 0, metadata=metadata)], group)
        self._writer.commit()
