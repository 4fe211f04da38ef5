"""Where the applications of the running jobs answer over HTTP: metrics, health, questions about their state."""

import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from http import HTTPStatus
from http.client import HTTPResponse
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

import typer

from infra.errors import UserError
from infra.pem import certificates
from jobs.runtime.access import Token
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
        """`template` is the address of `/metrics` with `{application}` in it; default: the ports of `kappa run all`.

        Raises UserError if the jobs' CA or token can't be used.
        """
        self._settings, self._template = settings, template
        self._ca, token = settings.metrics_ca, settings.metrics_token_file
        self._token = Token(token) if token else None
        if self._ca:
            _check(self._ca)
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
        scheme = "https" if self._settings.metrics_certificate else "http"
        return f"{scheme}://{self._settings.metrics_host}:{port}/metrics"

    def health(self, application: str) -> str:
        """The address of an application's `/healthz`."""
        return f"{self._root(application)}/healthz"

    def question(self, job: str, path: str, **arguments: str) -> str:
        """The address of a question about a job's state."""
        return f"{self._root(self.application(job))}{path}?{urlencode(arguments)}"

    def _root(self, application: str) -> str:
        return self.metrics(application).removesuffix("/metrics")

    def open(self, address: str, seconds: float) -> HTTPResponse:
        """The answer of a job, which gets the token. CA and token are read each time, as they may be renewed.

        Raises UserError if it refuses the token, or has a certificate of another CA or name; else OSError.
        """
        request = urllib.request.Request(address)
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token.present()}")
        context = ssl.create_default_context(cafile=self._ca) if request.type == "https" else None
        try:
            answer: HTTPResponse = urllib.request.urlopen(request, timeout=seconds, context=context)
        except urllib.error.URLError as error:
            self._explain(address, error)
            raise
        return answer

    def _explain(self, address: str, error: urllib.error.URLError) -> None:
        """Raises UserError if another setting would help."""
        if isinstance(error, urllib.error.HTTPError) and error.code == HTTPStatus.UNAUTHORIZED:
            raise UserError(
                f"KAPPA_METRICS_TOKEN_FILE={self._settings.metrics_token_file}: {address} asks for another token; "
                "give a file with that of the jobs"
            ) from None
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise UserError(
                f"KAPPA_METRICS_CA={self._ca}: {address} isn't trusted ({error.reason.verify_message}); give the CA of "
                "the jobs' certificate, and an address that the certificate names"
            ) from None


def _check(authority: Path) -> None:
    try:
        certificates("KAPPA_METRICS_CA", authority)
    except ValueError as error:
        raise UserError(str(error)) from None
