"""Settings of the notifier; environment variables have the prefix KAPPA_NOTIFIER_."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from infra.errors import UserError
from jobs.notifier.routes import Routing, load_routing


class NotifierSettings(BaseSettings):
    """Who is notified of what."""

    model_config = SettingsConfigDict(env_prefix="KAPPA_NOTIFIER_", extra="ignore", env_ignore_empty=True, frozen=True)

    routes: Path | None = Field(default=None, description="declares channels and routes (docs/how-to/notify.md)")

    @model_validator(mode="after")
    def _file_is_right(self) -> Self:
        """A faulty file is refused with the settings, before anything starts."""
        if self.routes:
            load_routing(self.routes)
        return self

    def routing(self) -> Routing:
        """What the file declares. Raises UserError also if a secret that a channel needs is not in the environment."""
        if self.routes is None:
            raise UserError("KAPPA_NOTIFIER_ROUTES: is missing; name a file of routes (docs/how-to/notify.md)")
        routing = load_routing(self.routes)
        if faults := routing.faults():
            raise UserError(faults[0])
        return routing
