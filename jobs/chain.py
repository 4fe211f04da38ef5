"""Starts a job of the chain by its name: the `run` of `jobs/<name>/job.py`."""

import threading
from importlib import import_module

from infra.topics import TopicMap, load_topics
from jobs.runtime.preflight import check_surroundings
from jobs.runtime.settings import Settings


def run(name: str, settings: Settings, stop: threading.Event) -> None:
    """Run job `name` until `stop` is set. Only this job's packages are loaded.

    Raises UserError if its surroundings are not fit.
    """
    topics = topics_of(settings)
    check_surroundings(settings, topics, stop)
    import_module(f"jobs.{name}.job").run(settings, topics, stop)


def topics_of(settings: Settings) -> TopicMap:
    """The map as the settings' generation names it."""
    return load_topics(settings.topics_file).in_generation(settings.generation)
