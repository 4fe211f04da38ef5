"""Real collectors, configured as in docs/reference/collectors.md; what they sent is, enriched, in `events`."""

import os
import re
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import orjson
import psutil
import pytest
import yaml
from confluent_kafka import Producer

from infra.contract.columnar import to_rows
from tests.integration.conftest import free_ports
from tests.integration.connectors.decoders.surroundings import ACCOUNT, POD_IP, surroundings
from tests.integration.enrichment import own_map, records_of, running_enrichment, wait_for

PROJECT = Path(__file__).parents[4]
DOCS = PROJECT / "docs" / "reference" / "collectors.md"
OTELCOL = PROJECT / "build" / "otelcol" / "otelcol"
COLLECTD_PLUGIN = Path("/usr/lib/collectd/write_kafka.so")
SITES = {"collectd-host": "dc1", "rsyslog-host": "dc2", "otelcol-host": "dc3"}


def events_of(records):
    return [event for record in records for event in to_rows(record["events"])]


@pytest.fixture(scope="module")
def topics(servers):
    with own_map(servers.bootstrap) as mapped:
        yield mapped


@pytest.fixture(scope="module")
def events(spark, servers, topics, tmp_path_factory):
    """What enrichment makes of a topic's records, once some hold what is looked for."""
    producer = Producer({"bootstrap.servers": servers.bootstrap})
    for machine, site in SITES.items():
        fact = {"machine": machine, "type": "physical", "site": site}
        producer.produce(topics["inventory"].name, orjson.dumps(fact), machine)
    assert producer.flush(30) == 0

    def run(topic, enough):
        source = topics[topic].name

        def found():
            rejected = [r for r in records_of(servers.bootstrap, topics["events.rejected"].name) if of_source(r)]
            assert not [r for r in rejected if r["code"] != "no_value"]
            records = [r for r in records_of(servers.bootstrap, topics["events"].name) if of_source(r)]
            return records if enough(records) else None

        def of_source(record):
            return record["source"]["topic"] == source

        return wait_for(found)

    with running_enrichment(spark, servers.bootstrap, topics, tmp_path_factory.mktemp("enrichment")):
        yield run


def documented(heading: str) -> list[str]:
    """The configurations under a heading of docs/reference/collectors.md."""
    section = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    assert section, heading
    return re.findall(r"^```\w*\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)


def adapted(config: str, servers, topics) -> str:
    """With this test's broker and topics."""
    config = config.replace("kafka:9092", servers.bootstrap)
    return re.sub(r'"(telemetry\.[a-z0-9.]+)"', lambda found: f'"{topics[found[1]].name}"', config)


@contextmanager
def process(command: list[str], log: Path, **environment: str):
    with log.open("wb") as output:
        running = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environment})
    try:
        yield running
        assert running.poll() is None, log.read_text()
    finally:
        running.terminate()
        running.wait(30)


def test_collectd(servers, topics, events, tmp_path):
    daemon = shutil.which("collectd")
    if not daemon or not COLLECTD_PLUGIN.is_file():
        pytest.skip("collectd is not installed: apt install collectd-core libyajl2 librdkafka1")
    config = tmp_path / "collectd.conf"
    config.write_text(
        f'Hostname "collectd-host"\nFQDNLookup false\nInterval 1\nBaseDir "{tmp_path}"\n'
        f'PIDFile "{tmp_path}/collectd.pid"\nTypesDB "/usr/share/collectd/types.db"\n'
        "LoadPlugin load\nLoadPlugin memory\nLoadPlugin interface\n"
        + adapted("".join(documented("collectd")), servers, topics)
    )

    def enough(records):
        names = [event["name"] for event in events_of(records)]
        return names.count("collectd.interface.if_octets.rx") >= 2 and names.count("collectd.memory.memory") >= 5

    with process([daemon, "-f", "-C", str(config)], tmp_path / "collectd.log"):
        records = events("telemetry.collectd", enough)
    assert {record["machine"] for record in records} == {"collectd-host"}
    assert {record["inventory"]["site"] for record in records} == {"dc1"}
    found = events_of(records)
    memory = {e["attributes"]["type_instance"]: e["value"] for e in found if e["name"] == "collectd.memory.memory"}
    assert sum(memory.values()) == pytest.approx(psutil.virtual_memory().total, rel=0.2)
    received = [event for event in found if event["series"] == "collectd.interface.if_octets.rx{plugin_instance=lo}"]
    assert {(event["type"], event["temporality"]) for event in received} == {("sum", "cumulative")}
    assert [event["value"] for event in received] == sorted(event["value"] for event in received)
    assert received[-1]["value"] <= psutil.net_io_counters(pernic=True)["lo"].bytes_recv
    assert all(abs(event["time_unix_nano"] / 1e9 - time.time()) < 300 for event in found)


