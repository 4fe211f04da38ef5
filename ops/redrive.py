"""Which dead letters are meant, and their retry: for the command line and the console."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from infra.contract import retries
from infra.contract.topics import TopicMap
from infra.errors import UserError
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.dead_letters import DeadLetter, OriginalLostError, Redrive, dead_letters


@dataclass(frozen=True)
class Wanted:
    """Which dead letters: those that meet all that is given."""

    stage: str | None = None
    code: str | None = None
    topic: str | None = None  # of the original record
    machine: str | None = None
    after_ms: int = 0  # received then or later

    def is_met_by(self, letter: DeadLetter) -> bool:
        """Whether a dead letter is meant."""
        record = letter.record
        return (
            self.stage in (None, letter.stage)
            and self.code in (None, record["code"])
            and self.topic in (None, record["source"]["topic"])
            and self.machine in (None, record.get("machine"))
            and letter.time_ms >= self.after_ms
        )


@dataclass(frozen=True)
class Redriven:
    """How many dead letters were sent through enrichment again, and how many were not."""

    sent: int
    sent_before: int
    not_telemetry: int

    def __str__(self) -> str:
        others = f"{self.not_telemetry} are not from a telemetry topic"
        return f"{self.sent} sent; {self.sent_before} were sent before; {others}"


def chosen(settings: Settings, topics: TopicMap, wanted: Wanted) -> Iterator[DeadLetter]:
    """The dead letters that are meant. Raises UserError if there is no such stage."""
    if wanted.stage not in (None, *JOBS.names()):
        raise UserError(f"stage={wanted.stage!r}: there is no such job; there are {', '.join(JOBS.names())}")
    letters = dead_letters(settings.kafka_bootstrap, topics["events.rejected"].name)
    return (letter for letter in letters if wanted.is_met_by(letter))


def with_ids(found: Iterable[DeadLetter], ids: Collection[str]) -> list[DeadLetter]:
    """The dead letters with these ids, oldest first: more than one of an id if a retry was rejected, too.

    Raises UserError if there is none of an id.
    """
    matching = [letter for letter in found if letter.record["id"] in ids]
    if missing := {*ids} - {letter.record["id"] for letter in matching}:
        raise UserError(f"dead letter {min(missing)!r}: there is none; `kappa rejected list` shows them")
    return matching


def redrive(
    settings: Settings, topics: TopicMap, found: Sequence[DeadLetter], each: Callable[[], None] = lambda: None
) -> Redriven:
    """Retry the dead letters that come from a telemetry topic, each once, however often this is called.

    `each` is called after every one. Raises UserError, and then nothing is sent, if none of them came from a collector,
    or the original of one is lost.
    """
    telemetry = {declared.name for declared in topics.telemetry}
    usable = [letter for letter in found if letter.record["source"]["topic"] in telemetry]
    if found and not usable:
        raise UserError(_no_telemetry(found[0]))
    try:
        sent = Redrive(settings.kafka_bootstrap, topics[retries.TOPIC]).send(usable, each)
    except OriginalLostError as error:
        raise UserError(f"{error}: only its beginning was kept, its topic no longer has it: nothing was sent") from None
    return Redriven(sent, len(usable) - sent, len(found) - len(usable))


def _no_telemetry(letter: DeadLetter) -> str:
    """Why a record of an internal topic can't be retried, and what to do instead."""
    job = letter.stage if letter.stage in JOBS.names() and JOBS[letter.stage].is_replayable else "enrichment"
    return (
        f"retry: {letter.record['id']} is from {letter.record['source']['topic']}, which {letter.stage} reads: only "
        "what collectors wrote can be retried, as the window of this record is over. Mend its cause, then replay: "
        f"kappa replay start --job {job} --from TIME --as NAME"
    )
