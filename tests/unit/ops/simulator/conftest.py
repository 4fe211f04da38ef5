from collections.abc import Callable

import pytest

from ops.simulator.faults import SECOND, parse
from ops.simulator.simulation import Settings, Simulation

START = 1_795_000_000 * SECOND


@pytest.fixture
def simulate() -> Callable[..., Simulation]:
    def build(*specs: str, seconds: int = 60, **settings: object) -> Simulation:
        faults = tuple(parse(spec) for spec in specs)
        return Simulation(Settings(START, seconds * SECOND, faults=faults, **settings))

    return build
