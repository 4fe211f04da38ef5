"""The Spark jobs of the chain, by name."""

import threading
from collections.abc import Callable
from functools import partial

from infra.topics import TopicMap, load_topics
from jobs.archive.job import run_archive
from jobs.detector.job import DETECTOR
from jobs.enrichment.job import ENRICHMENT
from jobs.runtime.preflight import check_surroundings
from jobs.runtime.runner import run_job
from jobs.runtime.settings import Settings
from jobs.statistics.job import STATISTICS

JOBS = {job.name: job for job in (ENRICHMENT, STATISTICS, DETECTOR)}


def runner(name: str) -> Callable[[Settings, threading.Event], None]:
    """What runs job `name` until its event is set."""
    run = run_archive if name == "archive" else partial(run_job, JOBS[name])

    def checked(settings: Settings, stop: threading.Event) -> None:
        topics = topics_of(settings)
        check_surroundings(settings, topics)
        run(settings, topics, stop)

    return checked


def topics_of(settings: Settings) -> TopicMap:
    """The map as the settings' generation names it."""
    return load_topics(settings.topics_file).in_generation(settings.generation)
