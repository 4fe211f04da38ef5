"""Elasticsearch that asks who a client is: what each role may do, and an indexer whose key is taken away."""

import os
import subprocess
import sys
import urllib.request

import orjson
import pytest
import yaml
from elasticsearch import ApiError

from connectors.kafka.client import make_producer
from connectors.sinks.elasticsearch import connect
from infra.local.identities import ADMIN
from jobs.runtime.settings import Settings
from tests.integration.conftest import free_ports
from tests.integration.jobs.indexer.conftest import window
from tests.unit.jobs.notifier.receivers import WebServer
from tests.unit.jobs.notifier.records import incident
from tests.waiting import until

WAITS = 'kappa_indexer_waiting{cause="forbidden"} 1.0'


@pytest.fixture(scope="module")
def users(secured, secured_elasticsearch):
    """The folder of the users, who have their rights in Kafka and keys for Elasticsearch."""
    folder, optional = str(secured.identities.user("")), {"KAPPA_OPTIONAL_JOBS": "notifier"}
    assert secured.kappa("acl", "apply", "--users", folder, **optional).code == 0
    assert secured.kappa("acl", "keys", folder, **at(secured_elasticsearch)).code == 0
    yield folder
    assert secured.kappa("acl", "apply", "--prune").code == 0


def at(server):
    return {"KAPPA_ELASTICSEARCH_URL": server.address}


@pytest.fixture(scope="module")
def client(secured, secured_elasticsearch, users):
    """Makes a client of a user."""

    def of(user):
        settings = Settings(_secrets_dir=str(secured.identities.user(user)))
        return connect(secured_elasticsearch.address, settings.elasticsearch_identity())

    return of


def allowed(client):
    """What a user may do."""
    index = "kappa-novelties-live.allowed"
    calls = {
        "write": lambda: client.bulk(operations=[{"index": {"_index": index, "_id": "1"}}, {"record": "x"}]),
        "read": lambda: client.search(index="kappa-novelties-live.*"),
        "refresh": lambda: client.indices.refresh(index="kappa-novelties-live.*"),
        "delete": lambda: client.indices.delete(index=index, ignore_unavailable=True),
        "see a template": lambda: client.indices.get_index_template(name="kappa-novelties"),
        "change a template": lambda: client.indices.put_index_template(name="strange", index_patterns=["strange-*"]),
        "write elsewhere": lambda: client.index(index="strange-1", document={"a": 1}),
        "see keys": client.security.get_api_key,
    }
    return {name for name, call in calls.items() if is_allowed(call)}


def is_allowed(call):
    try:
        answer = call()
    except ApiError as error:
        assert error.status_code in {403, 404}, error
        return error.status_code != 403
    items = answer.get("items", []) if isinstance(answer.body, dict) else []
    return not any("security_exception" in str(item) for item in items)


@pytest.mark.parametrize(
    ("user", "may"),
    [
        ("kappa-indexer", {"write", "read", "refresh", "delete", "see a template"}),
        ("kappa-operator", {"read", "refresh"}),
        ("kappa-viewer", {"read"}),
        ("kappa-administrator", {"read", "refresh", "delete", "see a template", "change a template"}),
    ],
)
def test_each_role_may_do_its_own_and_nothing_else(client, report, user, may):
    assert allowed(client(user)) == may
    report.client(f"API key of {user}", elasticsearch=True)


