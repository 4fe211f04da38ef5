"""Deployments are stopped by the cluster's API, and started again where that was for nothing."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

import pytest

from infra.errors import UserError
from ops.upgrade import deployments
from ops.upgrade.deployments import Namespace

TOKEN = "Bearer of this pod"


class Cluster:
    """Two Deployments of a namespace; a pod takes two looks to end."""

    def __init__(self):
        self.replicas = {"kappa-detector": 1, "kappa-archive": 1}
        self.asked, self.stuck = [], False
        self.pods = dict.fromkeys(self.replicas, 2)

    def answer(self, method, path, headers, body):
        self.asked.append((method, path))
        if headers["Authorization"] != TOKEN:
            return 403, {}
        found = re.fullmatch("/apis/apps/v1/namespaces/telco/deployments/(.*)/scale", urlparse(path).path)
        if not found:
            (selector,) = parse_qs(urlparse(path).query)["labelSelector"]
            return 200, {"items": self.ending(selector.removeprefix("component=kappa,name="))}
        (name,) = found.groups()
        if name not in self.replicas:
            return 404, {}
        if method == "PATCH":
            self.replicas[name] = body["spec"]["replicas"]
        # Kubernetes leaves out a zero.
        spec = {"replicas": self.replicas[name]} if self.replicas[name] else {}
        return 200, {"spec": spec, "status": {"selector": f"component=kappa,name={name}"}}

    def ending(self, name):
        assert not self.replicas[name]
        self.pods[name] -= 0 if self.stuck else 1
        return [{"metadata": {"name": f"{name}-x7"}}] * self.pods[name]


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(deployments, "POLL_SECONDS", 0.01)
    cluster = Cluster()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            code, answer = cluster.answer(self.command, self.path, self.headers, json.loads(body or b"null"))
            self.send_response(code)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_PATCH = do_GET

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    cluster.namespace = Namespace(f"http://127.0.0.1:{server.server_port}", "telco", "of this pod", None)
    yield cluster
    server.shutdown()


def test_within_the_block_no_pod_is_there(cluster):
    with cluster.namespace.without(["kappa-detector", "kappa-archive"], patience=30):
        assert cluster.replicas == {"kappa-detector": 0, "kappa-archive": 0}
        assert cluster.pods == {"kappa-detector": 0, "kappa-archive": 0}
    # What follows starts them: a rollback.
    assert cluster.replicas == {"kappa-detector": 0, "kappa-archive": 0}


def test_an_error_starts_them_again(cluster):
    cluster.replicas["kappa-archive"] = 0
    with (
        pytest.raises(UserError, match="does not fit"),
        cluster.namespace.without(["kappa-detector", "kappa-archive"], patience=30),
    ):
        raise UserError("savepoint: does not fit")
    assert cluster.replicas == {"kappa-detector": 1, "kappa-archive": 0}


def test_a_pod_that_does_not_end_is_named(cluster):
    cluster.stuck = True
    with (
        pytest.raises(UserError, match="--deployment kappa-detector: pod kappa-detector-x7 does not end"),
        cluster.namespace.without(["kappa-detector"], patience=0),
    ):
        pytest.fail("it has not ended")
    assert cluster.replicas["kappa-detector"] == 1


def test_one_that_is_unknown_is_named_before_any_is_stopped(cluster):
    with (
        pytest.raises(UserError, match="deployments/kappa-rules/scale is refused: 404"),
        cluster.namespace.without(["kappa-detector", "kappa-rules"], patience=30),
    ):
        pytest.fail("it is unknown")
    assert {method for method, _ in cluster.asked} == {"GET"}


def test_outside_of_a_pod_it_says_so(tmp_path):
    with pytest.raises(UserError, match=r"--deployment: .*token is missing; it is for pods"):
        Namespace.of_this_pod(tmp_path)


def test_a_cluster_that_does_not_answer_is_named():
    nobody = Namespace("http://127.0.0.1:9", "telco", "", None)
    with pytest.raises(UserError, match=r"http://127\.0\.0\.1:9 can't be reached"), nobody.without(["a"], patience=1):
        pytest.fail("nobody answered")
