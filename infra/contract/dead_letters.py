"""Dead letters as Python makes them: a record that a stage can't use, with where it stood, why, and its bytes.

Enrichment makes its own with Spark's expressions (`jobs/enrichment/transform.py`), in the same form.
"""

import base64
from typing import Any, NamedTuple

TOPIC = "events.rejected"  # its key in the map of topics
# A dead letter, with these bytes in base64, has to fit into Kafka's 1 MB; `source` says where all of them are.
KEPT_BYTES = 500_000
REJECTED_BYTES = 1_000_000  # the same of those that enrichment makes
REJECTED_NAME = 1_000  # bytes of a key, characters of a machine's name
REASON_CHARACTERS = 2_000


class InvalidRecordError(Exception):
    """A record that a stage can't use: a stable code, and a reason for a person."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason


class Source(NamedTuple):
    """Where a record stood, and the Kafka timestamp that it had."""

    topic: str
    partition: int
    offset: int
    timestamp_unix_milli: int

    @property
    def name(self) -> str:
        """The key of its dead letter."""
        return f"{self.topic}/{self.partition}/{self.offset}"


def dead_letter(stage: str, source: Source, error: InvalidRecordError, value: bytes | None) -> dict[str, Any]:
    """The dead letter (schemas.REJECTED) of a record that `stage`, a job, can't use.

    Its id is made of stage, topic, partition and offset alone, so that a duplicate can be recognised.
    """
    return {
        "id": f"{stage}/{source.name}",
        "stage": stage,
        "code": error.code,
        "reason": error.reason[:REASON_CHARACTERS],
        "source": source._asdict(),
        "value": base64.b64encode((value or b"")[:KEPT_BYTES]).decode(),
        "events": 1,
    }
