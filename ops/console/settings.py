"""The settings of the console itself; the addresses of servers are those of jobs.runtime.settings."""

from ipaddress import ip_network
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from infra.errors import UserError
from infra.settings import describe

LOOPBACK = ("127.0.0.1", "::1", "localhost")
Names = Annotated[tuple[str, ...], NoDecode]  # separated by commas


class ConsoleSettings(BaseSettings):
    """Where the console listens, who may do what, and how it finds the jobs."""

    model_config = SettingsConfigDict(env_prefix="KAPPA_CONSOLE_", extra="ignore", env_ignore_empty=True)

    host: str = "127.0.0.1"  # without authentication a loopback address
    port: int = Field(8080, ge=0, le=65535)  # 0: any free one
    # For a container whose port is published on a loopback address only: whoever reaches it may do everything.
    unprotected: bool = False
    # How people see it, such as https://kappa.example.org; needed by a login and behind a proxy.
    public_url: str | None = Field(None, pattern=r"^https?://[^\s/]+$")
    # none: whoever uses this machine is an operator; proxy: a header says who asks; oidc: a login.
    auth: Literal["none", "proxy", "oidc"] = "none"
    viewers: Names = ("*",)  # who may see: names of people, group:NAME, or * for all that are known
    operators: Names = ()  # who may act, too
    proxy_networks: Names = ("127.0.0.1/32", "::1/128")  # where the proxy is; others are refused
    proxy_user_header: str = Field("X-Forwarded-User", min_length=1)
    proxy_groups_header: str = Field("X-Forwarded-Groups", min_length=1)  # separated by commas
    oidc_issuer: str | None = Field(None, pattern=r"^https?://\S+$")
    oidc_client_id: str | None = None
    oidc_client_secret: SecretStr | None = None
    oidc_scopes: str = "openid profile email"
    oidc_name_claim: str = "preferred_username"
    oidc_groups_claim: str = "groups"
    session_secret: SecretStr | None = None  # signs sessions; default: random, so that a restart ends them
    session_hours: float = Field(12.0, gt=0)  # after so long one has to log in again
    # Of the jobs; {application} is an application's name. Default: the ports that `kappa run all` counts up.
    metrics_url: str | None = Field(None, pattern=r"^https?://\S+$")
    # How long a page waits for a server before it shows the server as down.
    patience_seconds: float = Field(3.0, gt=0)
    fresh_seconds: float = Field(2.0, ge=0)  # what was read less than so long ago is shown again
    kibana_url: str | None = Field(None, pattern=r"^https?://\S+$")  # a link to it
    grafana_url: str | None = Field(None, pattern=r"^https?://\S+$")  # the same
    # Where tables and checkpoints can't be reached from here: how to call `kappa` where they can, such as
    # `docker compose run --rm kappa`. The pages then show commands instead of running them.
    toolbox: str | None = None
    sql_seconds: int = Field(20, ge=1)  # that a query may take
    sql_memory_mb: int = Field(512, ge=64)  # beside some 200 of its process

    @field_validator("viewers", "operators", "proxy_networks", mode="before")
    @classmethod
    def _by_comma(cls, value: object) -> object:
        return tuple(filter(None, (name.strip() for name in value.split(",")))) if isinstance(value, str) else value

    @field_validator("proxy_networks")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            ip_network(network)
        return value

    @property
    def is_local(self) -> bool:
        """Whether it is reached by users of this machine only, as far as the console can tell."""
        return self.host in LOOPBACK

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that requests may be for; empty: any, as of a container the published address isn't known."""
        public = urlsplit(self.public_url).hostname if self.public_url else None
        own = LOOPBACK if self.is_local else ()
        return tuple(filter(None, (public, *own)))

    @property
    def links(self) -> list[tuple[str, str]]:
        """The names and addresses of other tools that are set."""
        named = (("Kibana", self.kibana_url), ("Grafana", self.grafana_url))
        return [(name, address) for name, address in named if address]

    def check(self) -> None:
        """Raises UserError if strangers could use the console, or what its authentication needs is missing."""
        if self.auth == "none" and not (self.is_local or self.unprotected):
            raise UserError(
                f"KAPPA_CONSOLE_HOST={self.host!r}: the console has no authentication: set KAPPA_CONSOLE_AUTH=proxy or "
                "oidc, or use 127.0.0.1 and a tunnel; in a container whose port is published on 127.0.0.1 set "
                "KAPPA_CONSOLE_UNPROTECTED=true"
            )
        needed = {
            "none": (),
            "proxy": ("public_url",),
            "oidc": ("public_url", "oidc_issuer", "oidc_client_id", "oidc_client_secret"),
        }
        for name in needed[self.auth]:
            if getattr(self, name) is None:
                raise UserError(f"KAPPA_CONSOLE_{name.upper()}: is missing; KAPPA_CONSOLE_AUTH={self.auth} needs it")


def load_console_settings(**flags: Any) -> ConsoleSettings:
    """Settings from the environment, overridden by those flags that are not None. Raises UserError naming the fault."""
    try:
        settings = ConsoleSettings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        raise UserError(describe(error, prefix="KAPPA_CONSOLE_")) from None
    settings.check()
    return settings
