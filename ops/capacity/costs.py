"""The measured costs, and how they go on between the points that were measured."""

from pathlib import Path
from typing import NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

from infra.errors import UserError

DEFAULT = Path(__file__).with_name("costs.yaml")
Points = list[tuple[PositiveFloat, PositiveFloat]]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Line(NamedTuple):
    """µs an event: a share of its own, and one of what it lies in (a record, a window), which its points divide."""

    an_event: float
    a_whole: float

    def at(self, points: float) -> float:
        """What an event costs where so many points lie in a whole, at least one."""
        return self.an_event + self.a_whole / max(points, 1.0)


def fit(points: Points) -> Line:
    """The line through measured costs with the least sum of squared relative deviations, in closed form."""
    rows = [(1 / cost, 1 / (max(count, 1.0) * cost)) for count, cost in points]
    aa, ab, bb = (sum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    a, b = (sum(row[i] for row in rows) for i in (0, 1))
    determinant = aa * bb - ab * ab
    return Line((a * bb - b * ab) / determinant, (aa * b - ab * a) / determinant)


class Enrichment(_Strict):
    """By how many points of a machine a batch gathers in a record."""

    points: Points = Field(min_length=2)


class Statistics(_Strict):
    """By how many points a series has in a window of 10 s."""

    points: Points = Field(min_length=2)
    state_bytes_a_series: PositiveFloat
    state_bytes_a_point: PositiveFloat
    peak_bytes_a_series: PositiveFloat
    record_bytes_an_update: PositiveFloat


class Detector(_Strict):
    """By updates: one series in a window of 10 s."""

    cpu_us_an_update: PositiveFloat
    state_bytes_a_series: PositiveFloat


class Stored(_Strict):
    """What keeps events: Kafka, or the archive in Delta tables."""

    cpu_us_an_event: PositiveFloat
    raw_bytes_an_event: PositiveFloat
    enriched_bytes_an_event: PositiveFloat


class Batch(_Strict):
    """What a batch takes beside its tasks, and how many events one of a backlog has."""

    fixed_seconds: PositiveFloat
    events: PositiveInt


class Limits(_Strict):
    """How far it was tried."""

    series_a_shard: PositiveInt


class Costs(_Strict):
    """What was measured. In µs of CPU time, bytes and seconds."""

    enrichment: Enrichment
    statistics: Statistics
    detector: Detector
    archive: Stored
    kafka: Stored
    batch: Batch
    limits: Limits


def read_costs(file: Path = DEFAULT) -> Costs:
    """The costs in a file. Raises UserError, naming the field, if it can't be used."""
    try:
        return Costs.model_validate(yaml.safe_load(file.read_text()))
    except (OSError, yaml.YAMLError) as error:
        raise UserError(f"--costs {file}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"--costs {file}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
