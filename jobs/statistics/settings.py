"""What the statistics job computes."""

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class StatisticsSettings(BaseSettings):
    """Windows in event time. `KAPPA_STATISTICS_TUMBLING_SECONDS='[10, 60]'`."""

    model_config = SettingsConfigDict(env_prefix="KAPPA_STATISTICS_", extra="ignore")

    tumbling_seconds: tuple[int, ...] = Field((10,), min_length=1)

    @field_validator("tumbling_seconds")
    @classmethod
    def _positive(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if any(size <= 0 for size in sizes) or len(set(sizes)) < len(sizes):
            raise ValueError("window sizes must be positive seconds, each once")
        return tuple(sorted(sizes))
