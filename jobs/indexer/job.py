"""The declaration of the indexer for the job table: a plain Python process, without Spark."""

import threading

from infra.contract.topics import TopicMap
from jobs.indexer import indexer
from jobs.indexer.settings import IndexerSettings
from jobs.runtime.settings import Settings


def run(settings: Settings, topics: TopicMap, stop: threading.Event) -> None:
    """Index the topics of `topics` until `stop` is set. Blocks."""
    indexer.run(settings, IndexerSettings(), topics, stop)
