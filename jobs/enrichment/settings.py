"""Settings of enrichment: how long names may be; environment variables have the prefix KAPPA_ENRICHMENT_."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class EnrichmentSettings(BaseSettings):
    """The limits of identity: what exceeds one is rejected with a code of its own, or cut if nobody tells things apart
    by it. docs/how-to/limits.md says what happens at each."""

    model_config = SettingsConfigDict(
        env_prefix="KAPPA_ENRICHMENT_", extra="ignore", env_ignore_empty=True, frozen=True
    )

    machine_bytes: int = Field(
        default=255, ge=1, le=1_000, description="a longer machine name is rejected: `machine_too_long`"
    )
    series_bytes: int = Field(
        default=2_048,
        ge=1,
        le=8_000,
        description="a data point with a longer series, its name with all attributes, is rejected: `series_too_long`",
    )
    unit_bytes: int = Field(
        default=63, ge=1, le=1_000, description="a data point with a longer unit is rejected: `unit_too_long`"
    )
    attributes: int = Field(
        default=128,
        ge=1,
        le=10_000,
        description="a log line or a resource with more is rejected: `too_many_attributes`",
    )
    attribute_key_bytes: int = Field(
        default=255,
        ge=1,
        le=8_000,
        description="a log line or a resource with a longer key is rejected: `attribute_too_long`",
    )
    attribute_characters: int = Field(
        default=1_024, ge=1, le=100_000, description="a longer value of a log line's or a resource's attribute is cut"
    )
    body_characters: int = Field(default=65_536, ge=1, le=1_000_000, description="a longer log line is cut")
