"""The transactional sink's parts that need no broker."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from connectors.sinks import deadline, kafka
from connectors.sinks.kafka import Marker, ProgressError, SinkSettings, retried

SETTINGS = SinkSettings("127.0.0.1:1", "kappa.live.statistics", "run-1", transaction_timeout_ms=400)


def test_it_can_be_lifted_out():
    """Of this project only the file beside it is imported: the two can be copied."""
    assert own_imports(kafka) == {"connectors.sinks.deadline"}
    assert own_imports(deadline) == set()


def own_imports(module):
    tree = ast.parse(Path(module.__file__).read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name for name in imported if name.split(".")[0] in {"jobs", "connectors", "infra", "tests"}}


def test_names_stay_the_same_after_a_restart():
    assert SETTINGS.transactional_id(3) == "kappa.live.statistics-3"
    assert SETTINGS.group == "kappa.live.statistics.sink"


@pytest.mark.parametrize("timeout_ms", [10_000, 60_000, 600_000])
def test_java_takes_the_times_of_a_tasks_producer(timeout_ms):
    """It refuses to start if a request may last longer than a delivery."""
    _, producer, *_ = replace(SETTINGS, transaction_timeout_ms=timeout_ms).of_tasks()
    times = {name: int(producer[f"{name}.ms"]) for name in ("linger", "request.timeout", "delivery.timeout")}
    assert times["linger"] + times["request.timeout"] <= times["delivery.timeout"] <= timeout_ms


@pytest.mark.parametrize(("batch_id", "tasks"), [(6, 4), (7, 4), (7, 9), (8, 1)])
def test_a_marker_lets_its_batch_be_repeated_and_later_ones_follow(batch_id, tasks):
    Marker(done=7, run="run-1", tasks=4).check(SETTINGS, batch_id, tasks)


@pytest.mark.parametrize(
    ("run", "batch_id", "tasks", "message"),
    [
        ("run-0", 7, 4, "belong to checkpoint run-0, this one is run-1"),
        ("run-1", 5, 4, "batch 5 is to be written, but batch 6 was"),
        ("run-1", 6, 3, "batch 6 was begun with 4 tasks and is now tried with 3"),
    ],
)
def test_a_marker_refuses_what_would_lose_or_double_records(run, batch_id, tasks, message):
    with pytest.raises(ProgressError, match=f"query kappa.live.statistics: .*{message}"):
        Marker(done=7, run=run, tasks=4).check(SETTINGS, batch_id, tasks)


def failing(*errors):
    """A call that fails so often, then gives 42."""
    left = list(errors)

    def call():
        if left:
            raise KafkaException(left.pop(0))
        return 42

    return call


@pytest.mark.parametrize("code", [KafkaError._TIMED_OUT, KafkaError.COORDINATOR_LOAD_IN_PROGRESS])
def test_what_passes_is_tried_again(code):
    assert retried(failing(KafkaError(code), KafkaError(code)), SETTINGS) == 42


@pytest.mark.parametrize(
    "error",
    [
        KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED),
        KafkaError(KafkaError._FENCED, "fenced", fatal=True),
        KafkaError(KafkaError._TIMED_OUT, "a record was not delivered", txn_requires_abort=True),
    ],
)
def test_what_does_not_pass_is_raised_at_once(error):
    with pytest.raises(KafkaException) as raised:
        retried(failing(error), SETTINGS)
    assert raised.value.args[0] is error


def test_what_does_not_pass_in_time_is_raised():
    with pytest.raises(KafkaException):
        retried(failing(*[KafkaError(KafkaError._TIMED_OUT)] * 1_000), SETTINGS)