class Application:
    """`kappa run` of an application as its own user."""

    def __init__(self, secured, name, **changes):
        self.port = free_ports(1)
        changes = {"KAPPA_METRICS_PORT": str(self.port), **changes}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ops.cli", "run", name],
            env=os.environ | secured.environment(f"kappa-{name}", **changes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def waits(self):
        """Whether it says that it waits to be let in; it still runs."""
        assert self.process.poll() is None
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
            return WAITS in answer.read().decode()

    def stop(self):
        self.process.terminate()
        return self.process.wait(60)


@pytest.fixture
def start(secured, users):
    """Starts an application; what still runs at the end is killed."""
    started = []

    def start(name, **changes):
        started.append(Application(secured, name, **changes))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


@pytest.fixture
def indexer(start, secured_elasticsearch):
    return start("indexer", **at(secured_elasticsearch))


@pytest.fixture
def told(start, tmp_path):
    """The incidents of which a running notifier has told people."""
    with WebServer() as web:
        channels = {"web": {"kind": "webhook", "url": web.url}}
        routes = [{"name": "all", "topics": ["incidents"], "channels": ["web"]}]
        (tmp_path / "routes.yaml").write_text(yaml.safe_dump({"channels": channels, "routes": routes}))
        # Another port than the indexer's, which may not listen yet.
        start("notifier", KAPPA_NOTIFIER_ROUTES=str(tmp_path / "routes.yaml"), KAPPA_METRICS_PORT="0")
        yield lambda: {event["data"]["record"]["id"] for event in web.events}


@pytest.fixture
def send(secured):
    """Writes a record into a topic."""
    producer = make_producer(secured.connection(), {"log_level": 0})

    def write(topic, record):
        producer.produce(topic, orjson.dumps(record), record.get("machine"))
        assert producer.flush(30) == 0

    return write


def test_an_indexer_whose_key_is_revoked_or_expires_waits_and_goes_on_with_the_next_and_others_run(
    secured, secured_elasticsearch, users, client, indexer, told, send, report
):
    def machines():
        """Those that an operator finds."""
        found = client("kappa-operator").search(index="kappa-statistics", size=100, ignore_unavailable=True)["hits"]
        return {hit["_source"]["machine"] for hit in found["hits"]}

    def new_keys(*more):
        assert secured.kappa("acl", "keys", users, "--revoke", *more, **at(secured_elasticsearch)).code == 0

    def tells(name):
        send("incidents", incident(name))  # again and again: what was there before its first start it doesn't tell
        return name in told()

    send("statistics", window("before", 0))
    until(lambda: "before" in machines(), 90, "the first window is not indexed")
    until(lambda: tells("before"), 90, "the notifier doesn't begin")
    new_keys("--expires", "1s")  # it reads the new one, which then is no good either
    send("statistics", window("meanwhile", 0))
    until(indexer.waits, 60, "it doesn't say that it waits")
    until(lambda: tells("meanwhile"), 60, "the notifier waits, too")
    assert indexer.waits()
    new_keys()
    until(lambda: "meanwhile" in machines(), 60, "it doesn't go on with its new key")
    until(lambda: not indexer.waits(), 30, "it says that it waits")
    assert indexer.stop() == 0
    report.client("indexer", secured_broker=True, elasticsearch=True)


def test_verify_does_not_wait_for_one_that_refuses_it(secured, secured_elasticsearch, tmp_path):
    (tmp_path / "windows.jsonl").touch()
    (tmp_path / "faults.jsonl").touch()
    (tmp_path / "plan.json").write_text("[]")
    outcome = secured.kappa(
        "verify", "--truth", str(tmp_path), **at(secured_elasticsearch), KAPPA_ELASTICSEARCH_PASSWORD="x"
    )
    assert outcome.code == 2
    assert outcome.last_line.startswith("kappa: KAPPA_ELASTICSEARCH_URL: 401 security_exception: unable to")


def test_whoever_has_no_key_is_told_so(secured, secured_elasticsearch, tmp_path):
    outcome = secured.kappa("acl", "keys", str(tmp_path), **at(secured_elasticsearch), KAPPA_ELASTICSEARCH_PASSWORD="x")
    assert outcome.code == 2
    assert outcome.last_line.startswith(
        "kappa: KAPPA_ELASTICSEARCH_URL: 401 security_exception: unable to authenticate"
    )


def test_its_administrator_is_not_the_default_one(secured, secured_elasticsearch):
    with pytest.raises(ApiError) as refused:
        connect(
            secured_elasticsearch.address,
            {"basic_auth": ("elastic", "changeme"), "ca_certs": str(secured.identities.authority)},
        ).info()
    assert refused.value.status_code == 401
    assert len(secured.identities.elastic_password()) >= 32 and secured.identities.password(ADMIN)
