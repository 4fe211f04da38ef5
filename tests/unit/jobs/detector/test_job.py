"""The detector's fold as Spark calls it: the watermarks that it passes on."""

from functools import partial

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.detector.job import DetectorShard
from jobs.runtime.shard_state import Input
from tests.unit.jobs.detector.test_shard import FIRST, SETTINGS, SIZE, eventful, watermark
from tests.unit.jobs.folds import cuts_of, data, fed

OPENER = partial(DetectorShard, SETTINGS)


def outputs_of(*batches):
    state, outputs = OPENER(), []
    for batch in batches:
        outputs += state.feed(Input("statistics", 3, range(len(batch)), batch))
        state = OPENER(state.dump())
    return outputs


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_neither_cuts_nor_workers_show_in_state_and_data(chosen):
    values = list(eventful()[0])
    log = Input("statistics", 3, range(len(values)), values)
    whole_state, whole = fed(OPENER, log)
    state, outputs = fed(OPENER, log, chosen.draw(cuts_of(len(values))))
    assert data(outputs) == data(whole)
    assert state == whole_state


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_nothing_older_than_a_watermark_follows_it_whatever_the_batches(size):
    records = list(eventful()[0])
    outputs = outputs_of(*(records[n : n + size] for n in range(0, len(records), size)))
    novelties = [output.value for output in outputs if output.key]
    assert novelties == [orjson.dumps(novelty) for novelty in eventful()[2]]
    promised = 0
    for output in outputs:
        assert output.time_unix_nano >= promised
        promised = output.time_unix_nano if output.key is None else promised
    assert promised == (FIRST + 44) * SIZE + 1  # all windows are closed


def test_a_watermark_within_a_window_promises_nothing():
    within = orjson.dumps({"watermark_unix_nano": FIRST * SIZE + SIZE // 2})
    watermarks = [orjson.loads(output.value) for output in outputs_of([watermark(0)], [within], [watermark(1)])]
    assert watermarks == [{"watermark_unix_nano": (FIRST + n) * SIZE + 1} for n in (0, 1)]
