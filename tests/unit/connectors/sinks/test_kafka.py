"""The transactional sink's parts that need no broker."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from connectors import java_class, prepared
from connectors.kafka import client, deadline, logins, markers, refusals, retries, transactions
from connectors.sinks import kafka
from connectors.sinks.kafka import SinkSettings

SETTINGS = SinkSettings("127.0.0.1:1", "kappa.live.statistics", "run-1")
TOGETHER = (kafka, markers, transactions, client, logins, refusals, retries, deadline, prepared, java_class)


def test_it_can_be_copied_into_another_project():
    """The modules that its docstring names import nothing else of this project, and each is needed."""
    names = {module.__name__ for module in TOGETHER}
    assert set().union(*map(own_imports, TOGETHER)) == names - {kafka.__name__}
    assert all(f"{Path(module.__file__).name}`" in kafka.__doc__ for module in TOGETHER[1:])


def own_imports(module):
    tree = ast.parse(Path(module.__file__).read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name for name in imported if name.split(".")[0] in {"ops", "jobs", "connectors", "infra", "tests"}}


@pytest.mark.parametrize("timeout_ms", [10_000, 60_000, 600_000])
def test_java_takes_the_times_of_a_tasks_producer(timeout_ms):
    """It refuses to start if a request may last longer than a delivery."""
    _, producer, *_ = replace(SETTINGS, transaction_timeout_ms=timeout_ms).of_tasks()
    times = {name: int(producer[f"{name}.ms"]) for name in ("linger", "request.timeout", "delivery.timeout")}
    assert times["linger"] + times["request.timeout"] <= times["delivery.timeout"] <= timeout_ms
