"""The embedded servers as a user starts and breaks them."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
import uuid

import psutil
import pytest

from infra.jars import default_jars
from infra.local import LocalServers
from tests.integration.conftest import free_ports
from tests.integration.connectors.kafka.topic import read, write


def put(url, document):
    body = json.dumps(document).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def get(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def test_a_second_up_finds_the_first(servers):
    before = servers.status()
    again = LocalServers(
        servers.home,
        kafka_port=servers.kafka[0].port,
        elasticsearch_port=servers.elasticsearch.port,
        jars=default_jars(),
    )
    again.up()
    assert again.status() == before
    assert [row["state"] for row in before] == ["ready", "ready"]


def test_what_was_written_survives_kill_9_of_both(servers, topics):
    topic = topics["inventory"].name
    index = f"{servers.elasticsearch_url}/test-{uuid.uuid4().hex}"
    write(servers.bootstrap, topic, b"before")
    put(f"{index}/_doc/1", {"at": "before"})
    pids = [row["pid"] for row in servers.status()]
    for server in servers.all:
        server.kill()
    assert [row["state"] for row in servers.status()] == ["down", "down"]

    servers.up()

    assert set(pids).isdisjoint(row["pid"] for row in servers.status())
    write(servers.bootstrap, topic, b"later")
    assert read(servers.bootstrap, topic, 2) == [b"before", b"later"]
    assert get(f"{index}/_doc/1")["_source"] == {"at": "before"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root must drop its rights")
def test_elasticsearch_of_root_runs_as_nobody(servers):
    leader = psutil.Process(servers.elasticsearch.running.pid)
    assert {process.uids().effective for process in (leader, *leader.children())} == {65534}


def test_sigterm_during_up_leaves_nothing_behind(tmp_path):
    """The signal comes as soon as a server's process is there, long before it is ready."""
    ports = free_ports(4)
    (tmp_path / "jars").symlink_to(default_jars())
    settings = {"HOME": tmp_path, "KAFKA_PORT": ports, "ELASTICSEARCH_PORT": ports + 2}
    environment = os.environ | {f"KAPPA_{key}": str(value) for key, value in settings.items()}
    up = subprocess.Popen([sys.executable, "-m", "ops.cli", "infra", "up"], env=environment)
    pid_file = tmp_path / "run" / "elasticsearch.json"
    deadline = time.monotonic() + 60
    while not pid_file.is_file() or not pid_file.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    started = json.loads(pid_file.read_text())["pid"]

    up.send_signal(signal.SIGTERM)

    assert up.wait(60) == 128 + signal.SIGTERM
    assert not psutil.pid_exists(started)
    assert [p.pid for p in psutil.process_iter() if str(tmp_path) in " ".join(_cmdline(p))] == []


def _cmdline(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []
