"""What is wrong with a job, by the limits of the alerts in charts/kappa/files/rules.yml, with the runbook's section."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ops.console.running_jobs import Sample

RUNBOOKS = "https://github.com/kappa/kappa/blob/main/docs/how-to/runbooks.md#"
MOST_LAG = 10_000
MOST_EVENT_TIME_LAG = 300.0  # seconds
LONGEST_BATCH = 60.0


class Problem(NamedTuple):
    """Something that a person should look at."""

    text: str
    alert: str

    @property
    def runbook(self) -> str:
        """The address of the section that says what to do."""
        return f"{RUNBOOKS}{self.alert.lower()}"

    def as_dict(self) -> dict[str, str]:
        """With that address, as a view has it."""
        return {**self._asdict(), "runbook": self.runbook}


@dataclass(frozen=True)
class JobMetrics:
    """What an application's `/metrics` says about one query; None where it says nothing."""

    last_batch: float | None = None  # Unix seconds
    batch_seconds: float | None = None  # mean since the process began
    event_time_lag: float | None = None
    input_rows: float | None = None
    rejected: float = 0.0
    late: float = 0.0
    waits: bool = False
    lost: float = 0.0
    refused: bool = False
    state_bytes: float | None = None
    version: str | None = None

    @classmethod
    def of(cls, samples: Iterable[Sample], application: str, job: str, query: str, sink: str) -> "JobMetrics":
        """Those of a query among the samples of its application."""
        seen = list(samples)

        def total(name: str, **labels: str) -> float | None:
            values = [one.value for one in seen if one.name == name and labels.items() <= one.labels.items()]
            return sum(values) if values else None

        batches = total("kappa_batch_seconds_count", query=query)
        seconds = total("kappa_batch_seconds_sum", query=query) or 0.0
        is_indexer = sink == "elasticsearch"
        rejected = total("kappa_indexer_refused_total") if is_indexer else _written(seen, job, "events.rejected")
        return cls(
            last_batch=total("kappa_last_batch_timestamp_seconds", query=query),
            batch_seconds=seconds / batches if batches else None,
            event_time_lag=total("kappa_event_time_lag_seconds", job=job),
            input_rows=total("kappa_input_rows_total", query=query),
            rejected=rejected or 0.0,
            late=_written(seen, job, "events.late"),
            waits=is_indexer and bool(total("kappa_indexer_waiting")),
            lost=(total("kappa_indexer_lost_records_total") or 0.0) if is_indexer else 0.0,
            refused=bool(total("kappa_application_refused", application=application)),
            state_bytes=total("kappa_state_bytes", query=query) or None,
            version=next((one.labels.get("version") for one in seen if one.name == "kappa_build_info"), None),
        )


def _written(samples: Iterable[Sample], job: str, topic: str) -> float:
    """Rows that a job has written to a topic of whatever generation."""
    return sum(
        one.value
        for one in samples
        if one.name == "kappa_output_rows_total"
        and one.labels.get("job") == job
        and one.labels.get("target", "").startswith(topic)
    )


def problems(lag: int | None, metrics: JobMetrics | None) -> Iterator[Problem]:
    """What is wrong with a query; its application doesn't answer if it has no metrics."""
    if metrics is None:
        yield Problem("does not answer", "KappaJobDown")
    if lag is not None and lag > MOST_LAG:
        yield Problem(f"{lag:,} records behind", "KappaLagGrows")
    if metrics is None:
        return
    if metrics.refused:
        yield Problem("has ended, and waits for a person", "KappaApplicationRefused")
    if metrics.event_time_lag is not None and metrics.event_time_lag > MOST_EVENT_TIME_LAG:
        yield Problem(f"event time is {metrics.event_time_lag:,.0f} s behind", "KappaEventTimeBehind")
    if metrics.batch_seconds is not None and metrics.batch_seconds > LONGEST_BATCH:
        yield Problem(f"batches take {metrics.batch_seconds:.0f} s", "KappaSlowBatches")
    if metrics.waits:
        yield Problem("Elasticsearch takes no documents", "KappaElasticsearchWaits")
    if metrics.lost:
        yield Problem(f"{metrics.lost:,.0f} records were deleted before they were indexed", "KappaIndexerLostRecords")
