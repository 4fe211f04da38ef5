"""The detector's fold as Spark calls it: the watermarks that it passes on."""

import orjson
import pytest

from jobs.detector.job import _fold
from jobs.runtime.fold import Input
from tests.unit.jobs.detector.test_shard import FIRST, SETTINGS, SIZE, eventful, watermark


def outputs_of(*batches):
    state, outputs = None, []
    for batch in batches:
        state, more = _fold(SETTINGS, state, Input("statistics", 3, range(len(batch)), batch))
        outputs += more
    return outputs


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
