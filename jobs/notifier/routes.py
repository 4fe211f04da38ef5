"""The file of routes: which notices go to which channels, and when. Checked whole before anything starts."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Self

import yaml
from pydantic import AfterValidator, Field, ValidationError, model_validator

from infra.contract.dead_letters import Source
from infra.contract.inventory import PLACES
from infra.contract.topics import Duration, in_nanoseconds
from infra.errors import UserError
from infra.settings import describe
from jobs.notifier.channels import AnyChannel
from jobs.notifier.declared import Declared
from jobs.notifier.deliveries import Deliveries, escalates
from jobs.notifier.delivery import Content, Delivery
from jobs.notifier.notice import Notice, Places, Severity, Topic, is_at_least
from jobs.notifier.quiet import Quiet, hold_until
from jobs.notifier.text import text_of, title_of

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
Glob = Annotated[str, Field(min_length=1)]
LINK_FIELDS = ("topic", "id", "machine")


class Match(Declared):
    """Which machines a route is about: of a notice, one machine must match all globs that are given."""

    machine: Glob = "*"
    site: Glob | None = None
    tenant: Glob | None = None
    role: Glob | None = None
    hypervisor: Glob | None = None

    def takes(self, machine: str, places: Places) -> bool:
        """Whether a machine at these places is meant; a place that isn't known is the empty text."""
        globs = {place: glob for place in PLACES if (glob := getattr(self, place)) is not None}
        return fnmatchcase(machine, self.machine) and all(
            fnmatchcase(places.get(place, ""), glob) for place, glob in globs.items()
        )


