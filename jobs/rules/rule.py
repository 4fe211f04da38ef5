"""What the kinds of rules have in common: which machines and events a rule watches, and what it keeps of a machine."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import blake2b
from string import Formatter
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from infra.contract.inventory import PLACES
from infra.contract.topics import in_nanoseconds, parse_duration

Record = dict[str, Any]
Phase = Literal["start", "end"]
SECOND = 10**9
SEVERITIES = {"TRACE": 1, "DEBUG": 5, "INFO": 9, "WARN": 13, "ERROR": 17, "FATAL": 21}  # OTLP's numbers


def _nanoseconds(text: object) -> int:
    return in_nanoseconds(parse_duration(text))


def _checked_expression(pattern: str) -> str:
    try:
        pc.match_substring_regex(pa.array([""]), pattern=pattern)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{error}; RE2's syntax has neither look-around nor back-references") from None
    return pattern


Nanoseconds = Annotated[int, BeforeValidator(_nanoseconds), Field(gt=0)]
Expression = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_checked_expression)]  # of RE2: linear
Glob = Annotated[str, Field(min_length=1)]


class Declared(BaseModel):
    """A part of the file of rules: it can't be changed, and a field that it doesn't have is a fault."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Machines(Declared):
    """Which machines a rule watches: those that match all globs that are given."""

    machine: Glob = "*"
    site: Glob | None = None
    tenant: Glob | None = None
    role: Glob | None = None
    hypervisor: Glob | None = None

    def may_take(self, machine: str) -> bool:
        """Whether a machine of this name is watched if its inventory facts match too."""
        return fnmatchcase(machine, self.machine)

    def takes(self, machine: str, inventory: Record) -> bool:
        """Whether a machine with these inventory facts is watched; a fact that it lacks is the empty text."""
        globs = {name: glob for name in PLACES if (glob := getattr(self, name)) is not None}
        return self.may_take(machine) and all(
            fnmatchcase(inventory.get(name) or "", glob) for name, glob in globs.items()
        )


class Events(Declared):
    """Which events of a machine a rule looks at: data points of a metric, or log lines, that meet all that is given."""

    metric: Glob | None = None  # of the metric's name, or of the series: name{key=value,...}
    above: float | None = Field(None, allow_inf_nan=False)
    below: float | None = Field(None, allow_inf_nan=False)
    log: Expression | None = None  # found in the line's body
    template: Expression | None = None  # found in its template
    severity: Literal["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"] | None = None  # at least

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        of_lines = self.log or self.template or self.severity
        if bool(self.metric) == bool(of_lines):
            raise ValueError("give either metric, or some of log, template and severity")
        if of_lines and (self.above is not None or self.below is not None):
            raise ValueError("above and below are for a metric; a log line has no value")
        return self

    def takes_series(self, name: str, series: str) -> bool:
        """Whether it looks at the data points of a series."""
        return self.metric is not None and (fnmatchcase(name, self.metric) or fnmatchcase(series, self.metric))

    def takes_value(self, value: float | None) -> bool:
        """Whether a data point of such a series is meant; one without a value, of a histogram, has no threshold."""
        if self.above is None and self.below is None:
            return True
        return value is not None and (
            (self.above is None or value > self.above) and (self.below is None or value < self.below)
        )

    def taken_lines(self, bodies: pa.StringArray, templates: pa.StringArray, severities: Sequence[int]) -> set[int]:
        """The places of the log lines that are meant; all columns are of the same length."""
        found = set(range(len(severities))) if self.metric is None else set()
        for expression, column in ((self.log, bodies), (self.template, templates)):
            if expression and found:
                matched = pc.match_substring_regex(column, pattern=expression).to_pylist()
                found &= {place for place, matches in enumerate(matched) if matches}
        least = SEVERITIES[self.severity] if self.severity else 0
        return {place for place in found if severities[place] >= least}


class Observation(NamedTuple):
    """An event that a rule looks at."""

    step: int  # which of the rule's selectors took it
    series: str
    value: float | None
    body: str | None

    @property
    def order(self) -> tuple[Any, ...]:
        """Sorts those of one time by content; later steps first, so that no event follows one of the same time."""
        return (-self.step, self.series, self.value is not None, self.value or 0.0, self.body or "")

    def shown(self, time: int) -> Record:
        """As JSON of schemas.OBSERVED."""
        fields = {"series": self.series, "time_unix_nano": time, "value": self.value, "body": self.body}
        return {name: value for name, value in fields.items() if value is not None}


