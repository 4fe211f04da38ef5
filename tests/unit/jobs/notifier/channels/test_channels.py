"""Each kind of channel against a real server: what arrives, what counts as a failure, and that no secret is said."""

import logging

import pytest

from jobs.notifier.channels.channel import DeliveryError
from jobs.notifier.channels.mail import MailChannel
from jobs.notifier.channels.service import ServiceChannel
from jobs.notifier.channels.webhook import WebhookChannel
from tests.unit.jobs.notifier.receivers import MailServer, WebServer
from tests.unit.jobs.notifier.records import delivery, incident, notice, planned, routing


@pytest.fixture
def mail():
    with MailServer() as server:
        yield server


@pytest.fixture
def web():
    with WebServer() as server:
        yield server


def mail_channel(server, **fields):
    declared = {"kind": "mail", "host": "127.0.0.1", "port": server.port, "encryption": "none"}
    return MailChannel.model_validate(
        declared | {"from": "Kappa <kappa@example.net>", "to": ["ops@example.net", "b@example.org"]} | fields
    )


def life():
    """Start and end of one incident."""
    return planned(routing({}), notice(incident()), notice(incident(phase="end", second=9)))


# Mail


def test_a_mail_has_the_words_and_an_id_of_its_own(mail):
    mail_channel(mail).send(delivery())
    (found,) = mail.mails
    assert found["Subject"] == "[warning] Incident started: cpu on vm-1 is 0.9; expected 0.1 to 0.3"
    assert found["Message-ID"] == f"<{delivery().id}@example.net>"
    assert (found["From"], found["To"]) == ("Kappa <kappa@example.net>", "ops@example.net, b@example.org")
    assert (found["X-Kappa-Severity"], found["Auto-Submitted"], found["References"]) == (
        "warning",
        "auto-generated",
        None,
    )
    assert "Where: vm-1 (site lund" in found.get_content()


def test_a_repeated_mail_is_the_same_to_the_byte(mail):
    channel = mail_channel(mail)
    assert channel.mail(delivery()).as_bytes() == channel.mail(delivery().begun().begun()).as_bytes()


def test_what_follows_is_in_the_thread_of_the_start(mail):
    start, end = map(mail_channel(mail).mail, life())
    assert end["References"] == end["In-Reply-To"] == start["Message-ID"] != end["Message-ID"]
    assert end["Subject"] == f"Re: {start['Subject']}"


def test_a_server_that_refuses_has_its_answer_in_the_reason(mail):
    mail.answer = "554 no spam please"
    with pytest.raises(DeliveryError, match=r"^SMTP 554: no spam please$"):
        mail_channel(mail).send(delivery())


def test_a_server_that_is_not_there(mail):
    channel = mail_channel(mail, port=1)
    with pytest.raises(DeliveryError, match=r"^ConnectionRefusedError: Connection refused$"):
        channel.send(delivery())


def test_a_server_without_the_encryption_that_is_asked_for_gets_nothing(mail):
    with pytest.raises(DeliveryError, match="STARTTLS"):
        mail_channel(mail, encryption="starttls").send(delivery())
    assert mail.mails == []


def test_the_password_is_not_said(mail, monkeypatch):
    monkeypatch.setenv("MAIL_PASSWORD", "hunter2")
    with pytest.raises(DeliveryError) as failed:
        mail_channel(mail, user="kappa", password_env="MAIL_PASSWORD").send(delivery())
    assert "hunter2" not in str(failed.value)


# Webhook


def test_a_webhook_gets_a_cloud_event(web):
    WebhookChannel(kind="webhook", url=web.url).send(delivery())
    (event,) = web.events
    data = event.pop("data")
    assert event == {
        "specversion": "1.0",
        "id": delivery().id,
        "source": "/kappa/incidents",
        "type": "kappa.notification.start",
        "subject": delivery().thread,
        "time": "2024-09-23T14:13:20Z",
        "datacontenttype": "application/json",
        "severity": "warning",
    }
    assert data.pop("record") == incident()
    assert data == {
        "thread": delivery().thread,
        "phase": "start",
        "severity": "warning",
        "title": delivery().content.title,
        "text": delivery().content.text,
        "link": "",
    }
    assert web.headers[0]["content-type"].startswith("application/cloudevents+json")


def test_address_and_token_come_from_the_environment(web, monkeypatch):
    monkeypatch.setenv("HOOK_URL", web.url)
    monkeypatch.setenv("HOOK_TOKEN", "t0ken")
    WebhookChannel(kind="webhook", url_env="HOOK_URL", token_env="HOOK_TOKEN").send(delivery())
    assert web.headers[0]["authorization"] == "Bearer t0ken"


@pytest.mark.parametrize("status", [302, 400, 404, 429, 500, 503])
def test_an_answer_other_than_2xx_is_a_failure(web, status):
    web.status = status
    with pytest.raises(DeliveryError, match=f"^HTTP {status}$"):
        WebhookChannel(kind="webhook", url=web.url).send(delivery())


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/secret", "nonsense/secret"])
def test_an_address_that_does_not_answer_is_not_said(url, monkeypatch):
    monkeypatch.setenv("HOOK_URL", url)
    with pytest.raises(DeliveryError) as failed:
        WebhookChannel(kind="webhook", url_env="HOOK_URL").send(delivery())
    assert "secret" not in str(failed.value)


# Apprise


def test_apprise_delivers_what_it_knows_the_url_of(web, monkeypatch):
    monkeypatch.setenv("SERVICE_URL", web.url.replace("http://", "json://"))
    ServiceChannel(kind="apprise", url_env="SERVICE_URL").send(delivery())
    (found,) = web.events
    assert (found["title"], found["message"], found["type"]) == (
        delivery().content.title,
        delivery().content.text,
        "warning",
    )


def test_the_end_is_good_news(web, monkeypatch):
    monkeypatch.setenv("SERVICE_URL", web.url.replace("http://", "json://"))
    ServiceChannel(kind="apprise", url_env="SERVICE_URL").send(life()[1])
    assert web.events[0]["type"] == "success"


def test_a_thread_is_one_incident_at_pagerduty(monkeypatch):
    posted = []

    def post(url, data, **_):
        posted.append(data)
        raise OSError

    monkeypatch.setattr("apprise.plugins.pagerduty.requests.post", post)
    monkeypatch.setenv("PAGER_URL", f"pagerduty://{'i' * 32}@{'a' * 20}?action=map")
    for one in life():
        with pytest.raises((DeliveryError, OSError)):
            ServiceChannel(kind="apprise", url_env="PAGER_URL").send(one)
    assert all(f'"dedup_key": "{life()[0].thread}"' in data for data in posted)
    assert ['"trigger"' in data for data in posted] == [True, False]


def test_what_a_service_refuses_is_named_by_the_service_alone(web, monkeypatch, caplog):
    web.status = 403
    monkeypatch.setenv("SERVICE_URL", web.url.replace("http://", "json://user:hunter2@"))
    with caplog.at_level(logging.DEBUG), pytest.raises(DeliveryError, match=r"^not taken by JSON$"):
        ServiceChannel(kind="apprise", url_env="SERVICE_URL").send(delivery())
    assert not [line for line in caplog.messages if "hunter2" in line]


def test_a_url_that_apprise_does_not_know_names_its_variable(monkeypatch):
    monkeypatch.setenv("SERVICE_URL", "smoke://signals")
    with pytest.raises(DeliveryError, match=r"^SERVICE_URL: no URL that apprise knows$"):
        ServiceChannel(kind="apprise", url_env="SERVICE_URL").send(delivery())
