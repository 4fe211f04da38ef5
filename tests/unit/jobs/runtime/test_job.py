"""What a job's implementation makes of its row: the names of its streams, and how they share the bytes of a batch."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from infra.contract.topics import load_topics
from jobs.runtime import job
from jobs.runtime.job import Context, Fold, Transform
from jobs.runtime.settings import Settings
from jobs.table import JOBS

TOPICS = load_topics()
LINES, OTLP, RETRY = ((TOPICS[key],) for key in ("telemetry.lines", "telemetry.otlp.metrics", "events.retry"))
STREAMS = {"lines_json": LINES, "otlp_metrics_json": OTLP, "retry_events": RETRY}


@pytest.fixture
def filled(monkeypatch):
    """How many streams share a batch if these topics hold records."""

    def count(*topics):
        monkeypatch.setattr(job, "filled_topics", lambda _, names: {*topics} & names)
        seen = []
        frame = SimpleNamespace()
        transform = Transform(lambda _: STREAMS, lambda context: seen.append(context) or frame, lambda _: None)
        transform.queries(JOBS["enrichment"], Context(None, Settings(), TOPICS))
        return seen[0].filled_streams

    return count


def test_streams_that_have_records_share_a_batch(filled):
    assert filled("telemetry.lines", "telemetry.otlp.metrics") == 2


def test_without_records_there_is_nothing_to_share(filled):
    assert filled() == 1


@pytest.mark.parametrize(("key", "source"), [("novelties", "novelties"), ("events.rejected", "events_rejected")])
def test_a_folds_stream_has_a_name_that_spark_takes(key, source):
    job = replace(JOBS["incidents"], reads=(key,))
    assert Fold(lambda own, topics: None).sources(job, TOPICS) == {source: (TOPICS[key],)}
