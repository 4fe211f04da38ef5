"""`kappa run`: a job of the chain as a process."""

import signal
import threading
from enum import StrEnum
from importlib import import_module
from typing import Annotated, NoReturn

import typer

from infra.errors import UserError
from jobs.runtime.logs import configure_logs
from jobs.runtime.settings import Settings, load_settings
from jobs.runtime.supervisor import supervise
from ops import launcher
from ops.replay.registry import CHAIN

app = typer.Typer()


class Step(StrEnum):
    """The jobs of the chain."""

    enrichment = "enrichment"
    statistics = "statistics"
    detector = "detector"
    archive = "archive"
    indexer = "indexer"
    all = "all"


@app.command()
def run(
    job: Annotated[Step, typer.Argument(help="Which job; all: every job, as supervised processes.")],
    *,
    kafka_bootstrap: Annotated[str | None, typer.Option(help="Kafka's addresses. [127.0.0.1:9092]")] = None,
    elasticsearch_url: Annotated[str | None, typer.Option(help="[http://127.0.0.1:9200]")] = None,
    generation: Annotated[
        str | None, typer.Option(help="Whose topics, checkpoints, tables and indices. [live]")
    ] = None,
    realtime: Annotated[
        bool,
        typer.Option(help="enrichment only: milliseconds instead of seconds, at least once. See docs/realtime.md."),
    ] = False,
    metrics_port: Annotated[int | None, typer.Option(help="Of /metrics and /healthz; 0: any free one. [9400]")] = None,
) -> None:
    """Run a job until SIGTERM; it then ends its batch and exits with 0.

    With KAPPA_PROFILE=small, `all` is one process with one Spark application: 2 GB in place of 5.

    Every setting has an environment variable, KAPPA_...; `kappa settings` lists them.

    Example: kappa run detector --metrics-port 9402
    """
    if realtime and job is not Step.enrichment:
        raise UserError(f"--realtime: {job.value} has no such mode, only enrichment has")
    settings = load_settings(
        kafka_bootstrap=kafka_bootstrap,
        elasticsearch_url=elasticsearch_url,
        generation=generation,
        metrics_port=metrics_port,
    )
    configure_logs(settings)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if job is not Step.all:
        launcher.run(job.value, settings, stop, module="realtime" if realtime else "job")
    elif settings.profile == "small":
        import_module("ops.single_application").run(settings, stop)
    else:
        _run_all(settings, stop)


def _run_all(settings: Settings, stop: threading.Event) -> NoReturn:
    planned = launcher.registry_for(settings, stop).generations.get(settings.generation)
    jobs = planned.jobs if planned else CHAIN
    raise SystemExit(supervise(jobs, settings, stop))
