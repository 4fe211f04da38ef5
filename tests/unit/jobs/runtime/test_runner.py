"""What ends a query, and how a batch that runs is let end: the gate, the watch, the drain. Queries are faked."""

import threading
from dataclasses import dataclass, field

import pytest
from prometheus_client import REGISTRY

from connectors.sinks.kafka import ProgressError
from infra.errors import UserError
from jobs.runtime import runner
from jobs.runtime.gate import Gate, StoppedError
from jobs.runtime.runner import DroppedRowsError, ProgressWatch, _drain
from jobs.runtime.settings import Settings
from tests.waiting import until

SECONDS = 30  # for what takes milliseconds


@dataclass
class Query:
    """A StreamingQuery, as far as the runner asks one."""

    recentProgress: list = field(default_factory=list)
    failure: Exception | None = None
    isActive: bool = True
    busy: bool = False
    asked: int = 0  # how often for its status
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def lastProgress(self):
        return self.recentProgress[-1] if self.recentProgress else None

    @property
    def status(self):
        self.asked += 1
        return {"isTriggerActive": self.busy}

    def exception(self):
        return self.failure

    def stop(self):
        self.isActive = False
        self.stopped.set()


def progress(batch, dropped=0, rows=5):
    """A batch's progress as Spark reports it, with two stateful operators."""
    operator = {"numRowsTotal": 1, "memoryUsedBytes": 1, "numRowsDroppedByWatermark": 0}
    return {
        "batchId": batch,
        "numInputRows": rows,
        "durationMs": {"triggerExecution": 100},
        "stateOperators": [operator, operator | {"numRowsDroppedByWatermark": dropped}],
        "sources": [],
    }


def in_thread(function, *arguments):
    """Calls it in a thread; gives the thread and the list into which its exception, or None, goes."""
    ended = []

    def call():
        try:
            ended.append(function(*arguments))
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread, ended


# The watch


def test_rows_that_spark_dropped_stop_the_query():
    with pytest.raises(DroppedRowsError, match="statistics: Spark's watermark dropped 3 rows of batch 7"):
        ProgressWatch(Gate()).check("statistics", Query([progress(6), progress(7, dropped=3)]))


def test_rows_dropped_in_a_batch_that_others_followed_stop_it_too():
    with pytest.raises(DroppedRowsError, match="1 rows of batch 5"):
        ProgressWatch(Gate()).check("statistics", Query([progress(5, dropped=1), progress(6)]))


def test_a_batch_is_looked_at_once():
    watch, query = ProgressWatch(Gate()), Query([progress(1)])
    watch.check("statistics", query)
    query.recentProgress = [progress(1, dropped=3)]  # it can't change, so it isn't asked again
    watch.check("statistics", query)
    query.recentProgress.append(progress(2, dropped=4))
    with pytest.raises(DroppedRowsError, match="4 rows of batch 2"):
        watch.check("statistics", query)


def test_progress_without_a_batch_is_passed_over():
    idle = progress(1, dropped=3) | {"durationMs": {"latestOffset": 1}}
    ProgressWatch(Gate()).check("statistics", Query([idle]))


def test_a_failed_query_raises_what_the_batch_failed_with():
    gate, cause = Gate(), OSError("the disk is full")
    gate.failure = cause
    with pytest.raises(OSError, match="the disk is full") as raised:
        ProgressWatch(gate).check("statistics", Query(failure=RuntimeError("Spark's text of it")))
    assert raised.value is cause


def test_a_query_that_failed_outside_a_batch_raises_sparks_own_error():
    with pytest.raises(RuntimeError, match="no topic"):
        ProgressWatch(Gate()).check("statistics", Query(failure=RuntimeError("no topic")))


def test_progress_that_does_not_fit_is_for_a_person_to_mend():
    gate = Gate()
    gate.failure = ProgressError("another checkpoint was the last to write")
    with pytest.raises(UserError, match="another checkpoint"):
        ProgressWatch(gate).check("statistics", Query(failure=RuntimeError("Spark's text of it")))


# The gate


def test_what_a_fold_refuses_is_for_a_person_to_mend():
    """What it raises in a Python worker comes back as a part of the text of Spark's error."""
    text = "PythonException: Traceback ...\ninfra.errors.UserError: do this\n at org.apache.spark..."
    with pytest.raises(UserError, match=r"^statistics: do this$"):
        ProgressWatch(Gate()).check("statistics", Query(failure=RuntimeError(text)))


def test_an_open_gate_lets_batches_write():
    written = []
    Gate().guard("q", lambda frame, batch: written.append((frame, batch)))("frame", 3)
    assert written == [("frame", 3)]


def test_a_closed_gate_holds_the_next_batch_back_and_it_fails_unwritten():
    gate, written = Gate(), []
    write = gate.guard("q", lambda *batch: written.append(batch))
    gate.close()
    thread, ended = in_thread(write, "frame", 4)
    wait_for(lambda: gate.held == {"q"})
    assert not ended  # it would be taken for written, if it returned
    gate.release()
    thread.join(SECONDS)
    assert isinstance(ended[0], StoppedError) and not written


def test_a_batch_that_pauses_is_held_back_as_soon_as_the_gate_closes():
    gate, written, pausing = Gate(), [], threading.Event()

    def pause():
        pausing.set()
        return 10 * SECONDS

    thread, ended = in_thread(gate.guard("q", lambda *batch: written.append(batch), pause), "frame", 4)
    assert pausing.wait(SECONDS) and not written
    gate.close()
    wait_for(lambda: gate.held == {"q"})
    gate.release()
    thread.join(SECONDS)
    assert isinstance(ended[0], StoppedError) and not written


