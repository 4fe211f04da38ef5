"""`make test-executors`: the chain on Spark's executor pods; executors and drivers are killed; build/executors.json.

In the cluster of your kubeconfig, where the image is, with checkpoints and tables in an object store, whose image is
built and brought to the nodes by --load, say --load "kind load docker-image". Once the kills are over and the
simulator's truth is compared, live and simulator end, and a generation, on executor pods, too, replays the log in
peace: it must say the same bytes.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from infra.version import version
from tests.deploy import object_store
from tests.deploy.kubernetes import PROFILES, RELEASE, Release, written
from tests.deploy.stack import compare_past, diff, strike, write_json

REPORT = Path("build/executors.json")
EXECUTOR = "executor"
SHARE_OF_EXECUTORS = 0.7  # of the kills
CONF = {
    "spark.kubernetes.executor.request.cores": "50m",  # for a node of two cores
    "spark.speculation": "true",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "2",
}
SPARK_JOBS = ("enrichment", "statistics", "detector", "archive")
SMALL = {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
VALUES = {
    "spark": {"mode": "kubernetes", "executors": {"memory": "640m", "memoryOverhead": "512m"}, "conf": CONF},
    "nodeSelector": {"kubernetes.io/os": "linux"},  # one node
    "jobs": {job: {"resources": SMALL} for job in SPARK_JOBS},
    **object_store.VALUES,
}


class Executors:
    """The executor pods of the release's jobs."""

    def __init__(self, release: Release, seed: int) -> None:
        self.release, self.rng = release, random.Random(seed)

    def kill(self, name: str) -> None:
        """End a pod without any grace: one of the executors, or the driver of this name."""
        if name != EXECUTOR:
            self.release.kill(name)
            return
        pods = self.release.kubectl("get", "pods", "-l", "spark-role=executor", "-o", "name").split()
        if pods:
            self.release.kubectl("delete", self.rng.choice(pods), "--force", "--grace-period=0", "--wait=false")


def test(values: str, kills: int, seed: int) -> dict[str, Any]:
    """Run it; gives the report."""
    release, began = Release((*PROFILES["standard"], "--values", values), version()), time.monotonic()
    release.gone()
    try:
        release.prepare()
        object_store.begin(release)
        release.install()
        executors = round(kills * SHARE_OF_EXECUTORS)
        drivers = [f"{RELEASE}-{job}" for job in SPARK_JOBS]
        targets = [EXECUTOR] * executors + (drivers * kills)[: kills - executors]
        killed = strike(targets, Executors(release, seed).kill, kills, seed, spread=20)
        told = compare_past(time.time(), release.verify, 900)
        found = replayed(release)
        same = not found["summary"] and all(count > 0 for count in found["compared"]["statistics"])
        return {
            "passed": told["passed"] and same,
            "kills": len(killed),
            "killed": killed,
            "events": told["events_in"],
            "lost": told["events_lost"],
            "duplicated": told["events_duplicated"],
            "same_bytes": same,
            "compared": found["compared"],
            "differing": found["summary"],
            "faults": told["faults"],
            "seconds": round(time.monotonic() - began),
        }
    finally:
        release.gone()


def replayed(release: Release) -> dict[str, Any]:
    """What differs between what live has said and what a generation says that runs alone."""
    image = f"{release.image()}:{release.tag}"
    said = release.kappa("replay", "start", "--job", "enrichment", "--as", "v2", "--image", image)
    release.apply(said, "--set", "live=false,simulator.enabled=false")
    release.kappa("replay", "watch", "v2")
    return diff(release)


def main() -> int:
    """The exit code: 0 if nothing was lost or doubled, every fault was found, and the replay says the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load", default="", help="the command that brings an image to the cluster's nodes")
    given = parser.parse_args()
    object_store.provide(given.load.split())
    with written(yaml.safe_dump(VALUES)) as values:
        facts = test(values, given.kills, given.seed)
    write_json(REPORT, facts)
    print(json.dumps(facts, indent=2))
    return 0 if facts["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
