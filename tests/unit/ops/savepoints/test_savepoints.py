import pytest

from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.detector.settings import DetectorSettings
from jobs.enrichment.job import TRANSFORM
from jobs.runtime.settings import Settings
from jobs.statistics.settings import StatisticsSettings
from jobs.table import JOBS
from ops.replay.registry import CHAIN, Generation
from ops.savepoints import chain, savepoints
from ops.savepoints.saved import SavedMarker, Savepoint
from ops.savepoints.store import Store
from tests.unit.jobs.statistics.test_shard import line, log_of, metric, record

OWN = DetectorSettings()


class Log:
    """A broker whose `statistics` holds offsets 10 to 90."""

    bootstrap = "broker:9092"

    class admin:
        @staticmethod
        def list_topics(timeout):
            return type("Metadata", (), {"topics": ["statistics"]})

    def partitions(self, topics):
        return [("statistics", 0)]

    def starts(self, topics):
        return {("statistics", 0): 10}

    def ends(self, topics):
        return {("statistics", 0): 90}


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path)


@pytest.fixture
def saved(settings):
    """A savepoint of a detector, with a file of its checkpoint."""
    saved = Savepoint(
        name="sp",
        job="detector",
        generation="live",
        batch=7,
        planned=False,
        run="run-1",
        offsets={("statistics", 0): 40},
        sources=("statistics",),
        markers=(SavedMarker(slot=0, done=8, tasks=2), SavedMarker(slot=1, done=8, tasks=2)),
        driver=8,
        shuffle_partitions=2,
        settings=OWN.model_dump(mode="json"),
        layout=savepoints.expected_layout("detector", OWN, load_topics()),
        shards=4,
    )
    store = savepoints.store_of("sp", settings)
    store.write("checkpoint/offsets/7", b"v2")
    store.write(savepoints.MANIFEST, saved.model_dump_json().encode())
    return saved


def refusal(saved, settings, own=OWN):
    with pytest.raises(UserError) as raised:
        savepoints.check_fits(saved, settings, own, load_topics(), Log())
    return str(raised.value)


def test_an_unchanged_job_goes_on(saved, settings):
    savepoints.check_fits(saved, settings, OWN, load_topics(), Log())


def test_another_layout_of_the_state_is_refused(saved, settings):
    older = {**saved.layout, "columns": [*saved.layout["columns"][1:], "z_gone"]}
    said = refusal(saved.model_copy(update={"layout": older}), settings)
    assert f"+{saved.layout['columns'][0]}, -z_gone" in said
    assert "kappa replay start --job detector --from earliest" in said


def test_a_layout_does_not_depend_on_what_waits_in_the_state():
    own, topics = StatisticsSettings(), load_topics()
    shard = JOBS["statistics"].implementation().opener(own, topics)(None)
    shard.feed(log_of([record(metric(101, 2.5)), record(line(101), kind="log")]))
    assert savepoints.layout(shard.dump()) == savepoints.expected_layout("statistics", own, topics)


def test_a_state_with_another_key_is_refused(saved, settings):
    older = {part: names for part, names in saved.layout.items() if part != "key"}
    assert "(+salt, +shard)" in refusal(saved.model_copy(update={"layout": older}), settings)


def test_another_number_of_partitions_is_refused(saved, settings):
    said = refusal(saved, settings.model_copy(update={"shuffle_partitions": 8}))
    assert said.startswith("KAPPA_SHUFFLE_PARTITIONS=8") and "in 2; set it to that" in said


def test_only_settings_that_lay_out_the_state_are_fixed(saved, settings):
    savepoints.check_fits(saved, settings, DetectorSettings(alarms_per_day=20), load_topics(), Log())
    said = refusal(saved, settings, DetectorSettings(window_seconds=60))
    assert "detector.window_seconds=60.0: the state of savepoint 'sp' was made with 10.0" in said


def test_a_source_that_is_gone_is_refused(saved, settings):
    assert "reads the sources old_format" in refusal(
        saved.model_copy(update={"sources": ("old_format", "statistics")}), settings
    )


@pytest.mark.parametrize("offset", [9, 91])
def test_offsets_that_the_log_does_not_hold_are_refused(saved, settings, offset):
    gone = saved.model_copy(update={"offsets": {("statistics", 0): offset}})
    assert f"offset {offset} of statistics/0, which now holds 10 to 90" in refusal(gone, settings)


def test_a_generation_begins_with_the_savepoints_job(saved):
    with pytest.raises(UserError, match="savepoint 'sp' is of detector; use --job detector"):
        savepoints.check_starts(saved, Generation(name="v2", base="live", jobs=CHAIN))


