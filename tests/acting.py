"""Who this process is to secured servers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from connectors.kafka.security import SECRETS


@contextmanager
def acting_as(secrets: Path | None) -> Iterator[None]:
    """Within, this process and those that it starts are the user of this folder of secrets; nobody without one."""
    former = os.environ.pop(SECRETS, None)
    if secrets:
        os.environ[SECRETS] = str(secrets)
    try:
        yield
    finally:
        os.environ.pop(SECRETS, None)
        if former is not None:
            os.environ[SECRETS] = former
