"""What the Collector's processors ask in a cluster and in a cloud, answered by one small HTTP server.

`k8sattributes` lists and watches a Kubernetes API; `resourcedetection` asks the metadata services of EC2, ECS and
Nova. The answers have the fields that the real ones have; what the processors make of them is theirs.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

POD_IP = "10.42.0.17"
ACCOUNT = "123456789012"


def _owned(kind: str, name: str, uid: str) -> list[dict[str, Any]]:
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}]


POD = {
    "metadata": {
        "name": "cart-5d9f8b7c6d-x2x7k",
        "namespace": "shop",
        "uid": "0a1b2c3d-0000-4000-8000-000000000001",
        "creationTimestamp": "2026-11-20T00:00:00Z",
        "ownerReferences": _owned("ReplicaSet", "cart-5d9f8b7c6d", "rs-1"),
    },
    "spec": {"nodeName": "node-3", "containers": [{"name": "app", "image": "registry.example/cart:1.2"}]},
    "status": {"phase": "Running", "podIP": POD_IP, "startTime": "2026-11-20T00:00:00Z"},
}
REPLICA_SET = {
    "metadata": {
        "name": "cart-5d9f8b7c6d",
        "namespace": "shop",
        "uid": "rs-1",
        "ownerReferences": _owned("Deployment", "cart", "deployment-1"),
    }
}
LISTS = {
    "/api/v1/pods": ("PodList", "v1", [POD]),
    "/apis/apps/v1/replicasets": ("ReplicaSetList", "apps/v1", [REPLICA_SET]),
    "/api/v1/namespaces": ("NamespaceList", "v1", [{"metadata": {"name": "shop", "uid": "ns-1"}}]),
}
METADATA = {
    "/latest/api/token": "token",
    "/latest/meta-data/instance-id": "i-0f00000000000001",
    "/latest/meta-data/hostname": "ip-10-0-0-1.eu-west-1.compute.internal",
    "/latest/meta-data/instance-type": "m5.large",
    "/latest/dynamic/instance-identity/document": {
        "accountId": ACCOUNT,
        "region": "eu-west-1",
        "availabilityZone": "eu-west-1b",
        "instanceId": "i-0f00000000000001",
        "instanceType": "m5.large",
        "imageId": "ami-1",
    },
    "/ecs": {"DockerId": "c0ffee", "Name": "collector", "Type": "NORMAL", "KnownStatus": "RUNNING"},
    "/ecs/task": {
        "Cluster": "production",
        "TaskARN": f"arn:aws:ecs:eu-west-1:{ACCOUNT}:task/production/0f9e8d7c6b5a",
        "Family": "cart",
        "Revision": "7",
        "AvailabilityZone": "eu-west-1b",
        "LaunchType": "FARGATE",
        "Containers": [],
    },
    "/openstack/latest/meta_data.json": {
        "uuid": "7c0e1d2c-0000-4000-8000-000000000009",
        "hostname": "vm-9",
        "name": "vm-9",
        "project_id": "3f2a",
        "availability_zone": "az-2",
        "meta": {},
    },
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stopped: threading.Event

    def do_GET(self) -> None:
        asked = urlsplit(self.path)  # of a proxied request, the whole URL
        found = METADATA.get(asked.path)
        if asked.path.startswith(("/api/", "/apis/")):
            self._kubernetes(asked.path, parse_qs(asked.query))
        elif found is None:
            self._answer({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}, 404)
        else:
            self._answer(found)

    do_PUT = do_GET

    def _kubernetes(self, path: str, query: dict[str, list[str]]) -> None:
        kind, version, items = LISTS.get(path, ("List", "v1", []))
        if "watch" not in query:
            self._answer({"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": "1"}, "items": items})
        elif "sendInitialEvents" in query:
            self._answer({"kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422}, 422)
        else:  # nothing ever changes
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            self.stopped.wait(600)
            self.close_connection = True

    def _answer(self, found: Any, status: int = 200) -> None:
        body = found.encode() if isinstance(found, str) else json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(found, str) else "application/json")
        self.send_header("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "600")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the collector's own log says what it asked."""


@contextmanager
def surroundings(folder: Path) -> Iterator[dict[str, str]]:
    """The environment variables of a Collector that is to find itself in all of these at once."""
    stopped = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"stopped": stopped}))
    server.daemon_threads = True
    url = f"http://127.0.0.1:{server.server_port}"
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": {}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield {
            "KUBECONFIG": str(kubeconfig),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": url,
            "ECS_CONTAINER_METADATA_URI_V4": f"{url}/ecs",
            "HTTP_PROXY": url,  # Nova's address can't be set
            "NO_PROXY": "127.0.0.1",
        }
    finally:
        stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()
