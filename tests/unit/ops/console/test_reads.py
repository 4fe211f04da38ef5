import gc
import threading
import weakref

import pytest

from ops.console.reads import MOST_WAITING, SharedReads, SourceDown
from tests.waiting import until


def test_equal_questions_share_an_answer_while_it_is_fresh():
    reads, asked = SharedReads("Kafka", 5, 60), []
    assert [reads.read("lag", lambda: asked.append(1) or len(asked)) for _ in range(3)] == [1, 1, 1]


def test_an_answer_that_is_no_longer_fresh_is_asked_for_again():
    reads, asked = SharedReads("Kafka", 5, 0), []
    assert [reads.read("lag", lambda: asked.append(1) or len(asked)) for _ in range(2)] == [1, 2]


def test_an_answer_that_is_no_longer_fresh_is_not_kept():
    class Answer:
        """Can be referred to weakly."""

    reads = SharedReads("Elasticsearch", 5, 0)
    kept = weakref.ref(reads.read("one machine", Answer))
    reads.read("another machine", Answer)
    until(lambda: gc.collect() is not None and kept() is None, 30, "the first answer is let go", 0.01)


def test_a_source_that_hangs_is_down_and_is_asked_once():
    reads, answer, asked = SharedReads("Kafka", 0.05, 0), threading.Event(), []

    def ask():
        asked.append(1)
        return answer.wait(30)

    for _ in range(2):
        with pytest.raises(SourceDown, match=r"Kafka: has not answered within 0.05 s"):
            reads.read("lag", ask)
    assert asked == [1]
    answer.set()


def test_a_failure_is_said_in_one_line():
    def ask():
        raise OSError("refused\nby the broker")

    with pytest.raises(SourceDown, match="Elasticsearch: refused by the broker"):
        SharedReads("Elasticsearch", 5, 0).read("lag", ask)


def test_a_source_that_hangs_takes_no_more_threads_than_it_may():
    reads, answer = SharedReads("Kafka", 0.01, 0), threading.Event()
    for number in range(MOST_WAITING):
        with pytest.raises(SourceDown, match="has not answered"):
            reads.read(number, lambda: answer.wait(30))
    with pytest.raises(SourceDown, match="16 reads are waiting for it"):
        reads.read("one more", lambda: answer.wait(30))
    answer.set()
