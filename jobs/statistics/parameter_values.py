"""The values that lines have where their template has `<*>`; of columns of them, their numbers and hashes."""

import re
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jobs.statistics.quantiles import Floats, Ints

MASK = "<*>"
LINE_CHARACTERS = 2048  # that a template is made of
TEMPLATE_CHARACTERS = 512  # a template of as many may have been cut: it has no parameters
MOST_PARAMETERS = 8  # of a template

_NUMBER = (
    r"^\+?(?P<number>-?[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?)"
    r" ?(?P<unit>[kKMGTP]?i?B|[kMG]?Hz|[num\x{b5}]?s|sec|min|h|%)?$"
)
_PREFIXES = "kMGTP"
UNITS = ("", "s", "B", "Hz", "%")
# As written: the place in UNITS, and how many of those it is.
_WRITTEN = {
    "": (0, 1.0),
    "ns": (1, 1e-9),
    "us": (1, 1e-6),
    "µs": (1, 1e-6),
    "ms": (1, 1e-3),
    "s": (1, 1.0),
    "sec": (1, 1.0),
    "min": (1, 60.0),
    "h": (1, 3600.0),
    "B": (2, 1.0),
    "KB": (2, 1e3),
    "KiB": (2, 1024.0),
    **{f"{prefix}B": (2, 1000.0**power) for power, prefix in enumerate("kMGTP", 1)},
    **{f"{prefix}iB": (2, 1024.0**power) for power, prefix in enumerate("kMGTP", 1)},
    "Hz": (3, 1.0),
    "kHz": (3, 1e3),
    "MHz": (3, 1e6),
    "GHz": (3, 1e9),
    "%": (4, 1.0),
}
_UNIT = np.array([unit for unit, _ in _WRITTEN.values()])
_SCALE = np.array([scale for _, scale in _WRITTEN.values()])


def parameters(template: str) -> int:
    """How many parameters of a template are looked at."""
    return 0 if len(template) >= TEMPLATE_CHARACTERS else min(template.count(MASK), MOST_PARAMETERS)


def with_value(template: str, parameter: int, value: str) -> str:
    """The template with a value in place of one of its parameters."""
    parts = template.split(MASK, parameter + 1)
    return MASK.join(parts[:-1]) + value + parts[-1]


def values(template: str, line: str) -> tuple[str, ...]:
    """Of each parameter its value in a line; none in a line that doesn't read as its template."""
    found = _pattern(template).fullmatch(line, 0, LINE_CHARACTERS)
    return found.groups() if found else ()


@lru_cache(maxsize=16_384)
def _pattern(template: str) -> re.Pattern[str]:
    """A regular expression of lines of this template, with a group for each parameter."""
    first, *rest = map(re.escape, template.split(MASK))
    groups = ("(.*?)" if at < MOST_PARAMETERS else ".*?" for at in range(len(rest)))
    return re.compile(first + "".join(map(str.__add__, groups, rest)), re.DOTALL)


class Numbers(NamedTuple):
    """The number that each text is, NaN where it is none; in seconds, bytes or hertz if it has such a unit."""

    value: Floats
    unit: Ints  # its place in UNITS

    def take(self, at: NDArray[Any]) -> "Numbers":
        """Some of them."""
        return Numbers(self.value[at], self.unit[at])


def numbers(texts: pa.StringArray) -> Numbers:
    """Read numbers with their units."""
    found = pc.extract_regex(texts, _NUMBER)
    number = pc.if_else(found.is_valid(), found.field("number"), "nan")
    written = pc.if_else(found.is_valid(), found.field("unit"), "")
    at = pc.index_in(written, pa.array(list(_WRITTEN))).to_numpy()
    return Numbers(pc.cast(number, pa.float64()).to_numpy() * _SCALE[at], _UNIT[at])


def hashes(texts: pa.StringArray) -> NDArray[np.int64]:
    """64 bits of each text."""
    encoded = texts.dictionary_encode()
    distinct = np.array([_hash(text) for text in encoded.dictionary.to_pylist()], np.int64)
    return np.asarray(distinct[encoded.indices.to_numpy()])


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), signed=True)
