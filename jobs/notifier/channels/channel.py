"""What every kind of channel is."""

from abc import ABC, abstractmethod

from jobs.notifier.declared import Declared
from jobs.notifier.delivery import Delivery

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 15.0


class DeliveryError(Exception):
    """An attempt failed, or its outcome isn't known. The reason is logged and recorded: it holds no secret."""


class Channel(Declared, ABC):
    """A way to people. It is used by one thread at a time."""

    @property
    @abstractmethod
    def variables(self) -> tuple[str, ...]:
        """The environment variables that it needs."""

    @abstractmethod
    def send(self, delivery: Delivery) -> None:
        """Returns once the other side has taken it, within half a minute; raises DeliveryError if that isn't certain."""
