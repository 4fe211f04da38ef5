"""Enrichment on a secured broker, whose collectors may speak for their own machines alone.

As a user that has a certificate and no password it goes on when the broker's certificate and its own are renewed; in
its real-time mode it gives a password.
"""

import time
from datetime import timedelta

import orjson
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from connectors.kafka.client import make_producer
from connectors.kafka.reader import read_records
from infra.contract.topics import DEFAULT_MAP
from infra.contract.watermarks import is_watermark
from infra.files import write_private
from infra.local.certificates import Authority
from infra.local.identities import ADMIN, BROKER
from tests.acting import acting_as
from tests.chaos.processes import Job, session_of
from tests.waiting import until

USER = "kappa-enrichment"
ACME, GATEWAY = "telemetry.enrichment.acme", "telemetry.enrichment.gateway"
HEADER = "tenant"
JOB_SECONDS = 240.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def variables(secured, tmp_path_factory):
    """Of an installation with two collectors: a tenant's, and a gateway that says in a header for whom it writes."""
    declared = yaml.safe_load(DEFAULT_MAP.read_text())
    telemetry = {"group": "telemetry", "format": "lines_json", "key": "any", "about": "of a test", "partitions": 1}
    collectors = {
        ACME: {"written_by": ["acme"], "identity": {"machines": "tenant"}},
        GATEWAY: {"written_by": ["gateway"], "identity": {"machines": "prefix", "principal_header": HEADER}},
    }
    others = {key: one for key, one in declared["topics"].items() if not key.startswith("telemetry.")}
    declared["topics"] = others | {topic: telemetry | own for topic, own in collectors.items()}
    path = tmp_path_factory.mktemp("map") / "topics.yaml"
    path.write_text(yaml.safe_dump(declared))
    found = {"KAPPA_TOPICS_FILE": str(path)}
    assert secured.kappa("topics", "apply", **found).code == 0
    assert secured.kappa("acl", "apply", "--prune", "--users", str(secured.identities.user("")), **found).code == 0
    yield found
    secured.admin.delete_topics([ACME, GATEWAY])
    assert secured.kappa("acl", "apply", "--prune").code == 0


@pytest.fixture(scope="module")
def chain(secured, variables):
    """What the collectors write, and what comes of it."""
    return Chain(secured)


class Chain:
    """Two collectors, the inventory, and the records that enrichment writes."""

    def __init__(self, secured):
        self._secured = secured
        self._value = 0
        facts = {"vm-1": "acme", "vm-2": "beta"}
        for machine, tenant in facts.items():
            self._write(ADMIN, "inventory", {"machine": machine, "tenant": tenant}, key=machine)

    def send(self, machine, topic=ACME, **headers):
        """Write a line as the topic's collector; gives its value, which no other line has."""
        self._value += 1
        user = {ACME: "kappa-acme", GATEWAY: "kappa-gateway"}[topic]
        line = {"time_unix_nano": time.time_ns(), "machine": machine, "name": "n", "value": self._value}
        self._write(user, topic, line, headers=headers)
        return self._value

    def _write(self, user, topic, record, **more):
        failed = []
        producer = make_producer(self._secured.connection(user), {"log_level": 0})
        producer.produce(topic, orjson.dumps(record), **more, on_delivery=lambda error, _: failed.append(error))
        assert producer.flush(60) == 0
        assert failed == [None]

    def records(self, topic):
        """Those of one of the job's topics that come from the two collectors."""
        with acting_as(self._secured.identities.user(ADMIN)):
            found = [record for _, record in read_records(self._secured.bootstrap, topic)]
        return [one for one in found if not is_watermark(one) and one["source"]["topic"] in (ACME, GATEWAY)]

    def events(self):
        """The value of each event, its machine, and the machine's tenant by the inventory."""
        return sorted(
            (value, record["machine"], record["inventory"].get("tenant"))
            for record in self.records("events")
            for value in record["events"]["value"]
        )

    def rejected(self):
        """The machine of each dead letter, its code, and the values of the events in it."""
        found = [(one, orjson.loads(one["batch"])["events"]["value"]) for one in self.records("events.rejected")]
        return sorted((values, record["machine"], record["code"]) for record, values in found)


@pytest.fixture(scope="module")
def certificate(secured, tmp_path_factory):
    """The folder of a user who has a certificate and no password; its key is an RSA one in PKCS#1."""
    folder = tmp_path_factory.mktemp("certificate")
    settings = {"security_protocol": "SSL", "ssl_ca": secured.identities.authority}
    settings |= {"ssl_certificate": folder / "tls.crt", "ssl_key": folder / "tls.key"}
    for name, value in settings.items():
        (folder / f"kappa_kafka_{name}").write_text(str(value))
    certificate, key = authority(secured).issue(USER, key=rsa.generate_private_key(65537, 2048))
    pkcs1 = PrivateFormat.TraditionalOpenSSL
    replace(folder, certificate, load_pem_private_key(key, None).private_bytes(Encoding.PEM, pkcs1, NoEncryption()))
    return folder


