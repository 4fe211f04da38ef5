"""The process in which a query runs: `python -m ops.sql.child`, a question as JSON on stdin, the answer on stdout.

What it may take is bounded by the kernel, whatever the query does; whoever started it ends it when its time is over.
"""

import resource
import sys

import orjson

from infra.errors import UserError

OWN_MB = 320  # of the libraries, and what they read ahead


def main() -> None:
    """Answer the question on stdin."""
    question = orjson.loads(sys.stdin.buffer.read())
    data = (question["memory_mb"] + OWN_MB) * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (data, data))
    resource.setrlimit(resource.RLIMIT_CPU, (2 * question["seconds"] + 1, 2 * question["seconds"] + 2))
    try:
        answer = _answer(question)
    except UserError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": f"sql: needs more than {question['memory_mb']} MB; ask for less, or give it more"}
    sys.stdout.buffer.write(orjson.dumps(answer, option=orjson.OPT_NON_STR_KEYS))


def _answer(question: dict[str, object]) -> dict[str, object]:
    from jobs.runtime.settings import load_settings
    from ops.sql.query import freshness, run
    from ops.sql.tables import promoted_tables

    settings = load_settings()
    listed = promoted_tables(settings)
    opened = {table.name: (found, table.generation) for table in listed if (found := table.open()) is not None}
    missing = [table.name for table in listed if table.name not in opened]
    about = {"tables": freshness(opened), "missing": missing}
    sql = str(question["sql"])
    if not sql:
        return about
    tables = {name: table for name, (table, _) in opened.items()}
    return about | run(tables, sql, int(str(question["rows"])), int(str(question["memory_mb"])))


if __name__ == "__main__":
    main()
