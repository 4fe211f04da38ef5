"""The page of jobs, from the job table."""

from collections.abc import Iterable

from infra.contract.jobs import Job, Topics
from jobs.table import JOBS
from ops.reference.markdown import code, page, table

INTRODUCTION = """From `jobs/table.py`: each job is declared there once. `kappa run APPLICATION` runs the jobs of an
application, `kappa run all` every application. How to add one: [Your own job](../tutorial/your-own-job.md)."""
GROUPS = {
    Topics.TELEMETRY: "topics with a wire format",
    Topics.ARCHIVED: "topics with `archive: raw` or `parsed`",
    Topics.INDEXED: "topics with `index`",
}
_HEAD = ("job", "application", "reads", "reads beside", "writes", "sink", "settings", "runs")


def jobs_page() -> str:
    """Every job, in the table's order."""
    return page("Jobs", INTRODUCTION, table(_HEAD, map(_row, JOBS)))


def _row(job: Job) -> tuple[str, ...]:
    reads = ", ".join(code(topic) if isinstance(topic, str) else GROUPS[topic] for topic in job.reads)
    settings = (job.settings or "").rpartition(":")[2]
    runs = "where `KAPPA_OPTIONAL_JOBS` names it" if job.optional else "always"
    return (
        code(job.name),
        code(job.runs_in),
        reads,
        _names(job.beside),
        _names(job.writes),
        job.sink,
        code(settings),
        runs,
    )


def _names(topics: Iterable[str]) -> str:
    return ", ".join(map(code, topics))
