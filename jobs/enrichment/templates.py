"""Log templates: a line with its variable parts masked, from that line alone.

There is no state and no training, so the same line gives the same template in any order, on any machine and after any
restart. The price, compared with a clustering miner (Drain, LogPAI): a variable that looks like an ordinary word stays
in the template unless its context shows it (after `user`, `for`, `=`).

A line is cut into tokens: words, and what joins them without a space (`blk_-16`, `vm-7.dc1`, `/var/log/x`, `a+b/Q==`).
A token is masked as a whole if one of its words has a digit, or if its form shows what it is: a path, an address, a
name of a host, hexadecimal letters. So a prefix, a sign or a dash splits no kind of identifier into several templates.

The same two regular expressions serve Spark and Python. They keep to what Java's and Python's have in common, on
explicit character classes, with bounded or possessive repetition, so that the time is linear in the line.
"""

import re

from pyspark.sql import Column
from pyspark.sql import functions as F

# The rest of a longer line can't change the template.
BODY_LENGTH = 2048
TEMPLATE_LENGTH = 512
MASK = "<*>"


def _any(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


_LETTERS = "A-Za-z_\u0080-\ud7ff\ue000-\uffff"  # any script's; no surrogates: Java would find halves of characters
_WORD = f"0-9{_LETTERS}"
_JOINS = r"\-.@/\\#$+~%"  # between the words of a token
_HEX = "[0-9A-Fa-f]"
_ENDS = rf"(?![{_WORD}])"  # the word
_CLOSES = r"(?![^\s,;:)\]}\"'])"  # the token: a space, the line's end, or punctuation follows

_CLOCK = r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?: [AP]M)?"
_DATE = r"[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_UNIT = r"(?:[kKMGTP]?i?B|[kMG]?Hz|[mun]s|sec)"
_FILE = rf"[{_WORD}.@%~:+*$#{{}}\-]"
_PART = rf"[{_WORD}.@%~+\-]"
_TLD = (
    r"(?:(?:com|net|org|edu|gov|mil|info|io|local|lan|internal|localdomain|example|co|ac)(?:\.[a-z]{2})?"
    r"|au|br|ca|ch|cn|de|eu|fr|hk|jp|kr|nl|pl|ru|se|tw|uk|us)"
)
_NO_NAME = r"(?:unknown|request|name|is|not|has|was|from|in|on|to|for|by|at|with|and|or|authentication)"
# Identifiers that happen to have no digit: hexadecimal, base32.
_DIGITLESS = r"(?:[a-f]{8,64}|[A-F]{8,64}|[A-Z]{16,64})"

