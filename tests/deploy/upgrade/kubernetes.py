"""The chart's release, upgraded by helm under the chart's guards."""

import json
from collections.abc import Sequence

from infra.version import version
from ops.units import seconds_of
from tests.charts.tools import CHART
from tests.deploy.kubernetes import PROFILES, RELEASE, Release, written
from tests.deploy.stack import CommandError, run
from tests.deploy.upgrade.variants import GENERATION, REPLAYED, TOLERANCE, Variant

MARGIN_SECONDS = 180  # of helm's timeout over the guard's deadline
# Helm waits for the pods before it runs the hook that watches, and says so of those that never get ready.
NEVER_READY = ("failed, and has been rolled back",)


class UpgradedRelease(Release):
    """The release, whose guard is the one that can go back to a savepoint: a rollback runs the hook of its target."""

    def __init__(self, profile: str, load: Sequence[str]) -> None:
        """`load` is the command that brings a local image to the cluster's nodes."""
        super().__init__(PROFILES[profile], version())
        self.load = load
        self.given = f"{self.image()}:{self.tag}"
        self._first = self.tag
        self._mode = ""  # of the guard of the revision that is installed, whose hook goes back to it
        self._failed = False  # whether a generation's revision did: the next upgrade would leave its Deployments

    def provide(self, image: str) -> None:
        """Bring an image that Docker has to the nodes."""
        if self.load:
            run(*self.load, image)

    def begin(self) -> None:
        """Install it."""
        self.tag = self._first
        self.prepare()
        self._install()

    def running(self) -> set[str]:
        """What its jobs run."""
        live = "kappa/generation=live,app.kubernetes.io/component notin (toolbox,upgrade,promotion)"
        pods = json.loads(self.kubectl("get", "pods", "-l", live, "-o", "json"))["items"]
        here = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return {container["image"] for pod in here for container in pod["spec"]["containers"]}

    def upgrade(self, image: str, variant: Variant) -> tuple[bool, str]:
        """Upgrade it; whether that succeeded, and what the guard's hooks say."""
        deadline = seconds_of(variant.deadline, "deadline")
        timeout = ("--wait", "--timeout", f"{int(deadline) + MARGIN_SECONDS}s")
        guard = ("--set", f"upgrade.mode={variant.mode}", "--set", f"upgrade.deadline={variant.deadline}")
        self._forget_hooks()
        if variant.is_generation:
            return self._promote(image, (*guard, "--set", f"upgrade.tolerance={TOLERANCE}", *timeout))
        tag = ("--set", f"image.tag={image.rpartition(':')[2]}")
        failure = self._try((*self.values, *tag, *guard, "--atomic", *timeout))
        if not failure:
            self._mode = variant.mode
        lines = [failure, *map(self._log, ("upgrade-watch", "upgrade-back"))]
        return not failure, " ".join(filter(None, lines))

    def _promote(self, image: str, options: Sequence[str]) -> tuple[bool, str]:
        planned = self.kappa("replay", "start", "--job", REPLAYED, "--image", image, "--as", GENERATION)
        with written(planned) as file:
            failure = self._try((*self.values, "--set", f"image.tag={self.tag}", "--values", file, *options))
        self._failed = bool(failure)
        return not failure, self._log("upgrade-promote") or failure

    def _try(self, options: Sequence[str]) -> str:
        """Upgrade; what helm says if it fails."""
        try:
            self.helm("upgrade", RELEASE, str(CHART), *options)
        except CommandError as error:
            return str(error).partition(": code ")[2]
        return ""

    def _forget_hooks(self) -> None:
        """So that no line is of an upgrade before."""
        self.kubectl("delete", "jobs", "-l", "app.kubernetes.io/component in (upgrade,promotion)")

    def _log(self, hook: str) -> str:
        """The last line of a hook; empty if it didn't run."""
        try:
            lines = self.kubectl("logs", f"job/{RELEASE}-{hook}", "--tail=1").splitlines()
        except CommandError:
            return ""
        return (lines or [""])[-1]

    def expected(self, variant: Variant) -> tuple[str, ...]:
        """Parts of these lines."""
        says = variant.says if variant.gets_ready else NEVER_READY
        return (*says, variant.goes_back) if self._mode == "savepoint" else says

    def keep(self, image: str) -> None:
        """The image of what is installed next."""
        self.tag = image.rpartition(":")[2]

    def withdraw(self) -> None:
        """Take the generation out of the release."""
        if self._failed:
            self.helm("rollback", RELEASE, "--no-hooks", "--wait")
        self._install("--no-hooks")

    def _install(self, *options: str) -> None:
        self.install("--set", "upgrade.mode=savepoint", *options)
        self._mode = "savepoint"
