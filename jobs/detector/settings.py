"""Settings of the detector: one set for all data; environment variables have the prefix KAPPA_DETECTOR_."""

from math import log

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

LEAST_THRESHOLD = 8.0


class DetectorSettings(BaseSettings):
    """How rare alarms are and how fast the model learns; a window is the unit of time."""

    model_config = SettingsConfigDict(env_prefix="KAPPA_DETECTOR_", frozen=True)

    window_seconds: float = Field(default=10.0, gt=0, description="tumbling windows of this size are judged, no others")
    alarms_per_day: float = Field(default=5.0, gt=0, description="false alarms a day that the whole fleet may raise")
    shards: int = Field(
        default=1, ge=1, description="partitions of `statistics`, which share the budget: the job takes it from the map"
    )
    warmup_windows: int = Field(default=6, ge=3, description="windows before a series may be judged")
    settle_windows: int = Field(
        default=9, ge=3, description="windows after which a surprise that stays is a change of state"
    )
    undo_windows: int = Field(default=90, ge=1, description="windows within which a change of state can be undone")
    silence_windows: int = Field(
        default=3, ge=1, description="windows that a regular machine must miss to be called silent"
    )
    memory_windows: float = Field(default=2000.0, ge=50, description="windows that the slowest forgetting remembers")
    state_ttl_windows: int = Field(
        default=60480, ge=100, description="unseen for so long, a series is evicted from the state (7 days of 10 s)"
    )

    gone_windows: int = Field(
        default=2160,
        ge=10,
        description="silent for at least so long, a machine is taken for gone and evicted (6 hours of 10 s); "
        "one that has been silent for longer before, after three times its longest silence",
    )
    seen_before_windows: int = Field(
        default=60480,
        ge=1,
        description="the name of a machine that is gone is remembered for at least so long (7 days)",
    )
    series_per_machine: int = Field(
        default=20_000,
        ge=1,
        description="of a machine with more series, those unseen for an hour are evicted, whatever the TTL",
    )

    @property
    def window_nano(self) -> int:
        return round(self.window_seconds * 1e9)

    def end_of(self, window: int) -> int:
        """The end of the window of this number, in unix ns."""
        return window * self.window_nano

    @property
    def windows_per_day(self) -> float:
        return 86400.0 / self.window_seconds

    @property
    def alarms_per_window(self) -> float:
        """The false alarms that one shard may raise in a window."""
        return self.alarms_per_day / (self.shards * self.windows_per_day)

    def threshold(self, series: int) -> float:
        """The score whose probability spends the budget of alarms evenly over a day of so many series."""
        judgements = series * self.shards * self.windows_per_day
        return max(log(judgements / self.alarms_per_day), LEAST_THRESHOLD)
