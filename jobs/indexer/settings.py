"""Settings of the indexer; environment variables have the prefix KAPPA_INDEXER_."""

from collections.abc import Collection
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from infra.contract.indices import DEFAULT_INDICES, Lifecycles, load_lifecycles
from infra.errors import UserError


class IndexerSettings(BaseSettings):
    """How long documents are kept, and what happens to what is lost."""

    model_config = SettingsConfigDict(env_prefix="KAPPA_INDEXER_", extra="ignore", env_ignore_empty=True, frozen=True)

    lost: Literal["stop", "skip"] = Field(
        default="stop",
        description="where retention has deleted what was not indexed: end, or go on behind it with a dead letter",
    )
    indices: Path | None = Field(
        default=None, description="declares how indices age (docs/how-to/operate.md); default: infra/indices.yaml"
    )

    @model_validator(mode="after")
    def _file_is_right(self) -> Self:
        """A faulty file is refused with the settings, before anything starts."""
        load_lifecycles(self.indices)
        return self

    def lifecycles(self, kinds: Collection[str]) -> Lifecycles:
        """What the file declares. Raises UserError if it lacks one of these kinds of documents."""
        found = load_lifecycles(self.indices)
        if lacking := sorted({*kinds} - found.kinds.keys()):
            raise UserError(f"{self.indices or DEFAULT_INDICES}: kinds: {lacking[0]} is missing")
        return found
