"""The threads that send: one a channel, each with one delivery at a time, so that no channel holds up another."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait

import structlog

from jobs.notifier.channels.channel import Channel, DeliveryError
from jobs.notifier.delivery import Delivery

_log = structlog.get_logger(__name__)


class Couriers:
    """Attempts that run, and those whose outcome isn't committed yet. A channel has one of either at most."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels
        self._pool = ThreadPoolExecutor(len(channels), thread_name_prefix="courier")
        self._running: dict[str, tuple[Delivery, Future[Delivery]]] = {}
        self._outcome = threading.Event()

    @property
    def idle(self) -> list[str]:
        """The channels that can take a delivery."""
        return [channel for channel in self._channels if channel not in self._running]

    def start(self, delivery: Delivery) -> None:
        """Begin an attempt, which was committed as `sending`."""
        future = self._pool.submit(_attempt, self._channels[delivery.channel], delivery)
        self._running[delivery.channel] = delivery, future

    def outcomes(self) -> list[Delivery]:
        """The attempts that have ended, as sent or failed; the same ones again until they are committed."""
        return [future.result() for _, future in self._running.values() if future.done()]

    def committed(self, outcome: Delivery) -> None:
        """The outcome of an attempt is committed: its channel can take another delivery."""
        self._running.pop(outcome.channel, None)

    def wait(self, seconds: float) -> None:
        """Wait until all attempts have ended, for so many seconds at most."""
        wait([future for _, future in self._running.values()], seconds)
        self._pool.shutdown(wait=False, cancel_futures=True)


def _attempt(channel: Channel, delivery: Delivery) -> Delivery:
    try:
        channel.send(delivery)
    except DeliveryError as error:
        return delivery.failed(str(error))
    except Exception as error:  # of a library: whatever it is, it must not end the others; its text may hold a secret
        _log.error("channel failed unexpectedly", channel=delivery.channel, kind=type(error).__name__)
        return delivery.failed(f"unexpected {type(error).__name__}")
    return delivery.sent()
