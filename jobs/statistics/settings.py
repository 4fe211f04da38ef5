"""What the statistics job computes."""

from itertools import pairwise

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from infra.errors import UserError
from infra.settings import describe


class StatisticsSettings(BaseSettings):
    """Windows in event time. `KAPPA_STATISTICS_TUMBLING_SECONDS='[10, 60]'`."""

    model_config = SettingsConfigDict(env_prefix="KAPPA_STATISTICS_", extra="ignore")

    tumbling_seconds: tuple[int, ...] = Field((10,), min_length=1)

    @field_validator("tumbling_seconds")
    @classmethod
    def _nested(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        sizes = tuple(sorted(sizes))
        if sizes[0] <= 0 or any(large == small or large % small for small, large in pairwise(sizes)):
            raise ValueError("give different positive seconds, each a multiple of the one before, e.g. [10, 60]")
        return sizes


def load_settings() -> StatisticsSettings:
    """Settings from the environment.

    Raises UserError naming the variable, the value and what it must be.
    """
    try:
        return StatisticsSettings()
    except ValidationError as error:
        raise UserError(describe(error, prefix="KAPPA_STATISTICS_")) from None
    except SettingsError:
        raise UserError("KAPPA_STATISTICS_TUMBLING_SECONDS: write a JSON list of seconds, e.g. [10, 60]") from None
