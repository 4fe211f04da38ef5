"""The page of topics and record schemas, from topics.yaml and the schemas with the comments of their fields."""

import ast
from collections.abc import Iterator

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from infra.contract import schemas
from infra.contract.topics import Topic, format_duration, load_topics
from jobs.table import JOBS
from ops.reference.markdown import anchor, code, page, table
from ops.reference.source import ROOT, Source

SCALARS: dict[type[DataType], str] = {
    StringType: "text",
    BooleanType: "true or false",
    DoubleType: "number",
    IntegerType: "integer (32 bits)",
    LongType: "integer (64 bits)",
    BinaryType: "bytes (base64)",
}
INTRODUCTION = """Values are JSON but for `telemetry.*` (the collectors' formats, see [Collectors](collectors.md)) and
`events.retry`. A field that is null is absent. Times end in `_unix_nano`: integers, nanoseconds since the Unix epoch.
`kappa topics schema NAME` prints a schema as JSON Schema, `kappa topics describe NAME` compares a topic with the
broker's. A generation other than `live` adds its name to the topics that its jobs write: `events.v2`."""
RECORDS = """## Schemas

A table in columns holds a list for each field of a row, null where a row has none; `infra/contract/columnar.py` turns
columns into rows."""
Structs = dict[str, StructType]
_TOPICS = ("topic", "holds", "key", "written by", "schema")
_SETTINGS = ("topic", "partitions", "retention", "cleanup", "timestamp", "archive", "late after", "future from")


def records_page() -> str:
    """Every topic, then every schema."""
    source = Source(ROOT / "infra" / "contract" / "schemas.py")
    comments = dict(_comments(source))
    structs = {name: value for name, value in vars(schemas).items() if name in comments}
    sections = (_section(name, record, structs, comments[name]) for name, record in structs.items())
    return page("Topics and records", INTRODUCTION, *_topics(), RECORDS, *sections)


def _topics() -> Iterator[str]:
    topics = list(load_topics())
    yield "## Topics"
    yield table(_TOPICS, [_about(topic) for topic in topics])
    yield "How `kappa topics apply` creates those that the broker lacks; `infra/topics.yaml` says what a column means."
    yield table(_SETTINGS, [_settings(topic) for topic in topics])


def _about(topic: Topic) -> tuple[str, ...]:
    written_by = ", ".join([*(job.name for job in JOBS if topic.name in job.writes), *topic.written_by])
    schema = f"[{topic.schema_name}](#{anchor(topic.schema_name)})" if topic.schema_name else topic.format or ""
    return code(topic.name), topic.about, topic.key, written_by, schema


def _settings(topic: Topic) -> tuple[str, ...]:
    future = format_duration(topic.future) if topic.future is not None else ""
    kept = format_duration(topic.retention)
    retention = kept if topic.cleanup == "delete" else f"{kept}, the newest of each key for ever"
    facts = (topic.partitions, retention, topic.cleanup, topic.timestamp, topic.archive)
    return code(topic.name), *map(str, facts), str(topic.lateness or ""), future


def _comments(source: Source) -> Iterator[tuple[str, tuple[str, dict[str, str]]]]:
    """By the name of a schema: the comment above it, and the comments of its fields."""
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call):
            fields = {field.arg or "": _behind(source, field) for field in node.value.keywords}
            if ast.unparse(node.value.func) == "_struct":
                yield node.targets[0].id, (" ".join(source.above(node.lineno)), fields)


def _behind(source: Source, field: ast.keyword) -> str:
    return " ".join(source.behind(field))


def _section(name: str, record: StructType, structs: Structs, comments: tuple[str, dict[str, str]]) -> str:
    above, behind = comments
    rows = [(code(f.name), _type(f.dataType, structs), behind.get(f.name, "")) for f in record.fields]
    used = [topic.name for topic in load_topics() if schemas.SCHEMAS.get(topic.schema_name or "") is record]
    about = [f"Of {', '.join(map(code, used))}." if used else "", above]
    return "\n\n".join([f"### {_title(name)}", *filter(None, about), table(("field", "type", "meaning"), rows)])


def _title(name: str) -> str:
    return name.lower()


def _type(kind: DataType, structs: Structs) -> str:
    if isinstance(kind, StructType):
        return _struct(kind, structs)
    if isinstance(kind, ArrayType):
        return f"list of {_type(kind.elementType, structs)}"
    if isinstance(kind, MapType):
        return f"object: text to {_type(kind.valueType, structs)}"
    return SCALARS[type(kind)]


def _struct(kind: StructType, structs: Structs) -> str:
    for name, known in structs.items():
        if kind == known:
            return _link(name)
        if _is_table(kind, known):
            extra = [field for field in kind.fields if field.name not in known.names]
            more = "".join(f", and `{field.name}`: {_type(field.dataType, structs)}" for field in extra)
            return f"table in columns of {_link(name)}{more}"
    return "object"


def _link(name: str) -> str:
    return f"[{_title(name)}](#{anchor(_title(name))})"


def _is_table(kind: StructType, row: StructType) -> bool:
    """Whether `kind` has a list for each field of `row`."""
    columns = {field.name: field.dataType for field in kind.fields}
    return all(columns.get(field.name) == ArrayType(field.dataType) for field in row.fields)
