"""The fold of the Yahoo benchmark's job on our runtime: counts are added up and emitted once, by watermarks."""

import orjson
import pytest

from infra.contract.watermarks import watermark_value
from jobs.runtime.queryable import InvalidQuestionError
from jobs.runtime.shard_state import Input
from tests.bench.yahoo.job import FOLD, TABLE, CampaignShard, open_windows, topic_map
from tests.unit.jobs.folds import data, fed, halves
from tests.unit.jobs.saved_shards import put, saved_shards

MILLI = 1_000_000


def views(campaign, start_ms, count):
    return orjson.dumps({"campaign": campaign, "window_start": start_ms, "count": count})


def watermark(ms):
    return watermark_value(ms * MILLI)


def batch(*values):
    return Input("views", 0, range(len(values)), values)


LOG = batch(
    views("a", 0, 2),
    views("b", 0, 1),
    views("a", 10_000, 5),
    views("a", 0, 3),
    watermark(9_999),
    watermark(10_000),
    views("a", 10_000, 1),
    watermark(25_000),
)


def shown(outputs):
    return [(record["campaign"], record["window_start"], record["count"]) for record in map(_record, data(outputs))]


def _record(output):
    return orjson.loads(output.value)


def test_a_window_is_emitted_once_a_watermark_has_passed_its_end():
    _, outputs = fed(CampaignShard, LOG)
    assert shown(outputs) == [("a", 0, 5), ("b", 0, 1), ("a", 10_000, 6)]
    assert data(outputs)[0].time_unix_nano == 10_000 * MILLI


@pytest.mark.parametrize("cut", range(1, len(LOG.offsets)))
def test_neither_cuts_nor_workers_show(cut):
    assert fed(CampaignShard, LOG, {cut: True}) == fed(CampaignShard, LOG)


def test_a_record_that_is_none_becomes_a_dead_letter_and_nothing_else():
    state, outputs = fed(CampaignShard, batch(b"{", views("a", 0, -1), views("", 0, 1), views("a", "now", 1), None))
    assert [output.topic for output in outputs] == ["events.rejected"] * 5
    assert state == fed(CampaignShard, batch())[0]


def test_a_divided_shard_keeps_each_campaign_once():
    state, _ = fed(CampaignShard, batch(*(views(name, 0, 1) for name in "abcdefgh")))
    closed = [shown(CampaignShard(half).feed(batch(watermark(10_000)))) for half in halves(CampaignShard, state)]
    assert all(closed)
    assert sorted(one for half in closed for one in half) == [(name, 0, 1) for name in "abcdefgh"]


def test_what_has_come_of_a_campaign_can_be_asked_while_its_windows_are_open(tmp_path):
    put(tmp_path, fed(CampaignShard, LOG.part(0, 4))[0])
    put(tmp_path, fed(CampaignShard, batch(views("c", 0, 9)))[0], shard=1)
    shards = saved_shards(tmp_path)
    windows = [{"window_start": 0, "count": 5}, {"window_start": 10_000, "count": 5}]
    assert open_windows(shards, {"campaign": "a"}) == {"campaign": "a", "windows": windows}
    assert open_windows(shards, {"campaign": "nobody's"})["windows"] == []
    with pytest.raises(InvalidQuestionError, match="campaign: is missing"):
        open_windows(shards, {})


def test_the_table_fits_the_map_of_topics():
    TABLE.check(topic_map("live"))
    assert topic_map("round0")["counts"].name == "counts.round0"
    assert FOLD.questions(None)[0].path == "/campaign"
