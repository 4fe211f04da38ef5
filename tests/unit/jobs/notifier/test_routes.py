"""Routes: what takes which, what that makes, and what of a file is refused."""

import re
from pathlib import Path

import pytest
import yaml

from infra.errors import UserError
from jobs.notifier.deliveries import Deliveries
from jobs.notifier.routes import load_routing
from tests.unit.jobs.notifier.records import CHANNELS, SECOND, SOURCE, START, alert, incident, notice, novelty, routing
from tests.unit.jobs.notifier.records import planned as deliveries

NIGHT = {"from": "14:00", "to": "15:00"}  # when the records are


def sent(found):
    return [(one.channel, one.phase) for one in found]


@pytest.mark.parametrize(
    ("route", "is_taken"),
    [
        ({}, True),
        ({"severity": "warning"}, True),
        ({"severity": "critical"}, False),
        ({"topics": ["alerts"]}, False),
        ({"match": {"machine": "vm-*"}}, True),
        ({"match": {"machine": "hv-*"}}, False),
        ({"match": {"site": "lund"}}, True),
        ({"match": {"site": "kista"}}, True),  # one of its machines is enough
        ({"match": {"site": "lund", "role": "amf"}}, False),  # but it must match in all
        ({"match": {"site": "lund", "tenant": "a", "role": "upf", "hypervisor": "hv-?"}}, True),
        ({"match": {"site": "?*"}}, True),
    ],
)
def test_which_route_takes_an_incident_of_two_machines(route, is_taken):
    assert bool(deliveries(routing(route), notice(incident(machines=2)))) is is_taken


def test_a_place_that_is_not_known_is_the_empty_text():
    unknown = incident(members=[incident()["members"][0] | {"machine": "vm-9"}])
    assert deliveries(routing({"match": {"site": "?*"}}), notice(unknown)) == []
    assert deliveries(routing({"match": {"site": "*"}}), notice(unknown))


def test_novelties_go_out_only_by_choice():
    assert deliveries(routing({}), notice(novelty(), "novelties")) == []
    assert deliveries(routing({"topics": ["novelties"]}), notice(novelty(), "novelties"))


def test_all_routes_that_take_it_count_and_a_channel_gets_it_once():
    both = routing({"channels": ["mail"]}, {"channels": ["pager", "mail"]})
    assert sorted(sent(deliveries(both, notice(incident()), notice(incident())))) == [
        ("mail", "start"),
        ("pager", "start"),
    ]


def test_what_was_known_before_is_not_planned_again():
    one = routing({})
    known = Deliveries()
    (first,) = deliveries(one, notice(incident()), known=known)
    known.apply(first.begun().sent())
    assert deliveries(one, notice(incident()), known=known) == []


def test_start_updates_and_end_are_one_thread_with_the_subject_of_the_first():
    life = [
        notice(incident()),
        notice(incident(phase="update", second=5, machines=2)),
        notice(incident(phase="end", second=9)),
    ]
    found = deliveries(routing({}), *life)
    assert [one.phase for one in found] == ["start", "update", "end"]
    assert {one.thread for one in found} == {found[0].id} and {one.subject for one in found} == {found[0].content.title}


def test_without_updates_only_what_is_graver_than_before_is_told_between_start_and_end():
    life = [
        notice(incident()),
        notice(incident(phase="update", second=5, machines=2)),
        notice(incident(phase="update", second=6, machines=3)),  # critical
        notice(incident(phase="update", second=7, machines=4)),
        notice(incident(phase="end", second=9, machines=4)),
    ]
    found = deliveries(routing({"updates": False}), *life)
    assert [(one.phase, one.severity) for one in found] == [
        ("start", "warning"),
        ("update", "critical"),
        ("end", "critical"),
    ]


def test_an_update_is_told_where_nothing_was_told_before():
    life = [notice(incident()), notice(incident(phase="update", second=6, machines=3))]
    found = deliveries(routing({"severity": "critical", "updates": False, "channels": ["pager"]}), *life)
    assert sent(found) == [("pager", "update")]


def test_whoever_heard_of_the_start_hears_of_the_end():
    at_lund = routing({"match": {"site": "lund"}}, {"match": {"site": "nowhere"}, "channels": ["pager"]})
    elsewhere = incident(phase="end", second=9, members=[incident()["members"][0] | {"machine": "vm-2"}])
    assert sent(deliveries(at_lund, notice(incident()), notice(elsewhere))) == [("mail", "start"), ("mail", "end")]


def test_in_quiet_hours_it_waits_until_they_are_over():
    (one,) = deliveries(routing({"quiet": [NIGHT]}), notice(incident()))
    assert one.hold_until_unix_nano == START + (46 * 60 + 40) * SECOND


def test_of_several_routes_to_a_channel_the_shortest_wait_counts():
    found = deliveries(routing({"quiet": [NIGHT]}, {"severity": "critical"}), notice(incident(machines=3)))
    assert [one.hold_until_unix_nano for one in found] == [START]


