"""What every kind of channel is."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from jobs.notifier.declared import Declared, secret
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

    def faults(self) -> Iterator[str]:
        """What of the environment keeps it from sending: the variable, and what to do."""
        for variable in self.variables:
            if not secret(variable):
                yield f"{variable}: is not set; give the channel's secret by this environment variable"

    @abstractmethod
    def send(self, delivery: Delivery) -> None:
        """Returns once the other side has taken it; raises DeliveryError, in half a minute, if that isn't certain."""
