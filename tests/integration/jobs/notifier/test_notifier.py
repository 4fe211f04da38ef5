"""The notifier against real servers (Kafka, SMTP, HTTP): none lost, none twice, whatever is killed or down."""

import os
import random
import subprocess
import sys
import time
import urllib.request

import orjson
import pytest
import yaml
from confluent_kafka import TopicPartition

from connectors.kafka import admin
from connectors.kafka.reader import read_records
from infra.contract.schemas import NOTIFICATIONS
from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.notifier.notifier import LOST_RECORDS, NOT_DELIVERED
from jobs.notifier.routes import load_routing
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from tests.integration.conftest import free_ports
from tests.integration.jobs.notifier.conftest import DEADLINE_SECONDS, Office
from tests.unit.jobs.notifier.records import SECOND, START, alert, incident, notice, novelty
from tests.waiting import until

DAY = 86_400


def test_each_goes_out_once_and_a_thread_is_one(office: Office):
    routing = office.routing()
    with office.notifier(routing):
        # Where the machine of an incident is, its novelty says.
        office.send("novelties", novelty("n1"))
        life = [incident("i1"), incident("i1", "update", 10, machines=2), incident("i1", "end", 200, machines=2)]
        office.send("incidents", *life, life[0], life[2])  # two of them again
        office.send("alerts", alert("a1"), orjson.dumps({"watermark_unix_nano": START + 10 * SECOND}), alert("a1"))
        office.send("incidents", b"{", orjson.dumps({"id": "i2"}), incident("i3", time_unix_nano=4 * START))
        office.wait_until_done(10)

    wanted = [notice(novelty("n1"), "novelties").id, *(notice(one).id for one in life), notice(alert(), "alerts").id]
    assert sorted(office.mail.ids) == sorted(office.web.ids) == sorted(wanted)
    assert {tuple(states) for states in office.states().values()} == {
        ("planned", "sending", "sent"),
        ("sending", "sent"),
    }

    start, update, end = (
        mail for mail in office.mail.mails if "hv-1" in mail.get_content() and "i1" in mail.get_content()
    )
    assert start["Subject"] == "[warning] Incident started: cpu on vm-1 is 0.9; expected 0.1 to 0.3"
    assert "Where: vm-1 (site lund, hypervisor hv-1, tenant a, role upf)" in start.get_content()
    assert (update["References"], end["References"]) == (start["Message-ID"],) * 2
    assert update["Subject"].strip() == end["Subject"].strip() == f"Re: {start['Subject']}"
    told = [event for event in office.web.events if event["subject"] == notice(life[0]).thread]
    assert [event["data"]["record"] for event in told] == life
    assert {event["source"] for event in told} == {f"/kappa/{office.topics['incidents'].name}"}

    assert sorted((letter["stage"], letter["code"]) for letter in office.rejected()) == [
        ("notifier", "ahead"),
        ("notifier", "not_expected"),
        ("notifier", "not_json"),
    ]


def test_what_was_there_before_the_first_start_is_no_news_and_what_comes_during_a_stop_is(office: Office):
    routing = office.routing({"name": "all", "channels": ["web"]})
    office.send("incidents", incident("old"))
    with office.notifier(routing):
        office.send("incidents", incident("i1"))
        office.wait_until_done(1)
    office.send("incidents", incident("i2"))
    with office.notifier(routing):
        office.wait_until_done(2)
    assert office.web.ids == [notice(incident("i1")).id, notice(incident("i2")).id]


