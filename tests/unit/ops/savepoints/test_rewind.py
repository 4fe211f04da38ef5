import pytest

from connectors.kafka.markers import Marker
from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.savepoints import rewind
from ops.savepoints.rewind import Written
from ops.savepoints.saved import SavedMarker, Savepoint
from ops.savepoints.store import Store

ENTRY = 'v2\n{}\nlines:{"telemetry.lines":{"0":%d,"1":%d}}\nretry_lines:{"events.retry":{"0":7}}'


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path)


@pytest.fixture
def committed(monkeypatch):
    """What is committed, by group, instead of on a broker."""
    found = {}
    monkeypatch.setattr(rewind, "commit", lambda _, group, offsets: found.update({group: offsets}))
    return found


def savepoint(job, offsets):
    return Savepoint(
        name="sp", job=job, generation="live", batch=7, planned=True, run="old", offsets=offsets, sources=(),
        shared=("events.retry",), markers=(), driver=8, shuffle_partitions=2, settings={}, layout={}, shards=0,
    )  # fmt: skip


def copied(settings, *names):
    store = Store.of(settings.savepoint_of("sp")) / "checkpoint"
    for name in names:
        store.write(name, b"old")
    return store


def committed_at(offsets):
    return {(one.topic, one.partition): (one.offset, one.metadata) for one in offsets}


def test_a_fold_starts_from_its_state_and_knows_what_is_written(settings, committed):
    saved = savepoint("detector", {("statistics", 0): 40})
    copy = copied(settings, "metadata", "offsets/8", "commits/7", "state/0/0/8.zip")
    copy.write("offsets/7", b'v2\n{}\nread:{"statistics":{"0":35}}')  # in the log that it was taken in
    Store.of(settings.checkpoint_of("detector")).write("offsets/9", b"of later")
    written = Written(12, "old", {0: 2, 1: 2}, {("statistics", 0): 90, ("statistics", 1): 5})
    rewind.put_back("detector", saved, copy, written, settings)

    there = Store.of(settings.checkpoint_of("detector"))
    assert there.names() == ["commits/7", "metadata", "offsets/7", "state/0/0/8.zip", "written.json"]
    assert there.read("offsets/7") == b'v2\n{}\nread:{"statistics":{"0":40}}'
    assert there.read("written.json") == b'{"statistics":{"0":90,"1":5}}'
    run = there.read("metadata").decode().split('"')[3]
    assert run != "old"
    bounds = committed_at(committed["kappa.live.detector.written"])
    assert bounds == {("statistics", 0): (90, run), ("statistics", 1): (5, run)}
    marker = '{"run": "%s", "tasks": %d}'
    assert committed_at(committed["kappa.live.detector.sink"]) == {
        ("sink.progress", 0): (8, marker % (run, 2)),
        ("sink.progress", 1): (8, marker % (run, 2)),
    }
    assert committed_at(committed["kappa.live.detector.driver.sink"]) == {("sink.progress", 0): (8, marker % (run, 1))}


def test_the_markers_of_a_former_stay_on_the_cluster_are_all_replaced(settings, committed, monkeypatch):
    markers = (SavedMarker(slot=0, done=8, tasks=1), SavedMarker(slot=2, done=8, tasks=1))
    saved = savepoint("detector", {("statistics", 0): 40}).model_copy(update={"markers": markers})
    copy = copied(settings, "metadata", "commits/7")
    copy.write("offsets/7", b'v2\n{}\nread:{"statistics":{"0":35}}')
    left = {0: Marker(5, "former", 4), 3: Marker(5, "former", 4)}
    monkeypatch.setattr(rewind, "list_slots", lambda tasks: range(4))
    monkeypatch.setattr(rewind, "read_markers", lambda tasks, slots, isolation: left)
    rewind.put_back("detector", saved, copy, rewind.unwritten("detector", saved, settings), settings)
    replaced = committed_at(committed["kappa.live.detector.sink"])
    assert {slot: done for (_, slot), (done, _) in replaced.items()} == {0: 8, 2: 8, 3: 8}
    assert not any("former" in metadata for _, metadata in replaced.values())
    assert committed_at(committed["kappa.live.detector.written"]).keys() == {("statistics", 0)}


def test_a_job_without_state_starts_where_it_was(settings, committed):
    saved = savepoint("enrichment", {("telemetry.lines", 0): 40, ("events.retry", 0): 7})
    copy = copied(settings, "metadata", "commits/7")
    copy.write("offsets/7", (ENTRY % (40, 0)).encode())
    offsets = {("telemetry.lines", 0): 90, ("telemetry.lines", 1): 5, ("events.retry", 0): 7}
    rewind.put_back("enrichment", saved, copy, Written(12, "old", {}, offsets), settings)
    there = Store.of(settings.checkpoint_of("enrichment"))
    assert there.names() == ["commits/7", "metadata", "offsets/7"]
    assert there.read("offsets/7").decode() == ENTRY % (90, 5)
    assert "kappa.live.enrichment.written" not in committed


def test_dead_letters_that_were_sent_again_since_are_not_guessed_at(settings):
    saved = savepoint("enrichment", {("events.retry", 0): 7})
    with pytest.raises(UserError, match=r"dead letters were sent again since \(events.retry/0, 8 instead of 7\)"):
        rewind.check("enrichment", saved, Written(12, "old", {}, {("events.retry", 0): 8}))


def test_a_job_that_was_begun_anew_is_not_put_back(settings):
    saved = savepoint("detector", {("statistics", 0): 40})
    with pytest.raises(UserError, match="stands at offset 40 of statistics/0, but detector has only written"):
        rewind.check("detector", saved, Written(2, "new", {}, {("statistics", 0): 39}))


@pytest.mark.parametrize(("version", "fits"), [(11, True), (12, False)])
def test_a_table_may_not_have_more_than_its_query_has_committed(settings, version, fits):
    log = Store.of(settings.delta_of("novelties")) / "_delta_log"
    log.write("0" * 19 + "1.json", b'{"txn":{"appId":"kappa.live.archive.novelties.old","version":%d}}' % version)
    log.write("0" * 19 + "2.json", b'{"txn":{"appId":"another","version":99}}\n{"add":{"path":"x"}}')
    written = Written(12, "old", {}, {})
    if fits:
        rewind.check_table("archive.novelties", "novelties", written, settings)
        return
    with pytest.raises(UserError, match=r"archive.novelties: its batch 12 is written in part"):
        rewind.check_table("archive.novelties", "novelties", written, settings)