class Route(Declared):
    """What goes to some channels, and when it waits. Each notice takes every route that takes it."""

    name: Name
    topics: tuple[Topic, ...] = Field(default=("incidents", "alerts"), min_length=1)
    severity: Severity = "info"  # at least
    match: Match = Match()
    updates: bool = True  # false: only start, end, and what is graver than all before
    quiet: tuple[Quiet, ...] = ()
    channels: tuple[str, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _ends_quiet_hours(self) -> Self:
        self.hold_until(0)  # of a week that begins at any time, the quiet hours are the same
        return self

    def hold_until(self, time_unix_nano: int) -> int:
        """Until when what has this time waits because of quiet hours; the time itself if it doesn't."""
        return hold_until(self.quiet, time_unix_nano)

    def takes(self, notice: Notice) -> bool:
        """Whether a notice takes this route."""
        return (
            notice.topic in self.topics
            and is_at_least(notice.severity, self.severity)
            and any(self.match.takes(machine, places) for machine, places in notice.machines)
        )


def _checked_link(link: str) -> str:
    for _, field, form, conversion in Formatter().parse(link):
        if field is not None and (field not in LINK_FIELDS or form or conversion):
            raise ValueError(f"names {{{field}}}; it may name {', '.join(f'{{{name}}}' for name in LINK_FIELDS)}")
    return link


class Routing(Declared):
    """The whole file."""

    channels: Mapping[Name, AnyChannel] = Field(min_length=1)
    routes: tuple[Route, ...] = Field(min_length=1)
    link: Annotated[str, AfterValidator(_checked_link)] = ""
    critical_machines: int = Field(3, ge=1)  # an incident of so many machines is critical
    give_up_after: Duration = timedelta(days=1)  # by event time: what couldn't be sent is then a dead letter

    @model_validator(mode="after")
    def _names_what_there_is(self) -> Self:
        names = [route.name for route in self.routes]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"routes: two are named {twice!r}; give each its own name")
        for route in self.routes:
            if unknown := next((name for name in route.channels if name not in self.channels), None):
                raise ValueError(
                    f"route {route.name}: channels={unknown!r}: no such channel; there are {', '.join(self.channels)}"
                )
        return self

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The topics that any route is about."""
        return tuple(dict.fromkeys(topic for route in self.routes for topic in route.topics))

    @property
    def give_up_nano(self) -> int:
        """After how much event time a delivery is given up."""
        return in_nanoseconds(self.give_up_after)

    def faults(self) -> tuple[str, ...]:
        """What of the environment keeps channels from sending."""
        return tuple(dict.fromkeys(fault for channel in self.channels.values() for fault in channel.faults()))

    def link_of(self, notice: Notice) -> str:
        """Where a person sees more of a notice; empty if the file doesn't say."""
        return self.link.format(topic=notice.topic, id=notice.finding.id, machine=notice.machines[0][0])

    def routes_of(self, notice: Notice) -> tuple[Route, ...]:
        """The routes that take a notice."""
        return tuple(route for route in self.routes if route.takes(notice))

    def plan(self, notice: Notice, source: Source, known: Deliveries) -> Iterator[Delivery]:
        """The deliveries that a notice makes, one for a channel, without those that are known."""
        for channel, hold in self._channels_of(notice, known).items():
            delivery = self.delivery(notice, source, channel, hold, known)
            if not known.knows(delivery.key):
                yield delivery

    def _channels_of(self, notice: Notice, known: Deliveries) -> dict[str, int]:
        """The channels that a notice goes to, and until when it waits for quiet hours: the shortest of its routes."""
        time, holds = notice.finding.time_unix_nano, dict[str, int]()
        for route in self.routes_of(notice):
            hold = route.hold_until(time)
            for channel in route.channels:
                if route.updates or _must_be_told(notice, channel, known):
                    holds[channel] = min(hold, holds.get(channel, hold))
        if notice.finding.phase == "end":
            # Whoever was notified of it hears that it is over, even if no route would say so any more.
            for channel in self.channels:
                if channel not in holds and known.thread(channel, notice.thread):
                    holds[channel] = known.held_until(channel, notice.thread, time)
        return holds

    def delivery(self, notice: Notice, source: Source, channel: str, hold: int, known: Deliveries) -> Delivery:
        """A notice for one channel, whatever the routes say."""
        title, link, thread = title_of(notice), self.link_of(notice), known.thread(channel, notice.thread)
        return Delivery(
            id=notice.id,
            channel=channel,
            thread=notice.thread,
            phase=notice.finding.phase,
            severity=notice.severity,
            time_unix_nano=notice.finding.time_unix_nano,
            hold_until_unix_nano=hold,
            source=source,
            subject=thread.subject if thread else title,
            content=Content(title, text_of(notice, link), link, notice.record.decode()),
        )


def _must_be_told(notice: Notice, channel: str, known: Deliveries) -> bool:
    """Whether a notice isn't a mere update: the first that a channel hears of it, or graver than all before."""
    thread = known.thread(channel, notice.thread)
    return notice.finding.phase != "update" or thread is None or escalates(thread, notice.severity)


def load_routing(file: Path) -> Routing:
    """Read a file of routes. Raises UserError naming file, field, value and what it must be."""
    declared = _read(file)
    if not isinstance(declared, dict):
        raise UserError(f"{file}: must be a map with the fields channels and routes (docs/how-to/notify.md)")
    try:
        return Routing.model_validate(declared)
    except ValidationError as error:
        raise UserError(f"{file}: {_described(error)}") from None


def _described(error: ValidationError) -> str:
    """The first error. What stands in a field that doesn't exist isn't repeated: it may be a secret."""
    fault = error.errors()[0]
    field = ".".join(map(str, fault["loc"]))
    match fault["type"]:
        case "extra_forbidden":
            return f"{field}: there is no such field; secrets are named by their environment variable"
        case "union_tag_invalid" | "union_tag_not_found":
            return f"{field}.kind: must be one of mail, apprise, webhook"
    return describe(error)


def _read(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text())
    except OSError as error:
        raise UserError(f"KAPPA_NOTIFIER_ROUTES={file}: {error.strerror}; name a file of routes") from error
    except yaml.YAMLError as error:
        raise UserError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
