"""What the decoder of a wire format is."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Decoder:
    """The decoder of the wire format `name`.

    `decode` takes the rows of the Kafka source. Their columns (key, value, topic, partition, offset, timestamp) come
    out as they went in, with the columns of `infra.contract.schemas.DECODED` beside them; `value` may be null where it
    was decoded.

    - A row is one machine's batch of events. A record that can't be decoded gives exactly one row.
    - No data point or log line vanishes: one that is unusable by itself is an event whose `value` or `time_unix_nano`
      is null. `error` says why a row can't be used as a whole.
    - Nothing raises: whatever the bytes are, there is a row.

    `needs_python` says that it runs in Spark's Python workers, which the real-time mode doesn't have.
    """

    name: str
    decode: Callable[[DataFrame], DataFrame]
    needs_python: bool = False
