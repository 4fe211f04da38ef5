"""Savepoints of a job that runs, started from again; and what is refused."""

import shutil
import time

import pytest

from connectors.kafka.offsets import Log
from infra.contract.offsets import to_nested
from jobs.detector.settings import DetectorSettings
from ops.savepoints import savepoints
from tests.replay import expected
from tests.replay.chain import Chain, stop
from tests.replay.report import Report

GROUP = "kappa.live.detector"


@pytest.fixture(scope="module")
def middle(chain: Chain):
    """A savepoint `middle` of the live detector, taken between two of its batches while it ran; it went on since."""
    process = chain.start("run", "all")
    log = Log(chain.settings.kafka_bootstrap)
    before = log.committed(GROUP, log.partitions(["statistics"]))
    chain.feed(120)
    while log.committed(GROUP, before) == before:
        assert process.poll() is None
        time.sleep(0.5)
    chain.kappa("savepoint", "create", "middle", "--job", "detector")
    chain.feed(60)
    chain.wait_until_caught_up("live")
    stop(process)
    saved = savepoints.find("middle", chain.settings)
    ends = log.ends(["statistics"])
    assert any(offset < ends[place] for place, offset in saved.offsets.items() if place in ends)
    return saved


def test_a_generation_goes_on_from_a_savepoint_of_a_running_job(chain: Chain, report: Report, middle):
    start = ("replay", "start", "--job", "detector", "--from", "savepoint:middle", "--to", "latest", "--as", "b")
    chain.kappa(*start)

    records = expected.statistics(chain.settings.kafka_bootstrap, "statistics")
    whole = expected.novelties(records, DetectorSettings())
    before = expected.novelties(records, DetectorSettings(), to_nested(middle.offsets)["statistics"])
    assert expected.held(chain.settings.kafka_bootstrap, "novelties.b") == whole - before
    assert expected.held(chain.settings.kafka_bootstrap, "novelties") == whole
    report.add("from a savepoint of a running job", novelties=(whole - before).total(), batch=middle.batch)


def test_a_job_goes_back_to_an_old_savepoint_and_writes_nothing_again(chain: Chain, report: Report, middle):
    chain.kappa("savepoint", "restore", "middle")
    chain.feed(60)
    chain.run_live()
    records = expected.statistics(chain.settings.kafka_bootstrap, "statistics")
    whole = expected.novelties(records, DetectorSettings())
    assert expected.held(chain.settings.kafka_bootstrap, "novelties") == whole
    report.add("back to an old savepoint", novelties=whole.total())


def test_a_stopped_job_goes_on_from_a_savepoint_that_was_exported(chain: Chain, report: Report, middle):
    """As after a move to other disks: the checkpoint is lost, the savepoint comes from a file."""
    file = chain.home / "paused.tgz"
    chain.kappa("savepoint", "create", "paused", "--job", "detector")
    chain.kappa("savepoint", "export", "paused", str(file))
    shutil.rmtree(chain.settings.checkpoint_of("detector"))
    shutil.rmtree(chain.settings.savepoint_of("paused"))
    chain.kappa("savepoint", "import", str(file))
    chain.kappa("savepoint", "restore", "paused")

    chain.feed(60)
    chain.run_live()
    records = expected.statistics(chain.settings.kafka_bootstrap, "statistics")
    assert expected.held(chain.settings.kafka_bootstrap, "novelties") == expected.novelties(records, DetectorSettings())
    report.add("a stopped job from an exported savepoint", bytes=file.stat().st_size)


def test_a_change_that_the_state_can_not_take_is_refused_beforehand(chain: Chain, middle):
    start = ("replay", "start", "--job", "detector", "--from", "savepoint:middle", "--as", "c")
    said = chain.kappa(*start, "--set", "detector.window_seconds=60", codes=(2,)).replace("\n", " ")
    assert "detector.window_seconds=60.0: the state of savepoint 'middle' was made with 10.0" in said
    assert "kappa replay start --job detector --from earliest" in said
    assert "c" not in chain.kappa("replay", "list").split()


def test_the_state_can_be_read(chain: Chain):
    shown = chain.kappa("state", "show", "system.cpu", "--machine", "vm-02")
    assert "system.cpu" in shown and "vm-02" in shown
    assert "--by nonsense: the model has" in chain.kappa("state", "top", "--by", "nonsense", codes=(2,))
