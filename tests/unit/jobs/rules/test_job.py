"""The declaration of the rules job."""

import pickle

import pytest

from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.rules.job import FOLD
from jobs.rules.settings import RulesSettings
from jobs.table import JOBS
from tests.unit.jobs.folds import fed
from tests.unit.jobs.rules.logs import change, log_of, opener, point, record, watermark


def test_a_shard_gives_alerts_with_their_origin_and_then_the_watermark():
    log = log_of([record(point(1, 1), point(3, 90)), watermark(2), watermark(5)])
    alert, passed = fed(opener(change()), log)[1]
    assert (alert.key, alert.time_unix_nano, alert.topic) == ("vm-1", 3 * 10**9, None)
    assert alert.headers == (("kappa.source", b"events/3"), ("kappa.schema", b"alerts/1"))
    assert (passed.key, passed.time_unix_nano) == (None, 5 * 10**9)


def test_the_table_names_it_and_its_topic_has_the_partitions_of_events():
    topics = load_topics()
    assert JOBS["rules"].implementation() is FOLD
    assert topics["alerts"].partitions == topics["events"].partitions and topics["alerts"].shards == "machine"


def test_what_opens_a_shard_travels_to_the_workers():
    opened = pickle.loads(pickle.dumps(FOLD.opener(RulesSettings(), load_topics())))(None)
    assert [*opened.fold.rules] == ["load-jump", "memory-errors", "silent-guest"]


def test_a_wrong_file_is_refused_before_anything_starts(tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text("rules: [{id: hot, kind: rise}]")
    with pytest.raises(UserError, match="rule hot: kind='rise'"):
        FOLD.check_settings(RulesSettings(file=file), load_topics())
