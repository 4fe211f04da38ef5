"""The principals of an installation and the rights that each needs in Kafka.

A principal is a user of Kafka: the application that runs jobs, whoever else the map of topics names as a topic's
writer, and the people who use the command line.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from connectors.kafka.client import READER
from infra.contract import lateness
from infra.contract.topics import Topic, TopicMap
from jobs.runtime.rights import (
    ALTER_CONFIGS,
    CLUSTER,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    READ,
    WRITE,
    Right,
    rights_of,
)
from jobs.table import JOBS

SMALL = "jobs"  # the one process of the profile `small`
OPERATOR, ADMINISTRATOR = "operator", "administrator"
SIMULATOR, HOST = "simulator", "host"
# Who uses the commands that `written_by` of a topic may name.
COMMANDS = {
    "kappa detector": OPERATOR,
    "kappa inventory": OPERATOR,
    "kappa rejected": OPERATOR,
    "kappa replay": ADMINISTRATOR,
    "kappa simulate": SIMULATOR,
    "kappa host": HOST,
}
TRIALS = (SIMULATOR,)  # needed where there is no telemetry of one's own
NOBODY = "runtime"  # as a topic's writer: no user but those of the jobs, whose rights say which one writes it
_ANOTHER = "another"  # any generation but the live one

Rights = dict[str, frozenset[Right]]
Generation = tuple[Sequence[str], TopicMap]  # its jobs and its topics


def principals(
    generations: Mapping[str, Generation],
    *,
    restored: Mapping[str, Iterable[str]] = {},
    small: bool = False,
    trial: bool = False,
) -> Rights:
    """The rights of each principal, by its name without the prefix of the installation.

    `restored`: by generation, the topics with the archive's records which its first job reads instead of its inputs.
    `small`: all jobs run in one process. `trial`: with the simulator.
    """
    found: dict[str, set[Right]] = {}
    for name, (jobs, topics) in generations.items():
        for job in jobs:
            application = SMALL if small else JOBS[job].runs_in
            found.setdefault(application, set()).update(rights_of(JOBS[job], topics, name))
        for source in restored.get(name, ()):
            found[SMALL if small else JOBS[jobs[0]].runs_in].add(Right("topic", source, READ))
        for topic in topics:
            for writer in _writers(topic):
                found.setdefault(writer, set()).update(_of_writer(topic))
        # The simulator tells what must be late: as it is decided.
        found.setdefault(SIMULATOR, set()).update(_of_simulator(topics))
        found.setdefault(OPERATOR, set()).update(_of_operator(topics))
        found.setdefault(ADMINISTRATOR, set()).update(_of_administrator(topics))
    return {name: _minimal(rights) for name, rights in sorted(found.items()) if trial or name not in TRIALS}


def _writers(topic: Topic) -> Iterator[str]:
    for name in topic.written_by:
        if name != NOBODY:
            yield COMMANDS.get(name, name)


def _of_writer(topic: Topic) -> Iterator[Right]:
    yield Right("topic", topic.name, WRITE)


def _of_simulator(topics: TopicMap) -> Iterator[Right]:
    yield Right("topic", topics[lateness.TOPIC].name, READ)
    yield Right("group", READER, READ)


def _of_operator(topics: TopicMap) -> Iterator[Right]:
    """Reads what is kept, sees how far jobs are, sends dead letters again; what it writes beside that, the map says.

    Not kept are early results and progress markers, which concern jobs alone.
    """
    yield from (Right("topic", topic.name, READ) for topic in topics if topic.archive != "none")
    yield Right("group", "kappa.", DESCRIBE, is_prefix=True)  # that of whoever only reads is one of them
    yield Right("transactional-id", f"kappa.{topics['events.retry'].name}", WRITE)


def _of_administrator(topics: TopicMap) -> Iterator[Right]:
    """Makes topics; makes, runs and drops generations with topics, groups and checkpoints of their own."""
    replayed = [job for job in JOBS if job.follows_replays]
    used = {(right.name, right.operation) for job in replayed for right in rights_of(job, topics, _ANOTHER)}
    # What the archive alone still has goes into topics that a replay begins with.
    restored = {topic.name for job in replayed if job.is_replayable for topic in job.inputs(topics)}
    for topic in topics:
        is_copied = topic.is_derived or topic.name in restored
        operations = [CREATE, ALTER_CONFIGS]  # whoever may alter settings may ask for them
        operations += [DELETE] if is_copied else []
        operations += [one for one in (READ, WRITE) if (topic.name, one) in used]
        operations += [WRITE] if topic.name in restored else []
        for operation in operations:
            # A generation's topics begin with the names of those of the map.
            yield Right("topic", topic.name, operation, is_prefix=is_copied)
    yield Right("group", "kappa.", READ, is_prefix=True)
    yield Right("group", "kappa.", DELETE, is_prefix=True)
    yield Right("transactional-id", "kappa.", WRITE, is_prefix=True)
    yield Right("cluster", CLUSTER, ALTER_CONFIGS if topics.quotas else DESCRIBE_CONFIGS)


def _minimal(rights: Iterable[Right]) -> frozenset[Right]:
    """The rights without those that one by prefix gives as well."""
    by_prefix = [right for right in rights if right.is_prefix]
    return frozenset(
        right
        for right in rights
        if not any(
            (wide.kind, wide.operation) == (right.kind, right.operation)
            and right.name.startswith(wide.name)
            and wide != right
            for wide in by_prefix
        )
    )


def by_resource(rights: Iterable[Right]) -> dict[tuple[str, str, bool], list[str]]:
    """The operations on each resource: (kind, name, whether the name is a prefix)."""
    found: dict[tuple[str, str, bool], list[str]] = {}
    for right in sorted(rights):
        found.setdefault((right.kind, right.name, right.is_prefix), []).append(right.operation)
    return found
