"""`make test-k8s`: the chart in the cluster of your kubeconfig: install, kills, helm test, upgrade, rollback, replay.

The images must be there (IMAGE's tag and the same with `-next`); all is gone afterwards.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from tempfile import NamedTemporaryFile
from typing import Any

import yaml

from infra.version import version
from tests.charts.tools import CHART, find
from tests.deploy.stack import COUNT_SECONDS, compare_past, counted, replay, run, strike, verify_script, write_report

RELEASE = NAMESPACE = "kappa-test"
# A broker's pod takes half a minute to come back: the chart's faults begin when none of them is killed any more.
FAULTS: list[str] = yaml.safe_load((CHART / "values.yaml").read_text())["simulator"]["faults"]
FAULTS_LATER = 120


def _later(fault: str, seconds: int) -> str:
    return re.sub(r"@\+(\d+)s", lambda start: f"@+{int(start[1]) + seconds}s", fault)


# The comparison runs in the simulator's pod, where the truth is.
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: kappa}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 20Gi}}}
"""
BASE = (
    "--set",
    "storage.existingClaim=kappa",  # on one node every pod reaches it
    "--set",
    "simulator.enabled=true",
    "--set",
    "simulator.resources.limits.memory=1Gi",
    "--set-json",
    f"simulator.faults={json.dumps([_later(fault, FAULTS_LATER) for fault in FAULTS])}",
)
PROFILES = {
    "small": ("--values", str(CHART / "examples" / "local.yaml")),
    "standard": (),
}


@contextmanager
def written(text: str) -> Iterator[str]:
    """The path of a YAML file that has this text, for helm and kubectl."""
    with NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        yield file.name


class Release:
    """The chart, installed."""

    def __init__(self, values: tuple[str, ...], tag: str) -> None:
        self.values = (*values, *BASE)
        self.tag = tag

    def helm(self, *arguments: str) -> str:
        """Helm, in the namespace."""
        return run(find("helm") or "helm", "--namespace", NAMESPACE, *arguments)

    def kubectl(self, *arguments: str) -> str:
        """kubectl, in the namespace."""
        return run(find("kubectl") or "kubectl", "--namespace", NAMESPACE, *arguments)

    def prepare(self) -> None:
        """The namespace, and in it the claim that the release's pods share."""
        self.kubectl("create", "namespace", NAMESPACE)
        with written(CLAIM) as file:
            self.kubectl("apply", "-f", file)

    def install(self, *more: str, tag: str | None = None) -> None:
        """Install or upgrade, and wait until all is ready."""
        image = ("--set", f"image.tag={tag or self.tag}")
        wait = ("--wait", "--wait-for-jobs", "--timeout", "15m")
        self.helm("upgrade", "--install", RELEASE, str(CHART), "--create-namespace", *self.values, *image, *more, *wait)

    def image(self) -> str:
        """The image without its tag."""
        return str(yaml.safe_load((CHART / "values.yaml").read_text())["image"]["repository"])

    def deployments(self) -> list[str]:
        """The jobs' names."""
        listed = json.loads(self.kubectl("get", "deployments", "-o", "json"))["items"]
        names = [one["metadata"]["name"] for one in listed]
        return [name for name in names if not name.endswith(("-simulator", "-toolbox"))]

    def kappa(self, *arguments: str) -> str:
        """What a command of ours prints, in the toolbox."""
        return self.kubectl("exec", f"deployment/{RELEASE}-toolbox", "--", "kappa", *arguments)

    def python(self, script: str) -> str:
        """What a script prints there."""
        return self.kubectl("exec", f"deployment/{RELEASE}-toolbox", "--", "python", "-c", script)

    def apply(self, said: str, *more: str) -> None:
        """Add the values of the generation to the release."""
        with written(said) as file:
            self.install("--values", file, *more)

    def withdraw(self) -> None:
        """Take the generation out of the release."""
        self.install()

    def kill(self, name: str) -> None:
        """A pod's end without any grace; its controller makes another."""
        component = name.removeprefix(f"{RELEASE}-").replace("jobs", "all")
        label = f"app.kubernetes.io/component={component}"
        self.kubectl("delete", "pod", "-l", label, "--force", "--grace-period=0", "--wait=false")

    def verify(self, wait: int = 600, generation: str = "live") -> dict[str, Any]:
        """What `kappa verify` says."""
        script = verify_script("--wait", wait, "--generation", generation)
        said = self.kubectl("exec", f"deployment/{RELEASE}-simulator", "--", "sh", "-c", script)
        return dict(json.loads(said))

    def count(self, generation: str = "live") -> dict[str, Any]:
        """What `kappa verify` says of the events."""
        return counted(self.verify(COUNT_SECONDS, generation))

    def gone(self) -> None:
        """Remove everything."""
        run(find("kubectl") or "kubectl", "delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=5m")


def test(profile: str, tag: str, kills: int, seed: int, with_replay: bool) -> dict[str, Any]:
    """Run it; gives the report's part."""
    release, began, steps = Release(PROFILES[profile], tag), time.monotonic(), {}
    release.gone()
    try:
        release.prepare()
        release.install()
        started = time.monotonic() - began
        names = [*release.deployments(), f"{RELEASE}-kafka", f"{RELEASE}-elasticsearch"]
        killed = strike(names, release.kill, kills, seed, spread=15)
        steps["after_kills"] = compare_past(time.time(), release.verify, 600)
        release.helm("test", RELEASE, "--timeout", "15m")
        release.install("--set", "upgrade.mode=checkpoint", tag=f"{tag}-next")
        steps["after_upgrade"] = compare_past(time.time() + 20, release.count, 600)
        release.helm("rollback", RELEASE, "1", "--wait", "--timeout", "10m")
        steps["after_rollback"] = compare_past(time.time() + 20, release.count, 600)
        if with_replay:
            check = partial(compare_past, time.time(), partial(release.count, "v2"), 900)
            steps["replay"] = replay(release, "enrichment", f"{release.image()}:{tag}-next", check)
        return {
            "passed": all(step["passed"] for step in steps.values()),
            "profile": profile,
            "start_seconds": round(started),
            "killed": killed,
            **steps,
            "seconds": round(time.monotonic() - began),
        }
    finally:
        release.gone()


def main() -> int:
    """The exit code: 0 if everything was found and nothing lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", choices=sorted(PROFILES), default="standard")
    parser.add_argument("--tag", default=version())
    parser.add_argument("--kills", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-replay", dest="replay", action="store_false", help="Leave out the generation v2.")
    given = parser.parse_args()
    facts = test(given.profile, given.tag, given.kills, given.seed, given.replay)
    return 0 if write_report("kubernetes", facts) else 1


if __name__ == "__main__":
    sys.exit(main())
