"""`kappa run`: runs an application of the job table, or all of them."""

import signal
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import UserError
from jobs.table import JOBS

if TYPE_CHECKING:
    from jobs.runtime.settings import Settings

app = typer.Typer()
ALL = "all"
APPLICATIONS = tuple(JOBS.applications(JOBS.names()))


def _application(name: str) -> str:
    if name not in (*APPLICATIONS, ALL):
        raise UserError(f"application {name!r}: there is none; there are {', '.join((*APPLICATIONS, ALL))}")
    return name


@app.command()
def run(
    application: Annotated[
        str,
        typer.Argument(
            parser=_application,
            metavar="|".join((*APPLICATIONS, ALL)),
            help="An application of the job table, or all of them, as supervised processes.",
        ),
    ],
    *,
    kafka_bootstrap: Annotated[str | None, typer.Option(help="Kafka's addresses. [127.0.0.1:9092]")] = None,
    elasticsearch_url: Annotated[str | None, typer.Option(help="[http://127.0.0.1:9200]")] = None,
    generation: Annotated[
        str | None, typer.Option(help="Whose topics, checkpoints, tables and indices. [live]")
    ] = None,
    realtime: Annotated[
        bool,
        typer.Option(
            help="enrichment only: milliseconds instead of seconds, at least once. See docs/explanation/real-time.md."
        ),
    ] = False,
    metrics_port: Annotated[int | None, typer.Option(help="Of /metrics and /healthz; 0: any free one. [9400]")] = None,
) -> None:
    """Run an application until SIGTERM; it then completes its micro-batches and exits with 0.

    With KAPPA_PROFILE=small, `all` is one process with one Spark application: 2 GB instead of 5. Optional jobs run
    with the others if KAPPA_OPTIONAL_JOBS names them.

    Every setting has an environment variable, KAPPA_...; `kappa settings` lists them.

    Example: kappa run detector --metrics-port 9402
    """
    from jobs.runtime.access import Access
    from jobs.runtime.logs import configure_logs
    from jobs.runtime.settings import load_settings

    if realtime and not (application in JOBS.names() and JOBS[application].realtime):
        raise UserError(f"--realtime: {application} has no such mode; {', '.join(_with_realtime())} has")
    settings = load_settings(
        kafka_bootstrap=kafka_bootstrap,
        elasticsearch_url=elasticsearch_url,
        generation=generation,
        metrics_port=metrics_port,
    )
    Access.of(settings)  # what its server can't use is said before anything starts
    configure_logs(settings)
    _run(application, settings, realtime=realtime)


def _run(application: str, settings: "Settings", *, realtime: bool) -> None:
    from ops import launcher

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if realtime:
        launcher.run_realtime(JOBS[application], settings, stop)
    elif application == ALL and settings.profile == "standard":
        raise typer.Exit(launcher.run_all(settings, stop))
    else:
        launcher.run(application, settings, stop)


def _with_realtime() -> list[str]:
    return [job.name for job in JOBS if job.realtime]