def test_an_end_without_a_route_waits_as_its_start_does():
    quiet = routing({"match": {"site": "lund"}, "quiet": [NIGHT]})
    elsewhere = incident(phase="end", second=9, members=[incident()["members"][0] | {"machine": "vm-2"}])
    start, end = deliveries(quiet, notice(incident()), notice(elsewhere))
    assert end.hold_until_unix_nano == start.hold_until_unix_nano > end.time_unix_nano


def test_a_link_names_what_it_is_about():
    linked = routing({}, link="https://kibana/{topic}?id={id}&machine={machine}")
    (one,) = deliveries(linked, notice(incident("i1")))
    assert one.content.link == "https://kibana/incidents?id=i1&machine=vm-1"
    assert "Link: https://kibana/incidents?id=i1&machine=vm-1" in one.content.text


def test_an_alert_has_its_own_source():
    (one,) = deliveries(routing({}), notice(alert(), "alerts"))
    assert (one.source, one.severity, one.content.record) == (
        SOURCE,
        "critical",
        notice(alert(), "alerts").record.decode(),
    )


# The file


ROUTE = {"name": "all", "channels": ["mail"]}


def written(tmp_path, declared):
    file = tmp_path / "routes.yaml"
    file.write_text(declared if isinstance(declared, str) else yaml.safe_dump(declared))
    return file


def test_the_example_of_the_docs_is_right(tmp_path):
    text = Path("docs/how-to/notify.md").read_text()
    (example,) = re.findall(r"```yaml\n(# my-routes.yaml\n.*?)```", text, re.DOTALL)
    assert [route.name for route in load_routing(written(tmp_path, example)).routes] == ["grave", "office", "tickets"]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("channels: [", "not YAML"),
        ("- 1", "must be a map with the fields channels and routes"),
        ({"routes": [ROUTE]}, "channels: is missing"),
        ({"channels": CHANNELS, "routes": []}, "routes=.*at least 1 item"),
        ({"channels": CHANNELS, "routes": [ROUTE, ROUTE]}, "two are named 'all'"),
        ({"channels": CHANNELS, "routes": [ROUTE | {"channels": ["fax"]}]}, "channels='fax'.*there are mail, pager"),
        ({"channels": CHANNELS, "routes": [ROUTE | {"severity": "high"}]}, "routes.0.severity='high'"),
        ({"channels": CHANNELS, "routes": [ROUTE | {"topics": ["events"]}]}, "routes.0.topics.0='events'"),
        ({"channels": CHANNELS, "routes": [ROUTE | {"sight": "x"}]}, "routes.0.sight: there is no such field"),
        ({"channels": CHANNELS, "routes": [ROUTE | {"quiet": [{"from": "0:00", "to": "0:00"}]}]}, "no time in a week"),
        (
            {"channels": {"x": {"kind": "fax"}}, "routes": [ROUTE]},
            "channels.x.kind: must be one of mail, apprise, webhook",
        ),
        ({"channels": {"x": {}}, "routes": [ROUTE]}, "channels.x.kind: must be one of"),
        ({"channels": {"x": {"kind": "webhook"}}, "routes": [ROUTE]}, "give either url, or url_env"),
        ({"channels": {"x": CHANNELS["mail"] | {"to": ["ops"]}}, "routes": [ROUTE]}, "to.0='ops'.*ops@example.net"),
        ({"channels": CHANNELS, "routes": [ROUTE], "link": "https://x/{series}"}, "link=.*it may name {topic}"),
        ({"channels": CHANNELS, "routes": [ROUTE], "give_up_after": "soon"}, "give_up_after='soon'.*whole number"),
    ],
)
def test_what_is_wrong_is_named_with_file_field_and_fix(tmp_path, declared, message):
    with pytest.raises(UserError, match=f"routes.yaml: .*{message}"):
        load_routing(written(tmp_path, declared))


def test_a_secret_in_the_file_is_refused_and_not_repeated(tmp_path):
    mail = CHANNELS["mail"] | {"password": "hunter2"}
    with pytest.raises(UserError, match="password: there is no such field; secrets are named by") as refused:
        load_routing(written(tmp_path, {"channels": {"mail": mail}, "routes": [ROUTE]}))
    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match=r"KAPPA_NOTIFIER_ROUTES=.*none\.yaml: No such file"):
        load_routing(tmp_path / "none.yaml")


def test_variables_that_channels_need_are_named(monkeypatch):
    channels = {
        "mail": CHANNELS["mail"] | {"user": "kappa", "password_env": "MAIL_PASSWORD"},
        "slack": {"kind": "apprise", "url_env": "SLACK_URL"},
        "hook": {"kind": "webhook", "url_env": "HOOK_URL", "token_env": "HOOK_TOKEN"},
    }
    monkeypatch.setenv("SLACK_URL", "nonsense")
    monkeypatch.setenv("HOOK_TOKEN", "t")
    faults = [fault.partition(":")[0] for fault in routing({}, channels=channels).faults()]
    assert faults == ["MAIL_PASSWORD", "SLACK_URL", "HOOK_URL"]
    assert "nonsense" not in str(routing({}, channels=channels).faults())