def test_a_batch_rests_when_it_is_written_until_the_gate_closes():
    gate, written, resting = Gate(), [], threading.Event()

    def rest(took):
        assert 0 <= took < SECONDS and written == [4]
        resting.set()
        return 10 * SECONDS

    write = gate.guard("q", lambda _, batch: written.append(batch), rest=rest)
    thread, ended = in_thread(write, "frame", 4)
    assert resting.wait(SECONDS) and not ended
    gate.close()
    thread.join(SECONDS)
    assert ended == [None] and not gate.held
    assert 0 < gate.waited("q", 4) < SECONDS and gate.waited("q", 4) == 0


def test_in_what_a_batch_took_it_did_something():
    gate, query = Gate(), Query([progress(8)])
    gate.guard("waits", lambda *_: None, pause=lambda: 0.04)("frame", 8)
    ProgressWatch(gate).check("waits", query)
    seconds = REGISTRY.get_sample_value("kappa_batch_seconds_sum", {"job": "waits", "query": "waits"})
    assert seconds is not None and 0 <= seconds <= 0.06


def test_a_batch_that_runs_when_the_gate_closes_ends():
    gate, entered, go_on, written = Gate(), threading.Event(), threading.Event(), []

    def write(_, batch):
        entered.set()
        go_on.wait(SECONDS)
        written.append(batch)

    thread, ended = in_thread(gate.guard("q", write), "frame", 5)
    assert entered.wait(SECONDS)
    gate.close()
    go_on.set()
    thread.join(SECONDS)
    assert ended == [None] and written == [5] and not gate.held


def test_a_failure_is_kept_as_it_was():
    gate, cause = Gate(), ValueError("wrong")

    def write(*_):
        raise cause

    with pytest.raises(ValueError, match="wrong"):
        gate.guard("q", write)("frame", 6)
    assert gate.failure is cause


# The drain


def drain(queries, gate, seconds=SECONDS):
    return in_thread(_drain, "job", queries, gate, Settings(drain_seconds=seconds))


def test_a_running_batch_is_waited_for_and_then_the_query_stops():
    gate, query = Gate(), Query(busy=True)
    thread, ended = drain({"job": query}, gate)
    wait_for(lambda: query.asked > 1)
    assert not query.stopped.is_set()
    query.busy = False
    thread.join(SECONDS)
    assert ended == [None] and query.stopped.is_set()


def test_a_batch_that_the_gate_holds_is_not_waited_for():
    gate, query = Gate(), Query(busy=True)
    gate.held.add("job")
    thread, ended = drain({"job": query}, gate)
    thread.join(SECONDS)
    assert ended == [None] and query.stopped.is_set()


def test_one_that_takes_too_long_is_stopped_all_the_same():
    query = Query(busy=True)
    thread, ended = drain({"job": query}, Gate(), seconds=0.2)
    thread.join(SECONDS)
    assert ended == [None] and query.stopped.is_set()


def test_every_query_of_the_job_is_waited_for():
    gate, idle, busy = Gate(), Query(), Query(busy=True)
    thread, _ = drain({"job": idle, "job.part": busy}, gate)
    wait_for(lambda: busy.asked > 1)
    assert not idle.stopped.is_set() and not busy.stopped.is_set()
    busy.busy = False
    thread.join(SECONDS)
    assert idle.stopped.is_set() and busy.stopped.is_set()


def test_a_held_batch_fails_before_its_query_is_stopped():
    """Spark's stop waits for the batch's thread: it would wait for ever for one that nobody releases."""
    gate, query = Gate(), Query(busy=True)
    write = gate.guard("job", lambda *_: None)
    gate.close()
    held, failed = in_thread(write, "frame", 8)
    wait_for(lambda: gate.held == {"job"})
    query.stop = lambda: (held.join(SECONDS), query.stopped.set())
    thread, ended = drain({"job": query}, gate)
    thread.join(SECONDS)
    assert ended == [None] and isinstance(failed[0], StoppedError)


def wait_for(condition):
    until(condition, SECONDS, "it did not happen", pause=0.01)


class Service:
    """A planned job without Spark that ends with an error."""

    name = "indexer"

    def __init__(self, error):
        self.job, self.settings, self.error = self, Settings(), error

    def implementation(self):
        def run(*_):
            raise self.error

        return run


def test_a_service_that_a_person_must_mend_leaves_the_queries_beside_it_running():
    stop, refused = threading.Event(), {}
    with pytest.raises(UserError):
        runner._serve(Service(UserError("elasticsearch_user: 401")), None, stop, refused)
    assert not stop.is_set()
    query = Query()
    assert runner.unhealthy({"statistics": query}, refused) == "indexer: elasticsearch_user: 401"
    assert runner.unhealthy({"statistics": query}) is None


@pytest.mark.parametrize("error", [UserError("x"), RuntimeError("x")])
def test_alone_it_stops_the_application(error):
    stop = threading.Event()
    with pytest.raises(type(error)):
        runner._serve(Service(error), None, stop, None)
    assert stop.is_set()


def test_beside_queries_it_is_started_again_after_a_failure_and_they_go_on(monkeypatch):
    monkeypatch.setattr(runner, "BACKOFF_SECONDS", (0.001, 0.002))
    stop, refused, failing = threading.Event(), {}, Service(RuntimeError("a bug"))
    starts = []

    def implementation():
        def run(*_):
            starts.append(stop.is_set())
            if len(starts) == 4:
                stop.set()
                return
            raise failing.error

        return run

    failing.implementation = implementation
    runner._serve(failing, None, stop, refused)
    assert starts == [False] * 4
    assert not refused
