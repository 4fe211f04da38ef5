"""The indexer as a job: with metrics and health like the others, but without Spark."""

import threading

from infra.contract.topics import TopicMap
from jobs.indexer import indexer
from jobs.runtime.metrics import MetricsServer
from jobs.runtime.settings import Settings


def run(settings: Settings, topics: TopicMap, stop: threading.Event) -> None:
    """Index until `stop` is set. Blocks."""
    with MetricsServer(settings, lambda: None):
        indexer.run(settings, topics, stop, settings.instance)
