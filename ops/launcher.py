"""Starts the jobs of a generation: one application in this process, or all of them."""

import threading
from collections.abc import Sequence

from infra.contract.jobs import Job, load
from infra.contract.topics import LIVE, TopicMap, load_topics
from jobs.runtime.job_settings import load_job_settings
from jobs.runtime.preflight import check_limits, check_rights, check_surroundings, reach_broker
from jobs.runtime.priority import give_way
from jobs.runtime.rights import Right, rights_of
from jobs.runtime.runner import PlannedJob, run_application
from jobs.runtime.settings import Settings
from jobs.runtime.supervisor import supervise
from jobs.table import JOBS
from ops.replay.registry import Registry

ALL = "all"


def run(application: str, settings: Settings, stop: threading.Event) -> None:
    """Run an application of the job table until `stop`, or all jobs as one application where `application` is `all`.

    Only the jobs that the settings' generation runs are started; only their packages are loaded.

    Raises UserError, before anything starts, if their environment or settings are invalid.
    """
    declared = load_topics(settings.topics_file)
    JOBS.check(declared)
    registry = registry_for(settings, stop)
    names = jobs_of(settings, registry)
    wanted = [name for name in names if application in (ALL, JOBS[name].runs_in)]
    if not wanted:
        wanted = [_asked_for(application, settings, registry)]
    if all(JOBS[name].is_background for name in wanted):
        give_way()
    planned = [plan_job(JOBS[name], settings, registry) for name in wanted]
    topics = registry.topics(settings.generation, declared)
    for one in planned:
        one.check(topics)
    used = JOBS.used(wanted, topics)
    check_surroundings(settings, used, stop)
    check_rights(settings, rights_in(wanted, topics, settings.generation), stop)
    check_limits(settings, used, [topic for name in wanted for topic in JOBS[name].inputs(topics)])
    run_application(application, planned, settings, topics, stop)


def rights_in(jobs: Sequence[str], topics: TopicMap, generation: str) -> frozenset[Right]:
    """What the process that runs these jobs of a generation needs in Kafka."""
    return frozenset[Right]().union(*(rights_of(JOBS[name], topics, generation) for name in jobs))


def run_realtime(job: Job, settings: Settings, stop: threading.Event) -> None:
    """Run the real-time mode of a job until `stop`. Raises UserError if its environment is invalid."""
    registry = registry_for(settings, stop)
    planned = plan_job(job, settings, registry)
    topics = registry.topics(settings.generation, load_topics(settings.topics_file))
    used = JOBS.used([job.name], topics)
    check_surroundings(settings, used, stop)
    check_rights(settings, rights_of(job, topics, settings.generation), stop)
    check_limits(settings, used, job.inputs(topics))
    load(job.realtime or "")(planned.settings, topics, stop, planned.own)


def run_all(settings: Settings, stop: threading.Event) -> int:
    """Run each application of the generation as a supervised process until `stop`; returns the exit code."""
    applications = JOBS.applications(jobs_of(settings, registry_for(settings, stop)))
    return supervise(tuple(applications), settings, stop)


def jobs_of(settings: Settings, registry: Registry) -> Sequence[str]:
    """The names of the jobs that the settings' generation runs."""
    generation = registry.planned(settings.generation)
    return generation.jobs if generation else JOBS.enabled(settings.optional_jobs)


def _asked_for(application: str, settings: Settings, registry: Registry) -> str:
    """The name of an optional job that is started by name; a planned generation runs only the jobs of its plan."""
    if generation := registry.planned(settings.generation):
        generation.check_runs(application)
    return JOBS[application].name


def plan_job(job: Job, settings: Settings, registry: Registry) -> PlannedJob:
    """A job with the settings of the generation's plan, and the part of the log that it is to read.

    Raises UserError naming the setting that can't be used.
    """
    generation = registry.planned(settings.generation)
    if generation is None:
        return PlannedJob(job, settings, load_job_settings(job))
    generation.check_runs(job.name)
    settings = settings.model_copy(update={"replay": generation.replay_of(job.name)})
    return PlannedJob(job, settings, load_job_settings(job, generation.changes(job.name)))


def registry_for(settings: Settings, stop: threading.Event) -> Registry:
    """The registry of planned generations; for the live generation an empty one, without asking the broker.

    Raises UserError if no broker answers.
    """
    if settings.generation == LIVE:
        return Registry()
    reach_broker(settings, set(), stop)
    return Registry.read(settings.kafka_bootstrap)


def topics_of(settings: Settings) -> TopicMap:
    """The map of topics of the settings' generation, for one that runs the whole chain."""
    return JOBS.topics_in(load_topics(settings.topics_file), settings.generation)
