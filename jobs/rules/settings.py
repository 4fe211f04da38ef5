"""Settings of the rules job; environment variables have the prefix KAPPA_RULES_."""

from datetime import timedelta
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from infra.contract.topics import Duration, in_nanoseconds
from jobs.rules.kinds import load_rules
from jobs.rules.rule import Rule

DEFAULT_RULES = Path(__file__).with_name("rules.yaml")


class RulesSettings(BaseSettings):
    """Which rules there are, and for how long a machine without events is remembered."""

    model_config = SettingsConfigDict(env_prefix="KAPPA_RULES_", extra="ignore", env_ignore_empty=True, frozen=True)

    file: Path | None = Field(
        default=None, description="declares the rules (docs/reference/rules.md); default: rules.yaml beside the job"
    )
    state_ttl: Duration = Field(
        default=timedelta(days=7), description="a machine without events for so long, in event time, is evicted"
    )

    @property
    def state_ttl_nano(self) -> int:
        """The state TTL in nanoseconds."""
        return in_nanoseconds(self.state_ttl)

    def rules(self) -> tuple[Rule, ...]:
        """The rules that are declared. Raises UserError naming file, rule, field, value and what it must be."""
        return load_rules(self.file or DEFAULT_RULES, self.state_ttl_nano)
