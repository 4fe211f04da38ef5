"""What `kappa upgrade` makes of its options; Kafka and savepoints are put in its place."""

import json
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from infra.errors import UserError
from ops.upgrade import cli
from ops.upgrade.looks import Look, Stand
from ops.upgrade.mark import Before, Mark
from ops.upgrade.watch import Outcome

LOOK = Look(0.0, {"detector": Stand("host process 7 0f", 4, 9, 100), "indexer": Stand("", 0, 3, 50)})


class FakeChain:
    """Looks the same each time; notes which jobs it was made of."""

    jobs = ()
    stands = LOOK

    def __init__(self, _settings, _topics, jobs):
        type(self).jobs = tuple(jobs)

    def look(self):
        return self.stands

    def close(self):
        pass


@pytest.fixture
def noted(monkeypatch):
    """The mark, as it is written and read."""
    held = []
    monkeypatch.setattr(cli, "Chain", FakeChain)
    monkeypatch.setattr(cli, "MEASURED_SECONDS", 0)
    monkeypatch.setattr(cli, "reach_broker", lambda *_: {})
    monkeypatch.setattr(cli.marks, "write", lambda mark, _settings: held.append(mark))
    monkeypatch.setattr(cli.marks, "read", lambda _settings: held[-1])
    monkeypatch.setattr(cli, "_save", lambda _settings: "upgrade.live.20261126T100000Z")
    return held


@pytest.fixture
def outcome(monkeypatch):
    """How the watch comes out, and the deadline that it was given."""
    given = []

    def set_to(is_ready):
        def watch(_mark, look, deadline, _report):
            given.append(deadline)
            return Outcome(is_ready, "detector: why", 12.34, look())

        monkeypatch.setattr(cli, "watch_chain", watch)
        return given

    return set_to


def call(*arguments):
    return CliRunner().invoke(cli.app, arguments)


def test_begin_notes_each_query_that_is_at_work(noted):
    done = call("begin")
    assert (done.exit_code, done.stdout) == (0, "2 queries are noted: now start the new image\n")
    (mark,) = noted
    assert (mark.mode, mark.savepoint) == ("checkpoint", None)
    assert mark.queries == {"detector": Before(owner="host process 7 0f", lag=9), "indexer": Before(lag=3)}
    assert {"enrichment", "detector", "incidents", "indexer"} <= {*FakeChain.jobs}


def test_begin_takes_a_savepoint_first_if_it_is_to_go_back_to_one(noted):
    done = call("begin", "--mode", "savepoint", "--json")
    assert json.loads(done.stdout)["savepoint"] == noted[0].savepoint == "upgrade.live.20261126T100000Z"


def test_only_the_applications_that_are_named_are_looked_at(noted):
    assert call("begin", "--job", "detector", "--job", "indexer").exit_code == 0
    assert FakeChain.jobs == ("detector", "incidents", "indexer")


def test_what_can_not_be_guarded_is_refused(noted, monkeypatch):
    assert "--job detecter: there is none; there are" in str(call("begin", "--job", "detecter").exception)
    assert call("begin", "--mode", "generation").exit_code == 2
    monkeypatch.setenv("KAPPA_STORAGE_SHARED", "false")
    assert "storage_shared=False" in str(call("begin", "--mode", "savepoint").exception)
    monkeypatch.setattr(FakeChain, "stands", Look(0.0, {"detector": Stand("", 0, 0, 0, has_committed=False)}))
    refused = call("begin").exception
    assert isinstance(refused, UserError) and "no job has ever committed a batch" in str(refused)
    assert noted == []


def test_watch_says_in_one_line_how_it_came_out(noted, outcome):
    given = outcome(True)
    call("begin")
    ready = call("watch", "--deadline", "90s")
    assert (ready.exit_code, ready.stdout, given) == (0, "ready after 12 s: detector: why\n", [90])
    assert {"detector", "indexer"} == {*FakeChain.jobs}
    outcome(False)
    failed = call("watch")
    assert (failed.exit_code, failed.stdout) == (1, "not ready after 12 s: detector: why\n")


def test_watch_as_json(noted, outcome):
    outcome(False)
    call("begin")
    facts = json.loads(call("watch", "--json").stdout)
    assert (facts["ready"], facts["why"], facts["seconds"]) == (False, "detector: why", 12.3)
    assert facts["queries"]["detector"] == {
        "owner": "host process 7 0f", "batches": 4, "lag": 9, "end": 100, "has_committed": True,
    }  # fmt: skip


def test_a_deadline_that_is_none_is_named():
    assert "--deadline 'soon': write a whole number and a unit" in str(call("watch", "--deadline", "soon").exception)


def test_back_says_what_it_has_done(noted, monkeypatch):
    noted.append(Mark(mode="checkpoint", taken="now", queries={}))
    assert call("back").stdout == "the former image goes on from its checkpoints: start it\n"
    assert json.loads(call("back", "--json").stdout)["restored"] is False
    monkeypatch.setattr(cli.way_back, "back", lambda *_: "savepoint before is back in place")
    assert json.loads(call("back", "--json").stdout)["restored"] is True


@pytest.mark.parametrize("mode", ["checkpoint", "savepoint"])
def test_back_stops_deployments_only_where_a_savepoint_may_be_put_back(noted, monkeypatch, mode):
    stopped = []

    class Pod:
        @staticmethod
        def of_this_pod():
            return Pod()

        @contextmanager
        def without(self, names, patience):
            stopped.append((*names, patience))
            yield
            stopped.append("over")

    monkeypatch.setattr(cli, "Namespace", Pod)
    monkeypatch.setattr(cli.way_back, "back", lambda *_: stopped.append("back") or "it goes on")
    call("begin", "--mode", mode)
    assert call("back", "--deployment", "kappa-detector", "--deployment", "kappa-archive").exit_code == 0
    expected = [("kappa-detector", "kappa-archive", 300.0), "back", "over"]
    assert stopped == (expected if mode == "savepoint" else ["back"])


def test_a_savepoint_of_an_upgrade_takes_the_place_of_older_ones(monkeypatch, tmp_path):
    monkeypatch.setenv("KAPPA_HOME", str(tmp_path))
    taken = []

    @contextmanager
    def session(name, _settings):
        yield name

    def rotate(family, keep, settings, create, _now):
        taken.append((family, keep, settings.generation))
        return create(f"{family}.live.x")

    class Saved:
        name = "upgrade.live.x"

    monkeypatch.setattr(cli, "session", session)
    monkeypatch.setattr(cli.rotation, "rotate_all", rotate)
    monkeypatch.setattr(cli.chain, "create_of_running", lambda name, _settings, spark: Saved)
    assert cli._save(cli.load_settings()) == "upgrade.live.x"
    assert taken == [("upgrade", cli.KEPT, "live")]