def test_through_kill_9_none_is_lost_and_none_is_sent_twice_that_was_known_to_be_sent(office: Office):
    incidents, kills, routing = 20, 3, office.routing()
    with office.notifier(routing):
        pass  # the first start, from whose offsets on all is told
    records = [incident(f"i{n}", phase, at) for n in range(incidents) for phase, at in (("start", n), ("end", n + 200))]
    office.send("incidents", *records)
    office.mail.seconds = office.web.seconds = 0.02
    wanted, dice = {notice(record).id for record in records}, random.Random(0)
    for kill in range(kills):
        process = office.process(routing)
        goal = len(office.web.ids) + 4 + kill
        until(lambda goal=goal: len(office.web.ids) >= goal, DEADLINE_SECONDS, "nothing is sent", pause=0.01)
        time.sleep(dice.random() / 10)  # the moment of the kill is what is varied
        process.kill()
        process.join()
    assert len(set(office.web.ids)) < len(wanted), "nothing is left to do: the kills came too late"
    with office.notifier(routing):
        office.wait_until_done(2 * len(wanted))

    states = office.states()
    for channel, received in (("mail", office.mail.ids), ("web", office.web.ids)):
        assert set(received) == wanted
        again = {one for one in wanted if received.count(one) > 1}
        # Only what was under way at a kill may come again, by the same id.
        assert len(received) - len(wanted) <= kills
        assert all(states[f"{channel}/{one}"].count("sending") > 1 for one in again)
        assert all(states[f"{channel}/{one}"].count("sent") == 1 for one in wanted)
        starts = [received.index(notice(incident(f"i{n}")).id) for n in range(incidents)]
        ends = [received.index(notice(incident(f"i{n}", "end", n + 200)).id) for n in range(incidents)]
        assert all(start < end for start, end in zip(starts, ends, strict=True))


def test_a_channel_that_is_down_blocks_no_other_and_gets_all_later(office: Office):
    routing = office.routing()
    office.mail.answer = "451 try again later"
    with office.notifier(routing):
        office.send("incidents", *(incident(f"i{n}") for n in range(5)))
        until(lambda: len(office.web.ids) == 5, DEADLINE_SECONDS, "the other channel waits", pause=0.1)
        until(lambda: office.counts()["failed"] > 1, DEADLINE_SECONDS, "no attempt failed", pause=0.1)
        assert office.mail.ids == []
        office.mail.answer = "250 taken"
        office.wait_until_done(10)
    assert sorted(office.mail.ids) == sorted(office.web.ids)


def test_after_a_day_of_event_time_what_was_not_taken_is_a_dead_letter(office: Office):
    routing = office.routing()
    office.web.status = 503
    with office.notifier(routing):
        office.send("incidents", incident("i1"))
        until(lambda: office.counts() == {"sent": 1, "failed": 1}, DEADLINE_SECONDS, "one attempt fails", pause=0.1)
        office.send("novelties", orjson.dumps({"watermark_unix_nano": START + (DAY + 1) * SECOND}))
        office.wait_until_done(2)
    (letter,) = office.rejected()
    assert (letter["stage"], letter["code"], letter["events"]) == ("notifier", NOT_DELIVERED, 1)
    assert letter["reason"].endswith("HTTP 503") and letter["id"].endswith("/web")
    assert letter["source"]["topic"] == office.topics["incidents"].name
    assert office.counts() == {"sent": 1, "dead": 1}


def test_a_second_notifier_fences_the_first(office: Office):
    routing = office.routing()

    def is_fenced() -> bool:
        """The first one hears of it with its next transaction."""
        office.send("alerts", orjson.dumps({"watermark_unix_nano": START}))
        return first.done()

    is_refused = pytest.raises(UserError, match="another notifier took over")
    with is_refused, office.notifier(routing) as first, office.notifier(routing):
        until(is_fenced, DEADLINE_SECONDS, "the first one is not fenced", pause=0.2)
        office.send("incidents", incident("i1"))
        office.wait_until_done(2)
    assert office.mail.ids == office.web.ids == [notice(incident("i1")).id]


def test_states_are_as_their_schema_says(office: Office):
    with office.notifier(office.routing()):
        office.send("incidents", incident("i1"))
        office.wait_until_done(2)
    records = [record for _, record in read_records(office.bootstrap, office.topics["notifications"].name)]
    assert set().union(*records) <= set(NOTIFICATIONS.names)
    assert all("record" not in record for record in records if record["state"] == "sent")


