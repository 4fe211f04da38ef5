"""A record of `incidents`, `alerts` or `novelties` as something to tell people, checked whole; without any I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from infra.contract.dead_letters import InvalidRecordError
from infra.contract.inventory import PLACES
from infra.settings import describe
from jobs.runtime.intake import LARGEST_NUMBER, LATEST_NANO, MACHINE_CHARACTERS, NOT_EXPECTED, TEXT_CHARACTERS, parse

Topic = Literal["incidents", "alerts", "novelties"]
TOPICS: tuple[Topic, ...] = get_args(Topic)
Phase = Literal["start", "update", "end"]
PHASES: tuple[Phase, ...] = get_args(Phase)
Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
MILD = frozenset({"new_entity", "gone"})  # verdicts that alone are worth knowing, but nobody has to act

Name = Annotated[str, Field(min_length=1, max_length=MACHINE_CHARACTERS)]
Sentence = Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS)]
Time = Annotated[int, Field(ge=0, le=LATEST_NANO)]
Number = Annotated[float, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
Places = Mapping[str, str]  # hypervisor, site, tenant and role of a machine, as far as they are known


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class Inventory(_Read):
    """Where a machine is, as its record says."""

    hypervisor: str | None = Field(None, max_length=MACHINE_CHARACTERS)
    site: str | None = Field(None, max_length=MACHINE_CHARACTERS)
    tenant: str | None = Field(None, max_length=MACHINE_CHARACTERS)
    role: str | None = Field(None, max_length=MACHINE_CHARACTERS)

    def places(self) -> dict[str, str]:
        """The facts that are known."""
        return {name: fact for name in PLACES if (fact := getattr(self, name))}


class Finding(_Read):
    """What the records of the three topics have in common."""

    id: Name
    phase: Phase
    time_unix_nano: Time
    since_unix_nano: Time
    text: Sentence


class Cause(_Read):
    """A likely cause of an incident."""

    kind: Name
    name: Name
    affected: int
    machines: int


class Member(_Read):
    """The first novelty of a machine of an incident."""

    machine: Name
    verdict: Name


class Incident(Finding):
    """A record of `incidents`."""

    machines: int
    novelties: int
    verdicts: list[Name] = Field(max_length=100)
    score: Number
    causes: list[Cause] = Field(max_length=100)
    members: list[Member] = Field(min_length=1, max_length=1000)


class Alert(Finding):
    """A record of `alerts`."""

    rule: Name
    name: Name
    severity: Severity
    machine: Name
    inventory: Inventory = Inventory()


class Novelty(Finding):
    """A record of `novelties`."""

    verdict: Name
    machine: Name
    inventory: Inventory = Inventory()
    series: str | None = Field(None, max_length=TEXT_CHARACTERS)
    unit: str | None = Field(None, max_length=MACHINE_CHARACTERS)
    score: Number
    observed: Number | None = None
    expected_low: Number | None = None
    expected_high: Number | None = None


MODELS: dict[Topic, type[Finding]] = {"incidents": Incident, "alerts": Alert, "novelties": Novelty}
Whereabouts = Callable[[str], Places]  # of a machine, which its record may not have


@dataclass(frozen=True)
class Notice:
    """What a record tells: of how much weight, about which machines, and where these are."""

    topic: Topic
    finding: Finding
    severity: Severity
    machines: tuple[tuple[str, Places], ...]  # those that the record names
    record: bytes

    @property
    def thread(self) -> str:
        """The id that all notifications of one incident, alert or novelty have in common; that of its start."""
        return _digest(self.topic, self.finding.id)

    @property
    def id(self) -> str:
        """The id of the notification: of the same record always the same."""
        if self.finding.phase == "start":
            return self.thread
        return _digest(self.topic, self.finding.id, self.finding.phase, str(self.finding.time_unix_nano))


def read_notice(topic: Topic, value: bytes, whereabouts: Whereabouts, critical_machines: int) -> Notice:
    """The notice of a record. Raises InvalidRecordError if it isn't as its schema says."""
    fields = parse(value)
    try:
        finding = MODELS[topic].model_validate(fields)
    except ValidationError as error:
        raise InvalidRecordError(NOT_EXPECTED, describe(error)[:1000]) from None
    return Notice(topic, finding, severity_of(finding, critical_machines), _machines(finding, whereabouts), value)


def severity_of(finding: Finding, critical_machines: int) -> Severity:
    """An alert has that of its rule; an incident of so many machines is critical; what is only new or gone is info."""
    match finding:
        case Alert():
            return finding.severity
        case Incident() if finding.machines >= critical_machines:
            return "critical"
        case Incident():
            return "info" if MILD.issuperset(finding.verdicts) else "warning"
        case _:
            return "info" if getattr(finding, "verdict", "") in MILD else "warning"


def is_at_least(severity: Severity, least: Severity) -> bool:
    """Whether a severity is `least` or graver."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(least)


def _machines(finding: Finding, whereabouts: Whereabouts) -> tuple[tuple[str, Places], ...]:
    match finding:
        case Incident():
            return tuple((member.machine, whereabouts(member.machine)) for member in finding.members)
        case Alert() | Novelty():
            return ((finding.machine, finding.inventory.places()),)
    return ()


def _digest(*parts: Any) -> str:
    return blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()
