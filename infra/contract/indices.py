"""How long Elasticsearch keeps documents: the declarations of infra/indices.yaml, read and checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import BaseModel, ByteSize, ConfigDict, Field, ValidationError, model_validator

from infra.contract.topics import Duration
from infra.errors import UserError
from infra.settings import describe

DEFAULT_INDICES = Path(__file__).parents[1] / "indices.yaml"
HOUR = timedelta(hours=1)


class Lifecycle(BaseModel):
    """When the indices of some documents roll over, and when they are deleted; indices.yaml explains the fields.

    `name` is empty, or names those documents of a kind that are about a window of this `kind` and `size`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    period: Duration
    retention: Annotated[Duration, Field(ge=HOUR)]
    documents: Annotated[int, Field(ge=1, le=2_000_000_000)]  # Lucene's limit of a shard is 2^31 - 129
    bytes: Annotated[ByteSize, Field(ge=1)]
    name: Annotated[str, Field(pattern=r"^[a-z0-9]{0,20}$")] = ""
    kind: str | None = None
    size: Duration | None = None
    indexed: bool = True

    @model_validator(mode="after")
    def _whole_hours(self) -> Self:
        if self.period < HOUR or self.period % HOUR:
            raise ValueError(f"period={self.period}: it has whole hours or days: 1h, 1d, 30d")
        return self

    def is_of(self, window: Mapping[str, Any]) -> bool:
        """Whether it is that of the results of a window (schemas.WINDOW)."""
        fits = self.kind in (None, window.get("kind"))
        return fits and (self.size is None or self.size.total_seconds() == window.get("size_seconds"))


@dataclass(frozen=True)
class Lifecycles:
    """The lifecycles of each kind of documents; of one kind with windows, the first that fits counts."""

    kinds: Mapping[str, tuple[Lifecycle, ...]]

    def of(self, kind: str, record: Any) -> Lifecycle | None:
        """The lifecycle of a record or document of a kind; None if it is about a window that isn't indexed.

        A record without a window has the last one: what is wrong with it is for others to say.
        """
        found = self.kinds[kind]
        window = record.get("window") if isinstance(record, dict) else None
        if not isinstance(window, dict):
            return found[-1]
        one = next((one for one in found if one.is_of(window)), None)
        return one if one and one.indexed else None


def load_lifecycles(path: Path | None = None) -> Lifecycles:
    """Read the declarations; a window inherits from its kind, and that from the defaults.

    Raises UserError if the file can't be read, or a value is wrong; the message names kind and field.
    """
    path = path or DEFAULT_INDICES
    try:
        sections = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise UserError(f"{path}: can't be read: {' '.join(str(error).split())}") from error
    if not isinstance(sections, dict) or not isinstance(sections.get("kinds"), dict):
        raise UserError(f"{path}: kinds: must map kinds of documents to their declarations")
    defaults = sections.get("defaults") or {}
    return Lifecycles({kind: _kind(f"{path}: {kind}", defaults, own) for kind, own in sections["kinds"].items()})


def _kind(place: str, defaults: Mapping[str, Any], own: Any) -> tuple[Lifecycle, ...]:
    if not isinstance(own, dict):
        raise UserError(f"{place}: must be a map of fields, not {own!r}")
    common = {**defaults, **own}
    windows = common.pop("windows", None)
    if windows is None:
        return (_lifecycle(place, common),)
    if not isinstance(windows, list) or not all(isinstance(one, dict) and one.get("name") for one in windows):
        raise UserError(f"{place}.windows: must be a list of windows, each with a name")
    names = [str(one["name"]) for one in windows]
    if len({*names}) < len(names):
        raise UserError(f"{place}.windows: {', '.join(names)}: each name once")
    return tuple(_lifecycle(f"{place}.{one['name']}", {**common, **one}) for one in windows)


def _lifecycle(place: str, fields: Mapping[str, Any]) -> Lifecycle:
    try:
        return Lifecycle.model_validate(fields)
    except ValidationError as error:
        raise UserError(f"{place}: {describe(error)}") from error