class Finding(NamedTuple):
    """The start or the end of a rule's pattern on a machine."""

    phase: Phase
    time: int
    started: int  # the time of its start
    since: int  # of the first event of the pattern
    observed: tuple[Record, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()  # what the rule's text may name, beside what every text may


class Tracker(ABC):
    """What a rule keeps of one machine. It is fed in event time, so nothing but events can show in its findings."""

    def __init__(self, cooldown: int, packed: Record) -> None:
        self.cooldown = cooldown
        self.cooldown_end: int = packed.get("cooldown_end", 0)

    @abstractmethod
    def take(self, time: int, observations: Sequence[Observation]) -> Iterator[Finding]:
        """Take the events of one time, in their order; it was advanced to this time before."""

    @abstractmethod
    def advance(self, before: int) -> Iterator[Finding]:
        """Every event earlier than `before` was taken: say what that makes known, and drop what can't matter."""

    @abstractmethod
    def packed(self) -> Record:
        """The state as JSON, which the constructor takes; empty if it is that of a new tracker."""

    def close(self, time: int) -> Iterator[Finding]:
        """The rule doesn't watch the machine any more, from this time on."""
        yield from ()

    def cools_down(self, time: int) -> bool:
        """Whether no pattern may start, as one did shortly before."""
        return time < self.cooldown_end

    def start(self, time: int, since: int, observed: Sequence[Record], **fields: str) -> Finding:
        """The finding of a pattern that starts; the cooldown begins."""
        self.cooldown_end = time + self.cooldown
        return Finding("start", time, time, since, tuple(observed), tuple(fields.items()))

    def packed_cooldown(self) -> Record:
        """The common part of the packed state."""
        return {"cooldown_end": self.cooldown_end} if self.cooldown_end else {}

    def end_cooldown(self, before: int) -> None:
        """Drop a cooldown that is over."""
        if self.cooldown_end <= before:
            self.cooldown_end = 0


class Rule(Declared):
    """A pattern in event time over the events of each machine that it watches. A kind of pattern is a subclass."""

    FIELDS: ClassVar[tuple[str, ...]] = ()  # what a kind's text may name beside COMMON_FIELDS
    COMMON_FIELDS: ClassVar[tuple[str, ...]] = ("machine", "name", *PLACES)
    WATCHES_PRESENCE: ClassVar[bool] = False  # whether it must know of all events of a machine

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")
    name: str = Field(min_length=1, max_length=200)
    severity: Literal["info", "warning", "critical"] = "warning"
    match: Machines = Machines()
    cooldown: Nanoseconds = 300 * SECOND  # after a start, the same machine has none for so long
    text: str = Field(min_length=1, max_length=1000)

    @model_validator(mode="after")
    def _names_what_there_is(self) -> Self:
        known = (*self.COMMON_FIELDS, *self.FIELDS)
        for _, field, form, conversion in Formatter().parse(self.text):
            if field is not None and (field not in known or form or conversion):
                raise ValueError(f"text names {{{field}}}; it may name {', '.join(f'{{{name}}}' for name in known)}")
        return self

    @property
    @abstractmethod
    def selectors(self) -> tuple[Events, ...]:
        """What it looks at, step by step; none: that there is any event."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """For how long, ns, it may have to remember an event."""

    @abstractmethod
    def tracker(self, packed: Record | None = None) -> Tracker:
        """What it keeps of a machine: of a new one, or as it was packed."""

    @cached_property
    def fingerprint(self) -> str:
        """The same as long as the rule says the same."""
        return blake2b(self.model_dump_json().encode(), digest_size=8).hexdigest()

    def alert(self, machine: str, inventory: Record, finding: Finding) -> Record:
        """A finding as JSON of schemas.ALERTS."""
        identity = f"{self.id}\x1f{machine}\x1f{finding.started}".encode()
        places = {name: inventory.get(name) or "" for name in PLACES}
        text = self.text.format(machine=machine, name=self.name, **places, **dict(finding.fields))
        if finding.phase == "end":
            text += f" (over after {seconds(finding.time - finding.since)} s)"
        return {
            "id": blake2b(identity, digest_size=16).hexdigest(),
            "phase": finding.phase,
            "rule": self.id,
            "name": self.name,
            "severity": self.severity,
            "machine": machine,
            "inventory": inventory,
            "time_unix_nano": finding.time,
            "since_unix_nano": finding.since,
            "observed": list(finding.observed),
            "text": text,
        }


def seconds(nanoseconds: int) -> str:
    """A time for a sentence: seconds with at most a decimal."""
    return f"{round(nanoseconds / SECOND, 1):g}"
