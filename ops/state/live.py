"""What running jobs answer about their state: jobs/runtime/queryable.py."""

import urllib.error
from http import HTTPStatus
from typing import Any

import orjson

from infra.errors import UserError
from ops.job_addresses import JobAddresses
from ops.state.state import Series

SECONDS = 5.0
LARGEST = 50_000_000  # bytes


class NotAnsweringError(Exception):
    """The job can't be asked now."""


def ask(jobs: JobAddresses, job: str, path: str, **arguments: str) -> dict[str, Any]:
    """The answer of a job to a question.

    Raises UserError if the job knows nothing of it, or doesn't let us ask; NotAnsweringError if it can't say.
    """
    address = jobs.question(job, path, **arguments)
    try:
        with jobs.open(address, SECONDS) as answer:
            found: dict[str, Any] = orjson.loads(answer.read(LARGEST))
    except urllib.error.HTTPError as refused:
        if refused.headers.get_content_type() != "application/json":
            raise NotAnsweringError(f"{address}: HTTP {refused.code}") from None
        reason = str(orjson.loads(refused.read(LARGEST))["error"])
        if refused.code == HTTPStatus.SERVICE_UNAVAILABLE:
            raise NotAnsweringError(reason) from None
        raise UserError(reason) from None
    except (OSError, ValueError) as error:
        raise NotAnsweringError(f"{address}: {getattr(error, 'reason', error)}") from None
    return found


def live_series(jobs: JobAddresses, machine: str) -> list[Series]:
    """The series of a machine as the running detector holds them, in the form of `ops.state.state.series`."""
    answer = ask(jobs, "detector", "/state", machine=machine)
    return [
        {
            "machine": answer["machine"],
            "series": one["series"],
            "kind": one["kind"],
            "unit": one["unit"],
            "shard": answer["shard"],
            **one["figures"],
            "phase": one["phase"],
            "novelty": one["novelty"],
            "expected_now": one["expected"],
        }
        for one in answer["series"]
    ]
