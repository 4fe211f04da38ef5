"""The page of metrics: what each process serves at `/metrics`."""

from prometheus_client.metrics import MetricWrapperBase

from ops.reference.markdown import code, page, table
from ops.reference.source import importers

INTRODUCTION = """Each job serves `/metrics` (Prometheus' text format) and `/healthz` on `KAPPA_METRICS_PORT`; with
`kappa run all`, the jobs count up from it. Beside these there are the Python client's own `process_*` and `python_*`.
The dashboard is `charts/kappa/files/dashboards/chain.json`; the alerts are in the [runbooks](../how-to/runbooks.md)."""


def metrics_page() -> str:
    """Every metric that a module of the project declares, by name."""
    found = {metric._name: metric for source in importers("prometheus_client") for metric in _metrics(source.load())}
    return page("Metrics", INTRODUCTION, table(("metric", "type", "labels", "meaning"), map(_row, _sorted(found))))


def _metrics(module: object) -> list[MetricWrapperBase]:
    return [value for value in vars(module).values() if isinstance(value, MetricWrapperBase)]


def _sorted(found: dict[str, MetricWrapperBase]) -> list[MetricWrapperBase]:
    return [found[name] for name in sorted(found)]


def _row(metric: MetricWrapperBase) -> tuple[str, str, str, str]:
    kind = metric._type or "untyped"
    name = f"{metric._name}_total" if kind == "counter" else metric._name
    return code(name), kind, ", ".join(map(code, metric._labelnames)), metric._documentation
