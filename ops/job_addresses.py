"""Where the applications of the running jobs answer over HTTP: metrics, health, questions about their state."""

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

import typer

from jobs.runtime.settings import Settings
from jobs.table import JOBS

MetricsUrl = Annotated[
    str | None,
    typer.Option(
        envvar="KAPPA_CONSOLE_METRICS_URL",
        help="Of running jobs, with {application} in it. [the ports of `kappa run all`]",
    ),
]

ALL = "all"  # the one application of the small profile


class JobAddresses:
    """The addresses of the applications of one generation."""

    def __init__(self, settings: Settings, template: str | None = None) -> None:
        """`template` is the address of `/metrics` with `{application}` in it; default: the ports of `kappa run all`."""
        self._settings, self._template = settings, template
        running = tuple(JOBS.applications(JOBS.enabled(settings.optional_jobs)))
        self.applications: Sequence[str] = (ALL,) if settings.profile == "small" else running

    def application(self, job: str) -> str:
        """The application in which a job runs."""
        return ALL if ALL in self.applications else JOBS[job].runs_in

    def metrics(self, application: str) -> str:
        """The address of an application's `/metrics`."""
        if self._template:
            return self._template.replace("{application}", application)
        port = self._settings.metrics_port + self.applications.index(application)
        return f"http://{self._settings.metrics_host}:{port}/metrics"

    def question(self, job: str, path: str, **arguments: str) -> str:
        """The address of a question about a job's state."""
        root = self.metrics(self.application(job)).removesuffix("/metrics")
        return f"{root}{path}?{urlencode(arguments)}"
