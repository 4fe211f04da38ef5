"""The project's modules as source: classes, imports and comments, found without importing anything."""

import ast
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES = ("infra", "connectors", "jobs", "ops")


@dataclass(frozen=True)
class Source:
    """One Python file of the project."""

    path: Path

    @property
    def module(self) -> str:
        """Its dotted name."""
        return ".".join(self.path.relative_to(ROOT).with_suffix("").parts)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text())

    @cached_property
    def comments(self) -> dict[int, str]:
        """By line number, the text of the comment that ends the line."""
        with self.path.open("rb") as file:
            tokens = [token for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT]
        return {token.start[0]: token.string.lstrip("# ").rstrip() for token in tokens}

    @cached_property
    def _lines(self) -> list[str]:
        return self.path.read_text().splitlines()

    def comment_of(self, node: ast.stmt | ast.keyword) -> str:
        """The comment lines directly above a declaration and the one behind it, joined."""
        return " ".join([*self.above(node.lineno), *self.behind(node)])

    def above(self, line: int) -> Iterator[str]:
        """The comment lines directly above a line."""
        first = line
        while first > 1 and self._lines[first - 2].lstrip().startswith("#"):
            first -= 1
        return (self.comments[number] for number in range(first, line))

    def behind(self, node: ast.stmt | ast.keyword) -> Iterator[str]:
        """The comments at the ends of a declaration's lines."""
        numbers = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        return (self.comments[number] for number in numbers if number in self.comments)

    def load(self) -> ModuleType:
        """The imported module."""
        return import_module(self.module)


def sources() -> list[Source]:
    """Every module of the project, lower floors first, by path."""
    return [Source(path) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def subclasses(base: str) -> list[tuple[Source, ast.ClassDef]]:
    """The classes of the project that derive from the class named `base`, at any depth."""
    declared = [(source, node) for source in sources() for node in source.tree.body if isinstance(node, ast.ClassDef)]
    found: list[tuple[Source, ast.ClassDef]] = []
    names = {base}
    while new := [entry for entry in declared if entry not in found and names & set(_bases(entry[1]))]:
        found += new
        names |= {node.name for _, node in new}
    return [entry for entry in declared if entry in found]


def _bases(node: ast.ClassDef) -> Iterator[str]:
    for base in node.bases:
        yield ast.unparse(base).rpartition(".")[2]


def importers(package: str) -> list[Source]:
    """The modules that import from `package` where they begin."""
    return [source for source in sources() if package in set(_imported(source.tree.body))]


def _imported(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def first_sentence(text: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(str(text or "").strip().split("\n\n")[0].split())
