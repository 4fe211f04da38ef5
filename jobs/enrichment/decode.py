"""Decodes a micro-batch: the records of each wire format by the format's decoder, retried dead letters as at first."""

from collections.abc import Callable, Sequence
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.decoders.registry import decoder_of
from connectors.prepared import Prepared, Step
from connectors.topic_rows import only_of
from infra.contract.dead_letters import REJECTED_BYTES, REJECTED_NAME
from infra.contract.retries import TOPIC as RETRY
from infra.contract.topics import TopicMap
from jobs.enrichment.identity import with_principal, with_principals_only
from jobs.enrichment.retry import decode_retried, names_of, topics_by_format


class BatchDecoder:
    """Decodes the rows of micro-batches: Kafka's columns and headers in, those of schemas.DECODED beside them out.

    Each format has a plan of its own, which is made when the first records of the format come: what no records come of
    costs nothing.
    """

    def __init__(self, topics: TopicMap, read_from: Callable[[Sequence[str]], Sequence[str]]) -> None:
        """`read_from` gives the names of the topics that stand for these in Kafka."""
        self._telemetry = topics.telemetry
        by_format = {name: names_of(spoken) for name, spoken in topics_by_format(topics.telemetry).items()}
        retried = [topics[RETRY].name]
        self._steps = [
            *(
                (read_from(spoken), self._step(self._bounded(decoder_of(name).decode), spoken))
                for name, spoken in by_format.items()
            ),
            (retried, self._step(partial(decode_retried, topics=topics), retried)),
        ]

    def __call__(self, rows: DataFrame) -> DataFrame:
        """The decoded rows."""
        found = [step(part) for topics, step in self._steps if (part := only_of(rows, topics)) is not None]
        if not found:
            _, step = self._steps[0]
            return step(rows)
        return reduce(DataFrame.unionByName, found)

    def _step(self, decode: Step, topics: Sequence[str]) -> Step:
        return Prepared(lambda rows: self._finished(decode(rows.where(F.col("topic").isin(topics)))))

    def _bounded(self, decode: Step) -> Step:
        """Decodes rows of which neither the key nor the headers are large: a record may give thousands of rows."""
        key = F.substring("key", 1, REJECTED_NAME)
        return lambda rows: decode(with_principals_only(rows.withColumn("key", key), self._telemetry))

    def _finished(self, decoded: DataFrame) -> DataFrame:
        """With who wrote each record, and with as many bytes of one that could not be decoded as its dead letter has.

        Each step that follows holds a copy or two of them.
        """
        named = with_principal(decoded, self._telemetry)
        return named.withColumn("value", F.substring("value", 1, REJECTED_BYTES))
