"""The transactional sink's parts that need no broker."""

import ast
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from connectors.sinks import deadline, kafka
from connectors.sinks.kafka import Marker, ProgressError, SinkSettings, headers_of, retried, to_list

SETTINGS = SinkSettings("127.0.0.1:1", "kappa.live.statistics", "run-1", transaction_timeout_ms=400)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


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


def test_headers_become_pairs():
    rows = [
        [{"key": "kappa.source", "value": b"in/0/1"}, {"key": "kappa.schema", "value": b"events/1"}],
        [],
        [{"key": "kappa.source", "value": None}],
    ]
    assert list(headers_of(pa.array(rows, HEADERS))) == [
        [("kappa.source", b"in/0/1"), ("kappa.schema", b"events/1")],
        [],
        [("kappa.source", None)],
    ]


def test_a_batch_without_headers_has_none():
    assert list(headers_of(pa.array([[], []], HEADERS))) == [None, None]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"a", None, b""], pa.binary()),
        pa.array(["ä", None, ""], pa.string()),
        pa.array([2**62, -1], pa.int64()),
        pa.array([], pa.binary()),
    ],
)
def test_columns_become_what_they_hold(column):
    assert to_list(column) == column.to_pylist()
    assert to_list(column.slice(1)) == column.slice(1).to_pylist()


def test_what_went_through_a_task_is_counted_by_topic_note_and_source():
    def batch(*rows):
        columns = zip(*rows, strict=True)
        names = [*kafka.COLUMNS, *kafka.SOURCE_COLUMNS, kafka.NOTE]
        kinds = [pa.string(), pa.int32(), pa.binary(), pa.binary(), pa.int64(), HEADERS, pa.string(), pa.int32()]
        arrays = [pa.array(list(c), kind) for c, kind in zip(columns, [*kinds, pa.int64(), pa.string()], strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names)

    seen = kafka._Seen(Counter(), Counter(), {})
    first = batch(
        ("events", -1, b"k", b"1", 10, [], "in", 0, 500, "unknown"),
        ("events.late", 2, None, b"2", 11, [], "in", 1, 700, None),
    )
    second = batch(("events", -1, b"k", b"3", 12, [], "in", 0, 400, "unknown"))
    assert list(seen.rows_of(iter([first, second]))) == [
        ("events", -1, b"k", b"1", 10, None),
        ("events.late", 2, None, b"2", 11, None),
        ("events", -1, b"k", b"3", 12, None),
    ]
    assert seen.rows == {"events": 2, "events.late": 1}
    assert seen.notes == {"unknown": 2}
    assert sorted(seen.sources()) == [("in", 0, 500), ("in", 1, 700)]
