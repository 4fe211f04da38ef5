"""The compose stack, upgraded by infra/docker/upgrade."""

import json
import subprocess
from typing import Any

from tests.deploy.compose import PROJECT, Stack
from tests.deploy.stack import COUNT_SECONDS, counted, run
from tests.deploy.upgrade.variants import GENERATION, REPLAYED, TOLERANCE, Variant


class UpgradedStack(Stack):
    """The stack, which infra/docker/upgrade finds by its project's name."""

    def __init__(self, profile: str) -> None:
        super().__init__(profile)
        self.environment |= {"COMPOSE_PROJECT_NAME": PROJECT}
        self.given = json.loads(self.compose("config", "--format", "json"))["services"]["topics"]["image"]

    def provide(self, image: str) -> None:
        """Docker has what it has built."""

    def begin(self) -> None:
        """Bring it up from nothing."""
        self.environment["KAPPA_IMAGE"] = self.given
        self.up()

    def running(self) -> set[str]:
        """What its jobs run."""
        project = f"label=com.docker.compose.project={PROJECT}"
        listed = run("docker", "ps", "--filter", "label=kappa.job", "--filter", project, "--format", "{{.Image}}")
        return set(listed.split())

    def upgrade(self, image: str, variant: Variant) -> tuple[bool, str]:
        """Upgrade its jobs; whether that succeeded, and the last line."""
        command = ["infra/docker/upgrade", image, "--mode", variant.mode, "--deadline", variant.deadline]
        if variant.is_generation:
            command += ["--job", REPLAYED, "--as", GENERATION, "--tolerance", str(TOLERANCE)]
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout, flush=True)
        return done.returncode == 0, (done.stdout.splitlines() or [""])[-1]

    def expected(self, variant: Variant) -> tuple[str, ...]:
        """Parts of that line; an image that stays is to be written down."""
        return (*variant.says, variant.goes_back, "KAPPA_IMAGE=" if variant.replaces else "")

    def count(self) -> dict[str, Any]:
        """What `kappa verify` says of the events."""
        return counted(self.verify(COUNT_SECONDS))

    def keep(self, image: str) -> None:
        """Write down the image that stays."""
        self.environment["KAPPA_IMAGE"] = image

    def withdraw(self) -> None:
        """End the jobs of the generation beside it."""
        self.compose("-p", f"{PROJECT}-{GENERATION}", "--profile", "*", "down", "--remove-orphans")

    def gone(self) -> None:
        """Remove it, and the generation beside it."""
        self.withdraw()
        self.compose("--profile", "*", "down", "-v")
