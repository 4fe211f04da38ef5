"""All deliveries that are known: which are open, what was sent, and which may be tried now. Without any I/O.

It is rebuilt from the topic `notifications` at each start: `apply` takes its records in their order.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.notifier.delivery import Delivery
from jobs.notifier.notice import SEVERITIES, Severity, is_at_least

FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 300.0


def retry_seconds(attempt: int) -> float:
    """How long to wait after the failure of an attempt: twice as long each time, up to five minutes."""
    return min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(attempt - 1, 30))


@dataclass(frozen=True)
class Thread:
    """What a channel has been sent of one incident, alert or novelty."""

    subject: str  # the title of the first notification
    severity: Severity  # the gravest so far
    newest: int  # event time


class Deliveries:
    """Open and finished deliveries by key, and the threads of each channel."""

    def __init__(self) -> None:
        self.event_time = 0  # the newest that was seen, ns
        self._open: dict[str, Delivery] = {}
        self._finished: dict[str, int] = {}  # event time by key
        self._threads: dict[tuple[str, str], Thread] = {}  # by channel and thread
        self._retry_at: dict[str, float] = {}  # by key, by the clock of `due`; not kept over a restart

    def apply(self, delivery: Delivery) -> None:
        """Take a new state of a delivery."""
        if delivery.is_finished:
            self._open.pop(delivery.key, None)
            self._retry_at.pop(delivery.key, None)
            self._finished[delivery.key] = delivery.time_unix_nano
        else:
            self._open[delivery.key] = delivery
        self._remember_thread(delivery)
        self.event_time = max(self.event_time, delivery.time_unix_nano)

    def _remember_thread(self, delivery: Delivery) -> None:
        place = delivery.channel, delivery.thread
        known = self._threads.get(place) or Thread(delivery.subject, delivery.severity, 0)
        graver = max(known.severity, delivery.severity, key=SEVERITIES.index)
        self._threads[place] = Thread(known.subject, graver, max(known.newest, delivery.time_unix_nano))

    def knows(self, key: str) -> bool:
        """Whether there is a delivery with this key, open or finished."""
        return key in self._open or key in self._finished

    def thread(self, channel: str, thread: str) -> Thread | None:
        """What a channel has been sent of a thread; None if nothing."""
        return self._threads.get((channel, thread))

    def open(self, channel: str | None = None) -> Iterator[Delivery]:
        """The deliveries that are not finished, of one channel or of all."""
        return (one for one in self._open.values() if channel in (None, one.channel))

    def held_until(self, channel: str, thread: str, otherwise: int) -> int:
        """Until when the open deliveries of a thread wait because of quiet hours; `otherwise` if there are none."""
        held = [one.hold_until_unix_nano for one in self.open(channel) if one.thread == thread]
        return min(held, default=otherwise)

    def due(self, channel: str, now_unix_nano: int, clock: float) -> Delivery | None:
        """The delivery of a channel to try now, the oldest first; None if there is none.

        Of each thread only the first, so that a start comes before its end. If one of a thread may be sent in spite of
        quiet hours, so may those before it.
        """
        first: dict[str, Delivery] = {}
        hold: dict[str, int] = {}
        for one in self.open(channel):
            known = first.setdefault(one.thread, one)
            first[one.thread] = min(known, one, key=lambda delivery: delivery.place_in_thread)
            hold[one.thread] = min(hold.get(one.thread, one.hold_until_unix_nano), one.hold_until_unix_nano)
        ready = (
            one
            for thread, one in first.items()
            if hold[thread] <= now_unix_nano and self._retry_at.get(one.key, clock) <= clock
        )
        return min(ready, key=lambda one: one.place_in_thread, default=None)

    def retry_later(self, delivery: Delivery, clock: float) -> None:
        """Let a delivery that has failed wait for its next attempt."""
        self._retry_at[delivery.key] = clock + retry_seconds(delivery.attempt)

    def retry_all(self, channel: str) -> None:
        """The channel works again: what waits for it because of a failure waits no longer."""
        for one in self.open(channel):
            self._retry_at.pop(one.key, None)

    def is_stale(self, delivery: Delivery, give_up_after: int) -> bool:
        """Whether event time has passed a delivery, or the end of its quiet hours, by so much that it is given up."""
        due = max(delivery.time_unix_nano, delivery.hold_until_unix_nano)
        return self.event_time > due + give_up_after

    def evict(self, before: int) -> None:
        """Forget what is finished and older than `before`, event time."""
        self._finished = {key: time for key, time in self._finished.items() if time >= before}
        kept = {(one.channel, one.thread) for one in self.open()}
        self._threads = {
            place: thread for place, thread in self._threads.items() if thread.newest >= before or place in kept
        }


def escalates(thread: Thread, severity: Severity) -> bool:
    """Whether a severity is graver than all that a channel has been sent of a thread."""
    return not is_at_least(thread.severity, severity)