@pytest.mark.parametrize(
    ("which", "topic"), [(0, "telemetry.syslog"), (1, "telemetry.syslog.rfc5424")], ids=["json", "rfc5424"]
)
def test_rsyslog(servers, topics, events, tmp_path, which, topic):
    daemon = shutil.which("rsyslogd") or shutil.which("rsyslogd", path="/usr/sbin")
    if not daemon or not list(Path("/usr/lib").glob("*/rsyslog/omkafka.so")):
        pytest.skip("rsyslogd with omkafka is not installed: apt install rsyslog rsyslog-kafka")
    port = free_ports(1)
    config = tmp_path / "rsyslog.conf"
    config.write_text(
        f'global(workDirectory="{tmp_path}")\nmodule(load="imtcp")\n'
        f'input(type="imtcp" address="127.0.0.1" port="{port}")\n'
        + adapted(documented("rsyslog")[which], servers, topics)
    )
    stamp = datetime.now(UTC).isoformat(timespec="microseconds")
    lines = [
        f'<27>1 {stamp} rsyslog-host nova-compute 4242 - - Instance i-{number:08x} took 0.{number}s "quoted" å'
        for number in range(3)
    ]
    with process([daemon, "-n", "-f", str(config), "-i", str(tmp_path / "pid")], tmp_path / "rsyslog.log"):
        send(port, "".join(line + "\n" for line in lines).encode())
        records = events(topic, lambda records: len(events_of(records)) >= 3)
    assert {record["machine"] for record in records} == {"rsyslog-host"}
    assert {record["inventory"]["site"] for record in records} == {"dc2"}
    assert {record["resource"]["service.name"] for record in records} == {"nova-compute"}
    found = sorted(events_of(records), key=lambda event: event["body"])
    assert [event["body"].strip() for event in found] == [line.split(" - - ", 1)[1] for line in lines]
    assert {event["template"].strip() for event in found} == {'Instance <*> took <*> "<*>" å'}
    assert {event["severity_number"] for event in found} == {17}
    sent = int(datetime.fromisoformat(stamp).timestamp() * 1_000_000)
    assert {event["time_unix_nano"] // 1000 for event in found} == {sent}


@pytest.mark.parametrize("encoding", ["json", "proto"])
def test_otel_collector(servers, topics, events, tmp_path, encoding):
    if not OTELCOL.is_file():
        pytest.skip("the OpenTelemetry Collector is not built: make test-collectors builds it")
    stamp = datetime.now(UTC).isoformat(timespec="microseconds")
    lines = [f"{stamp} ERROR Instance i-{number:08x} took 0.{number}s å" for number in range(3)]
    (tmp_path / "app.log").write_text("".join(line + "\n" for line in lines))
    config = tmp_path / "otelcol.yaml"
    config.write_text(yaml.safe_dump(otelcol_config(servers, topics, encoding, tmp_path / "app.log")))
    suffix = ".proto" if encoding == "proto" else ""

    def enough(records):
        names = [event["name"] for event in events_of(records)]
        return names.count("system.network.io") >= 4 and "system.memory.usage" in names

    resource = {"OTEL_RESOURCE_ATTRIBUTES": "host.name=otelcol-host"}
    with process([str(OTELCOL), "--config", str(config)], tmp_path / "otelcol.log", **resource):
        logs = events(f"telemetry.otlp.logs{suffix}", lambda found: len(events_of(found)) >= 3)
        metrics = events(f"telemetry.otlp.metrics{suffix}", enough)
    for records in (logs, metrics):
        assert {record["machine"] for record in records} == {"otelcol-host"}
        assert {record["inventory"]["site"] for record in records} == {"dc3"}
    found = sorted(events_of(logs), key=lambda event: event["body"])
    assert [event["body"] for event in found] == lines
    assert {event["severity_number"] for event in found} == {17}
    sent = int(datetime.fromisoformat(stamp).timestamp() * 1_000_000)
    assert {event["time_unix_nano"] // 1000 for event in found} == {sent}
    points = events_of(metrics)
    memory = {e["attributes"]["state"]: e["value"] for e in points if e["name"] == "system.memory.usage"}
    assert sum(memory.values()) == pytest.approx(psutil.virtual_memory().total, rel=0.2)
    received = [e for e in points if e["series"] == "system.network.io{device=lo,direction=receive}"]
    assert {(e["type"], e["temporality"], e["monotonic"]) for e in received} == {("sum", "cumulative", True)}
    assert 0 < received[-1]["value"] <= psutil.net_io_counters(pernic=True)["lo"].bytes_recv


IDENTITIES = {
    "a pod that carries its node's host.name": (
        ["env"],
        f"k8s.pod.ip={POD_IP},host.name=node-3,k8s.cluster.name=prod",
        "prod/shop/cart-5d9f8b7c6d-x2x7k",
        {"type": "virtual", "hypervisor": "node-3", "workload": "prod/deployment/shop/cart"},
    ),
    "a pod on an instance of EC2": (
        ["env", "ec2"],
        f"k8s.pod.ip={POD_IP}",
        "shop/cart-5d9f8b7c6d-x2x7k",
        {
            "type": "virtual",
            "hypervisor": "node-3",
            "workload": "deployment/shop/cart",
            "site": "eu-west-1b",
            "tenant": ACCOUNT,
        },
    ),
    "an instance of EC2": (
        ["ec2"],
        "",
        "ip-10-0-0-1.eu-west-1.compute.internal",
        {"site": "eu-west-1b", "tenant": ACCOUNT},
    ),
    "a task of ECS": (
        ["ecs"],
        "",
        "cart/0f9e8d7c6b5a",
        {"type": "virtual", "site": "eu-west-1b", "tenant": ACCOUNT, "workload": "ecs/cart"},
    ),
    "an instance of Nova": (["nova"], "", "vm-9", {"site": "az-2", "tenant": "3f2a"}),
}


@pytest.mark.parametrize("encoding", ["json", "proto"])
@pytest.mark.parametrize("case", IDENTITIES)
def test_a_resource_names_machine_workload_and_place(servers, topics, events, tmp_path, case, encoding):
    """What `resourcedetection` and `k8sattributes` really set."""
    if not OTELCOL.is_file():
        pytest.skip("the OpenTelemetry Collector is not built: make test-collectors builds it")
    detectors, attributes, machine, facts = IDENTITIES[case]
    log = tmp_path / "app.log"
    log.write_text("hello\n")
    configured = otelcol_config(servers, topics, encoding, log)
    processors = configured["processors"]
    processors["resourcedetection"] = {"detectors": detectors, "timeout": "20s"}
    order = ["resourcedetection", "batch"]
    if "k8s.pod.ip" in attributes:  # its client would switch off the proxy by which Nova is asked
        processors["k8sattributes"] = documented_kubernetes() | {"auth_type": "kubeConfig"}
        order.insert(1, "k8sattributes")
    for pipeline in configured["service"]["pipelines"].values():
        pipeline["processors"] = order
    config = tmp_path / "otelcol.yaml"
    config.write_text(yaml.safe_dump(configured))
    suffix = ".proto" if encoding == "proto" else ""

    def of_case(records):
        return [
            record
            for record in records
            if record["machine"] == machine and facts.items() <= record["inventory"].items()
        ]

    with surroundings(tmp_path) as environment:
        environment["OTEL_RESOURCE_ATTRIBUTES"] = attributes
        with process([str(OTELCOL), "--config", str(config)], tmp_path / "otelcol.log", **environment):
            for signal in ("metrics", "logs"):
                records = of_case(events(f"telemetry.otlp.{signal}{suffix}", of_case))
                assert {"known": False} | facts == records[0]["inventory"]
                if signal == "metrics":
                    series = {event["series"] for event in events_of(records)}
                    assert "system.network.io{device=lo,direction=receive}" in series


def documented_kubernetes() -> dict:
    """The documented processor of Kubernetes."""
    return yaml.safe_load(documented("OpenTelemetry Collector")[1])["processors"]["k8sattributes"]


def otelcol_config(servers, topics, encoding: str, log: Path) -> dict:
    """The documented processors and exporter, between receivers of the test's own."""
    config = yaml.safe_load(documented("OpenTelemetry Collector")[0])
    exporter = config["exporters"][f"kafka/{encoding}"]
    exporter["brokers"] = [servers.bootstrap]
    for signal in ("metrics", "logs"):
        exporter[signal]["topic"] = topics[exporter[signal]["topic"]].name
    parser = {
        "type": "regex_parser",
        "regex": r"^(?P<time>\S+) (?P<severity>[A-Z]+) ",
        "timestamp": {"parse_from": "attributes.time", "layout_type": "gotime", "layout": "2006-01-02T15:04:05Z07:00"},
        "severity": {"parse_from": "attributes.severity"},
    }
    return {
        "receivers": {
            "hostmetrics": {"collection_interval": "1s", "scrapers": {"memory": None, "network": None}},
            "filelog": {"include": [str(log)], "start_at": "beginning", "operators": [parser]},
        },
        "processors": config["processors"],
        "exporters": {"kafka": exporter},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {
                signal: {"receivers": [receiver], "processors": [*config["processors"]], "exporters": ["kafka"]}
                for signal, receiver in (("metrics", "hostmetrics"), ("logs", "filelog"))
            },
        },
    }


def send(port: int, data: bytes) -> None:
    """To a server that may not listen yet."""

    def sent():
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.sendall(data)
        except OSError:
            return False
        return True

    wait_for(sent)
