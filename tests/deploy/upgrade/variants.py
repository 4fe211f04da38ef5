"""Images that are really different: the image with some text of its modules changed, by a Dockerfile of two lines.

Each says how an upgrade to it is guarded, and how it must come out.
"""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.deploy.stack import run

ROOT = Path(__file__).parents[3]
GENERATION = "v2"  # of the variants that are replayed beside the live jobs
DOCKERFILE = "FROM {image}\nCOPY app /opt/kappa/app\n"

RUNNER, QUERY, STATE = "jobs/runtime/runner.py", "jobs/runtime/query.py", "jobs/statistics/state.py"
WRITE = """        summary = self.sink.write(self.query.each_batch(frame) if self.query.each_batch else frame, batch_id)
"""
# Ten times as slow, and a minute at least: a small batch that takes five seconds instead of half a one keeps up with a
# load as small. Before anything is written, so that it isn't stopped within a batch.
SLOWLY = f"""        time = __import__("time")
        time.sleep(max(60, 9 * getattr(self, "took", 0)))
        began = time.monotonic()
{WRITE}        self.took = time.monotonic() - began
"""
# Its tasks have committed then, its driver has not.
ENDING = f"""{WRITE}        self.tries = getattr(self, "tries", 0) + 1
        if self.tries == 10:
            __import__("os")._exit(1)
"""


@dataclass(frozen=True)
class Change:
    """A text of a module, which is there once, and what stands there instead."""

    module: str
    former: str
    new: str

    def applied(self, text: str) -> str:
        """The changed text. Raises ValueError if the module has changed otherwise since."""
        if text.count(self.former) != 1:
            raise ValueError(f"{self.module}: has {text.count(self.former)} times {self.former!r}, instead of once")
        return text.replace(self.former, self.new)


@dataclass(frozen=True)
class Variant:
    """An image, and what an upgrade to it must come to.

    Attributes:
        changes: of the modules of the image that is there.
        mode: of the upgrade: checkpoint, savepoint or generation.
        deadline: by which the new image must be at work, or the generation have caught up.
        stays: whether the upgrade succeeds.
        says: what the upgrade's last line contains.
        goes_back: what the line contains of the way back, if there is one.
        gets_ready: whether its jobs are ever ready, as a pod's probe sees it.
    """

    changes: tuple[Change, ...]
    mode: str
    deadline: str
    stays: bool = False
    says: tuple[str, ...] = ()
    goes_back: str = ""
    gets_ready: bool = True

    @property
    def is_generation(self) -> bool:
        """Whether it is replayed beside the live jobs, which keep their image."""
        return self.mode == "generation"

    @property
    def replaces(self) -> bool:
        """Whether the live jobs run it in the end."""
        return self.stays and not self.is_generation

    def build(self, image: str, name: str) -> None:
        """Make it of an image, under a name."""
        cached = run("docker", "run", "--rm", "--entrypoint", "python", image, "-c", _CACHE).strip()
        with TemporaryDirectory() as folder:
            self.write(Path(folder) / "app", cached)
            run("docker", "build", "-q", "-t", name, "-f", "-", folder, input=DOCKERFILE.format(image=image))

    def write(self, app: Path, cached: str) -> None:
        """Write the changed modules. The image has their byte code, which it never compares: an empty file is passed
        over."""
        for module in dict.fromkeys(change.module for change in self.changes):
            text = (ROOT / module).read_text()
            for change in self.changes:
                text = change.applied(text) if change.module == module else text
            path = app / module
            cache = path.parent / "__pycache__" / f"{path.stem}.{cached}.pyc"
            cache.parent.mkdir(parents=True, exist_ok=True)
            cache.touch()
            path.write_text(text)
            for folder in (app, *(one for one in app.rglob("*") if one.is_dir())):
                folder.chmod(0o755)


_CACHE = "import sys; print(sys.implementation.cache_tag)"
REPLAYED = "detector"  # the first job of the variants that are generations
TOLERANCE = 0.01  # of their records, which may differ

_CHECKPOINTS = "goes on from its checkpoints"
_GOOD = Change(RUNNER, 'log.info("started", application', 'log.info("started", image="another", application')
_SLOW = Change(QUERY, WRITE, SLOWLY)
_LAYOUT = Change(STATE, "LAYOUT = 4 ", "LAYOUT = 5 ")
_CONVERTS = Change(STATE, 'header.get("layout", 1)\n', '{4: 5}.get(header.get("layout"), header.get("layout"))\n')
_BUDGET = "alarms_per_day: float = Field(default="
_DIFFERS = Change("jobs/detector/settings.py", f"{_BUDGET}5.0", f"{_BUDGET}5000.0")

VARIANTS = {
    "crashes": Variant(
        (Change(RUNNER, "    copies = Copies()\n", '    raise SystemExit("this image ends at once")\n'),),
        "checkpoint",
        "3m",
        says=("no copy of the new image has begun to write",),
        goes_back=_CHECKPOINTS,
        gets_ready=False,
    ),
    "crashes_at_tenth_batch": Variant(
        (Change(QUERY, WRITE, ENDING),), "checkpoint", "10m", says=("was started",), goes_back=_CHECKPOINTS
    ),
    "slow": Variant((_SLOW,), "checkpoint", "6m", says=("not ready after",), goes_back=_CHECKPOINTS),
    "other_layout": Variant(
        (_LAYOUT,), "savepoint", "4m", says=("not ready after",), goes_back=_CHECKPOINTS, gets_ready=False
    ),
    # It goes on from the former state, which the former image can't do from its.
    "converts": Variant(
        (_LAYOUT, _CONVERTS, _SLOW),
        "savepoint",
        "6m",
        says=("not ready after", "has the layout 5, this version 4"),
        goes_back="is back in place",
    ),
    "good": Variant((_GOOD,), "checkpoint", "8m", stays=True, says=("ready after",)),
    "answers_otherwise": Variant((_DIFFERS,), "generation", "10m", says=("is not promoted",)),
    "answers_the_same": Variant((_GOOD,), "generation", "10m", stays=True),
}
