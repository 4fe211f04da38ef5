"""Promotes and drops generations, in an order that a crash can't leave inconsistent for good.

The topic `generations` is written first, then the aliases and the Delta pointer. If these fail, the same command run
again corrects them; `kappa replay views` shows what readers see.
"""

import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from elasticsearch import Elasticsearch
from pyspark.sql import SparkSession

from connectors.kafka import admin
from connectors.kafka.offsets import Log
from connectors.sinks.elasticsearch import connect
from infra.contract.topics import LIVE, load_topics
from infra.errors import UserError
from jobs.indexer.index_names import index_of
from jobs.runtime.settings import Settings, present_identity
from jobs.table import JOBS
from ops.replay import restore, run, views
from ops.replay.diff import Diff
from ops.replay.progress import CatchUp, Watched
from ops.replay.registry import Generation, Promotion, Registry, write
from ops.savepoints.store import Store

# After a job has drained: Spark ends within 30 s or is killed, and then the session of a group ends 45 s later.
LEAVING_SECONDS = 90.0


def elasticsearch(settings: Settings) -> Elasticsearch:
    """A client of the settings' Elasticsearch."""
    return connect(settings.elasticsearch_url, settings.elasticsearch_identity(), present_identity)


def watch(name: str, registry: Registry, settings: Settings) -> Watched:
    """What observes the progress of a generation."""
    topics = registry.topics(name, load_topics(settings.topics_file))
    return Watched(registry.find(name), topics, settings, Log(settings.kafka_bootstrap))


def check_readable(generation: Generation) -> None:
    """Raises UserError if it runs without a job that keeps what it says for readers."""
    lacking = [job.name for job in JOBS if job.is_for_readers and job.name not in generation.jobs]
    if lacking:
        raise UserError(
            f"generation={generation.name}: runs without {' and '.join(lacking)}, so readers would find nothing; start "
            "another one with all jobs"
        )


def check_caught_up(watched: Watched, patience: float) -> None:
    """Raises UserError unless the generation follows the log and catches up within `patience` seconds."""
    name = watched.generation.name
    if not watched.generation.follows:
        raise UserError(
            f"generation={name}: ends at {watched.generation.until} and does not follow the log; or --force"
        )
    catch_up, deadline = CatchUp(watched), time.monotonic() + patience
    while group := catch_up.look():
        if time.monotonic() > deadline:
            raise UserError(
                f"generation={name}: {group} is {watched.behind(group)} records behind; wait for "
                "`kappa replay status` to say 0, or --force"
            )
        time.sleep(0.5)


def too_different(found: Diff, tolerance: float) -> str | None:
    """Why a generation that differs so from what readers see isn't promoted unseen; None if it may be."""
    if not found.shares:
        return "there is no record to compare"
    topic, share = max(found.shares.items(), key=lambda one: one[1])
    return f"{share:.2%} of {topic} differ, {tolerance:.2%} may" if share > tolerance else None


def promote(name: str, registry: Registry, settings: Settings, spark: SparkSession) -> Promotion:
    """Switch readers to a generation; the previous one is kept for a rollback.

    To promote the promoted generation again corrects aliases and tables, if an earlier attempt was interrupted.
    """
    declared = load_topics(settings.topics_file)
    wanted = views.indices(name, registry, declared)
    client = elasticsearch(settings)
    views.check_indices(client, wanted)
    rows = views.locations(name, registry, settings)
    before = registry.promotion
    after = before if before.generation == name else Promotion(generation=name, previous=before.generation)
    write(settings.kafka_bootstrap, after)
    views.switch_aliases(client, wanted)
    views.switch_tables(spark, rows, settings)
    _set_declared_retention(name, registry, settings)
    return after


def _set_declared_retention(name: str, registry: Registry, settings: Settings) -> None:
    """Give a promoted generation's topics the retention of the map; older records are in archive and indices."""
    topics = registry.topics(name, load_topics(settings.topics_file))
    own = {topic.name: topic.config for topic in topics.derived}
    retention = {name: {"retention.ms": c["retention.ms"]} for name, c in own.items() if "retention.ms" in c}
    admin.set_config(admin.connect(settings.kafka_bootstrap), retention)


def check_droppable(name: str, registry: Registry, settings: Settings) -> None:
    """Raises UserError if readers see the generation, another one reads from it, or its jobs run here."""
    if name in registry.lineage(registry.promotion.generation):
        raise UserError(f"generation={name}: readers see it; promote another one first")
    for other in registry.names:
        if other != name and name in registry.lineage(other):
            raise UserError(f"generation={name}: {other} reads from it; drop that one first")
    if (pid := run.running(settings.model_copy(update={"generation": name}))) is not None:
        raise UserError(f"generation={name}: process {pid} runs it; end that first (kill {pid})")


def drop(name: str, registry: Registry, settings: Settings) -> None:
    """Delete everything of a generation: topics, consumer groups, indices, checkpoints, Delta tables.

    The table `log` of the live generation stays: it has the telemetry that later replays may need.
    """
    topics = registry.topics(name, load_topics(settings.topics_file))
    client, generation = admin.connect(settings.kafka_bootstrap), registry.find(name)
    _delete_groups(client, name, settings.drain_seconds + LEAVING_SECONDS)
    restored = restore.names(generation, topics) if generation.source == "delta" else ()  # to their end or not
    admin.delete(client, [*(topic.name for topic in topics.derived), *restored])
    for alias in [index_of(topic.index, name) for topic in topics if topic.index]:
        for index in views.concrete(elasticsearch(settings), alias):  # by their names: servers refuse patterns
            elasticsearch(settings).indices.delete(index=index, ignore_unavailable=True)
    own = settings.model_copy(update={"generation": name})
    Store.of(own.checkpoint_of("")).remove()
    for table in [key for key, topic in topics.topics.items() if topic.archive == "parsed"]:
        Store.of(own.delta_of(table)).remove()
    if name != LIVE:
        Store.of(own.delta_of("")).remove()
        write(settings.kafka_bootstrap, generation.model_copy(update={"state": "dropped"}))


def _delete_groups(client: AdminClient, generation: str, patience: float) -> None:
    """Delete the generation's consumer groups; raises UserError if jobs are still in one after `patience` seconds."""
    deadline = time.monotonic() + patience
    while groups := [
        g.group_id for g in client.list_consumer_groups().result().valid if _is_of(g.group_id, generation)
    ]:
        for group, answer in client.delete_consumer_groups(groups).items():
            try:
                answer.result()
            except KafkaException as error:
                reason = error.args[0]
                if reason.code() != KafkaError.NON_EMPTY_GROUP or time.monotonic() > deadline:
                    raise UserError(f"{group}: {reason.str()}; end the jobs of {generation} first") from error
        time.sleep(1)


def _is_of(group: str | None, generation: str) -> bool:
    return bool(group and group.startswith(f"kappa.{generation}."))
