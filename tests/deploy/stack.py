"""What the two deployments' tests share: kills at random moments, comparisons with the truth, one report."""

import json
import random
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from infra.errors import UserError

REPORT = Path("build/deploy.json")
POLL_SECONDS = 5.0
FAULTS_SECONDS = 190  # from the simulator's start to the end of the last fault of compose file and chart
COUNT_SECONDS = 180  # a truth tells its first windows after a minute and a half
EXAMPLES = 20  # of differing records, in the report


class CommandError(UserError):
    """A command's exit code was not 0; `printed` is its standard output."""

    def __init__(self, command: Sequence[str], code: int, printed: str, errors: str) -> None:
        super().__init__(f"{' '.join(command)}: code {code}: {(errors.strip() or printed.strip())[-1500:]}")
        self.printed = printed


def run(*command: str | Path, **more: Any) -> str:
    """Run a command and give its output; raises CommandError with the end of what it said."""
    parts = [str(part) for part in command]
    done = subprocess.run(parts, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        raise CommandError(parts, done.returncode, done.stdout, done.stderr)
    return done.stdout


def strike(targets: Sequence[str], kill: Callable[[str], None], count: int, seed: int, spread: float) -> list[str]:
    """Kill each target once, the rest by chance, `spread` seconds apart on average; gives whom, in order.

    Brokers go last, once the faults are over: what is sent while none answers comes late, and is in no window.
    """
    rng, began = random.Random(seed), time.monotonic()
    chosen = [
        *rng.sample(list(targets), min(count, len(targets))),
        *rng.choices(targets, k=max(0, count - len(targets))),
    ]
    chosen.sort(key=lambda target: "kafka" in target)
    for target in chosen:
        time.sleep(rng.uniform(0.5, 1.5) * spread)
        if "kafka" in target:
            time.sleep(max(0, began + FAULTS_SECONDS - time.monotonic()))
        print(f"{time.strftime('%H:%M:%S')} kill {target}", flush=True)
        kill(target)
    return chosen


def verify_script(*more: object) -> str:
    """A shell's command that prints what `kappa verify` found, whatever its exit code; fails if that was nothing."""
    result = "/var/lib/kappa/verify.json"
    verify = " ".join(map(str, ("kappa verify --json", result, *more)))
    return f"rm -f {result}; {verify} >&2; cat {result}"


def counted(result: dict[str, Any]) -> dict[str, Any]:
    """What `kappa verify` says, passed if every event is there once, as it was sent.

    Another image starts the simulation again, too: of its faults most are no news to machines that had them.
    """
    return result | {"passed": result["events_passed"]}


def compare_past(moment: float, verify: Callable[[], dict[str, Any]], seconds: float) -> dict[str, Any]:
    """The comparison once it covers `moment` (Unix seconds), however it came out; without that it has not passed."""
    deadline = time.monotonic() + seconds
    while True:
        result = verify()
        covers = result["until_unix_nano"] >= moment * 1e9
        if covers or time.monotonic() > deadline:
            result["passed"] = result["passed"] and covers
            summary = {key: value for key, value in result.items() if key != "faults"}
            print(f"{time.strftime('%H:%M:%S')} {summary}", flush=True)
            return result
        time.sleep(POLL_SECONDS)


# What a generation has left on servers and disk; run where the commands are.
LEFT = """
import json
from connectors.kafka.admin import connect
from jobs.runtime.settings import load_settings
from ops.replay.promotion import elasticsearch

settings = load_settings()
client = connect(settings.kafka_bootstrap)
groups = (group.group_id for group in client.list_consumer_groups().result().valid)
left = [name for name in client.list_topics().topics if name.endswith(".v2")]
left += [name for name in groups if name.startswith("kappa.v2.")]
indices = elasticsearch(settings).indices.get(index="kappa-*")
left += [name for name in indices if name.partition(".")[0].endswith("-v2")]
left += [str(path) for path in settings.home.glob("*/v2")]
print(json.dumps(left))
"""


class Platform(Protocol):
    """Where a replay is tried: what runs commands, and what starts and ends a generation's jobs."""

    def kappa(self, *arguments: str) -> str:
        """What a command of ours prints, where users run it."""

    def python(self, script: str) -> str:
        """What a script prints there."""

    def apply(self, said: str) -> None:
        """Do what `kappa replay start` said."""

    def withdraw(self) -> None:
        """End the generation's jobs."""


def replay(platform: Platform, job: str, image: str, check: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A generation from its plan to its end: started, compared, promoted, rolled back, dropped; gives the facts.

    `check` looks at it once it has caught up. Raises UserError if a command fails.
    """
    platform.apply(platform.kappa("replay", "start", "--job", job, "--as", "v2", "--image", image))
    platform.kappa("replay", "watch", "v2")
    checked = check()
    found = diff(platform)
    platform.kappa("replay", "promote", "v2")
    promoted = _readers(platform)
    platform.kappa("replay", "rollback")
    returned = _readers(platform)
    platform.withdraw()
    platform.kappa("replay", "drop", "v2")
    left = json.loads(platform.python(LEFT))
    switched = promoted == {"v2"} and returned == {"live"} and not left
    same = not found["summary"] and all(count > 0 for count in found["compared"]["novelties"])
    return {
        "passed": checked["passed"] and same and switched,
        "checked": checked,
        "compared": found["compared"],
        "differing": found["summary"],
        "examples": found["differences"][:EXAMPLES],
        "readers_after_promotion": sorted(promoted),
        "readers_after_rollback": sorted(returned),
        "left_by_drop": left,
    }


def diff(platform: Platform) -> dict[str, Any]:
    """What `kappa replay diff` found, which says by its exit code whether there was anything."""
    try:
        return dict(json.loads(platform.kappa("replay", "diff", "live", "v2", "--json")))
    except CommandError as error:
        if not error.printed.lstrip().startswith("{"):
            raise
        return dict(json.loads(error.printed))


def _readers(platform: Platform) -> set[str]:
    """The generations that readers of novelties see, in Elasticsearch and in Delta."""
    views = {row["view"]: row["leads to"] for row in json.loads(platform.kappa("replay", "views", "--json"))}
    folder = Path(views["table novelties"]).parent.name
    return {views["kappa-novelties"].removeprefix("kappa-novelties-"), folder}


def write_report(part: str, facts: dict[str, Any]) -> bool:
    """Put one deployment's facts into build/deploy.json; whether it passed."""
    report = json.loads(REPORT.read_text()) if REPORT.exists() else {}
    report[part] = facts
    parts = [report[name] for name in ("compose", "kubernetes") if name in report]
    report["passed"] = len(parts) == 2 and all(one["passed"] for one in parts)
    write_json(REPORT, report)
    print(json.dumps(facts, indent=2))
    return bool(facts["passed"])


def write_json(path: Path, report: dict[str, Any]) -> None:
    """Write a report as JSON."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
