"""Log templates: a line with its variable parts masked, from that line alone.

There is no state and no training, so the same line gives the same template in any order, on any machine and after any
restart. The price, compared with a clustering miner (Drain, LogPAI): a variable that looks like an ordinary word stays
in the template unless its context shows it (after `user`, `for`, `=`).

One table of masks serves Spark and Python; it keeps to what Java's and Python's regular expressions have in common, on
ASCII character classes, without nested repetition, so that the time is linear in the line.
"""

import re

from pyspark.sql import Column
from pyspark.sql import functions as F

# The rest of a longer line can't change the template.
BODY_LENGTH = 2048
TEMPLATE_LENGTH = 512
MASK = "<*>"

_START = r"(?<![A-Za-z0-9_])"
_END = r"(?![A-Za-z0-9_])"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CLOCK = r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
_DATE = r"[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}"
_PATH = r"[A-Za-z0-9_.@%~:+*$#{}-]"
_QUERY = r"(?:\?[^\s\"'<>]{1,512})?"
_HEX = "[0-9A-Fa-f]"
_NO_NAME = r"(?:unknown|request|name|is|not|has|was|from|in|on|to|for|by|at|with|and|or|authentication)"
_TLD = (
    r"(?:(?:com|net|org|edu|gov|mil|info|io|local|lan|internal|localdomain|example|co|ac)(?:\.[a-z]{2})?"
    r"|au|br|ca|ch|cn|de|eu|fr|hk|jp|kr|nl|pl|ru|se|tw|uk|us)"
)

# (regular expression, replacement without group references), applied in this order.
MASKS: tuple[tuple[str, str], ...] = (
    # URLs and paths, before what may stand in them
    (r"[a-z][a-z0-9+.]{1,15}://[^\s\"'<>,;)\]]{1,512}", MASK),
    (rf"(?<![A-Za-z0-9_.>/-])(?:[A-Za-z]:)?[/\\](?:{_PATH}{{1,128}}[/\\]){{1,32}}{_PATH}{{0,128}}{_QUERY}", MASK),
    # times
    (rf"{_START}{_DATE}[T _]{_CLOCK}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?{_END}", MASK),
    (
        rf"{_START}(?:{_DAY},? )?{_MONTH} {{1,2}}[0-9]{{1,2}},? (?:[0-9]{{4}} )?{_CLOCK}(?: [A-Z]{{3,4}})?"
        rf"(?: [0-9]{{4}})?{_END}",
        MASK,
    ),
    (rf"{_START}(?:{_DATE}|{_CLOCK}){_END}", MASK),
    # addresses: MAC, IPv6, IPv4, host names that have a digit or a common top-level domain
    (rf"{_START}{_HEX}{{2}}(?:[:-]{_HEX}{{2}}){{5,7}}{_END}", MASK),
    (
        rf"(?<![A-Za-z0-9:])(?:(?:{_HEX}{{1,4}}:){{2,7}}{_HEX}{{1,4}}|(?:{_HEX}{{1,4}}:){{1,7}}:[0-9A-Fa-f:.]{{0,40}})"
        r"(?![A-Za-z0-9:])",
        MASK,
    ),
    (
        r"(?<![A-Za-z0-9.-])/?[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?:/[0-9]{1,2})?(?::[0-9]{1,5})?"
        r"(?![A-Za-z0-9-]|\.[A-Za-z0-9])",
        MASK,
    ),
    (rf"(?<![A-Za-z0-9_.@-])(?:[A-Za-z0-9_-]{{1,63}}\.){{1,10}}{_TLD}(?::[0-9]{{1,5}})?(?![A-Za-z0-9_.(-])", MASK),
    (
        r"(?<![A-Za-z0-9_.@-])(?=[A-Za-z_.-]{0,200}[0-9])(?:[A-Za-z0-9_-]{1,63}\.){2,10}[A-Za-z]{2,24}"
        r"(?::[0-9]{1,5})?(?![A-Za-z0-9_.(-])",
        MASK,
    ),
    # ids
    (rf"{_START}(?:[A-Za-z]{{2,12}}-)?{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}{_END}", MASK),
    (rf"{_START}0[xX]{_HEX}{{1,64}}{_END}", MASK),
    (rf"{_START}(?=[A-Fa-f]{{0,63}}[0-9]){_HEX}{{8,64}}{_END}", MASK),
    # values: of a name, quoted, empty in their place
    (r"(?<=[A-Za-z0-9_]=)[^\s,;&\"'<>()\[\]{}]{1,256}(?:\{[^{}]{0,128}\})?", MASK),
    (r"(?<=[=:] )(?:true|false|True|False|null|None)(?![A-Za-z0-9_])", MASK),
    (r"(?<![A-Za-z0-9_])\"[^\"\s]{1,256}\"", f'"{MASK}"'),
    (r"(?<![A-Za-z0-9_])'[^'\s]{1,256}'(?![A-Za-z0-9_])", f"'{MASK}'"),
    (r"(?<= )\(\)", f"({MASK})"),
    # who: a name after "user", empty too; a name in "for NAME from"
    (rf"(?<=[Uu]ser ) {{0,2}}(?!{_NO_NAME}(?![A-Za-z]))[^\s,;:()\[\]]{{1,64}}(?= |$)", MASK),
    (r"(?<=[Uu]ser )(?= )", MASK),
    (r"(?<= for )[A-Za-z0-9_.@$-]{1,64}(?= from )", MASK),
    # numbers with a unit, words with a digit
    (
        r"(?<![A-Za-z0-9_.])[+-]?[0-9]{1,32}(?:\.[0-9]{1,32})? (?:[kKMGTP]?i?B|[kMG]?Hz|[mun]s|sec)(?![A-Za-z0-9_])",
        MASK,
    ),
    (
        r"(?<![A-Za-z0-9_])(?:(?<![>)\]])[+-])?(?:[A-Za-z_]{0,64}_-)?[A-Za-z_]{0,64}[0-9][A-Za-z0-9_]{0,128}"
        r"(?:[-.:#/][A-Za-z0-9_]{0,64}[0-9][A-Za-z0-9_]{0,64}){0,16}",
        MASK,
    ),
    # a list of masks is one
    (r"<\*>(?:(?:, ?|[.:/_@#-])?<\*>){1,64}", MASK),
)
_COMPILED = tuple((re.compile(pattern, re.ASCII), mask) for pattern, mask in MASKS)


def template(body: Column) -> Column:
    """The template of a log line, at most 512 characters; null for null."""
    masked = F.substring(body, 1, BODY_LENGTH)
    for pattern, mask in MASKS:
        masked = F.regexp_replace(masked, F.lit(pattern), F.lit(mask))
    return F.substring(masked, 1, TEMPLATE_LENGTH)


def template_of(line: str) -> str:
    """`template` in plain Python: the same text for the same line."""
    masked = line[:BODY_LENGTH]
    for pattern, mask in _COMPILED:
        masked = pattern.sub(mask, masked)
    return masked[:TEMPLATE_LENGTH]
