"""Which copy goes on, and which failed query is started again. Queries and brokers are faked."""

from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from connectors.kafka.markers import ProgressError
from infra.errors import UserError
from jobs.runtime.commits import TakenOverError
from jobs.runtime.copies import RESTARTS, RESTARTS_SECONDS, Copies


@dataclass
class Run:
    """A QueryRun; `calls` is shared by all of a test."""

    name: str
    calls: list
    owned: bool = True
    failure: Exception | None = None
    query: SimpleNamespace = field(init=False)

    def __post_init__(self):
        self.query = SimpleNamespace(name=self.name)

    def rehearse(self):
        self.calls.append(("rehearse", self.name))

    def take_over(self, *, yields):
        self.calls.append(("take over" if yields else "take back", self.name))
        if self.failure:
            raise self.failure
        self.owned = True

    def start(self):
        self.calls.append(("start", self.name))
        return f"stream {self.name}"

    def check_owner(self):
        if isinstance(self.failure, KafkaException):
            raise self.failure
        if not self.owned:
            raise TakenOverError(f"{self.name}: another copy of this job runs")


@pytest.fixture
def calls():
    return []


@pytest.fixture
def started(calls):
    """Two queries at work, as (copies, the first by name, the other)."""
    other, first = Run("b", calls), Run("a", calls)
    copies = Copies()
    assert copies.start([other, first], another_works=False) == {"a": "stream a", "b": "stream b"}
    return copies, first, other


def test_all_queries_are_taken_over_in_one_order_before_any_reads_its_checkpoint(started, calls):
    assert calls == [("take over", "a"), ("take over", "b"), ("start", "a"), ("start", "b")]


def test_while_another_copy_works_all_is_rehearsed_before_it_is_fenced(calls):
    Copies().start([Run("b", calls), Run("a", calls)], another_works=True)
    assert calls[:3] == [("rehearse", "a"), ("rehearse", "b"), ("take over", "a")]


@pytest.mark.parametrize(
    "text",
    [
        "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected for 7.",
        "org.apache.kafka.common.errors.ProducerFencedException: There is a newer producer",
        "io.delta.exceptions.ConcurrentTransactionException: DELTA_CONCURRENT_TRANSACTION",
        "org.apache.spark.SparkException: Python worker failed to connect back.",
        "connectors.kafka.transactions.NoAnswerError: kappa.live.detector.driver-0: no answer in 35 s",
    ],
)
def test_what_passes_is_met_by_a_new_start(started, calls, text):
    copies, _, _ = started
    failure = RuntimeError("the query ended")
    failure.__cause__ = OSError(text)
    assert copies.restart("b", failure) == "stream b"
    assert calls[-2:] == [("take back", "b"), ("start", "b")]


@pytest.mark.parametrize("failure", [OSError("the disk is full"), UserError("b: too many")])
def test_another_failure_is_not_met_by_a_new_start(started, calls, failure):
    copies, _, _ = started
    assert copies.restart("b", failure) is None
    assert len(calls) == 4


def test_whoever_lost_the_first_query_ends_whatever_failed(started):
    copies, first, _ = started
    first.owned = False
    with pytest.raises(TakenOverError, match="a: another copy of this job runs"):
        copies.restart("b", OSError("a file is gone"))


def test_whoever_has_the_first_query_takes_the_others_back(started, calls):
    """Two that begin at once may each have taken what the other had: they must not both end."""
    copies, _, other = started
    other.owned = False
    assert copies.restart("b", TakenOverError("b: another copy of this job runs")) == "stream b"
    assert other.owned and calls[-2:] == [("take back", "b"), ("start", "b")]


def test_without_an_answer_of_the_broker_nothing_is_started_again(started):
    copies, first, _ = started
    first.failure = KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    assert copies.restart("b", RuntimeError("ProducerFencedException")) is None


def test_what_comes_again_and_again_has_another_cause(started):
    copies, _, _ = started
    outcomes = [copies.restart("b", RuntimeError("ProducerFencedException")) for _ in range(RESTARTS + 1)]
    assert outcomes == ["stream b"] * RESTARTS + [None]


def test_an_old_checkpoint_is_for_a_person_to_mend(calls):
    with pytest.raises(UserError, match="an old copy"):
        Copies().start([Run("a", calls, failure=ProgressError("the checkpoint is an old copy"))], another_works=False)


def test_what_passes_now_and_then_does_not_end_a_job_that_runs_for_months(started, monkeypatch):
    copies, _, _ = started
    moments = count(0, RESTARTS_SECONDS / (RESTARTS - 1))
    monkeypatch.setattr("jobs.runtime.copies.time", SimpleNamespace(monotonic=lambda: next(moments)))
    outcomes = [copies.restart("b", RuntimeError("ProducerFencedException")) for _ in range(5 * RESTARTS)]
    assert outcomes == ["stream b"] * 5 * RESTARTS
