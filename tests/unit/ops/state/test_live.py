import orjson
import pytest
from typer.testing import CliRunner

from infra.errors import UserError
from jobs.detector.queryable import StateQuestion
from jobs.detector.shard import fold
from jobs.runtime import queryable
from jobs.runtime.metrics import MetricsServer
from jobs.runtime.queryable import Question, Questions
from jobs.runtime.settings import Settings
from ops.job_addresses import JobAddresses
from ops.state import cli
from ops.state.live import NotAnsweringError, ask, live_series
from ops.state.state import _of_shard
from tests.unit.jobs.detector.test_shard import SETTINGS, stream
from tests.unit.jobs.saved_shards import QUERY, put


@pytest.fixture
def address(tmp_path, monkeypatch):
    """Of a process that answers about the state of a detector."""
    state = fold(None, stream(30), SETTINGS)[0]
    put(tmp_path, state, shard=2)
    monkeypatch.setattr(queryable, "local_folder", lambda _: tmp_path)
    questions, query = Questions(), type("Query", (), {"id": QUERY})
    windows = Question("/windows", lambda shards, arguments: WINDOWS | {"machine": arguments["machine"]})
    questions.open(None, query, [StateQuestion(SETTINGS).question(), windows])
    with MetricsServer(Settings(metrics_port=0), lambda: None, questions) as server:
        yield server.url, state


def at(url):
    return JobAddresses(Settings(), url)


WINDOW = {"size_seconds": 10.0, "start_unix_nano": 1_790_000_000 * 10**9}
WINDOW |= {"count": 3, "mean": 2.5, "min": 1.0, "max": 4.0}
WINDOWS = {"series": [{"series": "cpu", "kind": "metric", "unit": "1", "windows": [WINDOW]}]}


def test_the_running_detector_says_what_its_checkpoint_does(address):
    url, state = address
    live = live_series(at(url), "vm-2")
    saved = [one for one in _of_shard(2, state) if one["machine"] == "vm-2"]
    assert len(live) == len(saved) == 5
    for one, other in zip(live, saved, strict=True):
        assert {name: (one[name], other[name]) for name in other if one[name] != other[name]} == {}
    assert live[0]["expected_now"]["low"] < live[0]["mu"] < live[0]["expected_now"]["high"]


def test_a_machine_that_is_not_known_is_said(address):
    with pytest.raises(UserError, match="machine 'none': the detector doesn't know it"):
        ask(at(address[0]), "detector", "/state", machine="none")


@pytest.mark.parametrize("path", ["/nothing", "/"])
def test_a_process_without_answers_is_not_answering(address, path):
    with pytest.raises(NotAnsweringError, match="HTTP 404"):
        ask(at(address[0]), "detector", path)


def test_a_process_that_is_not_there_is_not_answering():
    with pytest.raises(NotAnsweringError, match="refused"):
        ask(at("http://127.0.0.1:1/metrics"), "detector", "/state", machine="vm-1")


def test_of_one_machine_no_spark_is_started(address, monkeypatch):
    monkeypatch.setattr(cli, "session", lambda *_: pytest.fail("Spark is started"))
    arguments = ["show", "metric-0", "--machine", "vm-2", "--metrics-url", address[0], "--json"]
    done = CliRunner().invoke(cli.app, arguments)
    assert [one["series"] for one in orjson.loads(done.stdout)] == ["metric-0"]


def test_open_windows_are_listed(address):
    done = CliRunner().invoke(cli.app, ["windows", "vm-2", "--metrics-url", address[0]])
    assert done.exit_code == 0
    assert done.stdout.split()[-7:] == ["cpu", "10", "14:13:20", "3", "2.5", "1", "4"]
