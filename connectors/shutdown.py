"""A graceful stop on SIGINT (Ctrl-C) and SIGTERM."""

import signal
from threading import Event
from types import FrameType


def stop_on_signals() -> Event:
    """An event that the first SIGINT or SIGTERM sets; a second one ends the process as usual."""
    stop = Event()

    def handle(number: int, _: FrameType | None) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)
    return stop
