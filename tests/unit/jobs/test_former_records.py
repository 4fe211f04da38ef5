"""What version 0.1.0 wrote, byte for byte, read by the jobs of this version.

The file was made by the folds of 0.1.0 (commit d08e4ac): a machine whose `cpu` goes from 10 to 40 in its 45th window of
10 s, and an operator who says four windows later that this is normal.
"""

from functools import partial
from pathlib import Path

import orjson
import pytest

from infra.contract.versions import upcast
from jobs.detector.job import DetectorShard
from jobs.detector.settings import DetectorSettings
from jobs.incidents.job import IncidentsShard
from jobs.indexer.batch import Message, convert
from jobs.notifier.notice import read_notice
from jobs.runtime.shard_state import Input

RECORDED = [orjson.loads(line) for line in Path(__file__).with_name("recorded_0.1.0.jsonl").read_bytes().splitlines()]
KINDS = {kind: kind for kind in ("statistics", "novelties", "incidents")}
LATER = 1_800_000_000_000  # ms


def written(topic, *, is_upcast=True):
    """The values of a topic as 0.1.0 wrote them, or as they are read."""
    rows = [(one["value"].encode(), one["version"]) for one in RECORDED if one["topic"] == topic]
    return [upcast(value, version and version.encode()) if is_upcast else value for value, version in rows]


def outputs(shard, topic, values):
    found = shard.feed(Input(topic, 0, range(len(values)), values, timestamps=[LATER] * len(values)))
    assert [output.note for output in found if output.topic == "events.rejected"] == []
    return [orjson.loads(output.value) for output in found if output.key]


def test_the_detector_finds_the_same_and_obeys_the_operator():
    found = outputs(DetectorShard(DetectorSettings()), "statistics", written("statistics"))
    former = [record for value in written("novelties") if "phase" in (record := orjson.loads(value))]
    said = [(one["phase"], one["verdict"], one["series"], one["since_unix_nano"]) for one in found]
    assert said == [(one["phase"], one["verdict"], one["series"], one["since_unix_nano"]) for one in former]
    assert (found[-1]["phase"], found[-1]["feedback"]) == ("end", "not-anomalous")


def test_incidents_follow_from_its_novelties():
    found = outputs(IncidentsShard(1), "novelties", written("novelties"))
    former = [orjson.loads(value) for value in written("incidents")]
    assert [(one["phase"], one["since_unix_nano"], one["machines"]) for one in found] == [
        (one["phase"], one["since_unix_nano"], one["machines"]) for one in former
    ]


def test_its_records_are_indexed():
    messages = [
        Message(topic, 0, offset, offset + 1, LATER, b"k", value)
        for topic in KINDS
        for offset, value in enumerate(written(topic))
    ]
    documents, faults = {}, []
    for batch in convert(messages, KINDS):
        documents |= batch.documents
        faults += batch.faults
    assert faults == []
    assert sorted({kind for kind, _ in documents}) == ["incidents", "novelties", "statistics"]
    (novelty,) = (one for (kind, _), one in documents.items() if kind == "novelties")
    assert (novelty["machine"], novelty["series"], novelty["feedback"]) == ("vm-1", "cpu", "not-anomalous")


def test_people_can_be_told_of_its_incidents():
    titles = [read_notice("incidents", value, lambda _: {}, 3) for value in written("incidents")]
    assert [one.finding.phase for one in titles] == ["start", "end"]


@pytest.mark.parametrize(
    ("topic", "shard"),
    [("statistics", partial(DetectorShard, DetectorSettings())), ("novelties", partial(IncidentsShard, 1))],
)
def test_without_up_casting_they_cannot_be_read(topic, shard):
    with pytest.raises(AssertionError):
        outputs(shard(), topic, written(topic, is_upcast=False))
