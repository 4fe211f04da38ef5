"""The indexer as a job: a plain Python process, without Spark."""

import threading

from infra.contract.topics import TopicMap
from jobs.indexer import indexer
from jobs.runtime.settings import Settings


def run(settings: Settings, topics: TopicMap, stop: threading.Event) -> None:
    """Index until `stop` is set. Blocks."""
    indexer.run(settings, topics, stop, settings.instance)