@pytest.mark.parametrize(
    ("planned", "done", "fits"),
    [(False, [8, 8], True), (False, [9, 8], False), (True, [9, 8], True), (True, [10], False), (False, [], True)],
)
def test_a_job_that_has_written_on_does_not_fit(saved, planned, done, fits):
    """Batch 7 is the last: 8 are done. One more may be written in part, if it was planned: it is repeated as such."""
    assert saved.model_copy(update={"planned": planned}).fits(done) is fits


class EnrichmentLog(Log):
    class admin:
        @staticmethod
        def list_topics(timeout):
            return type("Metadata", (), {"topics": ["telemetry.lines", "events.retry"]})

    def partitions(self, topics):
        return [(topic, 0) for topic in topics]

    def starts(self, topics):
        return dict.fromkeys(self.partitions(topics), 0)

    def ends(self, topics):
        return dict.fromkeys(self.partitions(topics), 90)


def test_an_enrichment_reads_the_retries_of_its_own_generation_from_their_beginning(saved, settings):
    """The others were sent to the generation that the savepoint is of."""
    enriching = saved.model_copy(
        update={
            "job": "enrichment",
            "offsets": {("telemetry.lines", 0): 40, ("events.retry", 0): 7},
            "sources": tuple(sorted(TRANSFORM.streams(load_topics()))),
            "settings": {},
            "layout": {},
        }
    )
    store, text = savepoints.store_of("sp", settings), '\nlines:{"telemetry.lines":{"0":40}}'
    store.write("checkpoint/metadata", b'{"id":"run-1"}')
    store.write("checkpoint/offsets/7", f'v2\n{{}}{text}\nretry_events:{{"events.retry":{{"0":7}}}}'.encode())
    own, topics = settings.model_copy(update={"generation": "v2"}), JOBS.topics_in(load_topics(), "v2")
    savepoints.check_fits(enriching, own, None, topics, EnrichmentLog())
    savepoints._put_checkpoint(enriching, own, "run-2", savepoints._own(enriching, topics))
    there = Store.of(own.checkpoint_of("enrichment"))
    assert there.read("offsets/7").decode() == f'v2\n{{}}{text}\nretry_events:{{"events.retry.v2":{{"0":0}}}}'
    assert there.read("metadata") == b'{"id":"run-2"}'


def test_topics_that_the_generation_does_not_read_are_refused(saved, settings):
    of_another = saved.model_copy(update={"offsets": {("statistics.v1", 0): 40}})
    assert "reads the topics statistics.v1, generation 'live' doesn't" in refusal(of_another, settings)


def test_an_exported_savepoint_can_be_taken_in_elsewhere(saved, settings, tmp_path):
    file = tmp_path / "sp.tgz"
    savepoints.export(saved, settings, file)
    elsewhere = settings.model_copy(update={"home": tmp_path / "elsewhere"})
    moved = savepoints.take_in(file, "moved", elsewhere)
    assert moved == saved.model_copy(update={"name": "moved", "files": moved.files})
    assert chain.verify(moved, elsewhere) == len(moved.files) == 1
    assert savepoints.store_of("moved", elsewhere).read("checkpoint/offsets/7") == b"v2"
    assert [one.name for one in savepoints.every(elsewhere)] == ["moved"]
    with pytest.raises(UserError, match="there is one already"):
        savepoints.take_in(file, "moved", elsewhere)


@pytest.mark.parametrize("name", ["../../../victim/enrichment", "/tmp/x", "..", "a/b", ".hidden", "x" * 101, "a b"])
def test_a_name_can_not_be_that_of_another_folder(saved, settings, tmp_path, name):
    file = tmp_path / "sp.tgz"
    savepoints.export(saved, settings, file)
    for use in (lambda: savepoints.take_in(file, name, settings), lambda: savepoints.find(name, settings)):
        with pytest.raises(UserError, match="use up to 100 letters, digits"):
            use()


def test_what_is_no_savepoint_is_named(settings, tmp_path):
    file = tmp_path / "text"
    file.write_text("hello")
    with pytest.raises(UserError, match="is no exported savepoint"):
        savepoints.take_in(file, None, settings)
    with pytest.raises(UserError, match="savepoint 'none': there is none; there are none"):
        savepoints.find("none", settings)


def test_a_savepoint_that_lists_no_files_can_not_be_verified(saved, settings):
    with pytest.raises(UserError, match="taken by an earlier version, without sums"):
        chain.verify(saved, settings)


@pytest.mark.parametrize(("change", "said"), [(b"x", "has 1 bytes with the SHA-256"), (None, "is gone")])
def test_a_file_that_has_changed_is_named(saved, settings, tmp_path, change, said):
    file = tmp_path / "sp.tgz"
    savepoints.export(saved, settings, file)
    moved = savepoints.take_in(file, "moved", settings)
    path = settings.home / "checkpoints/.savepoints/moved/checkpoint/offsets/7"
    path.write_bytes(change) if change else path.unlink()
    with pytest.raises(UserError, match=f"offsets/7: {said}"):
        chain.verify(moved, settings)
