"""What the running jobs say by HTTP: their `/metrics`, and what they know of a machine."""

import urllib.error
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

import orjson
from prometheus_client.parser import text_string_to_metric_families

from jobs.runtime.settings import Settings
from ops.console.reads import SharedReads
from ops.console.settings import ConsoleSettings
from ops.job_addresses import JobAddresses

LARGEST_ANSWER = 8_000_000  # bytes of what an application says


class Sample(NamedTuple):
    """A value of a job's `/metrics`."""

    name: str
    labels: Mapping[str, str]
    value: float


class RunningJobs:
    """The applications of the chain. Each read raises SourceDown if its application can't be asked now."""

    def __init__(self, settings: Settings, own: ConsoleSettings) -> None:
        self._addresses, self._patience = JobAddresses(settings, own.metrics_url), own.patience_seconds
        self.applications = self._addresses.applications
        self.reads = {name: SharedReads(name, self._patience, own.fresh_seconds) for name in self.applications}

    def samples(self, application: str) -> list[Sample]:
        """What the `/metrics` of an application says now."""
        return self.reads[application].read("metrics", lambda: self._samples(application))

    def _samples(self, application: str) -> list[Sample]:
        text = self._fetched(self._addresses.metrics(application)).decode()
        families = text_string_to_metric_families(text)
        return [Sample(one.name, one.labels, one.value) for family in families for one in family.samples]

    def answer(self, job: str, path: str, **arguments: str) -> dict[str, Any] | None:
        """What a running job answers about its state (jobs/runtime/queryable.py); None if it knows nothing of it."""
        reads, question = self.reads[self._addresses.application(job)], (path, *sorted(arguments.items()))
        return reads.read(question, lambda: self._answer(self._addresses.question(job, path, **arguments)))

    def _answer(self, address: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = orjson.loads(self._fetched(address))
        except urllib.error.HTTPError as refused:
            if refused.code == HTTPStatus.NOT_FOUND:
                return None
            raise OSError(orjson.loads(refused.read(LARGEST_ANSWER))["error"]) from None
        return found

    def _fetched(self, address: str) -> bytes:
        with self._addresses.open(address, self._patience) as answer:
            return bytes(answer.read(LARGEST_ANSWER))
