"""The page of settings: every field of every settings class, with the variable that sets it."""

import ast
import re
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings

from ops.reference.markdown import code, page, table
from ops.reference.source import ROOT, Source, first_sentence, sources, subclasses

HEAD = ("variable", "type", "default", "meaning")
INTRODUCTION = """Settings are environment variables. `kappa settings` shows those of this environment with their
values. A value that can't be used is refused in one line that names the variable, with exit code 2. Lists and objects
are given as JSON. A secret may also stand in a file that is named as its variable, in the folder that `KAPPA_SECRETS`
names."""
OTHERS = """## Read outside of a settings class

Not checked, and not shown by `kappa settings`."""
_VARIABLE = re.compile(r"KAPPA_[A-Z][A-Z_]*[A-Z]")
_LIMITS = {"ge": ">= {}", "gt": "> {}", "le": "<= {}", "lt": "< {}", "pattern": "matching `{}`"}
_KINDS = {str: "text", int: "integer", float: "number", bool: "true or false", SecretStr: "secret"}


def configuration_page() -> str:
    """Every setting, one section a class."""
    parts = [_section(source, node) for source, node in subclasses("BaseSettings")]
    return page("Configuration", INTRODUCTION, *parts, _others())


def _section(source: Source, node: ast.ClassDef) -> str:
    settings = getattr(source.load(), node.name)
    own = [child for child in node.body if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name)]
    rows = [_row(settings, source, child) for child in own if ast.unparse(child.target) in settings.model_fields]
    head = f"## {node.name}\n\n{first_sentence(settings.__doc__)} (`{source.path.relative_to(ROOT)}`)"
    return f"{head}\n\n{table(HEAD, rows)}"


def _row(settings: type[BaseSettings], source: Source, node: ast.AnnAssign) -> tuple[str, str, str, str]:
    name = ast.unparse(node.target)
    field = settings.model_fields[name]
    prefix = str(settings.model_config.get("env_prefix", ""))
    meaning = field.description or source.comment_of(node)
    return code(f"{prefix}{name}".upper()), _kind(field), _default(field), meaning


def _kind(field: FieldInfo) -> str:
    limits = [text for part in field.metadata for text in _limits(part)]
    return " ".join([_name(field.annotation), *limits])


def _limits(part: Any) -> list[str]:
    values = {name: getattr(part, name, None) for name in _LIMITS}
    return [_LIMITS[name].format(value) for name, value in values.items() if value is not None]


def _name(kind: Any) -> str:
    """The kind of a value, in words."""
    if get_origin(kind) is Literal:
        return _one_of(get_args(kind))
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_name(part) for part in get_args(kind) if part is not type(None))
    if hasattr(kind, "__metadata__"):
        return _name(get_args(kind)[0])
    if kind in _KINDS:
        return _KINDS[kind]
    return _name_of_class(get_origin(kind) or kind)


def _name_of_class(kind: type) -> str:
    if issubclass(kind, Path):
        return "path"
    if issubclass(kind, Enum):
        return _one_of([member.value for member in kind])
    if issubclass(kind, dict | BaseModel):
        return "object"
    return "list" if issubclass(kind, list | tuple | set | frozenset) else kind.__name__


def _one_of(values: Any) -> str:
    return ", ".join(code(value) for value in values)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value in (None, PydanticUndefined):
        return "none"
    if isinstance(value, BaseModel):
        return code(value.model_dump_json(exclude_defaults=True))
    return code(value)


def _others() -> str:
    """Variables that the code names and no settings class has: of servers, jars and tests."""
    known = {variable for source, node in subclasses("BaseSettings") for variable in _variables(source, node)}
    named: dict[str, set[str]] = {}
    for source in sources():
        for variable in _read(source) - known:
            named.setdefault(variable, set()).add(source.module)
    rows = [(code(name), ", ".join(map(code, sorted(modules)))) for name, modules in sorted(named.items())]
    return f"{OTHERS}\n\n{table(('variable', 'read by'), rows)}" if rows else ""


def _variables(source: Source, node: ast.ClassDef) -> set[str]:
    settings: type[BaseSettings] = getattr(source.load(), node.name)
    prefix = str(settings.model_config.get("env_prefix", ""))
    return {f"{prefix}{name}".upper() for name in settings.model_fields}


def _read(source: Source) -> set[str]:
    """The variables that a module reads by `os.environ`, or names for one that does."""
    texts = (node.value for node in ast.walk(source.tree) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and _VARIABLE.fullmatch(text)}
