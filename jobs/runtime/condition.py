"""The condition of `--where`: a small part of SQL, parsed here, so that a plan in a topic can ask for nothing else.

    condition:  a term, or terms joined by `and`, `or`, `not` and brackets
    term:       field = | == | != | <> | < | <= | > | >= value; field [not] in (value, ...); field [not] between value
                and value; field [not] like 'pattern'; field is [not] null; a field that is true or false; true; false
    field:      machine, inventory.site, resource['host.name'] or resource.`host.name`
    value:      'text', "text", 12, -1.5e3, true, false, or another field

Spark's own parser would take any SQL: functions that run Java methods or fetch URLs among them. Here a condition is
made of the operators above or refused, and compares only what has the same type: a comparison that has to convert
would fail in the middle of the log.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, MapType, NumericType, StringType, StructType

from infra.errors import UserError

LONGEST = 4_000  # characters
DEEPEST = 50  # brackets and `not`s within one another
_INTEGERS = 2**63

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
      | (?P<quoted>`[^`]+`)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<sign><=|>=|<>|!=|==|[=<>(),.\[\]])
      | (?P<end>$)
    )""",
    re.VERBOSE | re.ASCII,
)
_COMPARISONS: dict[str, Callable[[Column, Column], Column]] = {
    "=": eq,
    "==": eq,
    "!=": ne,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_WORDS = frozenset({"and", "or", "not", "in", "like", "between", "is", "null", "true", "false"})
_TEXT, _NUMBER, _BOOLEAN = "text", "a number", "true or false"


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int

    def __str__(self) -> str:
        return f"{self.text!r} at character {self.at + 1}" if self.text else "the end"


@dataclass(frozen=True)
class _Value:
    """An operand: how it is read from a record's struct, what type it has, and how it was written."""

    column: Callable[[Column], Column]
    type: str
    text: str


Condition = Callable[[Column], Column]  # of the column that holds the record as a struct


def parse(where: str, schema: StructType) -> Condition:
    """The condition on records of a schema. Raises UserError naming what can't be used."""
    return _Parser(where, schema).whole()


class _Parser:
    def __init__(self, where: str, schema: StructType) -> None:
        if len(where) > LONGEST:
            raise UserError(f"has {len(where):,} characters; {LONGEST:,} at most")
        self._schema, self._tokens, self._at, self._depth = schema, _tokens(where), 0, 0

    def whole(self) -> Condition:
        found = self._any()
        if self._next.kind != "end":
            raise UserError(f"{self._next}: can't stand there")
        return found

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _is(self, word: str) -> bool:
        """Whether the next token is this keyword or sign; it is taken if so."""
        token = self._next
        found = token.kind in ("word", "sign") and token.text.lower() == word
        self._at += found
        return found

    def _must(self, word: str) -> None:
        if not self._is(word):
            raise UserError(f"{self._next}: expected {word!r}")

    def _any(self) -> Condition:
        return self._joined("or", or_, lambda: self._joined("and", and_, self._negated))

    def _joined(
        self, word: str, operator: Callable[[Column, Column], Column], part: Callable[[], Condition]
    ) -> Condition:
        found = [part()]
        while self._is(word):
            found.append(part())
        return lambda record: reduce(operator, [one(record) for one in found])

    def _negated(self) -> Condition:
        self._depth += 1
        if self._depth > DEEPEST:
            raise UserError(f"{self._next}: more than {DEEPEST} brackets or `not`s within one another")
        try:
            if self._is("not"):
                return _not(self._negated())
            if self._is("("):
                found = self._any()
                self._must(")")
                return found
            return self._term()
        finally:
            self._depth -= 1

    def _term(self) -> Condition:
        first, one = self._next, self._value()
        if self._next.kind == "sign" and (compare := _COMPARISONS.get(self._next.text)):
            self._take()
            other = self._same(one)
            return lambda record: compare(one.column(record), other.column(record))
        if self._is("is"):
            negated = self._is("not")
            self._must("null")
            return lambda record: one.column(record).isNotNull() if negated else one.column(record).isNull()
        if self._is("not"):
            return _not(self._membership(one))
        if self._next.text.lower() in ("in", "between", "like"):
            return self._membership(one)
        if one.type != _BOOLEAN:
            raise UserError(f"{first}: is {one.type}, no condition; compare it with something")
        return one.column

    def _membership(self, one: _Value) -> Condition:
        if self._is("in"):
            return self._in(one)
        if self._is("between"):
            low = self._same(one)
            self._must("and")
            high = self._same(one)
            return lambda record: one.column(record).between(low.column(record), high.column(record))
        self._must("like")
        return self._like(one)

    def _in(self, one: _Value) -> Condition:
        self._must("(")
        values = [self._same(one)]
        while self._is(","):
            values.append(self._same(one))
        self._must(")")
        return lambda record: one.column(record).isin(*(value.column(record) for value in values))

    def _like(self, one: _Value) -> Condition:
        token = self._take()
        if one.type != _TEXT or token.kind != "text":
            raise UserError(f"{token}: `like` compares a text with a pattern such as 'vm-%'")
        pattern = _unquoted(token.text)
        if re.search(r"\\(?![%_\\])", pattern.replace("\\\\", "")):
            raise UserError(f"{token}: a backslash stands before %, _ or another one")
        return lambda record: one.column(record).like(pattern)

    def _same(self, one: _Value) -> _Value:
        token, found = self._next, self._value()
        if found.type != one.type:
            raise UserError(f"{token}: is {found.type}, but {one.text} is {one.type}")
        return found

    def _value(self) -> _Value:
        token = self._take()
        if token.kind == "text":
            return _literal(_unquoted(token.text), _TEXT, token)
        if token.kind == "number":
            return _literal(_number(token), _NUMBER, token)
        if token.text.lower() in ("true", "false"):
            return _literal(token.text.lower() == "true", _BOOLEAN, token)
        if token.kind == "quoted" or (token.kind == "word" and token.text.lower() not in _WORDS):
            return self._field(token)
        raise UserError(f"{token}: expected a field or a value")

    def _field(self, token: _Token) -> _Value:
        if self._next.text == "(":
            raise UserError(f"{token}: functions can't be used in a condition")
        kind: DataType = self._schema
        column: Condition = lambda record: record  # noqa: E731
        name, text = token.text.strip("`"), ""
        while True:
            kind, column = _part(kind, column, name, token)
            text += f".{name}" if text else name
            if self._is("."):
                token = self._take()
                name = token.text.strip("`")
            elif self._is("["):
                token = self._take()
                name = _unquoted(token.text) if token.kind == "text" else ""
                self._must("]")
            else:
                return _Value(column, _type(kind, text), text)


def _part(kind: DataType, column: Condition, name: str, token: _Token) -> tuple[DataType, Condition]:
    if isinstance(kind, StructType) and name in kind.names:
        return kind[name].dataType, lambda record: column(record).getField(name)
    if isinstance(kind, MapType) and name:
        return kind.valueType, lambda record: F.try_element_at(column(record), F.lit(name))
    known = f"; there are {', '.join(kind.names)}" if isinstance(kind, StructType) else ""
    raise UserError(f"{token}: there is no such field{known}")


def _type(kind: DataType, text: str) -> str:
    for types, name in ((StringType, _TEXT), (NumericType, _NUMBER), (BooleanType, _BOOLEAN)):
        if isinstance(kind, types):
            return name
    raise UserError(f"{text}: is a {kind.typeName()}, which can't be compared; name a field of it")


def _tokens(where: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while not found or found[-1].kind != "end":
        token = _TOKEN.match(where, at)
        if token is None:
            rest = where[at:].lstrip()
            raise UserError(f"{rest[:1]!r} at character {len(where) - len(rest) + 1}: can't be used in a condition")
        kind = token.lastgroup or "end"
        found.append(_Token(kind, token[kind], token.start(kind)))
        at = token.end()
    return found


def _literal(value: object, kind: str, token: _Token) -> _Value:
    return _Value(lambda _: F.lit(value), kind, token.text)


def _unquoted(text: str) -> str:
    return text[1:-1].replace(text[0] * 2, text[0])


def _number(token: _Token) -> int | float:
    if re.fullmatch(r"[-+]?\d+", token.text) and -_INTEGERS <= int(token.text) < _INTEGERS:
        return int(token.text)
    return float(token.text)


def _not(condition: Condition) -> Condition:
    return lambda record: ~condition(record)
