"""The commit of a micro-batch, which makes its progress visible: to operators as consumer-group offsets, to the jobs
downstream as watermark records."""

from collections.abc import Iterable
from dataclasses import replace

from confluent_kafka import KafkaError, KafkaException

from connectors.kafka.client import open_consumer, topic_partitions
from connectors.kafka.markers import MarkedWriter, ProgressSettings, read_markers
from connectors.kafka.transactions import Row
from infra.contract.offsets import Offsets
from infra.errors import UserError

_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


class TakenOverError(UserError):
    """Another copy of this job has begun to write: this one must end, and not be started again."""


class BatchCommitter:
    """Commits a micro-batch: its watermark records and its consumer-group offsets, in one driver-side transaction.

    The consumer group is named as the query, so that ordinary tools see the lag: Spark itself commits no offsets. The
    transactional id stays the same for the life of the process, so a second copy of the job fences the first one here.
    """

    def __init__(self, settings: ProgressSettings) -> None:
        """`settings` are those of the query's sink.

        Raises ProgressError if another checkpoint was the last to write: before it fences that one's job.
        """
        self.query = settings.query
        driver = replace(settings, query=f"{settings.query}.driver")
        for marker in read_markers(driver, [0], "read_uncommitted").values():
            marker.check(driver, marker.done, 1)
        self._writer = MarkedWriter(driver, 0)
        with open_consumer(settings.connection, settings.query) as consumer:
            self._group = consumer.consumer_group_metadata()

    def check(self, batch_id: int) -> None:
        """Raises ProgressError if `batch_id` of this checkpoint can't follow on what was committed last."""
        if self._writer.marker:
            self._writer.marker.check(self._writer.settings, batch_id, 1)

    def commit(self, batch_id: int, end: Offsets, watermarks: Iterable[Row] = ()) -> None:
        """Commit the batch that ends at the offsets `end`; does nothing if an earlier attempt did.

        Raises TakenOverError if another copy of this job runs.
        """
        try:
            if self._writer.begin_batch(batch_id, 1):
                self._writer.produce(watermarks)
                self._writer.send_offsets(topic_partitions(end), self._group)
                self._writer.commit()
        except KafkaException as error:
            self._writer.abandon()
            if error.args[0].code() not in _FENCED:
                raise
            raise TakenOverError(f"{self.query}: another copy of this job runs; stop one of them") from error
