"""What is upgraded: the chain on some platform, with the commands that its users would give."""

from typing import Any, Protocol

from tests.deploy.upgrade.variants import Variant


class Upgradable(Protocol):
    """A chain that runs, or can be begun."""

    given: str  # the image that all others are made of

    def provide(self, image: str) -> None:
        """Bring an image that Docker has to where it will run."""

    def begin(self) -> None:
        """Bring the chain up from nothing, on the given image."""

    def verify(self, wait: int) -> dict[str, Any]:
        """What `kappa verify` says."""

    def count(self) -> dict[str, Any]:
        """What `kappa verify` says, passed if every event is there once."""

    def running(self) -> set[str]:
        """The images of the live generation's jobs."""

    def upgrade(self, image: str, variant: Variant) -> tuple[bool, str]:
        """Upgrade; whether that succeeded, and the lines that say why."""

    def expected(self, variant: Variant) -> tuple[str, ...]:
        """Parts of these lines."""

    def keep(self, image: str) -> None:
        """Write down an image that stays."""

    def kappa(self, *arguments: str) -> str:
        """What a command of ours prints, where users run it."""

    def python(self, script: str) -> str:
        """What a script prints there."""

    def withdraw(self) -> None:
        """End the jobs of the generation that was begun beside the live one."""

    def gone(self) -> None:
        """Remove everything."""
