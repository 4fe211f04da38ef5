"""Numbers as people read them, and durations as they write them."""

from infra.contract.topics import parse_duration
from infra.errors import UserError


def seconds_of(duration: str, option: str) -> float:
    """The seconds of a duration such as 10m. Raises UserError, naming the option, if it is none."""
    try:
        return parse_duration(duration).total_seconds()
    except ValueError as error:
        raise UserError(f"{option} {duration!r}: {error}") from None


def size(count: float) -> str:
    """A number of bytes in one unit, with three digits."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} PB"