# What stands before it shows that it is a value.
_VALUES = r"(?<=[=\"'( ])" + _any(
    rf"(?<==)(?<=[{_WORD})\]]=)(?!=|:(?!\S))[^\s,;&\"'<>()\[\]{{}}]{{1,256}}+(?:\{{[^{{}}]{{0,128}}\}})?",  # uid=0
    rf"(?<=\")(?<![{_WORD}]\")[^\"\s<]{{1,256}}+(?=\"(?!:))",  # "nova-api", no key of JSON
    rf"(?<=')(?<![{_WORD}]')[^'\s<]{{1,256}}+(?='(?![{_WORD}:]))",  # 'nova-api'
    r"(?<= \()(?=\))",  # from 10.0.0.1 ()
    r"(?<= )"
    + _any(
        rf"(?<=[Uu]ser ) {{0,2}}(?!{_NO_NAME}(?![A-Za-z]))[^\s,;:()\[\]]{{1,64}}(?![^ ])",  # user root
        r"(?<=[Uu]ser )(?= )",  # Invalid user  from
        rf"(?<=[=:] )(?:true|false|True|False|null|None){_CLOSES}",  # visible = true
        r"(?<= for )[A-Za-z0-9_.@$-]{1,64}(?= from )",  # for root from
    ),
)
# A position where a token may begin: after no word, nor what joins it to this one.
_STARTS = (
    rf"(?<![{_WORD}])(?=[{_WORD}/\\.~#:+-])"
    rf"(?<![{_WORD}][{_JOINS}])(?<![{_WORD}][{_JOINS}]{{2}})(?<![{_WORD}][{_JOINS}]{{3}})"
)
# Most tokens are words, or names of values: nothing further is tried at them.
_NO_WORD = r"(?![A-Za-z_]{1,64}+:?(?![^ ,;()\]=\"']))"
_HEADS = _any(
    rf"[+-]?[0-9]{{1,32}}+(?:\.[0-9]{{1,32}}+)?(?: {_UNIT}{_ENDS}|(?![^ ,;)\]]))",  # 12, -0.5, 64.5 MB
    rf"(?:{_DAY},? )?{_MONTH} {{1,2}}[0-9]{{1,2}},? (?:[0-9]{{4}} )?{_CLOCK}(?: [A-Z]{{3,4}})?(?: [0-9]{{4}})?{_ENDS}",
    rf"{_DIGITLESS}(?![{_JOINS}]{{0,3}}[{_WORD}])",  # deadbeef
    r"[A-Z]{2,16}+\([0-9]{1,8}\)",  # CPU(3)
    _NO_WORD
    + _any(
        "(?=[0-9A-Fa-f:])"
        + _any(
            rf"{_HEX}{{2}}(?:[:-]{_HEX}{{2}}){{5,19}}{_ENDS}",  # 52:54:00:12:34:56
            rf"{_DATE}[T _]{_CLOCK}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?{_ENDS}",
            rf"{_CLOCK}(?![{_WORD}:])",
            rf"(?:{_HEX}{{1,4}}:){{7}}{_HEX}{{1,4}}{_ENDS}",
            rf"(?=[A-Fa-f:]{{0,40}}[0-9])(?:(?:{_HEX}{{1,4}}:){{1,7}}|:):"  # fe80::1
            rf"(?:[0-9A-Fa-f:.]{{0,39}}{_HEX})?{_ENDS}",
        ),
        r"[a-z][a-z0-9+.]{1,15}+://[^\s\"'<>,;)\]]{1,512}",
        rf"(?:[A-Za-z]:|~|\.\.?)?[/\\](?=[/\\]?{_FILE})(?:{_FILE}{{0,128}}+[/\\]){{0,32}}{_FILE}{{0,128}}(?<![:.])"
        r"(?:\?[^\s\"'<>]{1,512})?",  # /var/log/x, ./run, C:\Temp
        rf"{_PART}{{1,64}}+/"  # a/b/c, bin/run.sh
        rf"(?:(?:{_PART}{{1,64}}+/){{1,16}}{_PART}{{0,64}}|[{_WORD}-]{{1,64}}+\.[a-z]{{1,5}}{_ENDS})",
        rf"[A-Za-z0-9_-]{{1,63}}+\.(?:[A-Za-z0-9_-]{{1,63}}+\.){{0,10}}{_TLD}(?![{_WORD}.(-])",  # ns.example.com
        rf"[{_WORD}.+-]{{1,64}}+@[{_WORD}.-]{{1,128}}(?<![.-])",  # root@host
        # pods: five of the characters that Kubernetes chooses from
        rf"[{_WORD}]{{1,64}}+-(?:[{_WORD}]{{1,64}}+-){{0,8}}(?<=-)[bcdfghjklmnpqrstvwxz2456789]{{5}}{_ENDS}(?!-)",
        # any token with a digit
        rf"[#+-]?(?=(?:[{_LETTERS}]{{1,64}}+[{_JOINS}]{{1,3}}+){{0,16}}+[{_LETTERS}]{{0,64}}+[0-9]|{_DIGITLESS}-)"
        rf"[{_WORD}]{{1,128}}+",
    ),
)
# The rest of the token, whichever head it has; after a colon only what has a digit or is hexadecimal.
_TAIL = (
    rf"(?:[{_JOINS}]{{1,3}}+[{_WORD}]{{1,128}}+|:(?=[{_LETTERS}]{{0,64}}+[0-9]|{_HEX}{{1,4}}{_ENDS})[{_WORD}]{{1,128}}+)"
    rf"{{0,32}}+(?:[+/=#-]{{1,6}}{_CLOSES})?"
)

# (regular expression, replacement without group references), applied in this order.
MASKS: tuple[tuple[str, str], ...] = (
    (_any(_VALUES, _STARTS + _HEADS + _TAIL), MASK),
    # a list of masks is one: after commas or joins, or of three and more after spaces
    (r"<\*>(?:(?:(?:, ?|[.:/_@#-])?<\*>){1,1000}+(?: <\*>){0,1000}+|(?: <\*>){2,1000}+)", MASK),
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
