"""Stops Deployments of the Kubernetes namespace that this pod runs in, by the API of the cluster.

There is no client of Kubernetes in the image, for these three requests.
"""

import json
import ssl
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from infra.errors import UserError

IDENTITY = Path("/var/run/secrets/kubernetes.io/serviceaccount")  # where the kubelet puts a pod's token
API = "https://kubernetes.default.svc"
ANSWER_SECONDS = 10.0
POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Namespace:
    """A namespace of a cluster, and who we are there.

    Attributes:
        api: the address of the API server.
        name: the namespace's.
        token: says who we are.
        trust: whom the connection trusts; None: nobody, as it is none of TLS.
    """

    api: str
    name: str
    token: str
    trust: ssl.SSLContext | None

    @classmethod
    def of_this_pod(cls, identity: Path = IDENTITY) -> "Namespace":
        """That of the pod which this process runs in. Raises UserError outside of one."""
        if not (identity / "token").exists():
            raise UserError(f"--deployment: {identity}/token is missing; it is for pods with a service account's token")
        name, token = ((identity / part).read_text().strip() for part in ("namespace", "token"))
        return cls(API, name, token, ssl.create_default_context(cafile=str(identity / "ca.crt")))

    @contextmanager
    def without(self, deployments: Collection[str], patience: float) -> Iterator[None]:
        """Within the block these Deployments have no pods; after an error in it they have as many as before.

        Raises UserError, and starts them again, if a pod is still there after `patience` seconds.
        """
        before = {name: self._scale(name)["spec"].get("replicas", 0) for name in deployments}
        try:
            for name in deployments:
                self._resize(name, 0)
            self._wait_until_gone(deployments, time.monotonic() + patience)
            yield
        except BaseException:
            for name, replicas in before.items():
                self._resize(name, replicas)
            raise

    def _wait_until_gone(self, deployments: Collection[str], deadline: float) -> None:
        for name in deployments:
            pods = f"api/v1/namespaces/{self.name}/pods?labelSelector={quote(self._scale(name)['status']['selector'])}"
            while found := self._ask("GET", pods)["items"]:
                if time.monotonic() > deadline:
                    raise UserError(f"--deployment {name}: pod {found[0]['metadata']['name']} does not end")
                time.sleep(POLL_SECONDS)

    def _scale(self, deployment: str) -> dict[str, Any]:
        return self._ask("GET", self._scale_of(deployment))

    def _resize(self, deployment: str, replicas: int) -> None:
        self._ask("PATCH", self._scale_of(deployment), {"spec": {"replicas": replicas}})

    def _scale_of(self, deployment: str) -> str:
        return f"apis/apps/v1/namespaces/{self.name}/deployments/{deployment}/scale"

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/merge-patch+json"}
        content = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.api}/{path}", content, headers, method=method)
        try:
            with urlopen(request, timeout=ANSWER_SECONDS, context=self.trust) as answer:
                return dict(json.load(answer))
        except HTTPError as error:
            raise UserError(f"--deployment: {method} {path} is refused: {error.code} {error.reason}") from error
        except OSError as error:
            raise UserError(f"--deployment: {self.api} can't be reached: {error}") from error
