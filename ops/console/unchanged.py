"""What was read of a topic from its beginning on, kept for as long as nothing is written to it."""

from collections.abc import Callable
from typing import Any, TypeVar

from connectors.kafka.offsets import Log
from infra.contract.offsets import Offsets

T = TypeVar("T")


class UnchangedTopics:
    """What was read of topics of few records; safe for several threads, of which two may read the same at once."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known: dict[str, tuple[Offsets, Any]] = {}  # by topic: where it ended, what was read then

    def read(self, topic: str, read: Callable[[], T]) -> T:
        """What `read` gives of a topic: what it gave before, while the topic ends where it did."""
        try:
            ends = self._log.ends([topic])
        except KeyError:  # there is no such topic
            return read()
        known = self._known.get(topic)
        if known is None or known[0] != ends:
            known = self._known[topic] = ends, read()
        answer: T = known[1]
        return answer