def test_what_retention_has_deleted_before_it_was_read_is_a_dead_letter_with_its_offsets(office: Office):
    routing = office.routing({"name": "all", "channels": ["web"]})
    with office.notifier(routing):
        pass
    office.send("incidents", *(incident(f"i{n}") for n in range(5)))
    topic = office.topics["incidents"].name
    for deletion in office.log.admin.delete_records([TopicPartition(topic, 0, 3)]).values():
        deletion.result()
    with office.notifier(routing):
        office.wait_until_done(2)
    assert office.web.ids == [notice(incident(f"i{n}")).id for n in (3, 4)]
    (letter,) = office.rejected()
    assert (letter["code"], letter["events"]) == (LOST_RECORDS, 3)
    assert letter["source"] == {
        "topic": topic, "partition": 0, "offset": 0, "last_offset": 2, "timestamp_unix_milli": 0
    }  # fmt: skip


def test_the_command_runs_it_says_what_it_does_and_no_secret_and_stops_in_order(broker, office: Office, tmp_path):
    topics = load_topics()
    admin.apply(
        admin.connect(broker.address), [topics[key] for key in (*JOBS["notifier"].reads, *JOBS["notifier"].writes)]
    )
    office.topics, office.settings = topics, Settings(kafka_bootstrap=broker.address)
    routes = {
        "channels": {"hook": {"kind": "webhook", "url_env": "HOOK_URL", "token_env": "HOOK_TOKEN"}},
        "routes": [{"name": "all", "channels": ["hook"]}],
    }
    file, port = tmp_path / "routes.yaml", free_ports(1)
    file.write_text(yaml.safe_dump(routes))
    environment = {
        **os.environ, "KAPPA_KAFKA_BOOTSTRAP": broker.address, "KAPPA_HOME": str(tmp_path), "KAPPA_LOG_LEVEL": "debug",
        "KAPPA_NOTIFIER_ROUTES": str(file), "KAPPA_METRICS_PORT": str(port),
        "HOOK_URL": f"{office.web.url}/hunter2", "HOOK_TOKEN": "s3cret",
    }  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "ops.cli", "run", "notifier"], env=environment, stderr=log)
    try:
        office.wait_for_begin(load_routing(file))
        office.web.status = 500
        office.send("incidents", incident("i1"))
        until(lambda: office.counts()["failed"] == 1, DEADLINE_SECONDS, "no attempt failed", pause=0.1)
        office.web.status = 204
        office.wait_until_done(1)
        metrics = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        assert urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz").read() == b"ok\n"
    finally:
        process.terminate()
        code = process.wait(DEADLINE_SECONDS)
    assert code == 0
    shown = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if 'channel="hook"' in line)
    assert shown['kappa_notifier_sent_total{channel="hook"}'] == "1.0"
    assert float(shown['kappa_notifier_failed_total{channel="hook"}']) >= 1
    assert shown['kappa_notifier_pending{channel="hook"}'] == shown['kappa_notifier_failing{channel="hook"}'] == "0.0"
    said = (tmp_path / "log").read_text()
    assert '"event": "notification failed"' in said and "HTTP 500" in said
    assert office.web.headers[0]["authorization"] == "Bearer s3cret"
    assert "hunter2" not in said and "s3cret" not in said
    assert "hunter2" not in str([record for _, record in read_records(office.bootstrap, "notifications")])


def test_through_a_kill_of_the_broker_none_is_lost_and_at_most_one_a_channel_is_repeated(broker, office: Office):
    records = [incident(f"i{n}", second=n) for n in range(8)]
    wanted = {notice(record).id for record in records}
    with office.notifier(office.routing()):
        office.mail.seconds = office.web.seconds = 0.1
        office.send("incidents", *records)
        until(lambda: len(office.web.ids) > 2, DEADLINE_SECONDS, "nothing is sent", pause=0.01)
        broker.kill()
        broker.spawn()
        until(broker.ready, DEADLINE_SECONDS, "the broker does not answer")
        office.wait_until_done(2 * len(wanted))
    for received in (office.mail.ids, office.web.ids):
        assert set(received) == wanted and len(received) <= len(wanted) + 1
