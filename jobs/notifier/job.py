"""The declaration of the notifier for the job table: a plain Python process, without Spark."""

import threading

from infra.contract.topics import TopicMap
from jobs.notifier import notifier
from jobs.notifier.settings import NotifierSettings
from jobs.runtime.settings import Settings


def run(settings: Settings, topics: TopicMap, stop: threading.Event) -> None:
    """Notify people of the records of `topics` until `stop` is set. Blocks."""
    notifier.run(settings, topics, NotifierSettings().routing(), stop)
