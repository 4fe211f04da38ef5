"""A secured installation: servers that ask who one is, and a user for each application, as `kappa acl` makes it."""

import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import yaml
from confluent_kafka import KafkaException

from connectors.kafka import admin
from connectors.kafka.offsets import Log, missing
from infra.contract.topics import DEFAULT_MAP, TopicMap, load_topics
from infra.jars import default_jars
from infra.local import LocalServers
from infra.local.identities import ADMIN
from jobs.runtime.rights import Right
from jobs.runtime.settings import query_name
from jobs.table import JOBS
from ops.acl import broker as rights
from ops.acl.broker import Difference
from tests.acting import acting_as
from tests.chaos.processes import Job
from tests.waiting import until

OPTIONAL = ("rules", "notifier")
COMMAND_SECONDS = 300.0
GROUP_SECONDS = 90.0  # until a broker takes a member that was killed for gone


@dataclass(frozen=True)
class Done:
    """How a command has ended, and what it has printed."""

    code: int
    said: str


class Installation:
    """Secured servers of one home, their users, and the applications of the job table as processes.

    Whoever uses it is within `as_user(ADMIN)`, but for starting the servers.
    """

    def __init__(self, home: Path, port: int) -> None:
        self.home = home
        self.servers = LocalServers(
            home, kafka_port=port, elasticsearch_port=port + 3, jars=default_jars(), secured=True
        )
        self.bootstrap = self.servers.bootstrap
        self.topics_file = home / "topics.yaml"

    @property
    def topics(self) -> TopicMap:
        """The map, in which records have their senders' times: minutes are sent in seconds."""
        return load_topics(self.topics_file)

    def prepare(self) -> None:
        """Make the topics, and the users with their rights and keys."""
        declared = yaml.safe_load(DEFAULT_MAP.read_text())
        declared["telemetry"]["timestamp"] = declared["topics"]["inventory"]["timestamp"] = "CreateTime"
        declared["defaults"]["retention"] = "3650d"
        self.topics_file.write_text(yaml.safe_dump(declared, sort_keys=False))
        admin.apply(admin.connect(self.bootstrap), self.topics)
        self.do("acl", "apply", "--trial", "--users", str(self.secrets("")))
        self.do("acl", "keys", str(self.secrets("")))

    def secrets(self, user: str) -> Path:
        """The folder of a user of the servers."""
        assert self.servers.identities
        return self.servers.identities.user(user)

    def environment(self, user: str, home: Path | None = None) -> dict[str, str]:
        """The variables of a process that is this user."""
        return {
            "KAPPA_SECRETS": str(self.secrets(user)),
            "KAPPA_HOME": str(home or self.home),
            "KAPPA_JARS": str(default_jars()),
            "KAPPA_TOPICS_FILE": str(self.topics_file),
            "KAPPA_KAFKA_BOOTSTRAP": self.bootstrap,
            "KAPPA_ELASTICSEARCH_URL": self.servers.elasticsearch_url,
            "KAPPA_OPTIONAL_JOBS": ",".join(OPTIONAL),
            "KAPPA_METRICS_PORT": "0",
            "KAPPA_TRIGGER_SECONDS": "0.2",
            "KAPPA_ARCHIVE_TRIGGER_SECONDS": "0.2",
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
        }

    def do(self, *arguments: str, user: str = ADMIN) -> str:
        """Run a command as a user, to its end; gives what it has printed."""
        done = self.attempt(*arguments, user=user)
        assert done.code == 0, f"{arguments}: {done.code}: {done.said[-2000:]}"
        return done.said

    def attempt(self, *arguments: str, user: str) -> Done:
        """The same of a command that may fail."""
        command = Job("-".join(arguments[:2]), arguments, self.environment(user), self.home / "log" / "commands.log")
        command.start()
        until(lambda: command.code is not None, COMMAND_SECONDS, f"{arguments} does not end")
        assert command.code is not None
        return Done(command.code, command.output())

    def as_user(self, user: str) -> AbstractContextManager[None]:
        """Within, this process's own clients are those of a user."""
        return acting_as(self.secrets(user))

    def jobs(self, application: str) -> tuple[str, ...]:
        """The names of the jobs that an application runs."""
        return JOBS.applications(JOBS.names())[application]

    def application(self, name: str, home: Path | None = None, **environment: str) -> Job:
        """An application of the job table as its own user, without the checks before its start."""
        program = (sys.executable, "-m", "tests.rights.unchecked")
        variables = self.environment(f"kappa-{name}", home) | environment
        return Job(name, ("run", name), variables, self.home / "log" / f"{name}.log", program=program)

    # How far an application is

    def lag(self, application: str) -> dict[str, int]:
        """By query, how many offsets it has not committed; only of those that are behind."""
        log, behind = Log(self.bootstrap), {}
        for job in self.jobs(application):
            for query, topics in JOBS[job].reads_of(self.topics).items():
                ends = log.ends([topic.name for topic in topics])
                if left := missing(log.committed(query_name("live", query), ends), ends):
                    behind[query] = left
        return behind

    def forget(self, application: str) -> None:
        """Delete the application's consumer groups: with a new home it begins with the log's beginning."""
        prefixes = tuple(query_name("live", job) for job in self.jobs(application))

        def is_done() -> bool:
            client = admin.connect(self.bootstrap)
            listed = client.list_consumer_groups().result(30).valid
            names = [one.group_id for one in listed if one.group_id.startswith(prefixes)]
            try:
                for deletion in client.delete_consumer_groups(names).values() if names else ():
                    deletion.result(30)
            except KafkaException:  # a member that was killed is still in it
                return False
            return True

        until(is_done, GROUP_SECONDS, f"the groups of {application} can't be deleted")

    # Rights

    def deny(self, user: str, right: Right) -> None:
        """Take a right away that a user has."""
        rights.delete(admin.connect(self.bootstrap), [Difference(user, frozenset(), frozenset({right}))])

    def allow(self, user: str, right: Right) -> None:
        """Give it back."""
        rights.create(admin.connect(self.bootstrap), [Difference(user, frozenset({right}), frozenset())])
