import time

import pytest
from typer.testing import CliRunner

from infra.errors import UserError
from ops.simulator import cli
from ops.simulator.faults import SECOND
from ops.simulator.truth import WINDOW


def run(*arguments):
    return CliRunner().invoke(cli.app, arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--speed", "fast"], "speed 'fast': use live or max"),
        (["--speed", "max"], "duration: is missing"),
        (["--start", "2026-01-01"], "a live simulation starts now"),
        (["--speed", "max", "--duration", "1h", "--start", "noon"], "start 'noon': write ISO 8601"),
        (["--speed", "max", "--duration", "1h", "--start", "2999-01-01"], "would end in the future"),
        (["--duration", "soon"], "duration: 'soon' is not a time"),
        (["--fault", "nonsense"], "fault 'nonsense': write KIND:MACHINE"),
        (["--fault", "silence:vm-99@+1s"], "no machine 'vm-99' in the cloud"),
        (["--topic-format", "xml"], "topic-format 'xml'"),
        (["--bootstrap", "127.0.0.1:21199"], "no Kafka broker answers"),
    ],
)
def test_bad_input_is_refused_before_any_work(arguments, message, tmp_path, monkeypatch):
    monkeypatch.setattr("connectors.kafka.access.REACH_SECONDS", 1)
    result = run("--truth", str(tmp_path / "truth"), *arguments)
    assert isinstance(result.exception, UserError)
    assert message in str(result.exception)
    assert not (tmp_path / "truth").exists()


def test_help_shows_an_example_and_the_kinds_of_faults():
    text = run("--help").output
    assert "kappa simulate --duration 5m --fault cpu_hog:vm-17@+60s" in " ".join(text.split())
    assert "wrong_clock" in text


def test_a_live_simulation_starts_with_the_next_window(monkeypatch):
    given = []
    monkeypatch.setattr(cli, "Simulation", given.append)
    run()
    (settings,) = given
    assert settings.start_unix_nano % WINDOW == 0
    assert 0 < settings.start_unix_nano - int(time.time()) * SECOND <= WINDOW
