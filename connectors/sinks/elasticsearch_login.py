"""How a client of Elasticsearch says who it is: a key or a password, which may be changed while the client runs."""

import base64
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from elastic_transport import HttpHeaders, Urllib3HttpNode
from elastic_transport.client_utils import DEFAULT

Identity = Mapping[str, Any]  # `api_key`, `basic_auth`, `ca_certs`: as options of elasticsearch-py's client
UNKNOWN = 401


class Login:
    """The header that says who asks; once it is refused, `renew` is asked for what it is now."""

    def __init__(self, identity: Identity, renew: Callable[[], Identity]) -> None:
        self.header = header_of(identity)
        self._renew = renew

    def renew(self) -> None:
        """Take what is valid now, for the next request."""
        self.header = header_of(self._renew())


def header_of(identity: Identity) -> str | None:
    """The value of the header Authorization; None for nobody in particular."""
    if key := identity.get("api_key"):
        return f"ApiKey {key}"
    if login := identity.get("basic_auth"):
        return f"Basic {base64.b64encode(':'.join(login).encode()).decode()}"
    return None


def node_class(login: Login) -> type[Urllib3HttpNode]:
    """The class of the connections of a client whose requests have this login's header."""

    class Node(_Node):
        login_: ClassVar[Login] = login

    return Node


class _Node(Urllib3HttpNode):
    login_: ClassVar[Login]

    def perform_request(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: HttpHeaders | None = None,
        request_timeout: Any = DEFAULT,
    ) -> Any:
        sent = HttpHeaders(headers or ())
        if self.login_.header:
            sent["authorization"] = self.login_.header
        answer = super().perform_request(method, target, body, sent, request_timeout)
        if answer.meta.status == UNKNOWN:
            self.login_.renew()
        return answer
