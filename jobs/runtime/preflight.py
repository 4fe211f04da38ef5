"""Checks disk, broker and topics before a job starts, so that a wrong environment gives one line, not a traceback."""

import math
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator
from datetime import timedelta
from typing import TypeVar

import structlog
from confluent_kafka import KafkaException

from connectors.kafka.access import no_right, partitions_of, reach
from connectors.kafka.admin import BrokerLimits, read_limits
from connectors.kafka.client import make_admin
from connectors.kafka.security import client_config
from infra.contract.topics import Topic
from infra.errors import UserError
from jobs.runtime.rights import Right, first_missing
from jobs.runtime.settings import Settings

T = TypeVar("T")
MINIMUM_FREE_BYTES = 512 * 1024**2
YEAR_MINUTES = 525_600
REPLICATED = 3  # from so many replicas on, one may be lost without a stop

log = structlog.get_logger()


def check_surroundings(settings: Settings, topics: Collection[Topic], stop: threading.Event) -> None:
    """Raises UserError if no broker answers, one of `topics` is missing or has other partitions, or the disk is full.

    Waits settings.broker_patience_seconds for broker and topics, as a deployment starts everything at once.
    """
    settings.home.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(settings.home).free
    if free < MINIMUM_FREE_BYTES:
        raise UserError(
            f"KAPPA_HOME={settings.home}: {free // 1024**2} MB free; free at least 512 MB or choose another"
        )
    found = reach_broker(settings, {topic.name for topic in topics}, stop)
    for topic in topics:
        if topic.shards and found[topic.name] != topic.partitions:
            raise UserError(
                f"topic {topic.name!r} has {found[topic.name]} partitions, the map says {topic.partitions}: "
                "a sharded topic can't change; start a new generation"
            )


def check_limits(settings: Settings, topics: Collection[Topic], reads: Collection[Topic]) -> None:
    """Raises UserError if a limit of the brokers breaks a promise for jobs that use `topics` and read `reads`.

    Without the right to ask, or without an answer, there is one warning that says so.
    """
    try:
        limits = read_limits(make_admin(client_config(settings.kafka_bootstrap)), [topic.name for topic in topics])
    except (KafkaException, TimeoutError) as error:
        log.warning(
            "limits of the brokers not checked",
            reason=str(error),
            remedy="give this user DescribeConfigs on the cluster and on the topics of the map",
        )
        return
    if fault := next(faults(limits, settings, topics, reads), None):
        raise UserError(fault)


def faults(
    limits: BrokerLimits, settings: Settings, topics: Collection[Topic], reads: Collection[Topic]
) -> Iterator[str]:
    """What of the brokers' limits breaks a promise, each with the command that mends it."""
    tool = f"kafka-configs --bootstrap-server {settings.kafka_bootstrap} --alter"
    timeout = settings.transaction_timeout_seconds * 1000
    if (longest := int(limits.broker["transaction.max.timeout.ms"])) < timeout:
        yield (
            f"transaction.max.timeout.ms={longest} of the brokers is less than KAPPA_TRANSACTION_TIMEOUT_SECONDS="
            f"{settings.transaction_timeout_seconds}: no transaction could begin; set it to {timeout} in the brokers' "
            "configuration and restart them, or lower the setting"
        )
    kept = int(limits.broker["offsets.retention.minutes"])
    # After a longer rest, records are gone that were not read, and an operator must decide anyway.
    rest = min((t.retention for t in reads if t.cleanup == "delete"), default=timedelta())
    if timedelta(minutes=kept) < rest:
        needed = math.ceil(rest.total_seconds() / 60)
        yield (
            f"offsets.retention.minutes={kept} of the brokers is less than the {needed} minutes for which the topics "
            "that are read keep records: after a rest the job's progress markers would be gone; set it to "
            f"{max(needed, YEAR_MINUTES)} in the brokers' configuration and restart them"
        )
    for topic in topics:
        alter = f"run `{tool} --entity-type topics --entity-name {topic.name} --add-config"
        config, replicas = limits.topics[topic.name], limits.replicas[topic.name]
        if topic.is_derived and (most := int(config["max.message.bytes"])) < topic.max_message_bytes:
            yield (
                f"topic {topic.name!r} has max.message.bytes={most}, the map says {topic.max_message_bytes}: a larger "
                f"record would stop the job; {alter} max.message.bytes={topic.max_message_bytes}`"
            )
        in_sync = int(config["min.insync.replicas"])
        if in_sync > replicas:
            yield (
                f"topic {topic.name!r} has min.insync.replicas={in_sync}, but {replicas} replicas: nothing can be "
                f"written; {alter} min.insync.replicas={max(1, replicas - 1)}`"
            )
        if replicas >= REPLICATED and in_sync == 1:
            yield (
                f"topic {topic.name!r} has min.insync.replicas=1 with {replicas} replicas: what a job has committed "
                f"can be lost with one broker; {alter} min.insync.replicas=2`"
            )
        if replicas > 1 and config["unclean.leader.election.enable"] == "true":
            yield (
                f"topic {topic.name!r} has unclean.leader.election.enable=true: what a job has committed can be lost; "
                f"{alter} unclean.leader.election.enable=false`"
            )


def check_rights(settings: Settings, rights: Collection[Right], stop: threading.Event) -> None:
    """Raises UserError naming the first right that is missing; waits settings.broker_patience_seconds for it."""
    admin = reach(settings.kafka_bootstrap, settings.broker_patience_seconds, stop)

    def check() -> None:
        if right := first_missing(admin, rights):
            raise UserError(no_right(f"{right.kind} {right.name!r}", f" ({right.operation})"))

    _patiently(check, settings, stop)


def reach_broker(settings: Settings, wanted: set[str], stop: threading.Event) -> dict[str, int]:
    """The partitions of the topics `wanted`; waits settings.broker_patience_seconds for the broker and for them.

    Raises UserError if no broker lets us in, or a topic is missing or not for us to see.
    """
    bootstrap = settings.kafka_bootstrap
    admin = reach(bootstrap, settings.broker_patience_seconds, stop)

    def find() -> dict[str, int]:
        found = partitions_of(admin, wanted)
        if missing := wanted - found.keys():
            raise UserError(f"topic {min(missing)!r} is not on {bootstrap}: run `kappa topics apply`")
        return found

    return _patiently(find, settings, stop)


def _patiently(call: Callable[[], T], settings: Settings, stop: threading.Event) -> T:
    """Repeat a call that fails for as long as the settings say: a deployment makes topics and rights as it goes on."""
    deadline = time.monotonic() + settings.broker_patience_seconds
    while True:
        try:
            return call()
        except (UserError, KafkaException) as error:
            if time.monotonic() < deadline and not stop.wait(1):
                continue
            if isinstance(error, UserError):
                raise
            raise UserError(
                f"KAPPA_KAFKA_BOOTSTRAP={settings.kafka_bootstrap}: no broker answers; is Kafka up there?"
            ) from error
