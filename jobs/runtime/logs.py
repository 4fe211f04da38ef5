"""Structured logs on stderr: JSON, or coloured lines for a terminal."""

import logging
import sys

import structlog
from structlog.typing import Processor

from jobs.runtime.settings import Settings

_SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)
# Without local variables, among which are secrets: passwords, the cookies of the console.
_TRACEBACKS = structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False))


def configure_logs(settings: Settings) -> None:
    """Send the logs of structlog and of the standard library to stderr, with the settings' format and level."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderers(settings.log_format)],
            foreign_pre_chain=_SHARED,
        )
    )
    logging.basicConfig(handlers=[handler], level=settings.log_level.upper(), force=True)
    # The last two may name addresses of channels, which are secrets.
    for verbose in ("py4j", "elastic_transport", "apprise", "urllib3"):
        logging.getLogger(verbose).setLevel(logging.ERROR)
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def _renderers(log_format: str) -> tuple[Processor, Processor]:
    if log_format == "json":
        return _TRACEBACKS, structlog.processors.JSONRenderer()
    return structlog.processors.format_exc_info, structlog.dev.ConsoleRenderer()
