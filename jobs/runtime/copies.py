"""Several copies of one application: whichever has begun last goes on, the others end.

A copy may have lost some of its queries and not others, where both began at once. The first query, by name, decides:
who owns it takes the others back, who has lost it ends. A query that failed for what passes is started again.
"""

import re
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import structlog
from confluent_kafka import KafkaException
from pyspark.sql.streaming.query import StreamingQuery

from connectors.kafka.markers import ProgressError
from connectors.kafka.transactions import NoAnswerError
from infra.errors import UserError
from jobs.runtime.commits import TakenOverError
from jobs.runtime.query import QueryRun

log = structlog.get_logger()


class _Passing(NamedTuple):
    """A failure that passes: it is met by a new start of the query."""

    pattern: re.Pattern[str]
    event: str
    remedy: str


# What meets a copy while the one that it has taken over from still ends its last batch.
_BETWEEN_COPIES = _Passing(
    re.compile(
        "CONCURRENT_STREAM_LOG_UPDATE|Concurrent update to the log|ConcurrentModificationException"
        "|FileAlreadyExistsException|ConcurrentTransactionException|DELTA_CONCURRENT"
        "|ProducerFenced|InvalidProducerEpoch|PRODUCER_FENCED|INVALID_PRODUCER_EPOCH|_FENCED"
    ),
    "query started again: another copy of this job is ending, or a transaction timed out",
    "if it comes again: raise KAPPA_TRANSACTION_TIMEOUT_SECONDS or lower KAPPA_MAX_BATCH_BYTES",
)
# Spark waits ten seconds, always, for the process that it starts to read a fold.
_SLOW_START = _Passing(
    re.compile("Python worker failed to connect back"),
    "query started again: this machine was too busy to start a Python process within ten seconds",
    "if it comes again: give the job more CPU, or start fewer jobs at once",
)
# The process would take the CPU time of minutes to start again, and a broker that restarts meets all jobs at once.
_NO_ANSWER = _Passing(
    re.compile(NoAnswerError.__name__),
    "query started again: the broker that coordinated its transactions has gone",
    "if it comes again: see to the brokers",
)
_PASSING = (_BETWEEN_COPIES, _SLOW_START, _NO_ANSWER)
# The other copy ends within its batch; what fails more often has another cause.
RESTARTS, RESTARTS_SECONDS = 10, 3600.0


class Copies:
    """The queries of this copy of an application."""

    def __init__(self) -> None:
        self._runs: dict[str, QueryRun] = {}
        self._restarts: deque[float] = deque(maxlen=RESTARTS)  # when the last ones were

    def start(self, runs: Sequence[QueryRun], *, another_works: bool) -> dict[str, StreamingQuery]:
        """Take over all queries, then start them; while another copy is at work, rehearse them before.

        Raises UserError if a checkpoint isn't the one that its query was written from, or a third copy begins too.
        """
        self._runs = {run.query.name: run for run in sorted(runs, key=lambda run: run.query.name)}
        for run in self._runs.values() if another_works else ():
            run.rehearse()
        for run in self._runs.values():
            self._take_over(run, yields=True)
        return {name: run.start() for name, run in self._runs.items()}

    def restart(self, name: str, failure: Exception) -> StreamingQuery | None:
        """Start a failed query again if it failed for what passes, such as another copy; None if it didn't.

        Raises TakenOverError if that copy has taken over.
        """
        run, (first, *_) = self._runs[name], self._runs.values()
        if isinstance(failure, UserError) and not isinstance(failure, TakenOverError):
            return None
        try:
            first.check_owner()
            lost = self._is_lost(run)
        except KafkaException:
            return None
        found = next((one for one in _PASSING if one.pattern.search(_text(failure))), None)
        passing = _BETWEEN_COPIES if lost else found
        if passing is None or self._fails_too_often():
            return None
        self._restarts.append(time.monotonic())
        log.warning(passing.event, query=name, failure=_text(failure)[:400], remedy=passing.remedy)
        self._take_over(run, yields=False)
        return run.start()

    def _fails_too_often(self) -> bool:
        return len(self._restarts) == RESTARTS and time.monotonic() - self._restarts[0] < RESTARTS_SECONDS

    def _is_lost(self, run: QueryRun) -> bool:
        try:
            run.check_owner()
        except TakenOverError:
            return True
        return False

    def _take_over(self, run: QueryRun, *, yields: bool) -> None:
        try:
            run.take_over(yields=yields)
        except ProgressError as error:
            raise UserError(str(error)) from error


def _text(failure: BaseException | None) -> str:
    """What an exception and its causes say."""
    return f"{failure!r} {_text(failure.__cause__)}" if failure else ""