def authority(secured):
    return Authority.load(secured.identities.folder)


def replace(folder, certificate, key):
    """Put another certificate and its key in place."""
    write_private(folder / "tls.crt", certificate)
    write_private(folder / "tls.key", key)


@pytest.fixture(scope="module")
def make_job(secured, variables, chain, tmp_path_factory):
    """Makes enrichment as a user, by the folder of its secrets, and ends the one before; at the end all are killed."""
    home, made = tmp_path_factory.mktemp("home"), []

    def make(secrets, bootstrap, *arguments):
        for one in made:
            one.stop()
        environment = {
            **secured.environment(USER),
            **variables,
            "KAPPA_KAFKA_BOOTSTRAP": bootstrap,
            "KAPPA_SECRETS": str(secrets),
            "KAPPA_HOME": str(home),
            "KAPPA_METRICS_PORT": "0",
            "KAPPA_TRIGGER_SECONDS": "0.2",
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
        }
        made.append(Job(USER, ("run", "enrichment", *arguments), environment, home / "job.log"))
        return made[-1]

    yield make
    for one in made:
        one.clean()


@pytest.fixture(scope="module")
def job(secured, certificate, make_job):
    """Enrichment that shows its certificate."""
    job = make_job(certificate, secured.broker.certificate_address)
    job.start()
    return job


def wait_for(job, found):
    """What `found` gives once it is true, while the job runs."""

    def looked():
        assert job.code is None, job.output()[-2000:]
        return found()

    return until(looked, JOB_SECONDS, "it did not come")


def command_lines(job):
    """Those of the job's processes: of its driver, its JVM and what that has started."""
    return [" ".join(process.cmdline()) for process in session_of(job.process.pid)]


def test_a_record_about_anothers_machine_is_forged_and_one_about_its_own_an_event(chain, job, report):
    own, of_beta, of_nobody = (chain.send(machine) for machine in ("vm-1", "vm-2", "vm-3"))
    named, other = (chain.send(machine, GATEWAY, tenant=b"acme") for machine in ("acme-1", "beta-1"))
    unnamed = chain.send("acme-1", GATEWAY)
    last = chain.send("vm-1")

    wait_for(job, lambda: len(chain.events()) >= 3 and len(chain.rejected()) >= 4)
    assert chain.events() == [(own, "vm-1", "acme"), (named, "acme-1", None), (last, "vm-1", "acme")]
    assert chain.rejected() == [
        ([of_beta], "vm-2", "forged"),
        ([of_nobody], "vm-3", "forged"),
        ([other], "beta-1", "forged"),
        ([unnamed], "acme-1", "forged"),
    ]
    assert not any("PRIVATE KEY" in line for line in command_lines(job))
    report.forged(len(chain.rejected()))
    report.client("enrichment, by a certificate", secured_broker=True)


def test_renewed_certificates_of_broker_and_job_cost_no_record(secured, certificate, chain, job):
    before = chain.events()

    def comes(machine, value):
        wait_for(job, lambda: value in {one for one, *_ in chain.events()})
        return value, machine, "acme"

    renewed, key = authority(secured).issue(BROKER)
    with secured.shown(secured.broker.certificate_address, key + renewed):
        meanwhile = comes("vm-1", chain.send("vm-1"))

        replace(certificate, *authority(secured).issue(USER, valid=-timedelta(days=1)))
        job.stop()
        assert job.code == 0
        rest = chain.send("vm-1")
        job.start()
        until(lambda: job.code is not None, 60, "it doesn't end with an expired certificate")
        assert job.code == 2 and f"{certificate}/tls.crt: expired at 20" in job.output()

        replace(certificate, *authority(secured).issue(USER))
        job.start()
        last = comes("vm-1", chain.send("vm-1"))
    assert chain.events() == [*before, meanwhile, (rest, "vm-1", "acme"), last]


def test_its_real_time_mode_judges_alike_by_a_password_that_no_command_line_shows(secured, chain, make_job, report):
    job = make_job(secured.identities.user(USER), secured.bootstrap, "--realtime")
    job.start()
    own, of_beta = chain.send("vm-1"), chain.send("vm-2")

    wait_for(job, lambda: (own, "vm-1", "acme") in chain.events())
    wait_for(job, lambda: ([of_beta], "vm-2", "forged") in chain.rejected())
    assert of_beta not in {value for value, *_ in chain.events()}
    lines = command_lines(job)
    assert any("ops.cli run enrichment" in line for line in lines)
    assert any("org.apache.spark.deploy.SparkSubmit" in line for line in lines)
    assert not any(secured.identities.password(USER) in line for line in lines)
    report.client("enrichment in real time", secured_broker=True)
