"""`make test-compose`: the stack from nothing, killed, with another image, replayed, compared; then gone.

Works with any Docker. KAFKA_PORT and ELASTICSEARCH_PORT move its ports; KAPPA_PROFILE chooses how the jobs run.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from infra.errors import UserError
from jobs.table import JOBS
from tests.deploy import object_store
from tests.deploy.stack import POLL_SECONDS, compare_past, replay, run, strike, verify_script, write_report

PROJECT = "kappa-test"
SERVICES = {  # those of the jobs, by profile
    "standard": [*JOBS.applications(JOBS.enabled())],
    "small": ["jobs"],
}


class Stack:
    """The compose stack under a name of its own."""

    def __init__(self, profile: str) -> None:
        self.jobs = SERVICES[profile]
        self.environment = {**os.environ, "KAPPA_PROFILE": profile}
        self.second = ""  # the beginning of each command about the generation v2

    def compose(self, *arguments: str) -> str:
        """`docker compose` in this project."""
        return run("docker", "compose", "-p", PROJECT, *arguments, env=self.environment)

    def begin(self) -> None:
        """Start it from nothing."""
        self.compose("down", "-v")
        self.up()

    def up(self, *services: str) -> None:
        """Start what is not running, and wait until it is healthy."""
        self.compose("up", "-d", "--wait", "--wait-timeout", "900", *services)

    def kill(self, service: str) -> None:
        """As a power cut would; the container keeps its volumes and starts again."""
        self.compose("kill", "-s", "KILL", service)
        self.compose("start", service)

    def verify(self, wait: float = 600) -> dict[str, Any]:
        """What `kappa verify` says."""
        script = verify_script("--truth", "/var/lib/kappa/cloud", "--wait", wait)
        return dict(json.loads(self.compose("run", "--rm", "-T", "--entrypoint", "sh", "verify", "-c", script)))

    def change_image(self) -> None:
        """The same image under another name: every job's container is stopped in good order and made anew."""
        image = json.loads(self.compose("config", "--format", "json"))["services"]["topics"]["image"]
        self.environment["KAPPA_IMAGE"] = f"{image}-next"
        run("docker", "tag", image, f"{image}-next")
        self.up(*self.jobs)

    def kappa(self, *arguments: str) -> str:
        """What a command of ours prints, in a container of its own."""
        return self.compose("run", "--rm", "-T", "kappa", *arguments)

    def python(self, script: str) -> str:
        """What a script prints there."""
        return self.compose("run", "--rm", "-T", "--entrypoint", "python", "kappa", "-c", script)

    def apply(self, said: str) -> None:
        """Run the command that starts a generation's jobs."""
        self.second = said.strip().partition(" up -d ")[0]
        run("bash", "-c", said.strip(), env=self.environment)

    def withdraw(self) -> None:
        """End these jobs; the stack's network and volume are not theirs."""
        run("bash", "-c", f"{self.second} --profile '*' down", env=self.environment)

    def queries(self) -> dict[str, int]:
        """How many series each of Grafana's queries finds on Prometheus; raises if one, or an alert, is in error."""
        self.compose("--profile", "dashboards", "up", "-d", "--no-deps", "prometheus")
        port = self.compose("port", "prometheus", "9090").strip().rpartition(":")[2]
        panels = json.loads(Path("charts/kappa/files/dashboards/chain.json").read_text())["panels"]
        queries = {
            f"{panel['title']}: {one['legendFormat']}": one["expr"] for panel in panels for one in panel["targets"]
        }
        until_scraped(lambda: all(_series(port, query) for query in list(queries.values())[:3]))
        rules = [rule for group in _ask(port, "rules")["groups"] for rule in group["rules"]]
        faulty = [rule["name"] for rule in rules if rule["health"] == "err"]
        if faulty or not rules:
            raise UserError(f"alerts that Prometheus can't compute: {faulty}")
        return {title: len(_series(port, query)) for title, query in queries.items()}

    def memory(self) -> dict[str, str]:
        """What each container uses now, of its limit."""
        lines = run("docker", "stats", "--no-stream", "--format", "{{.Name}}|{{.MemUsage}}").splitlines()
        return dict(line.split("|") for line in lines if line.startswith(PROJECT))

    def restarts(self) -> dict[str, int]:
        """How often the engine started each container again: say, after the kernel had killed it for its memory."""
        names = self.compose("ps", "--format", "{{.Name}}").split()
        lines = run("docker", "inspect", "--format", "{{.Name}} {{.RestartCount}}", *names).splitlines()
        return {name.lstrip("/"): int(count) for name, count in map(str.split, lines)}


def _ask(port: str, path: str, **query: str) -> Any:
    with urlopen(f"http://127.0.0.1:{port}/api/v1/{path}?{urlencode(query)}", timeout=10) as answer:
        return json.load(answer)["data"]


def _series(port: str, query: str) -> list[Any]:
    return list(_ask(port, "query", query=query)["result"])


def until_scraped(done: Callable[[], bool], seconds: float = 180) -> None:
    """Wait until Prometheus answers with figures."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if done():
                return
        except (URLError, ConnectionError):
            pass
        if time.monotonic() > deadline:
            raise UserError("Prometheus has no figures of the jobs")
        time.sleep(POLL_SECONDS)


class StackOnObjectStore(Stack):
    """The stack whose checkpoints and tables are in an object store beside it."""

    def __init__(self, profile: str) -> None:
        super().__init__(profile)
        self.environment["KAPPA_OBJECT_STORE"] = "tests/deploy/store.env"

    def compose(self, *arguments: str) -> str:
        """`docker compose` in this project, with the store."""
        return super().compose("-f", "docker-compose.yml", "-f", "tests/deploy/store.yml", *arguments)

    def begin(self) -> None:
        """Start it from nothing, the store with its bucket first."""
        object_store.provide(())
        self.compose("down", "-v")
        self.up("store")
        self.compose("exec", "-T", "store", "python", "-c", object_store.MAKE_BUCKET)
        self.up()


def test(stack: Stack, profile: str, kills: int, seed: int) -> dict[str, Any]:
    """Run it; gives the report's part."""
    began = time.monotonic()
    try:
        stack.begin()
        started = time.monotonic() - began
        killed = strike([*stack.jobs, "kafka", "elasticsearch"], stack.kill, kills, seed, spread=15)
        found = compare_past(time.time(), stack.verify, 600)
        queries, memory = stack.queries(), stack.memory()
        stack.change_image()
        upgraded = compare_past(time.time() + 20, stack.verify, 600)
        second = replay(stack, "detector", stack.environment["KAPPA_IMAGE"], lambda: {"passed": True})
        return {
            "passed": found["passed"] and upgraded["passed"] and second["passed"],
            "profile": profile,
            "start_seconds": round(started),
            "killed": killed,
            "after_kills": found,
            "after_upgrade": upgraded,
            "replay": second,
            "memory": memory,
            "restarts": stack.restarts(),
            "queries": queries,
            "seconds": round(time.monotonic() - began),
        }
    finally:
        if stack.second:
            stack.withdraw()
        stack.compose("--profile", "*", "down", "-v")


def main() -> int:
    """The exit code: 0 if everything was found and nothing lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", choices=sorted(SERVICES), default="standard")
    parser.add_argument("--kills", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--object-store", action="store_true", help="checkpoints and tables in one")
    given = parser.parse_args()
    stack = StackOnObjectStore(given.profile) if given.object_store else Stack(given.profile)
    part = "compose_object_store" if given.object_store else "compose"
    return 0 if write_report(part, test(stack, given.profile, given.kills, given.seed)) else 1


if __name__ == "__main__":
    sys.exit(main())
