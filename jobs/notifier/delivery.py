"""A notification on its way to one channel, and its form as a record of `notifications`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from infra.contract.dead_letters import Source
from jobs.notifier.notice import PHASES, Phase, Severity

State = Literal["planned", "sending", "failed", "sent", "dead"]
FINISHED: tuple[State, ...] = ("sent", "dead")
REASON_CHARACTERS = 300


@dataclass(frozen=True)
class Content:
    """What is sent; a repeated attempt sends the same bytes."""

    title: str
    text: str
    link: str
    record: str


@dataclass(frozen=True)
class Delivery:
    """One notification for one channel; schemas.NOTIFICATIONS says what the fields are."""

    id: str
    channel: str
    thread: str
    phase: Phase
    severity: Severity
    time_unix_nano: int
    hold_until_unix_nano: int
    source: Source
    subject: str
    content: Content | None  # None once it is finished
    state: State = "planned"
    attempt: int = 0
    reason: str = ""

    @property
    def key(self) -> str:
        """What there is only one of: a notification goes to a channel once."""
        return f"{self.channel}/{self.id}"

    @property
    def is_finished(self) -> bool:
        """Whether it will not be tried again."""
        return self.state in FINISHED

    @property
    def place_in_thread(self) -> tuple[int, int]:
        """Sorts those of a thread: the start before updates, the end last."""
        return self.time_unix_nano, PHASES.index(self.phase)

    def begun(self) -> "Delivery":
        """As it is once another attempt is decided."""
        return replace(self, state="sending", attempt=self.attempt + 1)

    def sent(self) -> "Delivery":
        """As it is after an attempt that succeeded."""
        return replace(self, state="sent", reason="", content=None)

    def failed(self, reason: str) -> "Delivery":
        """As it is after an attempt that did not."""
        return replace(self, state="failed", reason=reason[:REASON_CHARACTERS])

    def dead(self) -> "Delivery":
        """As it is after its last attempt."""
        return replace(self, state="dead", content=None)

    def to_record(self) -> dict[str, Any]:
        """As JSON of schemas.NOTIFICATIONS."""
        fields = {name: value for name, value in vars(self).items() if name not in ("source", "content")}
        content = asdict(self.content) if self.content else {}
        shown = {name: value for name, value in {**fields, **content}.items() if value != ""}
        return {**shown, "source": self.source._asdict()}


def from_record(record: Mapping[str, Any]) -> Delivery:
    """The delivery of a record that `to_record` gave. Raises KeyError or TypeError for anything else."""
    fields = {"reason": "", **record, "source": Source(**record["source"])}
    content = {name: fields.pop(name, "") for name in ("title", "text", "link", "record")}
    return Delivery(**fields, content=Content(**content) if content["title"] else None)
