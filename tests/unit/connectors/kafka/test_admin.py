from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from connectors.kafka import admin
from infra.errors import UserError

NEW = {"telemetry": {"retention.ms": "2"}}


class LateBroker:
    """A broker that takes settings and shows the old ones for the first `late` questions after that."""

    def __init__(self, late):
        self.late, self.shown, self.taken = late, {"retention.ms": "1", "cleanup.policy": "delete"}, {}

    def incremental_alter_configs(self, resources):
        for resource in resources:
            self.taken |= {entry.name: entry.value for entry in resource.incremental_configs}
        return {resource: _answer(None) for resource in resources}

    def describe_configs(self, resources):
        if self.late == 0:
            self.shown = self.shown | self.taken
        self.late -= 1
        shown = {name: SimpleNamespace(value=value) for name, value in self.shown.items()}
        return {resource: _answer(shown) for resource in resources}


def _answer(value):
    future = Future()
    future.set_result(value)
    return future


def test_settings_are_set_once_the_broker_shows_them():
    broker = LateBroker(late=2)
    admin.set_config(broker, NEW)
    assert broker.shown == {"retention.ms": "2", "cleanup.policy": "delete"}


def test_a_broker_that_never_shows_them_is_named_by_its_topic(monkeypatch):
    monkeypatch.setattr(admin, "TIMEOUT_SECONDS", 0.2)
    with pytest.raises(UserError, match="topic 'telemetry': its settings changed, but the broker shows the old"):
        admin.set_config(LateBroker(late=1_000_000), NEW)
