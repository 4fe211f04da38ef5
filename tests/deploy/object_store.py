"""An object store as an image, and in the cluster as a pod beside the chart's release: no job needs a volume then."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.deploy.kubernetes import Release, written
from tests.deploy.stack import run
from tests.object_store.store import BUCKET

FOLDER = Path("tests/object_store")
IMAGE = "kappa-test-object-store:1"
NAME, PORT = "store", 9000
MANIFEST = f"""
apiVersion: v1
kind: Secret
metadata: {{name: {NAME}}}
stringData: {{access-key-id: kappa, secret-access-key: not a secret}}
---
apiVersion: v1
kind: Service
metadata: {{name: {NAME}}}
spec: {{selector: {{app: {NAME}}}, ports: [{{port: {PORT}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {NAME}, labels: {{app: {NAME}}}}}
spec:
  containers:
    - name: {NAME}
      image: {IMAGE}
      readinessProbe: {{httpGet: {{path: /-/requests, port: {PORT}}}}}
      resources: {{requests: {{cpu: 100m, memory: 512Mi}}, limits: {{memory: 4Gi}}}}
"""
MAKE_BUCKET = f"""
from urllib.request import Request, urlopen
urlopen(Request("http://127.0.0.1:{PORT}/{BUCKET}", b"", method="PUT"))
"""
VALUES: dict[str, Any] = {
    "storage": {
        "checkpoints": f"s3a://{BUCKET}/checkpoints",
        "delta": f"s3a://{BUCKET}/delta",
        "s3": {"endpoint": f"http://{NAME}:{PORT}", "secret": {"name": NAME}},
    },
    "networkPolicy": {"egress": [{"ports": [{"port": PORT}]}]},
}


def provide(load: Sequence[str]) -> None:
    """Build the store's image, and bring it to the cluster's nodes by this command, if there is one."""
    run("docker", "build", "-q", "-t", IMAGE, FOLDER)
    if load:
        run(*load, IMAGE)


def begin(release: Release) -> None:
    """Start it in the release's namespace, with the bucket; it ends with the namespace."""
    with written(MANIFEST) as file:
        release.kubectl("apply", "-f", file)
    release.kubectl("wait", f"pod/{NAME}", "--for=condition=Ready", "--timeout=2m")
    release.kubectl("exec", NAME, "--", "python", "-c", MAKE_BUCKET)
