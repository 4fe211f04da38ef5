import socket
from types import SimpleNamespace

import pytest

from infra.errors import UserError
from infra.local import LocalServers
from tests.unit.infra.local.toy import Toy, gone, wait_until


@pytest.fixture
def servers(tmp_path):
    """Two toys in the places of Elasticsearch and Kafka."""
    local = LocalServers(tmp_path, kafka_port=21080, elasticsearch_port=21084)
    local.elasticsearch = Toy("slow", tmp_path, (21084,))
    local.kafka = [Toy("quick", tmp_path, (21080,))]
    yield local
    local.down()


def test_up_starts_all_and_a_second_up_finds_them(servers):
    reported = []
    servers.up(lambda *state: reported.append(state))
    pids = [row["pid"] for row in servers.status()]
    assert [row["state"] for row in servers.status()] == ["ready", "ready"]
    assert [state for name, state in reported if name == "quick"] == ["fetching", "starting", "ready"]
    reported.clear()
    servers.up(lambda *state: reported.append(state))
    assert reported == [("slow", "ready"), ("quick", "ready")]
    assert [row["pid"] for row in servers.status()] == pids


def test_up_restarts_only_what_is_gone(servers):
    servers.up()
    slow, quick = servers.all
    before = slow.running
    quick.kill()
    assert [row["state"] for row in servers.status()] == ["ready", "down"]
    servers.up()
    assert slow.running == before
    assert quick.ready()


def test_when_one_fails_what_this_call_started_is_stopped_and_no_more(servers):
    slow, quick = servers.all
    slow.spawn()
    wait_until(slow.ready)
    quick.mode = "fail"
    with pytest.raises(UserError, match="quick did not start: ERROR it broke"):
        servers.up()
    assert slow.running
    slow.stop()
    with pytest.raises(UserError, match="quick did not start"):
        servers.up()
    assert [row["state"] for row in servers.status()] == ["down", "down"]


def test_an_interrupt_leaves_no_orphan(servers):
    slow, _ = servers.all
    started = []

    def interrupt(name, state):
        if (name, state) == ("quick", "starting"):
            started.append(slow.running.pid)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        servers.up(interrupt)
    assert gone(started[0])


def test_a_busy_port_starts_nothing(servers):
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 21080))
        listener.listen()
        with pytest.raises(UserError, match="port 21080"):
            servers.up()
    assert [row["state"] for row in servers.status()] == ["down", "down"]
    assert not any((servers.home / "logs").glob("*"))


def test_a_full_disk_starts_nothing(servers, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10**9))
    with pytest.raises(UserError, match=r"KAPPA_HOME=.*: 0.9 GiB free, needs 2 GiB"):
        servers.up()
    assert [row["state"] for row in servers.status()] == ["down", "down"]


def test_servers_that_would_share_a_port_are_not_started(tmp_path):
    servers = LocalServers(tmp_path, kafka_port=21080, elasticsearch_port=21085, brokers=3)
    with pytest.raises(UserError, match=r"port 21085: Kafka and Elasticsearch would both take it"):
        servers.up()
    assert not (tmp_path / "run").exists()


def test_another_port_while_it_runs_is_refused(servers, tmp_path):
    servers.up()
    servers.kafka = [Toy("quick", tmp_path, (21082,))]
    with pytest.raises(UserError, match=r"--toy-port: quick runs at 127.0.0.1:21080 already"):
        servers.up()


def test_a_server_that_never_answers_fails_in_time(servers):
    quick = servers.kafka[0]
    quick.ready = lambda: False
    quick.ready_seconds = 0.5
    with pytest.raises(UserError, match="quick did not start: no answer in time"):
        servers.up()
    assert not quick.running


def test_wipe_deletes_the_data_and_keeps_the_jars(servers):
    servers.up()
    (servers.home / "jars").mkdir()
    servers.down(wipe=True)
    assert not servers.kafka[0].folder.exists()
    assert (servers.home / "jars").is_dir()


def test_a_home_whose_servers_were_secured_stays_so_until_it_is_wiped(servers):
    assert servers.identities is None
    secured = LocalServers(servers.home, secured=True)
    secured.elasticsearch, secured.kafka = servers.elasticsearch, servers.kafka
    secured.up()
    assert LocalServers(servers.home).identities.exist
    secured.down(wipe=True)
    assert LocalServers(servers.home).identities is None
