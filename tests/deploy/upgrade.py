"""`make test-upgrade`: the compose stack, upgraded to images that are really different; build/upgrade.json.

Each has a stack of its own. The upgrade must come out as tests/deploy/variants.py says, the right image must run then,
and no event may be lost or doubled. KAFKA_PORT and ELASTICSEARCH_PORT move its ports.
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
from tests.deploy.variants import VARIANTS, Variant

REPORT = Path("build/upgrade.json")
COUNT_SECONDS = 180


class Upgraded(Stack):
    """The stack, which infra/docker/upgrade finds by its project's name."""

    def __init__(self, profile: str) -> None:
        super().__init__(profile)
        self.environment |= {"COMPOSE_PROJECT_NAME": PROJECT}

    def image(self) -> str:
        """What the stack is to run."""
        return str(json.loads(self.compose("config", "--format", "json"))["services"]["topics"]["image"])

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

    def down(self) -> None:
        """Remove it, and the generation beside it."""
        self.compose("-p", f"{PROJECT}-v2", "--profile", "*", "down", "--remove-orphans")
        self.compose("--profile", "*", "down", "-v")


def test(variant: Variant, name: str, profile: str) -> dict[str, Any]:
    """One image; gives its part of the report."""
    stack, began = Upgraded(profile), time.monotonic()
    former, new = stack.image(), f"{stack.image()}-{name.replace('_', '-')}"
    variant.build(former, new)
    try:
        stack.down()
        stack.up()
        before = compare_past(time.time() + 60, stack.verify, 600)
        code, line = stack.upgrade(new, variant.options)
        running = stack.running()
        after = compare_past(time.time() + 20, stack.count, 600)
    finally:
        stack.down()
        run("docker", "image", "rm", "-f", new)
    beside = "generation" in variant.options
    as_it_must = (code == 0) is variant.stays and all(part in line for part in variant.says)
    right_image = running == ({new} if variant.stays and not beside else {former})
    return {
        "passed": before["passed"] and after["passed"] and as_it_must and right_image,
        "options": variant.options,
        "code": code,
        "line": line,
        "running": sorted(running),
        "before": before,
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
    for name in given.only or VARIANTS:
        report[name] = test(VARIANTS[name], name, given.profile)
        report["passed"] = all(name in report and report[name]["passed"] for name in VARIANTS)
        REPORT.parent.mkdir(exist_ok=True)
        REPORT.write_text(json.dumps(report, indent=2) + "\n")
        print(json.dumps(report[name], indent=2), flush=True)
    return 0 if all(report[name]["passed"] for name in given.only or VARIANTS) else 1


if __name__ == "__main__":
    sys.exit(main())
