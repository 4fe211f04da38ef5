"""`make test-upgrade`: the chain, upgraded to images that are really different; build/upgrade.json.

One chain goes through all of them, one after the other; after one that came out wrong the next has a chain of its own.
Each must come out as tests/deploy/upgrade/variants.py says, the right image must run then, and no event may be lost or
doubled. In compose, where KAFKA_PORT and ELASTICSEARCH_PORT move its ports; or, with --on kubernetes, in the cluster of
your kubeconfig, to whose nodes --load brings images that Docker has built, say --load "kind load docker-image".
The report passed once both have; it has what `make test-replay` said of rescaling and backfills, too.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from tests.deploy.stack import LEFT, compare_past, run, write_json
from tests.deploy.upgrade.compose import UpgradedStack
from tests.deploy.upgrade.kubernetes import UpgradedRelease
from tests.deploy.upgrade.platform import Upgradable
from tests.deploy.upgrade.variants import GENERATION, VARIANTS, Variant
from tests.replay.report import Report

REPORT = Path("build/upgrade.json")
PLATFORMS = ("compose", "kubernetes")
PROFILES = ("small", "standard")


def test(chain: Upgradable, variant: Variant, name: str) -> dict[str, Any]:
    """One image; gives its part of the report."""
    began = time.monotonic()
    (former,) = chain.running()
    new = f"{chain.given}-{name.replace('_', '-')}"
    variant.build(chain.given, new)
    chain.provide(new)
    succeeded, line = chain.upgrade(new, variant)
    running = chain.running()
    after = compare_past(time.time() + 20, chain.count, 600)
    as_it_must = succeeded is variant.stays and all(part in line for part in chain.expected(variant))
    right_image = running == ({new} if variant.replaces else {former})
    if variant.replaces and right_image:
        chain.keep(new)
    left = end_generation(chain, variant.stays) if variant.is_generation and as_it_must else []
    return {
        "passed": after["passed"] and as_it_must and right_image and not left,
        "mode": variant.mode,
        "outcome": "stays" if succeeded else "taken back",
        "line": line,
        "running": sorted(running),
        "lost": after["events_lost"],
        "duplicated": after["events_duplicated"],
        "events": after["events_in"],
        "left": left,
        "seconds": round(time.monotonic() - began),
    }


def end_generation(chain: Upgradable, is_promoted: bool) -> list[str]:
    """Do what a person does with a generation that isn't wanted any more; gives what it left behind."""
    if is_promoted:
        chain.kappa("replay", "rollback")
    chain.withdraw()
    chain.kappa("replay", "drop", GENERATION)
    return list(json.loads(chain.python(LEFT)))


def lead(chain: Upgradable, wanted: list[str], facts: dict[str, Any], write: Any) -> bool:
    """Lead a chain through the images; whether each came out as it must. `facts` are written after each."""
    chain.gone()
    is_up = False
    try:
        for name in wanted:
            if not is_up:
                chain.begin()
                facts["before"] = compare_past(time.time() + 60, lambda: chain.verify(600), 600)
            facts[name] = test(chain, VARIANTS[name], name)
            write()
            if not (is_up := facts[name]["passed"]):
                chain.gone()
    finally:
        chain.gone()
        made = run("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", f"{chain.given}-*").split()
        if made:
            run("docker", "image", "rm", "-f", *made)
    return all(facts[name]["passed"] for name in wanted)


def main() -> int:
    """The exit code: 0 if each upgrade came out as it must, and nothing was lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", choices=PLATFORMS, default="compose")
    parser.add_argument("--profile", choices=PROFILES, default="small")
    parser.add_argument("--load", default="", help="the command that brings an image to the cluster's nodes")
    parser.add_argument("--only", action="append", choices=list(VARIANTS), help="may be repeated")
    given = parser.parse_args()
    report = json.loads(REPORT.read_text()) if REPORT.exists() else {}
    facts = report.setdefault(given.on, {})
    chain = (
        UpgradedStack(given.profile) if given.on == "compose" else UpgradedRelease(given.profile, given.load.split())
    )
    run("docker", "build", "-q", "-t", chain.given, "-f", "infra/docker/Dockerfile", ".")
    chain.provide(chain.given)
    return 0 if lead(chain, given.only or list(VARIANTS), facts, lambda: save(report)) else 1


def save(report: dict[str, Any]) -> None:
    """Write what is known by now."""
    done = [report[platform] for platform in PLATFORMS if platform in report]
    report["passed"] = len(done) == len(PLATFORMS) and all(
        facts["before"]["passed"] and _all_passed(facts) for facts in done
    )
    report |= of_replays(Report().proofs)
    write_json(REPORT, report)
    print(json.dumps(report, indent=2), flush=True)


def of_replays(proofs: dict[str, Any]) -> dict[str, Any]:
    """What `make test-replay` has reported of more partitions and of the archive as a batch, if it has run."""
    found: dict[str, Any] = {}
    if wide := proofs.get("more partitions"):
        begun, ended = wide["partitions"]
        found["rescale"] = {"from": begun, "to": ended, "different": wide["different"]}
    if batch := proofs.get("backfill"):
        found["backfill"] = {name: batch[name] for name in ("events_per_s", "through_kafka")}
    return found


def _all_passed(facts: dict[str, Any]) -> bool:
    return all(name in facts and facts[name]["passed"] for name in VARIANTS)


if __name__ == "__main__":
    sys.exit(main())
