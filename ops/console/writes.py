"""What the console writes, by the same functions as the command line: control events, the inventory, retries."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from connectors.kafka.offsets import Log
from jobs.detector import control
from jobs.detector.control import Control
from jobs.detector.rules import Rule
from ops import inventory
from ops.console.sources import Sources
from ops.redrive import Redriven, Wanted, chosen, redrive, with_ids


class Writes:
    """What is done is on the broker when a method returns; each raises UserError if it can't be done."""

    def __init__(self, sources: Sources) -> None:
        self._sources, self._settings = sources, sources.settings
        self._bootstrap = sources.settings.kafka_bootstrap

    def feedback(self, novelty: str, started_ms: int, by: str) -> str:
        """Say that a novelty which began at `started_ms` is none; returns its machine."""
        topic = self._sources.shown_topics()["novelties"].name
        begin = Log(self._bootstrap).at([topic], started_ms)
        event = control.feedback(self._bootstrap, topic, novelty, begin)
        self._say(event, by)
        return str(event["machine"])

    def reset(self, series: str, machine: str, by: str) -> None:
        """Say that these series, both globs, are learned anew."""
        self._say(control.reset(series, machine), by)

    def suppress(self, rule: Rule, by: str) -> None:
        """Say that the novelties that a rule matches are suppressed."""
        self._say(control.suppress(rule), by)

    def allow(self, rule_id: str, by: str) -> None:
        """Say that a rule holds no longer."""
        self._say(control.allow(rule_id), by)

    def _say(self, event: Control, by: str) -> None:
        control.send(self._bootstrap, self._sources.topics()[control.TOPIC], event, by)

    def retire(self, machine: str, by: str) -> None:
        """Say that a machine goes now."""
        inventory.retire(self._bootstrap, self._sources.topics(), machine, datetime.now(UTC), by)

    def retry(self, ids: Collection[str], wanted: Wanted) -> Redriven:
        """Retry the dead letters with these ids; without ids all that are wanted."""
        topics = self._sources.shown_topics()
        found = list(chosen(self._settings, topics, wanted))
        return redrive(self._settings, topics, with_ids(found, ids) if ids else found)

    @property
    def runs_processes(self) -> bool:
        """Whether the jobs of a new generation are processes of this machine."""
        return self._settings.platform == "processes"

    def command(self, arguments: Sequence[str], by: str) -> str:
        """Begin a command of `kappa` in the background; returns its text. Raises ElsewhereError, too."""
        return self._sources.operations.begin(arguments, by).command
