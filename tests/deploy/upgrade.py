"""`make test-upgrade`: the compose stack, upgraded to images that are really different; build/upgrade.json.

One stack goes through all of them, one after the other; after one that came out wrong the next has a stack of its own.
Each must come out as tests/deploy/variants.py says, the right image must run then, and no event may be lost or doubled.
KAFKA_PORT and ELASTICSEARCH_PORT move its ports.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.deploy.compose import PROJECT, SERVICES, Stack
from tests.deploy.stack import compare_past, run
from tests.deploy.variants import GENERATION, VARIANTS, Variant

REPORT = Path("build/upgrade.json")
COUNT_SECONDS = 180


class Upgraded(Stack):
    """The stack, which infra/docker/upgrade finds by its project's name."""

    def __init__(self, profile: str) -> None:
        super().__init__(profile)
        self.environment |= {"COMPOSE_PROJECT_NAME": PROJECT}
        self.given = self.image()  # that all others are made of

    def image(self) -> str:
        """What the stack is to run."""
        return str(json.loads(self.compose("config", "--format", "json"))["services"]["topics"]["image"])

    def begin(self) -> dict[str, Any]:
        """Bring it up from nothing; gives what `kappa verify` says of the time before any upgrade."""
        self.environment["KAPPA_IMAGE"] = self.given
        self.up()
        return compare_past(time.time() + 60, self.verify, 600)

    def running(self) -> set[str]:
        """What its jobs run."""
        project = f"label=com.docker.compose.project={PROJECT}"
        listed = run("docker", "ps", "--filter", "label=kappa.job", "--filter", project, "--format", "{{.Image}}")
        return set(listed.split())

    def upgrade(self, image: str, options: tuple[str, ...]) -> tuple[int, str]:
        """Upgrade its jobs; the exit code, and the last line."""
        command = ["infra/docker/upgrade", image, *options]
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout, flush=True)
        return done.returncode, (done.stdout.splitlines() or [""])[-1]

    def count(self) -> dict[str, Any]:
        """What `kappa verify` says, passed if every event is there once."""
        result = self.verify(COUNT_SECONDS)
        return result | {"passed": result["events_passed"]}

    def settle(self, variant: Variant, image: str, former: str) -> None:
        """Do what a person does after an upgrade: write down an image that stays, end a generation that doesn't."""
        if not variant.is_generation:
            self.environment["KAPPA_IMAGE"] = image if variant.stays else former
            return
        if variant.stays:
            self.kappa("replay", "rollback")
        self.end_generation()
        self.kappa("replay", "drop", GENERATION)

    def end_generation(self) -> None:
        """End the jobs of the generation beside it."""
        self.compose("-p", f"{PROJECT}-{GENERATION}", "--profile", "*", "down", "--remove-orphans")

    def down(self) -> None:
        """Remove it, the generation beside it, and the images that were made of its own."""
        self.end_generation()
        self.compose("--profile", "*", "down", "-v")
        made = run("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", f"{self.given}-*").split()
        if made:
            run("docker", "image", "rm", "-f", *made)


def test(stack: Upgraded, variant: Variant, name: str) -> dict[str, Any]:
    """One image; gives its part of the report."""
    began = time.monotonic()
    (former,) = stack.running()
    new = f"{stack.given}-{name.replace('_', '-')}"
    variant.build(stack.given, new)
    code, line = stack.upgrade(new, variant.options)
    running = stack.running()
    after = compare_past(time.time() + 20, stack.count, 600)
    as_it_must = (code == 0) is variant.stays and all(part in line for part in variant.says)
    right_image = running == ({new} if variant.stays and not variant.is_generation else {former})
    passed = after["passed"] and as_it_must and right_image
    if passed:
        stack.settle(variant, new, former)
    return {
        "passed": passed,
        "options": variant.options,
        "code": code,
        "line": line,
        "running": sorted(running),
        "after": after,
        "seconds": round(time.monotonic() - began),
    }


def main() -> int:
    """The exit code: 0 if each upgrade came out as it must, and nothing was lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", choices=sorted(SERVICES), default="small")
    parser.add_argument("--only", action="append", choices=list(VARIANTS), help="may be repeated")
    given = parser.parse_args()
    report = json.loads(REPORT.read_text()) if REPORT.exists() else {}
    stack, is_up, wanted = Upgraded(given.profile), False, given.only or list(VARIANTS)
    stack.down()
    stack.compose("build")
    try:
        for name in wanted:
            if not is_up:
                report["before"] = stack.begin()
            report[name] = test(stack, VARIANTS[name], name)
            write(report)
            if not (is_up := report[name]["passed"]):
                stack.down()
    finally:
        stack.down()
    return 0 if all(report[name]["passed"] for name in wanted) else 1


def write(report: dict[str, Any]) -> None:
    """Write what is known by now."""
    report["passed"] = report["before"]["passed"] and all(
        name in report and report[name]["passed"] for name in VARIANTS
    )
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2), flush=True)


if __name__ == "__main__":
    sys.exit(main())
