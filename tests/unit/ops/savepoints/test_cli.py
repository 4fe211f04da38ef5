"""What `kappa savepoint` makes of its options; what is done with them is put in its place."""

import json
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.replay.registry import Registry
from ops.savepoints import archive, cli, savepoints
from ops.savepoints.saved import ChainSavepoint

JOBS = ("enrichment", "statistics", "detector", "incidents", "archive", "indexer")


@contextmanager
def no_session(_name, _settings):
    yield None


@pytest.fixture
def settings(monkeypatch, tmp_path):
    settings = Settings(home=tmp_path)

    def load(generation=None):
        return settings.model_copy(update={"generation": generation or "live"})

    monkeypatch.setattr(cli, "load_storage_settings", load)
    monkeypatch.setattr(cli, "session", no_session)
    monkeypatch.setattr(cli, "reach", lambda _: None)
    monkeypatch.setattr(Registry, "read", classmethod(lambda *_: Registry()))
    monkeypatch.setattr(cli.chain, "create", create)
    return settings


def create(name, settings, jobs, topics, spark):
    store = savepoints.store_of(name, settings)
    store.write("checkpoint/detector/metadata", b"{}")
    saved = ChainSavepoint(
        name=name, generation=settings.generation, taken="2026-01-01T00:00:00Z", jobs=jobs, queries={}, groups={},
        ends={}, files=archive.listed(store).files,
    )  # fmt: skip
    store.write(archive.MANIFEST, saved.model_dump_json().encode())
    return saved


def call(*arguments):
    return CliRunner().invoke(cli.app, arguments)


def listed():
    return json.loads(call("list", "--json").stdout)


def test_all_jobs_but_those_for_people_are_kept(settings):
    done = call("create", "monday", "--all")
    assert done.exit_code == 0, done.exception
    assert f"monday: {', '.join(JOBS)} of live, 2 bytes" in done.stderr
    (one,) = listed()
    assert (one["name"], one["job"], tuple(one["jobs"]), one["bytes"]) == ("monday", "all", JOBS, 2)
    assert "monday" in call("list").stdout
    assert json.loads(call("verify", "monday", "--json").stdout) == {"savepoint": "monday", "files": 1, "bytes": 2}


@pytest.mark.parametrize(
    "arguments", [("create", "monday", "--all"), ("create", "monday", "--job", "detector"), ("rotate",)], ids=" ".join
)
def test_whoever_is_not_let_in_is_told_before_spark_starts(settings, monkeypatch, arguments):
    def refuse(bootstrap):
        raise UserError(f"{bootstrap}: doesn't know it")

    monkeypatch.setattr(cli, "reach", refuse)
    monkeypatch.setattr(cli, "session", lambda *_: pytest.fail("Spark is started"))
    assert str(call(*arguments).exception) == "127.0.0.1:9092: doesn't know it"


def test_with_keep_the_newest_of_the_generation_are_kept(settings):
    for name in ("nightly", "nightly.v2.20200101T000000Z", "nightly.live.20200101T000000Z"):
        call("create", name, "--all")
    assert call("create", "nightly", "--all", "--keep", "1", "--generation", "v2").exit_code == 0
    names = sorted(one["name"] for one in listed())
    assert names[:2] == ["nightly", "nightly.live.20200101T000000Z"]
    assert len(names) == 3 and names[2].startswith("nightly.v2.") and "2020" not in names[2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "add --all, or --job"),
        (("--all", "--job", "detector"), "add --all, or --job"),
        (("--job", "detector", "--keep", "2"), "--keep: goes with --all"),
        (("--all", "--every", "1d"), "--every: add --keep"),
    ],
)
def test_options_that_do_not_go_together_are_named(settings, options, said):
    error = call("create", "monday", *options).exception
    assert isinstance(error, UserError) and said in str(error)


def test_all_jobs_go_back_into_their_own_generation(settings, monkeypatch):
    call("create", "monday", "--all", "--generation", "v2")
    restored = []
    monkeypatch.setattr(cli.chain, "restore", lambda saved, own, *_: restored.append((saved.name, own.generation)))
    assert call("restore", "monday").exit_code == 0
    assert restored == [("monday", "v2")]
    with pytest.raises(UserError, match="'monday': is of all jobs, and goes back into its own generation"):
        savepoints.find("monday", settings)
