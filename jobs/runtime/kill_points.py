"""Places where a test may kill a job; see tests/chaos. Without KAPPA_FAULT in the environment they do nothing."""

import os
import signal


def reach(point: str) -> None:
    """Kill this process, as a power cut would, if KAPPA_FAULT names this point."""
    if os.environ.get("KAPPA_FAULT") == point:
        os.kill(os.getpid(), signal.SIGKILL)
