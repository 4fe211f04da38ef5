"""Reads what `/metrics` of the running applications says of each Spark job."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from infra.contract.topics import TopicMap
from infra.errors import UserError
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.capacity.advice import Seen
from ops.job_addresses import JobAddresses

TIMEOUT_SECONDS = 10.0
Samples = Mapping[tuple[str, str], float]  # by metric, and query or job: the sum


class Running(NamedTuple):
    """A Spark job that runs: its queries, where its application's metrics are, and the partitions that it reads."""

    queries: tuple[str, ...]
    address: str
    partitions: int


def running(settings: Settings, topics: TopicMap, addresses: JobAddresses) -> dict[str, Running]:
    """The Spark jobs that the settings start, by name."""
    found = {}
    for job in (JOBS[name] for name in JOBS.enabled(settings.optional_jobs)):
        if job.uses_spark:
            partitions = max(topic.partitions for topic in job.inputs(topics))
            address = addresses.metrics(addresses.application(job.name))
            found[job.name] = Running(tuple(job.reads_of(topics)), address, partitions)
    return found


def observe(jobs: Mapping[str, Running], addresses: JobAddresses) -> dict[str, Seen]:
    """What the metrics say of these jobs now. Raises UserError if an application doesn't answer."""
    samples = {
        address: summed(_read(addresses, address)) for address in dict.fromkeys(one.address for one in jobs.values())
    }
    return {name: seen(samples[one.address], name, one.queries) for name, one in jobs.items()}


def seen(samples: Samples, job: str, queries: Iterable[str]) -> Seen:
    """What the samples of an application say of one of its jobs; nothing yet of a query without a batch."""
    names = {query: ("kappa_batch_seconds_sum", query) for query in queries}
    return Seen(
        {query: samples[name] for query, name in names.items() if name in samples},
        sum(samples.get(("kappa_input_rows_total", query), 0.0) for query in names),
        samples.get(("kappa_lag_records", job), 0.0),
    )


def summed(text: str) -> dict[tuple[str, str], float]:
    """The samples of `/metrics`, summed by metric and query, or by job where there is no query."""
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            key = one.name, one.labels.get("query") or one.labels.get("job", "")
            found[key] = found.get(key, 0.0) + one.value
    return found


def _read(addresses: JobAddresses, address: str) -> str:
    try:
        with addresses.open(address, TIMEOUT_SECONDS) as answer:
            return str(answer.read().decode())
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise UserError(f"{address}: {reason}; start the jobs, or say by --metrics-url where they are") from None
