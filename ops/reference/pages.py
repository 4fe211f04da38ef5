"""The generated pages by file name."""

from collections.abc import Callable

from ops.reference.command_line import command_line_page
from ops.reference.configuration import configuration_page
from ops.reference.jobs import jobs_page
from ops.reference.metrics import metrics_page
from ops.reference.records import records_page

PAGES: dict[str, Callable[[], str]] = {
    "jobs.md": jobs_page,
    "configuration.md": configuration_page,
    "records.md": records_page,
    "cli.md": command_line_page,
    "metrics.md": metrics_page,
}
