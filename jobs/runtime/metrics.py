"""The Prometheus metrics of the jobs, and the HTTP server for `/metrics`, `/healthz` and `/readyz`."""

import socket
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, Counter, Gauge, Histogram, Info, generate_latest

from infra.errors import UserError
from infra.version import version
from jobs.runtime.access import CHALLENGE, UNAUTHORIZED, Access, ServerCertificate
from jobs.runtime.queryable import InvalidQuestionError, NotHereError, NotKnownError, Questions
from jobs.runtime.settings import Settings

_LABELS = ("job", "query")
INPUT_RATE = Gauge("kappa_input_rows_per_second", "Input rows a second, as Spark reports it", _LABELS)
PROCESSED_RATE = Gauge("kappa_processed_rows_per_second", "Processed rows a second, as Spark reports it", _LABELS)
INPUT_ROWS = Counter("kappa_input_rows", "Rows read from Kafka", _LABELS)
OUTPUT_ROWS = Counter("kappa_output_rows", "Rows written, by topic", ("job", "target"))
BATCH_SECONDS = Histogram(
    "kappa_batch_seconds",
    "Duration of a micro-batch, without what it waited",
    _LABELS,
    buckets=(0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300),
)
EVENT_TIME = Gauge("kappa_event_time_seconds", "Completed event time, Unix seconds: the job's last watermark", ("job",))
SITE_EVENT_TIME = Gauge(
    "kappa_site_event_time_seconds",
    "Newest event time with statistics of the site's machines, Unix seconds",
    ("site",),
)
MOST_SITES = 1_000
_SITES: set[str] = set()
WATERMARK_MARGIN = Gauge(
    "kappa_watermark_margin_seconds",
    "What watermarks leave for the skew of brokers' clocks, by what was measured",
    ("job",),
)
ALLOWED_LATENESS = Gauge(
    "kappa_allowed_lateness_seconds", "By how much events may be late by what was decided last", ("job",)
)
EVENT_TIME_LAG = Gauge("kappa_event_time_lag_seconds", "Wall clock minus completed event time", ("job",))
STATE_ROWS = Gauge("kappa_state_rows", "Rows in the state store; a row is a packed part of a shard", _LABELS)
STATE_BYTES = Gauge("kappa_state_bytes", "Memory that the state store uses", _LABELS)
LAG = Gauge("kappa_lag_records", "Consumer lag: records not yet read", ("job", "topic", "partition"))
LAG_SECONDS = Gauge(
    "kappa_lag_seconds", "Age of the oldest record not yet read, by its Kafka timestamp; 0: none", ("job", "topic")
)
HEADROOM = Gauge(
    "kappa_retention_headroom_seconds", "Until retention may delete a record that is not read yet", ("job", "topic")
)
QUIET = Gauge(
    "kappa_no_progress_seconds", "Since a query has last committed offsets, while there are records to read", _LABELS
)
LAST_BATCH = Gauge("kappa_last_batch_timestamp_seconds", "When the last micro-batch ended, Unix seconds", _LABELS)
DROPPED = Gauge("kappa_dropped_by_watermark_rows", "Rows that Spark dropped as late: 0, or the job stops", _LABELS)
NOTED_ROWS = Counter(
    "kappa_noted_rows",
    "Rows with a note, by job: a dead letter's code, cut, late, unknown_machine, alert_<verdict>",
    ("job", "note"),
)
REFUSED = Gauge(
    "kappa_application_refused", "1: it ended for what a person must decide, and stays down", ("application",)
)
ANSWER_SECONDS = Histogram(
    "kappa_answer_seconds",
    "Duration of an answer about the state",
    ("path",),
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5),
)
BUILD = Info("kappa_build", "The version that runs")
SKIPPED_TASKS = Counter("kappa_skipped_tasks", "Tasks of retried micro-batches that were committed before", ("job",))


def observe_progress(job: str, query: str, progress: dict[str, Any]) -> None:
    """Update the metrics with the `StreamingQueryProgress` (as a dict) of one micro-batch."""
    labels = (job, query)
    INPUT_RATE.labels(*labels).set(progress.get("inputRowsPerSecond") or 0)
    PROCESSED_RATE.labels(*labels).set(progress.get("processedRowsPerSecond") or 0)
    INPUT_ROWS.labels(*labels).inc(progress.get("numInputRows") or 0)
    BATCH_SECONDS.labels(*labels).observe(progress["durationMs"].get("triggerExecution", 0) / 1000)
    LAST_BATCH.labels(*labels).set(time.time())
    operators = progress.get("stateOperators") or []
    STATE_ROWS.labels(*labels).set(sum(o["numRowsTotal"] for o in operators))
    STATE_BYTES.labels(*labels).set(sum(o["memoryUsedBytes"] for o in operators))
    DROPPED.labels(*labels).set(dropped_rows(progress))


def dropped_rows(progress: dict[str, Any]) -> int:
    """The number of rows that Spark's watermark dropped in a micro-batch."""
    return sum(operator.get("numRowsDroppedByWatermark", 0) for operator in progress.get("stateOperators") or [])


