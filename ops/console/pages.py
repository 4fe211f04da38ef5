"""The HTML of the views: Jinja2 with everything escaped, and the formats of times, numbers and durations."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ops import units
from ops.sql.csv_text import as_text

NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL")
NOTHING = "–"  # noqa: RUF001
SEVERITIES = ("trace", "debug", "info", "warning", "error", "fatal")
_PARTS = re.compile(r"[^./,{=]+[./,{=]?|[./,{=]")
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def environment() -> Environment:
    """The templates. Autoescaping is on for all of them: what telemetry says is hostile text."""
    made = Environment(
        loader=PackageLoader("ops.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "time": time,
        "number": number,
        "duration": duration,
        "severity": severity,
        "cell": as_text,
        "size": size,
        "soft": soft,
        "unit": unit,
    }
    made.globals |= {one.__name__: one for one in (said_more, rule_query, link, summary, is_number, sparkline)}
    return made


def time(milli: float | None) -> str:
    """A time in ms since the epoch, in UTC."""
    if milli is None:
        return NOTHING
    try:
        return datetime.fromtimestamp(milli / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return f"{milli} ms"


def number(value: float | None) -> str:
    """A number with thousands separated, and three digits behind the point where it is small."""
    if value is None:
        return NOTHING
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def duration(seconds: float | None) -> str:
    """A length of time in one unit."""
    if seconds is None:
        return NOTHING
    if seconds < 10:
        return f"{seconds:.1f} s"
    for least, size, unit in ((2 * _DAY, _DAY, "d"), (2 * _HOUR, _HOUR, "h"), (2 * _MINUTE, _MINUTE, "min")):
        if seconds >= least:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def said_more(event: Mapping[str, Any]) -> str:
    """What else a control event says, beside who, what and where."""
    names = ("verdict", "novelty", "rule", "direction", "size")
    return ", ".join(f"{name} {event[name]}" for name in names if event[name] is not None)


def rule_query(event: Mapping[str, Any]) -> str:
    """The arguments of the page that tries the rule of a control event."""
    return urlencode({name: event[name] for name in ("machine", "series", "direction", "size") if event[name]})


def link(arguments: Mapping[str, Any], **changes: Any) -> str:
    """The query of an address with some arguments changed; those that are empty are left out."""
    return urlencode({name: value for name, value in {**arguments, **changes}.items() if value not in ("", None)})


def summary(series: Mapping[str, Any]) -> str:
    """The range of a series' values."""
    values = [value for value in series["values"] if value is not None]
    return f"{number(min(values))} to {number(max(values))}" if values else NOTHING


def severity(value: float | None) -> str:
    """OTLP's number of a severity as its name."""
    return SEVERITIES[min(max(int(value) - 1, 0) // 4, len(SEVERITIES) - 1)] if value else ""


def soft(text: str) -> Markup:
    """A name that may be broken behind its marks, where a line is too short for it."""
    return Markup("<wbr>").join(escape(part) for part in _PARTS.findall(text))


def unit(text: str | None) -> str:
    """A unit of UCUM as people write it: without the braces of what is counted; nothing for a ratio."""
    return "" if text in (None, "1") else str(text).replace("{", "").replace("}", "")


def is_number(kind: str) -> bool:
    """Whether values of one of DuckDB's types are numbers."""
    return kind.startswith(NUMBERS)


def size(value: float | None) -> str:
    """A number of bytes in one unit."""
    return NOTHING if value is None else units.size(value)


def sparkline(values: Sequence[float | None]) -> str:
    """A path of 120 by 20 through values from zero to the greatest; broken where there is none."""
    most = max((value for value in values if value is not None), default=0) or 1
    step, parts, is_on = 120 / max(len(values) - 1, 1), [], False
    for place, value in enumerate(values):
        if value is not None:
            parts.append(
                f"{'L' if is_on else 'M'}{place * step:.1f},{19 - 18 * value / most:.1f}{'' if is_on else 'h0'}"
            )
        is_on = value is not None
    return "".join(parts)
