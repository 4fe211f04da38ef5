"""Looks at the chain until the new image is at work, or it is clear that it is not, or the time is over."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaException

from ops.upgrade.looks import Look
from ops.upgrade.mark import Mark
from ops.upgrade.verdict import Verdict, judge

POLL_SECONDS = 2.0


@dataclass(frozen=True)
class Outcome:
    """How an upgrade came out: whether the new image is ready, and the one line that says why."""

    is_ready: bool
    why: str
    seconds: float
    last: Look | None  # if Kafka has ever answered

    def __str__(self) -> str:
        return f"{'ready' if self.is_ready else 'not ready'} after {self.seconds:.0f} s: {self.why}"


def watch(mark: Mark, look: Callable[[], Look], deadline: float, report: Callable[[str], None]) -> Outcome:
    """Look again and again, at most `deadline` seconds; what is waited for meanwhile is reported."""
    began, looks = time.monotonic(), list[Look]()
    while True:
        is_due = time.monotonic() - began >= deadline
        try:
            looks.append(look())
            found = judge(mark, looks, is_due=is_due)
        except KafkaException as error:  # a broker that is started again
            found = Verdict("waiting", f"Kafka does not answer: {error.args[0].str()}")
        if found.state != "waiting" or is_due:
            seconds, last = time.monotonic() - began, looks[-1] if looks else None
            return Outcome(found.state == "ready", found.why, seconds, last)
        report(found.why)
        time.sleep(POLL_SECONDS)


def measure(look: Callable[[], Look], seconds: float) -> list[Look]:
    """Look again and again for so many seconds."""
    deadline, looks = time.monotonic() + seconds, [look()]
    while time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        looks.append(look())
    return looks
