import json
from contextlib import nullcontext

import pytest
from typer.testing import CliRunner

from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.backfill import cli
from ops.backfill.backfill import Note
from ops.backfill.run import Request


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """The requests that are made, instead of running them."""
    found = []

    def run(request, settings, spark, report):
        found.append(request)
        if request.name == "taken":
            raise UserError("--as taken: there is one already")
        note = Note(watermark_ms=1_760_000_000_000, written={"novelties.y1": 3})
        report(5, 10, note)
        report(10, 10, note)
        return note

    monkeypatch.setattr(cli, "run", run)
    monkeypatch.setattr(cli, "session", lambda *_: nullcontext())
    monkeypatch.setattr(cli, "load_storage_settings", lambda: Settings(home=tmp_path))
    return found


def call(*arguments):
    return CliRunner().invoke(cli.app, arguments)


def test_it_tells_each_step_and_what_is_written(asked):
    done = call("--as", "y1", "--from", "2025-01-01", "--set", "detector.alarms_per_day=20")
    assert asked == [Request("y1", "2025-01-01", "latest", ("detector.alarms_per_day=20",), 200_000)]
    assert done.exit_code == 0, done.output
    assert "y1: 5 of 10 records, reached 2025-10-09 08:53:20" in done.stderr
    assert "y1: 3 in novelties.y1" in done.stderr


def test_json_is_all_that_it_prints(asked):
    done = call("--as", "y1", "--json")
    found = json.loads(done.stdout)
    assert (found["generation"], found["written"]) == ("y1", {"novelties.y1": 3}) and found["seconds"] >= 0
    assert done.stderr == ""


def test_what_can_not_be_used_is_raised(asked):
    assert isinstance(call("--as", "taken").exception, UserError)
