"""`kappa notifier`: what a file would send, and a test that is really sent."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from infra.errors import UserError
from ops.commands.notifier import app
from tests.unit.jobs.notifier.receivers import WebServer


@pytest.fixture
def web():
    with WebServer() as server:
        yield server


@pytest.fixture
def file(tmp_path, web):
    file = tmp_path / "routes.yaml"
    channels = {"hook": {"kind": "webhook", "url": web.url}, "chat": {"kind": "apprise", "url_env": "CHAT_URL"}}
    routes = [
        {"name": "grave", "severity": "critical", "channels": ["hook"]},
        {"name": "nights", "channels": ["chat"], "quiet": [{"from": "14:00", "to": "15:00"}]},
        {"name": "rules", "topics": ["alerts"], "channels": ["hook"]},
    ]
    file.write_text(yaml.safe_dump({"channels": channels, "routes": routes}))
    return str(file)


def run(*arguments):
    done = CliRunner().invoke(app, arguments)
    if isinstance(done.exception, UserError):
        raise done.exception
    return done


def test_a_dry_run_shows_routes_words_and_what_is_missing(file, web):
    shown = json.loads(run("check", file, "--example", "--json").output)
    assert shown["routes"] == [
        {"route": "grave", "channels": ["hook"], "not_before": None},
        {"route": "nights", "channels": ["chat"], "not_before": "2026-09-21 15:00:00 UTC"},
    ]
    assert (shown["of"], shown["severity"]) == ("example", "critical")
    assert shown["title"] == "[critical] Incident started: 3 machines, hypervisor hv-01"
    assert [fault.partition(":")[0] for fault in shown["missing"]] == ["CHAT_URL"]
    assert web.events == []


def test_a_dry_run_for_a_person(file):
    output = run("check", file, "--example").output
    assert "route nights: to chat, not before 2026-09-21 15:00:00 UTC" in output
    assert "Likeliest cause: hypervisor hv-01 (3 of its 4 machines); then machine vm-01" in output
    assert "not ready here: CHAT_URL: is not set" in output


def test_a_test_is_sent_and_is_never_a_repeat(file, web):
    for _ in range(2):
        done = run("test", file, "--route", "grave", "--example", "--json")
        assert done.exit_code == 0 and json.loads(done.stdout) == {"hook": None}
    assert [event["data"]["title"][:6] for event in web.events] == ["[test]"] * 2
    assert len(set(web.ids)) == 2


def test_a_test_that_is_not_taken_ends_with_1(file, web):
    web.status = 500
    done = run("test", file, "--channel", "hook", "--example")
    assert done.exit_code == 1 and "hook: HTTP 500" in done.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--channel", "fax"], "--channel 'fax': there is none; there are chat, hook"),
        (["--route", "x"], "--route 'x': there is none; there are grave, nights, rules"),
        ([], "give either --route or --channel"),
        (["--route", "grave", "--channel", "hook"], "give either --route or --channel"),
        (["--channel", "chat"], "CHAT_URL: is not set"),
    ],
)
def test_what_cannot_be_tested_is_named(file, options, message):
    with pytest.raises(UserError, match=message):
        run("test", file, "--example", *options)
