"""What pages show, by what tells that it has changed: the newest record of topics, the newest document of indices."""

import time
from collections.abc import Callable, Collection

from ops.console.documents import ELASTICSEARCH
from ops.console.reads import SourceDown
from ops.console.sources import KAFKA, Sources

INDEXED = ("novelties", "incidents", "rejected", "statistics")
TOPICS = {"control": "detector.control", "generations": "generations"}
CLOCK = "clock"  # of what changes all the time: lags and rates
OPERATIONS = "operations"  # what was begun here
FEEDS = (*INDEXED, *TOPICS, OPERATIONS, CLOCK)
CLOCK_SECONDS = 2


def signs(sources: Sources) -> dict[str, object]:
    """By feed a value that is another one once the feed has changed; of a source that is down, why it is."""
    indexed = _sign(lambda: sources.documents.newest(INDEXED), INDEXED)
    topics = _sign(lambda: sources.ends(TOPICS), tuple(TOPICS))
    return {**indexed, **topics, OPERATIONS: sources.operations.sign(), CLOCK: int(time.monotonic() // CLOCK_SECONDS)}


def _sign(look: Callable[[], dict[str, object]], feeds: tuple[str, ...]) -> dict[str, object]:
    try:
        return look()
    except SourceDown as error:
        return dict.fromkeys(feeds, error.reason)


def sources_of(feeds: Collection[str]) -> list[str]:
    """Where what these feeds show was read."""
    of_each = {ELASTICSEARCH: INDEXED, KAFKA: TOPICS}
    return [source for source, known in of_each.items() if {*known} & {*feeds}]
