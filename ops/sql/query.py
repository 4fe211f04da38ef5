"""Runs one query in this process, which can read the given tables and nothing else."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from time import perf_counter
from typing import Any

import duckdb
from deltalake import DeltaTable

from infra.errors import UserError

View = dict[str, Any]

READING = {"SELECT", "EXPLAIN", "RELATION"}  # kinds of statements; DESCRIBE and SHOW are selections
# A window's record has a list for each field of its statistics; here a row for each series.
SERIES = """
CREATE VIEW series AS SELECT
  to_timestamp("window".end_unix_nano / 1e9) AS time, machine, inventory.site AS site,
  inventory.hypervisor AS hypervisor, inventory.tenant AS tenant, inventory.role AS role,
  "window".kind AS window_kind, "window".size_seconds AS size_seconds,
  unnest(statistics.series) AS series, unnest(statistics."name") AS name, unnest(statistics.kind) AS kind,
  unnest(statistics.unit) AS unit, unnest(statistics.count) AS count, unnest(statistics.sum) AS sum,
  unnest(statistics.mean) AS mean, unnest(statistics.min) AS min, unnest(statistics.max) AS max,
  unnest(statistics.p50) AS p50, unnest(statistics.p95) AS p95, unnest(statistics.p99) AS p99
FROM statistics WHERE statistics IS NOT NULL
"""


def run(tables: Mapping[str, DeltaTable], sql: str, rows: int, memory_mb: int) -> View:
    """The columns and the first `rows` rows of a query's result. Raises UserError if it can't be answered.

    It may be one statement that reads. Other files, the network and further settings are shut before it runs.
    """
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table.to_pyarrow_dataset())
        if "statistics" in tables:
            connection.execute(SERIES)
        for setting, value in _settings(memory_mb).items():
            connection.execute(f"SET {setting}={value}")
        begun = perf_counter()
        try:
            _check(connection, sql)
            answer = connection.execute(sql)
            found = answer.fetchmany(rows + 1)
            described = answer.description or []
        except (duckdb.Error, MemoryError) as error:
            raise UserError(f"sql: {_in_short(error)}") from None
    return {
        "columns": [{"name": name, "type": str(kind)} for name, kind, *_ in described],
        "rows": [list(map(_plain, row)) for row in found[:rows]],
        "is_complete": len(found) <= rows,
        "seconds": round(perf_counter() - begun, 3),
    }


def freshness(tables: Mapping[str, tuple[DeltaTable, str]]) -> list[View]:
    """How new each table is: its generation, version, when that was committed in ms, and of how many files it is."""
    return [
        {
            "name": name,
            "generation": generation,
            "version": table.version(),
            "committed": table.history(1)[0].get("timestamp"),
            "files": len(table.file_uris()),
        }
        for name, (table, generation) in tables.items()
    ]


def _settings(memory_mb: int) -> dict[str, str]:
    return {
        "TimeZone": "'UTC'",
        "threads": "2",
        "memory_limit": f"'{memory_mb}MB'",
        "max_temp_directory_size": "'0KB'",  # nothing is swapped to disk
        "python_enable_replacements": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "enable_external_access": "false",
        "lock_configuration": "true",
    }


def _check(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    statements: Sequence[Any] = connection.extract_statements(sql)
    if len(statements) != 1:
        raise UserError(f"sql: holds {len(statements)} statements; write one")
    if (kind := statements[0].type.name) not in READING:
        raise UserError(f"sql: {kind} is no query; the tables can only be read: SELECT, DESCRIBE, EXPLAIN")


def _plain(value: Any) -> Any:
    """A value as JSON can have it."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat(sep=" ", timespec="milliseconds")[:-6]
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _in_short(error: BaseException) -> str:
    return str(error).partition("\n\nStack Trace")[0][:1_000] or type(error).__name__
