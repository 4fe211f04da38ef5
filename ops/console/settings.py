"""The settings of the console itself; the addresses of servers are those of jobs.runtime.settings."""

from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from infra.errors import UserError
from infra.settings import describe

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ConsoleSettings(BaseSettings):
    """Where the console listens, and how it finds the jobs."""

    model_config = SettingsConfigDict(env_prefix="KAPPA_CONSOLE_", extra="ignore")

    host: str = "127.0.0.1"  # a loopback address, as there is no authentication
    port: int = Field(8080, ge=0, le=65535)  # 0: any free one
    # For a container whose port is published on a loopback address only: whoever reaches it sees everything.
    unprotected: bool = False
    # Of the jobs; {application} is an application's name. Default: the ports that `kappa run all` counts up.
    metrics_url: str | None = Field(None, pattern=r"^https?://\S+$")
    # How long a page waits for a server before it shows the server as down.
    patience_seconds: float = Field(3.0, gt=0)
    fresh_seconds: float = Field(2.0, ge=0)  # what was read less than so long ago is shown again

    def check_host(self) -> None:
        """Raises UserError if others than this machine's users could reach the console."""
        if self.host not in LOOPBACK and not self.unprotected:
            raise UserError(
                f"KAPPA_CONSOLE_HOST={self.host!r}: the console has no authentication: use 127.0.0.1 and a tunnel; "
                "in a container whose port is published on 127.0.0.1 set KAPPA_CONSOLE_UNPROTECTED=true"
            )


def load_console_settings(**flags: Any) -> ConsoleSettings:
    """Settings from the environment, overridden by those flags that are not None. Raises UserError naming the fault."""
    try:
        settings = ConsoleSettings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        raise UserError(describe(error, prefix="KAPPA_CONSOLE_")) from None
    settings.check_host()
    return settings
