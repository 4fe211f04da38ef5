"""Second copies of a job, started at random moments, and for how long nobody is at work meanwhile."""

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.chaos.processes import Job
from tests.waiting import until

STARTS = int(os.environ.get("KAPPA_COPIES_STARTS", "2"))
SEED = int(os.environ.get("KAPPA_COPIES_SEED", "1"))
REPORT = os.environ.get("KAPPA_COPIES_REPORT")
# For so long at most, nobody may be at work: a minute on a machine that isn't busy with other suites.
PAUSE_SECONDS = float(os.environ.get("KAPPA_COPIES_PAUSE_SECONDS", "180"))
START_SECONDS = 240  # of a process on a busy machine


class Watch:
    """The longest time in which a job has committed nothing."""

    def __init__(self, progress: Callable[[], int]) -> None:
        self.progress = progress
        self.last, self.at, self.longest = progress(), time.monotonic(), 0.0

    def look(self) -> bool:
        """Whether something was committed since the last look."""
        now, done = time.monotonic(), self.progress()
        self.longest = max(self.longest, now - self.at)
        moved, self.last = done > self.last, done
        self.at = now if moved else self.at
        return moved


def start_copies(
    name: str, first: Job, copy: Callable[[], Job], progress: Callable[[], int], refusal: str
) -> tuple[Job, list[float]]:
    """Start a second copy STARTS times at random moments; each third time two at once, after the first has died.

    Args:
        name: what the job is called on the terminal.
        first: the copy at work.
        copy: starts one more.
        progress: how much the job has committed.
        refusal: what the copy says that ends.

    Returns:
        The copy at work in the end, and of each start for how many seconds nothing was committed.
    """
    rng, pauses = random.Random(SEED), []
    for number in range(STARTS):
        time.sleep(rng.uniform(0, 3))
        watch = Watch(progress)
        if number % 3 == 0:
            first.kill()
            first = copy()
            time.sleep(rng.uniform(0, 0.5))
        first = _survivor(first, copy(), watch, refusal)
        pauses.append(round(watch.longest, 1))
        print(f"{name} {number + 1}/{STARTS}: nothing was committed for {pauses[-1]} s", flush=True)  # an hour passes
    return first, pauses


def _survivor(first: Job, second: Job, watch: Watch, refusal: str) -> Job:
    """The one of both copies that goes on, once it has committed something and the other has ended."""

    def decided() -> bool:
        watch.look()
        for copy in (first, second):
            assert copy.code in (None, 2), f"{copy.log}: {copy.code}\n{copy.output()[-3000:]}"
        assert None in (first.code, second.code), first.output()[-1500:] + second.output()[-1500:]
        return 2 in (first.code, second.code)

    until(decided, START_SECONDS, "both copies run", 0.1)
    lost, found = (first, second) if first.code == 2 else (second, first)
    assert refusal in lost.output(), lost.output()[-2000:]
    until(watch.look, START_SECONDS, f"{found.log}: nothing is committed", 0.1)
    assert found.code is None, found.output()[-3000:]
    lost.clean()
    return found


def report(job: str, found: dict[str, Any]) -> None:
    """Put what was found of a job into the report, if one is asked for, beside the other jobs'."""
    if REPORT is None:
        return
    path = Path(REPORT)
    path.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(known | {job: found}, indent=1))
