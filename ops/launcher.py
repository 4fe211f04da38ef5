"""Starts a job of the chain by its name: the `run` of `jobs/<name>/job.py`."""

import os
import threading
from importlib import import_module

from infra.contract.topics import LIVE, TopicMap, load_topics
from jobs.runtime.preflight import check_surroundings, reach_broker
from jobs.runtime.settings import Settings
from ops.replay.registry import Registry


def run(name: str, settings: Settings, stop: threading.Event, module: str = "job") -> None:
    """Run job `name` until `stop` is set, by a module of its package. Only this job's packages are loaded.

    Raises UserError if its surroundings are not fit.
    """
    registry = registry_for(settings, stop)
    settings = planned(name, settings, registry)
    topics = registry.topics(settings.generation, load_topics(settings.topics_file))
    check_surroundings(settings, topics, stop)
    import_module(f"jobs.{name}.{module}").run(settings, topics, stop)


def registry_for(settings: Settings, stop: threading.Event) -> Registry:
    """What `kappa replay` has planned; the live generation needs no plan, and no broker is asked for it.

    Raises UserError if no broker answers.
    """
    if settings.generation == LIVE:
        return Registry()
    reach_broker(settings, set(), stop)
    return Registry.read(settings.kafka_bootstrap)


def planned(name: str, settings: Settings, registry: Registry) -> Settings:
    """The settings of a job of a generation that `kappa replay start` has planned; others stay as they are.

    The plan goes before the environment, into which the settings of the jobs' own are put.
    """
    generation = registry.generations.get(settings.generation)
    if generation is None:
        return settings
    generation.check_runs(name)
    os.environ.update(generation.settings)
    return settings.model_copy(update={"replay": generation.replay}) if name == generation.jobs[0] else settings


def topics_of(settings: Settings) -> TopicMap:
    """The map as the settings' generation names it, if that runs the whole chain."""
    return load_topics(settings.topics_file).in_generation(settings.generation)