def observe_write(job: str, rows_by_target: dict[str, int], rows_by_note: dict[str, int], skipped_tasks: int) -> None:
    """Count the rows that a micro-batch wrote by topic and by note, and its tasks that were committed before."""
    for target, rows in rows_by_target.items():
        OUTPUT_ROWS.labels(job, target).inc(rows)
    for note, rows in rows_by_note.items():
        NOTED_ROWS.labels(job, note).inc(rows)
    SKIPPED_TASKS.labels(job).inc(skipped_tasks)


def observe_sites(newest_ms: Mapping[str, int]) -> None:
    """Set the newest event time of each site, ms since the epoch, that a micro-batch had statistics of.

    Only of the first MOST_SITES: where the inventory doesn't know a machine, it says itself where it is.
    """
    for site, time_ms in newest_ms.items():
        if site in _SITES or len(_SITES) < MOST_SITES:
            _SITES.add(site)
            SITE_EVENT_TIME.labels(site).set(time_ms / 1000)


def observe_watermark(job: str, watermark_ms: int) -> None:
    """Set the completed event time of `job`, ms since the epoch; its lag goes on with the wall clock."""
    EVENT_TIME.labels(job).set(watermark_ms / 1000)
    EVENT_TIME_LAG.labels(job).set_function(lambda: time.time() - watermark_ms / 1000)


REQUEST_SECONDS = 30.0  # a handshake, a request and an answer may each take so long
NOTHING = Questions()  # of a process whose jobs answer none


class MetricsServer:
    """Serves `/metrics`, `/healthz`, `/readyz`, and what can be asked of the jobs' state; a context manager.

    `health` and `readiness` return None for yes (200), else the reason (503); by default what is healthy is ready.
    Where the settings name a certificate, it speaks HTTPS only. Where they name a token, a request without it is only
    told whether the process is healthy or ready, as Kubernetes' probes ask.
    """

    def __init__(
        self,
        settings: Settings,
        health: Callable[[], str | None],
        questions: Questions = NOTHING,
        *,
        readiness: Callable[[], str | None] | None = None,
    ) -> None:
        """Raises UserError if the port is taken, or certificate, key or token can't be used."""
        access = Access.of(settings)
        address = settings.metrics_host, settings.metrics_port
        handler = _handler({"/healthz": health, "/readyz": readiness or health}, questions, access)
        try:
            self._server = _Server(address, handler, access.certificate)
        except OSError as error:
            raise UserError(f"KAPPA_METRICS_PORT={settings.metrics_port}: {error.strerror}; choose another") from error
        BUILD.info({"version": version()})
        self.url = f"{'https' if access.certificate else 'http'}://{settings.metrics_host}:{self._server.server_address[1]}/metrics"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], certificate: ServerCertificate | None
    ) -> None:
        self._certificate = certificate
        super().__init__(address, handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """In the thread of a connection, so that a client that is slow to shake hands holds up nobody."""
        if self._certificate is None:
            super().finish_request(request, client_address)
        elif secured := _secured(request, self._certificate):
            with secured:
                super().finish_request(secured, client_address)


def _secured(request: socket.socket, certificate: ServerCertificate) -> socket.socket | None:
    """The connection with TLS; None if the client speaks another protocol, or doesn't trust the certificate."""
    request.settimeout(REQUEST_SECONDS)
    try:
        return certificate.context().wrap_socket(request, server_side=True)
    except OSError:
        return None


def _handler(
    probes: Mapping[str, Callable[[], str | None]], questions: Questions, access: Access
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_SECONDS

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            is_granted = access.is_granted_to(self.headers.get("Authorization"))
            if path in probes:
                reason = probes[path]()
                told = reason if is_granted else reason and "not ok"
                self._send(503 if reason else 200, f"{told or 'ok'}\n".encode(), "text/plain")
            elif not is_granted:
                self._send(HTTPStatus.UNAUTHORIZED, UNAUTHORIZED.encode(), "text/plain")
            elif path == "/metrics":
                self._send(200, generate_latest(REGISTRY), CONTENT_TYPE_LATEST)
            elif path in questions.paths:
                self._send(*_answered(questions, path, dict(parse_qsl(query))), "application/json")
            else:
                known = ", ".join(["/metrics", *probes, *questions.paths])
                self._send(404, f"there are {known}\n".encode(), "text/plain")

        def _send(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in CHALLENGE.items() if status == HTTPStatus.UNAUTHORIZED else ():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: Prometheus scrapes every few seconds."""

    return Handler


def _answered(questions: Questions, path: str, arguments: Mapping[str, str]) -> tuple[int, bytes]:
    """The status and the JSON of an answer."""
    try:
        with ANSWER_SECONDS.labels(path).time():
            return 200, orjson.dumps(questions.answer(path, arguments), option=orjson.OPT_SERIALIZE_NUMPY)
    except InvalidQuestionError as error:
        status, reason = 400, str(error)
    except NotKnownError as error:
        status, reason = 404, str(error)
    except NotHereError as error:
        status, reason = 503, str(error)
    return status, orjson.dumps({"error": reason})
